"""A Kubernetes API server in Python with a Cython hot path; imports nothing, carries the version only."""

__version__ = "0.1.0"
