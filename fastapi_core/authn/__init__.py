"""Authentication: who is asking."""
