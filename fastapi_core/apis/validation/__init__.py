"""Validation of the built-in kinds: rules declared per type (`rules`), compiled once, plus functions where it is logic."""
