"""Repeats the recorded single-field experiments on the reference in-process and counts how many agree.

An experiment agrees when the outcome recorded for it (accepted, or the list of error types, fields and texts in order)
comes out at one of the places where the changed field occurs in the base objects of the kind. Indexes are recorded as
`[*]`, equal errors once.
"""

from __future__ import annotations

import collections
import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from fastapi_core import errors
from fastapi_core.apis.resources import builtin
from fastapi_core.registry import lifecycle
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.metadata import dedup_owner_references
from fastapi_core.request.context import User
from fastapi_core.rest.create import settle_namespace
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.rest.update import check_name
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.types import Field, Type
from tests.fixtures.validation_bases import NS, bases

FACTS = Path(__file__).resolve().parents[3] / "shared" / "facts"
TARGET = 0.985
LONG = "a" * 300
Outcome = tuple[tuple[str, str, str], ...] | str

_TYPES = {
    "Invalid value": "Invalid",
    "Required value": "Required",
    "Unsupported value": "NotSupported",
    "Duplicate value": "Duplicate",
    "Not found": "NotFound",
    "Too long": "TooLong",
    "Too many": "TooMany",
    "Internal error": "InternalError",
    "TypeInvalid": "TypeInvalid",
}
_uuid = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


# Mutations


def _integer(name: str, field: Field) -> Any:
    return {"neg": -1, "zero": 0, "big": 70000, "huge": 2**31 - 1 if field.scalar == "int32" else 2**34}[name]


_TEXTS = {"empty": "", "bad": "Bad_!@ x", "long": LONG, "other": "zz"}
_ITEMS = {"itemEmpty": "", "itemBad": "Bad_!@", "itemLong": LONG, "itemNeg": -1, "itemBig": 70000}
_ENTRIES = {
    "badKey": ("bad key!", "v"),
    "badValue": ("k1", "Bad_!@ x"),
    "longValue": ("k1", LONG),
    "emptyKey": ("", "v"),
    "longKey": (LONG, "v"),
}
_AMOUNTS = {
    "badKey": ("bad key!", "1"),
    "negative": ("cpu", "-1"),
    "unknownKey": ("zzz", "1"),
    "fraction": ("memory", "500m"),
    "extended": ("x.y/z", "1500m"),
}
_MIXED = {"neg": -1, "zero": 0, "big": 70000, "word": "a_b", "pct150": "150%"}


def _quantities(field: Field) -> bool:
    return field.card == "map" and field.type is not None and field.type.json == "quantity"


def mutate(holder: Tree, field: Field, name: str) -> bool:
    """Change one member; False when the change does not apply to it."""
    value = holder.get(field.name)
    if name in ("absent", "emptyList", "emptyMap", "dup") and (value is None or value == []):
        return False
    if name == "absent":
        del holder[field.name]
    elif name in ("emptyObject", "emptyMap"):
        holder[field.name] = {}
    elif name == "emptyList":
        holder[field.name] = []
    elif name == "flip":
        holder[field.name] = not value
    elif name == "dup":
        items = list(value or ())
        holder[field.name] = [copy.deepcopy(items[0]), *items]
    elif name == "addEmptyItem":
        holder[field.name] = [*(value or ()), {}]
    elif name in _ITEMS:
        holder[field.name] = [*(value or ()), _ITEMS[name]]
    elif _quantities(field) and name in _AMOUNTS:
        key, amount = _AMOUNTS[name]
        holder[field.name] = {**(value or {}), key: amount}
    elif field.card == "map" and name in _ENTRIES:
        key, text = _ENTRIES[name]
        holder[field.name] = {**(value or {}), key: text}
    elif name in _TEXTS and not (field.type is not None and field.type.json == "intOrString"):
        holder[field.name] = _TEXTS[name]
    elif field.type is not None and field.type.json == "intOrString":
        holder[field.name] = _MIXED[name]
    elif field.type is not None and field.type.json == "quantity":
        holder[field.name] = {"neg": "-1", "zero": "0"}[name]
    else:
        holder[field.name] = _integer(name, field)
    return True


# Places


def places(type_: Type, tree: Tree, wanted: str, path: str, declared: str) -> Iterator[tuple[Tree, Field, str, str]]:
    """(object, field, path of the field, path of its parent) wherever the member `wanted` ("type.field") may be."""
    owner, _, member = wanted.rpartition(".")
    for name, field in type_.fields.items():
        at = f"{path}.{name}" if path else name
        if name == member and _owner(type_, name) == owner:
            yield tree, field, at, path
        value = tree.get(name)
        if value is None or field.type is None or field.type.json or at == "status":
            continue
        if field.card == "list":
            for item in value:
                yield from places(field.type, item, wanted, at + "[*]", declared)
        elif field.card == "map":
            for key, item in value.items():
                yield from places(field.type, item, wanted, f"{at}[{key}]", declared)
        elif isinstance(value, dict):
            yield from places(field.type, value, wanted, at, declared)


