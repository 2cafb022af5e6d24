"""Flags and files to server configuration."""
