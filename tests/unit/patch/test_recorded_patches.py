"""The three engines against recorded patches of the reference: state before and after are in the recordings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.patch.errors import PatchError
from fastapi_core.patch.jsonpatch import apply_json_patch
from fastapi_core.patch.merge import merge
from fastapi_core.patch.strategic import strategic
from fastapi_core.schema.tables import type_for
from fastapi_core.schema.types import Type

GOLDEN = Path(__file__).parents[4] / "shared" / "golden"
ENGINES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}

pytestmark = [pytest.mark.golden, pytest.mark.skipif(not GOLDEN.is_dir(), reason="no recordings here")]


def _steps() -> Iterator[Any]:
    """Patches of built-in objects whose state before is in the same recording."""
    files = [
        file for area in ("strategic", "jsonpatch", "merge") for file in sorted(GOLDEN.glob(f"patch/{area}-*.json"))
    ]
    for file in files:
        state: dict[str, Any] = {}
        for number, step in enumerate(json.loads(file.read_text()).get("steps", ())):
            path, expect = step["path"], step["expect"]
            engine = ENGINES.get(step.get("headers", {}).get("Content-Type", ""))
            before = state.get(path)
            body = step.get("body")
            variables = re.search(r"\{[a-z]+\}", json.dumps(body))
            if (
                step["method"] == "PATCH"
                and expect["status"] != 404
                and engine
                and before is not None
                and body is not None
                and not variables
            ):
                yield pytest.param(engine, before, body, expect, id=f"{file.stem}-{number}")
            after = expect.get("body")
            if expect["status"] not in (200, 201):
                continue
            if isinstance(after, dict) and after.get("metadata", {}).get("name") and after.get("kind") != "Status":
                key = path if step["method"] != "POST" else f"{path}/{after['metadata']['name']}"
                state[key] = after
            else:
                state.pop(path, None)


def _fits(part: Any, whole: Any) -> bool:
    """Every member of `part` is in `whole` (which has defaults besides)."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and _fits(value, whole[key]) for key, value in part.items() if value not in (None, "", {}, [])
        )
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) == len(whole) and all(map(_fits, part, whole))
    return bool(part == whole)


@pytest.mark.parametrize(("engine", "before", "patch", "expect"), list(_steps()) if GOLDEN.is_dir() else [])
def test_recorded(engine: str, before: Any, patch: Any, expect: Any) -> None:
    group, _, version = before["apiVersion"].rpartition("/")
    type = type_for(group, version, before["kind"])
    if type is None:
        pytest.skip("a custom resource")
    status = expect["status"]
    try:
        after = _apply(engine, before, patch, type)
    except PatchError as caught:
        refused: PatchError | None = caught
    else:
        refused = None
    recorded = expect.get("body")
    if refused is not None:
        assert refused.code == status
        if isinstance(recorded, dict) and "message" in recorded:
            assert refused.to_status() == recorded
    elif status == 200 and isinstance(recorded, dict):
        assert _fits({key: value for key, value in after.items() if key != "metadata"}, recorded)


def _apply(engine: str, before: Any, patch: Any, type: Type) -> Any:
    if engine == "strategic":
        return strategic(before, patch, type)
    return apply_json_patch(before, patch) if engine == "json" else merge(before, patch)
