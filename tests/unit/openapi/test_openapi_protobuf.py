from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.apis.resources import builtin
from fastapi_core.openapi.documents import PROTOBUF, OpenAPIDocuments
from fastapi_core.openapi.protobuf import varint

_spec = importlib.util.spec_from_file_location(
    "gnostic_oracle", Path(__file__).parents[2] / "oracles" / "gnostic_oracle.py"
)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

DOCUMENTS = OpenAPIDocuments(builtin())


def expressible(value: Any) -> Any:
    """What the messages can say: no empty lists, and of defaults only scalars (others stay as an empty message)."""
    if isinstance(value, dict):
        out = {key: expressible(item) for key, item in value.items() if item != []}
        if isinstance(out.get("default"), dict) and (isinstance(out.get("allOf"), list) or out.get("type") == "object"):
            out["default"] = None
        return out
    if isinstance(value, list):
        return [expressible(item) for item in value]
    return value


@pytest.mark.parametrize("name", DOCUMENTS.documents)
def test_v3_says_the_same_as_json(name: str) -> None:
    document = DOCUMENTS.documents[name]
    assert _module.decode(document.body(PROTOBUF), _module.V3) == expressible(json.loads(document.body()))


def test_v2_says_the_same_as_json() -> None:
    want = json.loads(DOCUMENTS.v2.body())
    want["security"] = [dict.fromkeys(entry) for entry in want["security"]]
    assert _module.decode(DOCUMENTS.v2.body(PROTOBUF), _module.V2) == want


@given(st.integers(0, 2**63))
def test_varint(value: int) -> None:
    [(number, read)] = _module.fields(b"\x08" + varint(value))
    assert (number, read) == (1, value)
