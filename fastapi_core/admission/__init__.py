"""Admission: the gate between a decoded object and the store."""
