"""Generic server: lifecycle, health, metrics."""
