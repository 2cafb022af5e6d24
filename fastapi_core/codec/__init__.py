"""Bytes to object trees and back: JSON, YAML, and the choice between them."""
