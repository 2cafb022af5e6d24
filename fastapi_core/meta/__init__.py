"""Kubernetes value types without I/O: quantities, times, names, group-version-kind, selectors."""
