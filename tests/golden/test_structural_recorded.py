"""Repeats the recorded writes of custom resources in-process: what the schema of their definition does to them and says
of them. Only answers that the schema alone decides are compared."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.errors import FieldError
from fastapi_core.patch.jsonpatch import apply_json_patch
from fastapi_core.patch.merge import merge
from fastapi_core.structural import Schema, compiled

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "golden" / "crd"
CASES = sorted(RECORDED.glob("c[er]*.json")) + sorted(RECORDED.glob("ratcheting-*.json"))
SKIPPED = ("crd-", "cel-cost", "cel-old-self", "create-right", "cr-wrong-type-meta", "cr-too-large")
Tree = dict[str, Any]


class Replay:
    """One definition and the objects written under it."""

    def __init__(self) -> None:
        self.definition: Tree = {}
        self.objects: dict[str, Tree] = {}
        self.compared = 0

    def schema(self) -> Schema:
        version = self.definition["spec"]["versions"][0]
        return compiled((version.get("schema") or {}).get("openAPIV3Schema"), preserve=False)

    def run(self, step: Tree) -> None:
        method, path, status = step["method"], step["path"], step["expect"]["status"]
        body, good = step.get("body"), step["expect"]["status"] < 300
        if method not in ("POST", "PUT", "PATCH") or body is None or step.get("query"):
            return
        if "customresourcedefinitions" in path:
            if good:
                self.definition = body if method == "POST" else self._patched(self.definition, step)
            return
        if not self.definition or status not in (200, 201, 422):
            return
        name = path.rsplit("/", 1)[1] if method != "POST" else body["metadata"].get("name", "")
        old = None if method == "POST" else self.objects.get(name)
        if method != "POST" and old is None:
            return
        tree = copy.deepcopy(body) if method != "PATCH" else self._patched(old or {}, step)
        self._write(tree, old, name, step["expect"])

    def _patched(self, tree: Tree, step: Tree) -> Tree:
        tree = copy.deepcopy(tree)
        apply: Callable[[Tree, Any], Tree] = apply_json_patch if isinstance(step["body"], list) else merge
        return apply(tree, copy.deepcopy(step["body"]))

    def _write(self, tree: Tree, old: Tree | None, name: str, expect: Tree) -> None:
        schema = self.schema()
        unknown = schema.prune(tree)
        coerced = schema.coerce(tree, drop=False)
        assert coerced.errors == []
        schema.default(tree)
        errors = schema.validate(tree, old)
        body = expect.get("body")
        if expect["status"] == 422:
            self._refused(errors, body)
            return
        assert errors == []
        self.objects[name] = tree
        self.compared += 1
        if isinstance(body, dict) and "spec" in body and "uuid" not in json.dumps(body):
            assert {key: value for key, value in tree.items() if key not in ("metadata", "apiVersion", "kind")} == {
                key: value for key, value in body.items() if key not in ("metadata", "apiVersion", "kind")
            }
        warned = expect.get("headers", {}).get("Warning", "")
        wanted = [f'299 - "unknown field \\"{path}\\""' for path in coerced.unknown + unknown]
        assert ("unknown field" in warned) == bool(wanted)
        if wanted:
            assert sorted(warned.split(", ")) == sorted(wanted)

    def _refused(self, errors: list[FieldError], body: Any) -> None:
        if not isinstance(body, dict):
            assert errors
            return
        causes = [cause for cause in body["details"]["causes"] if not _of_metadata(cause)]
        if causes:
            assert [error.cause() for error in errors] == causes
            self.compared += 1


def _of_metadata(cause: Tree) -> bool:
    return cause["field"] in ("metadata.uid", "metadata.finalizers", "kind", "apiVersion")


@pytest.mark.skipif(not CASES, reason="the recordings are not here")
@pytest.mark.parametrize(
    "case", [path for path in CASES if not path.name.startswith(SKIPPED)], ids=lambda path: path.stem
)
def test_recorded(case: Path) -> None:
    replay = Replay()
    for step in json.loads(case.read_text())["steps"]:
        replay.run(step)
    assert replay.compared or "raw" in case.read_text()
