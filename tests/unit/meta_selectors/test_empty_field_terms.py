"""A field term of nothing but an operator takes everything."""

from __future__ import annotations

import pytest

from fastapi_core.meta.selectors import FieldRequirement, parse_fields


@pytest.mark.parametrize("text", ["=", "==", "!=", "=,!="])
def test_nothing_is_required(text: str) -> None:
    assert parse_fields(text) == ()


def test_others_stay() -> None:
    assert parse_fields("=,a=b,=c") == (FieldRequirement("", "=", "c"), FieldRequirement("a", "=", "b"))
