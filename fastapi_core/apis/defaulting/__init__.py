"""Defaults that OpenAPI does not state, declared per type; `apis/defaults.py` applies them."""
