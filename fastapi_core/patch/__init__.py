"""JSON, merge and strategic merge patches on decoded objects."""
