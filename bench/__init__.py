"""Load benchmarks over TLS with all filters on: CPU per operation of the server beside the limit of the same run."""