def members(type_: Type, tree: Tree, path: str, found: set[str]) -> set[str]:
    """All members ("type.field") that `places` would come across."""
    for name, field in type_.fields.items():
        found.add(f"{_owner(type_, name)}.{name}")
        value = tree.get(name)
        if value is None or field.type is None or field.type.json or (not path and name == "status"):
            continue
        values = value if field.card == "list" else value.values() if field.card == "map" else [value]
        for item in values:
            if isinstance(item, dict):
                members(field.type, item, name, found)
    return found


def _owner(type_: Type, member: str) -> str:
    """The type that declares a member: itself, or one inlined in it."""
    for field in type_.declared:
        if field.inline and field.type is not None and member in field.type.fields:
            return _owner(field.type, member)
    return type_.ref


# Running


def _plain(tree: Tree) -> Tree:
    parsed: Tree = orjson.loads(orjson.dumps(tree))
    return parsed


def _read(definition: ResourceDefinition, tree: Tree) -> Tree:
    """What the write handlers make of a body before the strategies see it."""
    normal = normalize(definition.type, _plain(tree)).tree
    normal["kind"], normal["apiVersion"] = definition.kind, definition.group_version
    normal["metadata"] = dict(normal.get("metadata") or {})
    return normal


def _allocate(stored: Tree) -> None:
    """What allocators and controllers do to an object later."""
    spec = stored.get("spec") or {}
    if stored["kind"] == "CustomResourceDefinition":
        stored["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    if stored["kind"] != "Service" or spec.get("type") != "LoadBalancer":
        return
    spec |= {"clusterIP": "10.0.0.20", "clusterIPs": ["10.0.0.20"], "healthCheckNodePort": 30999}
    for number, port in enumerate(spec["ports"]):
        port["nodePort"] = 30277 + number


def _scope(definition: ResourceDefinition) -> Any:
    return SimpleNamespace(definition=definition)


def create(definition: ResourceDefinition, tree: Tree) -> Tree:
    normal = _read(definition, tree)
    settle_namespace(_scope(definition), NS, normal["metadata"])
    apply_defaults(definition, normal)
    dedup_owner_references(normal)
    if definition.strategy.requester is not None:
        definition.strategy.requester(normal, User("u", groups=("g",)))
    lifecycle.before_create(definition, normal)
    return normal


def update(definition: ResourceDefinition, tree: Tree, stored: Tree) -> None:
    normal = _read(definition, tree)
    check_name(normal["metadata"], stored["metadata"]["name"])
    settle_namespace(_scope(definition), NS, normal["metadata"])
    apply_defaults(definition, normal)
    dedup_owner_references(normal)
    lifecycle.before_update(definition, normal, copy.deepcopy(stored), definition.strategy.prepare)


def outcome(error: errors.APIError) -> Outcome:
    causes = (error.details or {}).get("causes")
    if error.reason != "Invalid" or not causes:
        return ((error.reason or str(error.code), "", _text(error.message)),)
    out = []
    for cause in causes:
        kind, text = _split(cause["message"])
        entry = (kind, re.sub(r"\[\d+\]", "[*]", cause["field"]), _text(text))
        if entry not in out:
            out.append(entry)
    return tuple(out)


def _split(message: str) -> tuple[str, str]:
    """Type and text of a cause; the value in between is not recorded."""
    if message.startswith("Forbidden"):
        return "Forbidden", message.removeprefix("Forbidden").removeprefix(": ")
    for prefix, kind in _TYPES.items():
        if message.startswith(prefix):
            rest = message[len(prefix) :].removeprefix(": ")
            if kind in ("Required", "TooLong", "InternalError"):
                return kind, rest
            return kind, _after_value(rest)
    raise AssertionError(message)


def _after_value(rest: str) -> str:
    """What follows a printed value."""
    if rest.startswith(('"', "{", "[")):
        _, end = json.JSONDecoder(strict=False).raw_decode(_unescaped(rest))
        return _unescaped(rest)[end:].removeprefix(": ")
    return rest.partition(": ")[2]


def _unescaped(text: str) -> str:
    return re.sub(r"\\[xUa]", r"\\\\", text)


def _text(text: str) -> str:
    """The first line: the lines that differ, which some refusals show below it, are not recorded."""
    return _uuid.sub("{uid}", text.partition("\n@@ ")[0].replace(LONG, "{long}"))


# Comparing


def recorded(entry: Any, path: str, parent: str, formats: dict[str, str]) -> Outcome:
    if entry == "ok":
        return "ok"
    out = []
    for kind, where, *text in entry:
        if where.startswith("/"):
            field = where[1:]
        elif where.startswith("^"):
            field = parent + where[1:]
        elif where.startswith(".") and where != ".":
            field = path + (where[1:] if where.startswith(".[") else where)
        else:
            field = path if where else ""
        shown = text[0] if text else ""
        shown = formats[shown[1:]] if shown.startswith("@") else shown
        out.append((kind, field.removeprefix("."), _uuid.sub("{uid}", shown)))
    return tuple(out)


#: Long messages are recorded up to here, value included.
CUT = 290


def _same(ours: Outcome, theirs: Outcome) -> bool:
    """Equal, but for the end of messages that the recording cuts off."""
    if ours == theirs or isinstance(ours, str) or isinstance(theirs, str) or len(ours) != len(theirs):
        return ours == theirs
    return all(
        one[:2] == other[:2] and (one[2] == other[2] or (len(other[2]) > CUT - 50 and one[2].startswith(other[2])))
        for one, other in zip(ours, theirs, strict=True)
    )


def _formats(facts: Tree) -> dict[str, str]:
    return dict(facts["formatTexts"])


class Replay:
    """All experiments; `counts` per kind, `differences` with the nearest outcome we had."""

    def __init__(self) -> None:
        facts = json.loads((FACTS / "validation.json").read_text())
        self.formats = _formats(facts)
        self.observed = json.loads((FACTS / "validation_observed.json").read_text())
        self.definitions = {(d.group_version, d.kind): d for d in builtin()}
        self.bases = bases()
        self.stored: list[Tree] = []
        self.known: dict[tuple[str, int], set[str]] = {}
        self.counts: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
        self.differences: list[tuple[str, str, str, str, Outcome, list[Outcome]]] = []

    def definition(self, base: Tree) -> ResourceDefinition:
        return self.definitions[base["apiVersion"], base["kind"]]

    def prepare(self) -> None:
        for base in self.bases:
            definition = self.definition(base)
            try:
                stored = create(definition, base)
            except errors.APIError as error:
                raise AssertionError(f"the base {base['kind']} is refused: {error.message}") from error
            stored["metadata"]["resourceVersion"] = "1"
            _allocate(stored)
            self.stored.append(stored)

    def run(self, operation: str, base: Tree, stored: Tree) -> Outcome:
        definition = self.definition(base)
        try:
            if operation == "create":
                create(definition, base)
            else:
                update(definition, base, stored)
        except errors.APIError as error:
            return outcome(error)
        except TypeMismatch as error:
            return (("BadRequest", "", str(error)),)
        return "ok"

    def experiment(self, operation: str, wanted: str, name: str) -> dict[str, list[tuple[Outcome, str, str]]]:
        """Outcomes of one change, by kind, with the paths it was made at."""
        found: dict[str, list[tuple[Outcome, str, str]]] = collections.defaultdict(list)
        for index, base in enumerate(self.bases):
            definition = self.definition(base)
            source = base if operation == "create" else self.stored[index]
            if (operation, index) not in self.known:
                self.known[operation, index] = members(definition.type, source, "", set())
            if wanted not in self.known[operation, index]:
                continue
            positions = list(places(definition.type, source, wanted, "", ""))
            for number in range(len(positions)):
                changed = copy.deepcopy(source)
                holder, field, path, parent = list(places(definition.type, changed, wanted, "", ""))[number]
                if mutate(holder, field, name):
                    result = self.run(operation, changed, self.stored[index])
                    found[definition.kind].append((result, path, parent))
        return found

    def all(self) -> None:
        self.prepare()
        for operation, key in (("create", "observedCreate"), ("update", "observedUpdate")):
            for wanted, records in self.observed[key].items():
                self._field(operation, wanted, records)

    def _field(self, operation: str, wanted: str, records: list[Any]) -> None:
        tried: dict[str, dict[str, list[tuple[Outcome, str, str]]]] = {}
        for names, entry, *kinds in records:
            for name in names:
                if name not in tried:
                    tried[name] = self.experiment(operation, wanted, name)
                for kind in kinds[0] if kinds else sorted(tried[name]) or ["-"]:
                    self._compare(operation, wanted, name, kind, entry, tried[name].get(kind, []))

    def _compare(
        self, operation: str, wanted: str, name: str, kind: str, entry: Any, found: list[tuple[Outcome, str, str]]
    ) -> None:
        count = self.counts[kind]
        count[1] += 1
        for result, path, parent in found:
            if _same(result, recorded(entry, path, parent, self.formats)):
                count[0] += 1
                return
        wish = recorded(entry, ".", "^", self.formats) if entry != "ok" else "ok"
        self.differences.append((operation, wanted, name, kind, wish, [result for result, _, _ in found]))

    @property
    def agreed(self) -> tuple[int, int]:
        return sum(a for a, _ in self.counts.values()), sum(b for _, b in self.counts.values())


@pytest.fixture(scope="module")
def replay() -> Replay:
    done = Replay()
    done.all()
    return done


@pytest.mark.golden
@pytest.mark.timeout(900)
@pytest.mark.skipif(not FACTS.exists(), reason="the recorded experiments are not here")
def test_experiments_agree(replay: Replay) -> None:
    agreed, total = replay.agreed
    lines = [f"{kind}: {a}/{b}" for kind, (a, b) in sorted(replay.counts.items())]
    print(f"{agreed} of {total} experiments agree ({agreed / total:.2%})", *lines, sep="\n")
    assert agreed / total >= TARGET
