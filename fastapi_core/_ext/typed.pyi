"""Type-table driven normalisation of decoded JSON trees (see `fastapi_core/schema/normalize.py`)."""
