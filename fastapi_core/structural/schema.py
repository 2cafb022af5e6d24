"""The schema of one version of a custom resource."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

from fastapi_core._ext.fieldset import Shape
from fastapi_core.errors import FieldError
from fastapi_core.patch import shapes
from fastapi_core.schema.tables import type_of
from fastapi_core.structural import coercion, defaulting, embedded, listtypes, pruning, strict
from fastapi_core.structural.checks import check_of
from fastapi_core.structural.coercion import Coerced
from fastapi_core.structural.correlation import Correlated
from fastapi_core.structural.nodes import Json, Node, digest, node_of

__all__ = ["Coerced", "Schema", "compiled"]

#: Errors that leave an object in a state in which expressions would say nothing sensible.
_BLOCKING: Final = frozenset({"Unsupported value", "Required value", "Too long", "Too many", "TypeInvalid"})
_SKIPPED: Final = FieldError(
    "Invalid value",
    strict.NOWHERE,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation",
)
Warn = Callable[[str], None]
Found = tuple[Sequence[FieldError], Sequence[FieldError]]
"""Errors of the schema's own words; those of embedded objects and of lists."""


class Schema:
    """What one version's schema does to objects; nothing in it is made before it is needed.

    `preserve` is the old spec.preserveUnknownFields: nothing is pruned.
    """

    __slots__ = ("__weakref__", "_node", "_preserve", "_raw", "_rules", "_shape")

    def __init__(self, schema: Json | None, *, preserve: bool) -> None:
        self._raw = schema
        self._preserve = preserve
        self._node: Node | None = None
        self._shape: Shape | None = None
        self._rules: Any = None

    @property
    def node(self) -> Node:
        """The root of the structure."""
        if self._node is None:
            self._node = node_of(self._raw or {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
        return self._node

    @property
    def shape(self) -> Shape:
        """How field ownership sees objects of this version."""
        if self._shape is None:
            self._shape = shapes.from_schema(self._raw, shapes.shape_of(type_of("meta/v1.ObjectMeta")))
        return self._shape

    def prune(self, tree: Json) -> list[str]:
        """Drop unknown members in place, and nulls that stand for nothing; the sorted paths of the unknown ones."""
        return [] if self._preserve else pruning.prune(tree, self.node)

    def coerce(self, tree: Json, *, drop: bool) -> Coerced:
        """Give metadata, also that of embedded objects, its types in place; what is unknown in it is dropped."""
        return coercion.coerce(tree, self.node, drop=drop)

    def default(self, tree: Json) -> None:
        """Fill in defaults in place."""
        defaulting.apply(tree, self.node)

    def validate(
        self,
        tree: Json,
        old: Json | None = None,
        *,
        status: bool = False,
        before: Callable[[], Sequence[FieldError]] = tuple,
        between: Sequence[FieldError] = (),
        warn: Warn | None = None,
    ) -> list[FieldError]:
        """Everything that is wrong with an object, in the reference's order.

        With `old` what has not changed is forgiven; failed expressions that are forgiven go to `warn`. `status`: the
        write changes the status only, and only that is looked at besides expressions. `between` are errors found in other
        ways that stand behind those of the schema's own words; `before` finds those that stand before all of them, and
        is asked where there are expressions, for with some errors these are not tried.
        """
        node = self.node
        correlated = None if old is None else Correlated(tree, old, node)
        found, more = self._status_errors(tree, old, correlated) if status else self._errors(tree, old, correlated)
        errors = [*found, *between, *more]
        if not node.has_rules:
            return errors
        if any(error.type in _BLOCKING for error in (*before(), *errors)):
            return [*errors, _SKIPPED]
        return errors + self._expressions(tree, old, correlated, warn)

    def _errors(self, tree: Json, old: Json | None, correlated: Correlated | None) -> Found:
        node = self.node
        if check_of(node)(tree):
            return (), ()
        more = embedded.validate(tree, node, embedded=False)
        if old is None or not listtypes.duplicates(old, node):
            more += listtypes.duplicates(tree, node)
        return strict.errors_of(tree, node, correlated), more

    def _status_errors(self, tree: Json, old: Json | None, correlated: Correlated | None) -> Found:
        node = self.node
        member = node.properties.get("status")
        errors: list[FieldError] = []
        if member is not None and "status" in tree and not check_of(member)(tree["status"]):
            before = None if correlated is None else correlated.member("status")
            errors = strict.errors_of(tree["status"], member, before, "status")
        found = listtypes.duplicates(tree, node) if node.has_lists else []
        if found and old is not None and listtypes.duplicates(old, node):
            return errors, ()
        return errors, found

    def _expressions(
        self, tree: Json, old: Json | None, correlated: Correlated | None, warn: Warn | None
    ) -> list[FieldError]:
        from fastapi_core.structural import rules

        if self._rules is None:
            self._rules = rules.Rules.of_root(self._raw or {}, self.node)
        return rules.evaluate(self._rules, tree, old, correlated, warn)


_SCHEMAS: WeakValueDictionary[tuple[bytes, bool], Schema] = WeakValueDictionary()


def compiled(schema: Json | None, *, preserve: bool) -> Schema:
    """The schema of a version; None when it has none, which keeps everything. Equal ones are one object while used."""
    key = (b"" if schema is None else digest(schema), preserve or schema is None)
    found = _SCHEMAS.get(key)
    if found is None:
        found = _SCHEMAS[key] = Schema(schema, preserve=preserve or schema is None)
    return found
