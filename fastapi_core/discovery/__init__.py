"""What the server serves, told to clients: discovery documents, the root index and the version."""
