"""The checks, one module a family. Importing `load` registers all of them in the order of the report."""

from __future__ import annotations

import importlib

from fastapi_core.testing.conformance.verdicts import Check, registered

FAMILIES = (
    "server",
    "discovery",
    "openapi",
    "reading",
    "listing",
    "selecting",
    "paging",
    "tables",
    "negotiation",
    "creating",
    "validation",
    "updating",
    "status",
    "patching",
    "applying",
    "deleting",
    "collections",
    "watching",
    "watch_starts",
    "watch_scopes",
    "bodies",
    "errors",
    "access",
    "concurrency",
)


def load() -> tuple[Check, ...]:
    """All checks."""
    for family in FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
    return registered()
