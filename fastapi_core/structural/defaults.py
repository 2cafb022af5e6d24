"""Defaults in the schema of a definition: valid under their own schema, and nothing unknown in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fastapi_core.errors import FieldError
from fastapi_core.structural import coercion, embedded, pruning, strict
from fastapi_core.structural.correlation import same
from fastapi_core.structural.nodes import META, Json, Node, copy_json, node_of, shown
from fastapi_core.structural.structure import Tree, members, part

#: Puts a value where it would stand in an object.
Surround = Callable[[Any], Any]
_TYPE_META: Final = {"kind": "Validation", "apiVersion": "validation/v1"}


def problems(schema: Tree, path: str, *, pruned: bool) -> list[FieldError]:
    """The errors of all defaults."""
    walk = _Walk(pruned)
    walk.visit(schema, path, _Frame(node_of(schema), _object, in_metadata=False), root=True)
    return walk.found


def _object(value: Any) -> Any:
    return {**_TYPE_META, **value} if type(value) is dict else value


class _Frame:
    """The object around a place, and how a value gets there; `in_metadata`: as part of its metadata."""

    __slots__ = ("in_metadata", "node", "surround")

    def __init__(self, node: Node, surround: Surround, *, in_metadata: bool) -> None:
        self.node = node
        self.surround = surround
        self.in_metadata = in_metadata

    def member(self, name: str, *, in_metadata: bool) -> _Frame:
        outer = self.surround
        return _Frame(self.node, lambda value: outer({name: value}), in_metadata=in_metadata)

    def item(self) -> _Frame:
        outer = self.surround
        return _Frame(self.node, lambda value: outer([value]), in_metadata=self.in_metadata)


class _Walk:
    def __init__(self, pruned: bool) -> None:
        self._pruned = pruned
        self.found: list[FieldError] = []
        self._budget: Any = None

    def visit(self, schema: Tree, path: str, frame: _Frame, *, root: bool = False) -> None:
        is_object = root or bool(schema.get("x-kubernetes-embedded-resource"))
        if is_object and not root:
            frame = _Frame(node_of(schema), _object, in_metadata=False)
        default = schema.get("default")
        if default is not None:
            self._default(schema, f"{path}.default", frame, is_object)
        items = part(schema, "items")
        if items is not None:
            self.visit(items, f"{path}.items", frame.item())
        for name, member in sorted(members(schema)):
            inner = frame.member(name, in_metadata=frame.in_metadata or (is_object and name in META))
            self.visit(member, f"{path}.properties[{name}]", inner)

    def _default(self, schema: Tree, path: str, frame: _Frame, is_object: bool) -> None:
        node, value = node_of(schema), copy_json(schema["default"])
        if frame.in_metadata:
            errors = self._in_metadata(value, path, frame)
        else:
            errors = self._plain(value, node, path, is_object)
        if errors is None:
            errors = strict.errors_of(value, node, None, path, as_written=True)
            if not errors and node.has_rules:
                errors = self._expressions(value, schema, node, path, is_object)
        self.found += errors

    def _plain(self, value: Any, node: Node, path: str, is_object: bool) -> list[FieldError] | None:
        """None when there is more to look at."""
        if self._pruned:
            copied = copy_json(value)
            pruning.prune_default(copied, node)
            if not same(copied, value):
                self.found.append(FieldError("Invalid value", path, "must not have unknown fields", shown(value)))
        errors = coercion.problems(value, node, path, embedded=is_object)
        errors = errors or embedded.validate(value, node, path, embedded=is_object)
        return errors or None

    def _in_metadata(self, value: Any, path: str, frame: _Frame) -> list[FieldError] | None:
        around: Json = frame.surround(copy_json(value))
        errors = coercion.problems(around, frame.node, "", embedded=True)
        errors = errors or embedded.validate(around, frame.node, embedded=True)
        if not errors:
            return None
        texts = list(dict.fromkeys(map(str, errors)))
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        return [FieldError("Invalid value", path, f"must result in valid metadata: {text}", shown(value))]

    def _expressions(self, value: Any, schema: Tree, node: Node, path: str, is_object: bool) -> list[FieldError]:
        """Rules hold when the default comes, and when it stays."""
        from fastapi_core.cel.program import Budget
        from fastapi_core.structural import rules

        if self._budget is None:
            self._budget = Budget()
        made = rules.Rules.of_root(schema, node, root=is_object)
        errors = rules.evaluate(made, value, value, None, path=path, budget=self._budget)
        return errors or rules.evaluate(made, value, None, None, path=path, budget=self._budget)
