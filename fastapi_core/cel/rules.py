"""The rules of a schema (`x-kubernetes-validations`), compiled: for the definition's own validation and for objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi_core.cel.decls import REQUEST_LIMIT, Decl
from fastapi_core.cel.environment import VERSION, Environment
from fastapi_core.cel.errors import CompileError, OutputTypeError
from fastapi_core.cel.estimate import estimate
from fastapi_core.cel.program import Program, compile_expression
from fastapi_core.cel.ranges import TOP
from fastapi_core.cel.types import BOOL, STRING, Type, optional_of

#: Most that one expression, and all of a schema together, may be estimated to cost.
EXPRESSION_LIMIT: Final = 10_000_000
SCHEMA_LIMIT: Final = 100_000_000
SELF: Final = "self"
OLD_SELF: Final = "oldSelf"
_STEP: Final = re.compile(r"\.([^.\[\]'\s]+)|\['((?:[^'\\]|\\.)*)'\]")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `program` is None when `error` says why; so with the message.

    `source` is the rule as written; `cost` and `message_cost` are the most an evaluation may cost.
    """

    source: Mapping[str, Any]
    program: Program | None = None
    error: str = ""
    cost: int = 0
    message: Program | None = None
    message_error: str = ""
    message_cost: int = 0

    @property
    def uses_old_self(self) -> bool:
        """A transition rule: it runs on updates only."""
        return self.program is not None and OLD_SELF in self.program.variables


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one schema node; `cardinality` is how often its values fit into a request."""

    rules: tuple[Rule, ...]
    cardinality: int
    decl: Decl = field(repr=False)


def compile_rules(schema: Mapping[str, Any], decl: Decl, version: tuple[int, int] = VERSION) -> Rules:
    """The rules of a schema node whose values have this declaration."""
    named = decl.named("selfType")
    plain: dict[str, Type | Decl] = {SELF: named, OLD_SELF: named}
    optional: dict[str, Type | Decl] = {SELF: named, OLD_SELF: optional_of(named.type)}
    environments = {False: Environment(plain, version=version)}
    made: list[Rule] = []
    for source in schema.get("x-kubernetes-validations") or ():
        is_optional = bool(source.get("optionalOldSelf"))
        if is_optional not in environments:
            environments[is_optional] = Environment(optional, version=version)
        made.append(_compile(source, environments[is_optional]))
    return Rules(tuple(made), REQUEST_LIMIT // (decl.min_size + 1), decl)


def _compile(source: Mapping[str, Any], environment: Environment) -> Rule:
    text = source.get("rule") or ""
    if not text.strip():
        return Rule(source)
    try:
        program = compile_expression(text, environment, (BOOL,))
    except CompileError as error:
        return Rule(source, error=f"compilation failed: {error}")
    except OutputTypeError:
        return Rule(source, error="cel expression must evaluate to a bool")
    cost = _cost(program)
    message = source.get("messageExpression") or ""
    if not message:
        return Rule(source, program, "", cost)
    try:
        told = compile_expression(message, environment, (STRING,))
    except CompileError as error:
        return Rule(source, program, "", cost, message_error=f"messageExpression compilation failed: {error}")
    except OutputTypeError:
        return Rule(source, program, "", cost, message_error="messageExpression must evaluate to a string")
    return Rule(source, program, "", cost, told, "", _cost(told))


def _cost(program: Program) -> int:
    cost = estimate(program.node).high
    program.forget_tree()
    return cost


def times(cost: int, count: int) -> int:
    """A cost that comes up `count` times."""
    return min(cost * count, TOP)


def over_limit(name: str, cost: int, limit: int) -> str:
    """What is said about a cost above its limit."""
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{name} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, maxProperties, and"
        " maxLength where arrays, maps, and strings are declared)"
    )


def parse_path(path: str) -> tuple[str, ...] | None:
    """The properties that a fieldPath (`.a.b['c d']`) leads through; None when it is no path."""
    steps: list[str] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return None
        quoted = match.group(2)
        steps.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else match.group(1))
        at = match.end()
    return tuple(steps) or None


def schema_at(schema: Mapping[str, Any], steps: tuple[str, ...]) -> Mapping[str, Any] | None:
    """The schema of the property that a path leads to; None when there is none."""
    current: Any = schema
    for step in steps:
        found = (current.get("properties") or {}).get(step)
        if found is None:
            found = current.get("additionalProperties")
        if not isinstance(found, Mapping):
            return None
        current = found
    return current  # type: ignore[no-any-return]
