"""Every kind's columns against the recorded ones, and rows of recorded tables."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.apis.defaults import apply_defaults
from fastapi_core.apis.resources import builtin
from fastapi_core.registry.printers import Age, custom_printer, kind_printer, printer
from fastapi_core.registry.printers.tables import TABLES
from fastapi_core.schema.normalize import normalize

SHARED = Path(__file__).parents[4] / "shared"
FACTS = SHARED / "facts" / "resources.json"
GOLDEN = SHARED / "golden" / "listwatch"
needs_facts = pytest.mark.skipif(not FACTS.exists(), reason="the recorded facts are absent")


def recorded_tables() -> dict[str, Any]:
    return json.loads(FACTS.read_text())["tables"] if FACTS.exists() else {}


@needs_facts
@pytest.mark.parametrize("kind", sorted(recorded_tables()))
def test_columns_match_the_facts(kind: str) -> None:
    shown = custom_printer() if kind == "~customResource" else kind_printer(kind)
    columns = [[c.name, c.type, c.format, c.priority] for c in shown.columns]
    assert columns == [entry[:4] for entry in recorded_tables()[kind]["columns"]]


@needs_facts
def test_no_kind_is_made_up() -> None:
    # Custom resources have a table of their own for their Scale, too.
    assert set(TABLES) - {"Scale of CustomResource"} <= set(recorded_tables())


@pytest.mark.parametrize("definition", builtin(), ids=lambda d: f"{d.group_version}-{d.kind}")
def test_an_empty_object_has_a_cell_for_every_column(definition: Any) -> None:
    shown = printer(definition)
    cells = shown.cells({"metadata": {}})
    assert len(cells) == len(shown.columns) + (definition.kind == "IPAddress")


_PATH = re.compile(r"(/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/[^/]+)?/([a-z]+)(?:/([^/]+))?(?:/[^/]+)?")
_BASES = {(f"/apis/{d.group}/{d.version}" if d.group else "/api/v1", d.plural): d for d in builtin() if d.key_prefix}


def merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge(out.get(key), value)
    return out


class Replica:
    """The objects of a recorded case, kept just well enough to print them."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}

    def write(self, definition: Any, name: str, step: dict[str, Any], body: Any) -> None:
        key = (definition.kind, name)
        if step["method"] == "POST":
            tree = normalize(definition.type, body).tree
            tree["metadata"].setdefault("creationTimestamp", "2020-01-01T00:00:00Z")
            apply_defaults(definition, tree)
            definition.strategy.prepare(tree, None)
            key = (definition.kind, tree["metadata"].get("name", ""))
        elif key not in self.objects:
            return
        elif step["method"] == "DELETE":
            tree = merge(self.objects[key], {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}})
        else:
            tree = merge(self.objects[key], body)
        self.objects[key] = normalize(definition.type, tree).tree

    def rows(self, definition: Any, selector: str) -> list[Any]:
        name = selector.removeprefix("metadata.name=") if selector else ""
        return [
            printer(definition).cells(tree)
            for (kind, key), tree in sorted(self.objects.items())
            if kind == definition.kind and name in ("", key)
        ]


def text(cell: Any) -> str:
    if isinstance(cell, Age):
        return f"{cell.before}<invalid>{cell.after}"
    return "null" if cell is None else str(cell)


@pytest.mark.skipif(not GOLDEN.exists(), reason="the recordings are absent")
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("table-*.json")), ids=lambda p: p.stem)
def test_recorded_rows(path: Path) -> None:
    replica = Replica()
    rows: list[Any] = []
    captured: dict[str, str] = {}
    printed = ""
    for step in json.loads(path.read_text())["steps"]:
        match = _PATH.fullmatch(step["path"])
        definition = _BASES.get(match.groups()[:2]) if match else None
        if definition is None:
            continue
        body = json.loads(json.dumps(step.get("body")).replace("{rand}", "abcdef").replace("{ns}", "g-abcdef"))
        name = (match[3] or "").replace("{rand}", "abcdef")  # type: ignore[index]
        answer = step.get("expect", {})
        if definition.kind == "ConfigMap" and step["method"] == "POST" and rows:
            want = answer["body"]["data"]
            for variable, where in captured.items():
                row, cell = map(int, re.findall(r"\d+", where))
                allocated = printed == "Service" and cell == 2
                if variable in want and not allocated:
                    got = text(rows[row][cell]).replace("g-abcdef", "<ns>").replace("abcdef", "<rand>")
                    assert got == want[variable], (variable, where)
            rows = []
        elif step["method"] == "GET":
            if "as=Table" in step.get("headers", {}).get("Accept", "") and "capture" in step:
                selector = step.get("query", {}).get("fieldSelector", "").replace("{rand}", "abcdef")
                rows, captured = replica.rows(definition, selector), step["capture"]
                printed = definition.kind
        elif answer["status"] < 300 and definition.kind != "ConfigMap":
            replica.write(definition, name, step, body)
