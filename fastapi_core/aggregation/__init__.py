"""API groups that other servers answer for: registration, availability, proxy, discovery and OpenAPI."""
