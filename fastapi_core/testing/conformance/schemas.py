"""The OpenAPI v3 document of a version: the schema of a kind, and objects made from it.

Objects are made best effort: what is required, the first value of an enum, the default, something for each format. What
lies behind patterns, rules and webhooks nobody can guess; then the user gives a sample.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi_core.testing.conformance.client import Client, Tree
from fastapi_core.testing.conformance.discovered import Resource
from fastapi_core.testing.conformance.verdicts import Failed

GVK = "x-kubernetes-group-version-kind"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
_FORMATS: dict[str, Any] = {
    "date-time": "2024-01-02T03:04:05Z",
    "date": "2024-01-02",
    "byte": "YQ==",
    "duration": "1s",
    "uri": "https://example.com/",
    "email": "a@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "cidr": "192.0.2.0/24",
    "uuid": "3f2b9a52-6c1e-4b8f-9d6a-2f8f0d6f4a11",
    "mac": "00:00:5e:00:53:01",
}
_GUESSES = ("a", "aaa", "A", "1", "1.0", "1s", "1Gi", "v1", "v1.0.0", "example.com", "a/b", "192.0.2.1", "192.0.2.0/24")
_DEEP = 12


@dataclass(frozen=True)
class Schema:
    """A schema with the document its references point into."""

    document: Tree
    node: Tree

    def at(self, node: object) -> Schema:
        """Another node of the same document, references followed."""
        for _ in range(_DEEP):
            if not isinstance(node, dict):
                break
            whole = node.get("allOf")
            if "$ref" not in node and isinstance(whole, list) and len(whole) == 1 and isinstance(whole[0], dict):
                # The usual wrapping of a reference that has a default or a description beside it.
                node = {**{name: value for name, value in node.items() if name != "allOf"}, **whole[0]}
                continue
            if "$ref" not in node:
                break
            node = resolve(self.document, str(node["$ref"]))
        return Schema(self.document, node if isinstance(node, dict) else {})

    def member(self, name: str) -> Schema | None:
        """A property, or None."""
        found = (self.node.get("properties") or {}).get(name)
        return None if found is None else self.at(found)

    @property
    def open(self) -> bool:
        """Whether it takes members nobody has declared."""
        return bool(self.node.get(PRESERVE)) or not self.node.get("properties")

    def make(self, depth: int = 0, *, full: bool = False) -> Any:
        """A value: what is required, with `full` every property down to a depth."""
        node = self.node
        if "default" in node and not full:
            return node["default"]
        if node.get("enum"):
            return next((value for value in node["enum"] if value), node["enum"][0])
        if node.get("x-kubernetes-int-or-string"):
            return 1
        kind = node.get("type") or ("object" if "properties" in node else None)
        if kind == "object":
            return self._object(depth, full)
        if kind == "array":
            count = max(int(node.get("minItems", 0)), 1 if full and depth < 4 else 0)
            return [self.at(node.get("items") or {}).make(depth + 1, full=full) for _ in range(min(count, 8))]
        if kind == "string":
            return _string(node)
        if kind in ("integer", "number"):
            return _number(node)
        return True if kind == "boolean" else {} if depth == 0 or node.get(PRESERVE) else 1

    def _object(self, depth: int, full: bool) -> Tree:
        if depth >= _DEEP:
            return {}
        declared = self.node.get("properties") or {}
        wanted = [name for name in declared if full and depth < 4] or list(self.node.get("required") or ())
        made = {name: self.at(declared[name]).make(depth + 1, full=full) for name in wanted if name in declared}
        if not made and self.node.get("minProperties") and isinstance(self.node.get("additionalProperties"), dict):
            made["a"] = self.at(self.node["additionalProperties"]).make(depth + 1)
        return made

    def other(self, value: Any) -> Any:
        """A valid value that differs from this one in one place; None when none is known."""
        if isinstance(value, dict):
            for name, inner in value.items():
                member = self.member(name)
                found = member.other(inner) if member is not None else None
                if found is not None:
                    return {**value, name: found}
            return None
        if self.node.get("enum"):
            return next((choice for choice in self.node["enum"] if choice not in (value, None, "")), None)
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float):
            most = self.node.get("maximum")
            return value + 1 if most is None or value + 1 < most else None
        return f"{value}-other" if isinstance(value, str) and self.free else None

    def strings(self, path: tuple[str, ...] = (), depth: int = 0) -> Iterator[tuple[str, ...]]:
        """Paths to strings that take any text: properties without limits, and members of maps of strings."""
        for name, child in (self.node.get("properties") or {}).items():
            if not path and name in ("apiVersion", "kind", "metadata", "status"):
                continue
            schema = self.at(child)
            if schema.free:
                yield (*path, name)
            elif depth < 3 and schema.node.get("properties"):
                yield from schema.strings((*path, name), depth + 1)
            elif isinstance(schema.node.get("additionalProperties"), dict):
                values = schema.at(schema.node["additionalProperties"])
                if values.free:
                    yield (*path, name, "big")

    @property
    def free(self) -> bool:
        """A string without limits."""
        return self.node.get("type") == "string" and not {"enum", "format", "pattern", "maxLength"} & self.node.keys()


def resolve(document: Tree, reference: str) -> Any:
    """What `#/components/schemas/x` points to; None when it points nowhere."""
    node: Any = document
    for part in reference.removeprefix("#/").split("/"):
        node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node


def references(document: object) -> Iterator[str]:
    """Every reference anywhere in a document."""
    pending = [document]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)


def of_kind(definitions: object, resource: Resource) -> Tree | None:
    """The definition that says it is this kind."""
    wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    for node in definitions.values() if isinstance(definitions, dict) else ():
        if isinstance(node, dict) and wanted in (node.get(GVK) or ()):
            return node
    return None


def index(client: Client, resource: Resource) -> str:
    """Where the v3 document of a version lies, as the index says; empty when it does not."""
    answer = client.request("GET", "/openapi/v3")
    if answer.status != 200:
        return ""
    entry = (answer.tree().get("paths") or {}).get(resource.root.removeprefix("/")) or {}
    return str(entry.get("serverRelativeURL", ""))


def schema(client: Client, resource: Resource) -> Schema | None:
    """The schema of a kind, or None when the server publishes none."""
    try:
        where = index(client, resource)
        answer = client.request("GET", where) if where else None
        document = answer.tree() if answer is not None and answer.status == 200 else {}
    except Failed:
        return None
    node = of_kind((document.get("components") or {}).get("schemas"), resource)
    return None if node is None else Schema(document, node)


def _string(node: Tree) -> str:
    made = _FORMATS.get(str(node.get("format")), "a" * max(int(node.get("minLength", 1)), 1))
    pattern = node.get("pattern")
    if pattern:
        try:
            matching = [guess for guess in (made, *_GUESSES) if re.search(pattern, guess)]
        except re.error:
            matching = []
        made = matching[0] if matching else made
    return str(made)


def _number(node: Tree) -> int | float:
    value = node.get("minimum", min(1, node.get("maximum", 1)))
    if node.get("exclusiveMinimum"):
        value += 1
    step = node.get("multipleOf")
    if step:
        value = -(-value // step) * step
    return int(value) if node.get("type") == "integer" else float(value)
