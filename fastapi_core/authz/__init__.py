"""Authorization: may they."""
