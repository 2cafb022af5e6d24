"""Where objects are kept: bytes at keys with revisions."""
