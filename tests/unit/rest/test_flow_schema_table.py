"""Flow schemas are shown as a Table in the order in which they are asked; other kinds in that of their names."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fastapi_core._ext.objects import CachedObject
from fastapi_core.apis.resources import builtin
from fastapi_core.codec.negotiate import MediaType
from fastapi_core.registry.printers import printer
from fastapi_core.rest import render


def stored(kind: str, name: str, spec: dict[str, Any]) -> CachedObject:
    tree = {"kind": kind, "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}
    return CachedObject(f"/registry/x/{name}", "", name, json.dumps(tree, separators=(",", ":")).encode(), 7, 7)


@pytest.mark.parametrize(
    ("kind", "order"), [("FlowSchema", ["b", "c", "a"]), ("PriorityLevelConfiguration", ["a", "b", "c"])]
)
def test_order(kind: str, order: list[str]) -> None:
    definition = next(d for d in builtin() if d.kind == kind)
    spec = {"type": "Exempt", "priorityLevelConfiguration": {"name": "exempt"}}
    objects = [stored(kind, name, {**spec, "matchingPrecedence": at}) for name, at in (("a", 9), ("b", 1), ("c", 1))]
    scope = SimpleNamespace(definition=definition, printer=printer(definition))
    ctx = SimpleNamespace(info=SimpleNamespace(first=lambda name: ""))
    media = MediaType(as_kind="Table", as_group="meta.k8s.io", as_version="v1")
    made = json.loads(render.table(cast("Any", ctx), cast("Any", scope), media, objects, b"{}"))
    assert [row["cells"][0] for row in made["rows"]] == order
