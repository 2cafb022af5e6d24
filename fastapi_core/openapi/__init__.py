"""OpenAPI v2 and v3 documents, made from type tables and resource definitions on first request."""
