"""Type tables: one description of types for decoding, defaults, OpenAPI, patches and apply."""
