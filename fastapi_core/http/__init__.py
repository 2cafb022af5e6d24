"""Sockets and HTTP; nothing here knows Kubernetes."""
