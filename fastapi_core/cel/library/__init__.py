"""Functions that expressions may call, a module a subject."""
