"""The expressions of a mutating policy, compiled, and what they make of an object."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any, Final

from fastapi_core import errors
from fastapi_core._ext import fieldset as walks
from fastapi_core._ext.fieldset import Shape
from fastapi_core.admission.evaluation import STORED, Expression, FailedError, Input, MatchConditions, Variables
from fastapi_core.admission.matching import kind_of
from fastapi_core.admission.policies.rules import variables_of
from fastapi_core.cel import Budget, times
from fastapi_core.cel.admission import APPLY_CONFIGURATION, JSON_PATCH, policy_environment
from fastapi_core.cel.values import Duration, MessageValue, Opaque, Optional, Timestamp, TypeValue
from fastapi_core.errors import go_quote
from fastapi_core.patch import conform
from fastapi_core.patch.errors import PatchError
from fastapi_core.patch.jsonpatch import apply_json_patch
from fastapi_core.patch.shapes import Kind, shape_of
from fastapi_core.registry.definition import Tree
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_for
from fastapi_core.schema.types import Type

Mutation = Callable[[Input, "Tree | None"], Tree]
"""The object after a mutation; itself when nothing is to be done. FailedError."""

#: Whole numbers that survive being a JSON number in every implementation.
_SAFE: Final = 2**53 - 1


class Mutations:
    """One policy."""

    def __init__(self, spec: Tree) -> None:
        params = spec.get("paramKind") is not None
        self._variables = variables = variables_of(spec, params=params)
        conditions = spec.get("matchConditions")
        environment = policy_environment(variables.types, params=params, version=STORED)
        self._conditions = MatchConditions(conditions, environment, variables) if conditions else None
        patching = policy_environment(variables.types, params=params, patches=True, version=STORED)
        self.mutations: list[Mutation] = []
        for item in spec.get("mutations") or ():
            if item.get("patchType") == "JSONPatch":
                text = (item.get("jsonPatch") or {}).get("expression") or ""
                self.mutations.append(_JSONPatch(Expression(text, patching), variables))
            else:
                text = (item.get("applyConfiguration") or {}).get("expression") or ""
                self.mutations.append(_Apply(Expression(text, patching), variables))

    def meant(self, source: Input, params: Tree | None) -> bool:
        """Whether the match conditions hold. FailedError."""
        return self._conditions is None or self._conditions.unmet(source.conditions(params)) is None


class _Evaluated:
    """What both forms of mutations have: an expression and the variables it may use."""

    def __init__(self, expression: Expression, variables: Variables) -> None:
        self._expression = expression
        self._variables = variables
        found = expression.program.type if expression.program is not None else None
        if found is not None and found != self.wanted:
            expression.error = f"must evaluate to {self.wanted} but got {found}"
            expression.program = None

    wanted: Any = None

    def value(self, source: Input, params: Tree | None) -> Any:
        if self._expression.program is None:
            raise FailedError(self._expression.error)
        activation = source.activation(params)
        budget = Budget()
        self._variables.put(activation, budget)
        return self._expression.evaluate(activation, budget)


class _JSONPatch(_Evaluated):
    wanted = JSON_PATCH

    def __call__(self, source: Input, params: Tree | None) -> Tree:
        tree = source.object or {}
        operations = [_operation(item) for item in self.value(source, params)]
        try:
            patched = apply_json_patch(tree, operations)
        except PatchError as error:
            if error.cause.endswith("failed: test failed"):
                return tree
            raise FailedError(f"JSON Patch: {error.cause}") from None
        return _understood(source, _type_of(source), patched)


def _operation(item: Tree) -> Tree:
    made: Tree = {"op": item.get("op", ""), "path": item.get("path", "")}
    if item.get("from"):
        made["from"] = item["from"]
    if "value" in item:
        _check_names(item["value"])
        made["value"] = plain(item["value"])
    return made


def _type_of(source: Input) -> Type:
    """The type of the object of a request, which is not that of the resource in some subresources."""
    kind = kind_of(source.target, source.attributes.subresource)
    found = type_for(*kind) if kind.kind != source.target.kind else None
    return found or source.target.type


def _understood(source: Input, type_: Type, tree: Tree) -> Tree:
    """The patched object as decoding makes it; 500 for what does not fit its type, as in the reference. Custom
    resources are checked against their schema when they are validated."""
    if source.target.custom and type_ is source.target.type:
        return tree
    try:
        normalized = normalize(type_, tree)
    except TypeMismatch as error:
        raise errors.internal(str(error)) from None
    if normalized.unknown:
        listed = ", ".join(f'unknown field "{path}"' for path in normalized.unknown)
        raise errors.internal(f"strict decoding error: {listed}")
    made: Tree = normalized.tree
    return made


class _Apply(_Evaluated):
    wanted = APPLY_CONFIGURATION

    def __call__(self, source: Input, params: Tree | None) -> Tree:
        tree = source.object or {}
        value = self.value(source, params)
        _check_names(value)
        patch = plain(value)
        patch["apiVersion"], patch["kind"] = tree.get("apiVersion"), tree.get("kind")
        type_ = _type_of(source)
        shape = shape_of(type_)
        if not walks.conforms(shape, patch):
            text = conform.text(conform.named_problems(shape, patch))
            raise FailedError(f"error applying patch: failed to convert patch object to typed object: {text}")
        whole = list(_whole(shape, patch, ""))
        if whole:
            text = f"may not mutate atomic arrays, maps or structs: {', '.join(whole)}"
            raise FailedError(f"error applying patch: invalid ApplyConfiguration: {text}")
        try:
            merged = walks.merge(shape, tree, patch)
        except walks.ItemError as error:
            raise FailedError(f"error applying patch: failed to merge patch: {error}") from None
        return _understood(source, type_, merged)


def _whole(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """Paths of the objects and lists that can only be replaced as a whole."""
    kind = shape.kind
    if kind == Kind.LEAF:
        if value.__class__ in (dict, list):
            yield path
    elif kind == Kind.DEDUCED:
        if value.__class__ is list:
            yield path
        elif value.__class__ is dict:
            for name in value:
                yield from _whole(shape, value[name], f"{path}.{name}")
    elif kind == Kind.OBJECT:
        for name, item in value.items() if value.__class__ is dict else ():
            member = shape.members.get(name)
            if member is not None:
                yield from _whole(member.shape, item, f"{path}.{name}")
    elif value.__class__ is list:
        for index, item in enumerate(value):
            yield from _whole(shape.item, item, f"{path}[{index}]")


# Values of expressions as JSON


def _check_names(value: Any) -> None:
    """The name of each message is the path of its field; FailedError lists those that are not."""
    if not isinstance(value, MessageValue):
        return
    problems = list(_misnamed(value, value.cel_type))
    if problems:
        raise FailedError("type mismatch: " + "\n".join(problems))


def _misnamed(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, MessageValue):
        if value.cel_type != path:
            yield (
                f"unexpected type name {go_quote(value.cel_type)}, expected {go_quote(path)}, which matches field name "
                "path from root Object type"
            )
        for name, item in value.items():
            yield from _misnamed(item, f"{path}.{name}")
    elif value.__class__ is list:
        for item in value:
            yield from _misnamed(item, path)
    elif value.__class__ is dict:
        for item in value.values():
            yield from _misnamed(item, path)


def plain(value: Any) -> Any:
    """A value as JSON has it. FailedError for what has no such form."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if -_SAFE <= value <= _SAFE else str(int(value))
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise FailedError(f"map key {key!r} is not a string")
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Timestamp):
        return times.format_timestamp(value)
    if isinstance(value, Duration):
        return times.format_duration(value)
    if isinstance(value, Optional | TypeValue | Opaque):
        raise FailedError("JSONPath valueExpression evaluated to a type that could not marshal to JSON")
    raise FailedError(f"a value of type {type(value).__name__} has no JSON form")
