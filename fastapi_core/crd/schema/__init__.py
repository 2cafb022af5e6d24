"""Schemas of custom resources; the engine is `fastapi_core.structural`, which the validation of definitions shares."""

from __future__ import annotations

from fastapi_core.structural import Coerced, Schema, compiled

__all__ = ["Coerced", "Schema", "compiled"]
