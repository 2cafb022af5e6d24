"""Strategies of the built-in kinds: the shared rules of `basics`, and per kind what goes beyond them (`table`)."""
