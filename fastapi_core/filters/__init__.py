"""What surrounds every endpoint."""
