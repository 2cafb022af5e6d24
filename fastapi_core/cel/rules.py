"""The rules of a schema (`x-kubernetes-validations`), compiled: for the definition's own validation and for objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Any, Final

from fastapi_core.cel.decls import REQUEST_LIMIT, Decl
from fastapi_core.cel.environment import VERSION, Environment
from fastapi_core.cel.errors import CompileError, OutputTypeError
from fastapi_core.cel.estimate import estimate
from fastapi_core.cel.program import Program, compile_expression
from fastapi_core.cel.ranges import TOP
from fastapi_core.cel.types import BOOL, STRING, Type, optional_of
from fastapi_core.records import dataclass

#: Most that one expression, and all of a schema together, may be estimated to cost.
EXPRESSION_LIMIT: Final = 10_000_000
SCHEMA_LIMIT: Final = 100_000_000
#: Everything there is.
NEWEST: Final = (1, 999)
SELF: Final = "self"
OLD_SELF: Final = "oldSelf"


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


class _Environments:
    """The environments of a declaration: plain ones and those where the old value is optional, of the version given and
    of the newest, which expressions that are stored already may use."""

    def __init__(self, decl: Decl, version: tuple[int, int], stored: Collection[str]) -> None:
        self.decl = decl
        self._version = version
        self._stored = stored
        self._made: dict[tuple[bool, tuple[int, int]], Environment] = {}

    def of(self, text: str, source: Mapping[str, Any]) -> Environment:
        """The one that an expression of a rule is compiled in."""
        key = (bool(source.get("optionalOldSelf")), NEWEST if text in self._stored else self._version)
        if key not in self._made:
            old: Type | Decl = optional_of(self.decl.type) if key[0] else self.decl
            self._made[key] = Environment({SELF: self.decl, OLD_SELF: old}, version=key[1])
        return self._made[key]


def compile_rules(
    schema: Mapping[str, Any], decl: Decl, version: tuple[int, int] = VERSION, stored: Collection[str] = ()
) -> Rules:
    """The rules of a schema node whose values have this declaration; `stored` expressions may use what is new."""
    environments = _Environments(decl.named("selfType"), version, stored)
    sources = schema.get("x-kubernetes-validations") or ()
    made = tuple(_compile(source, environments) for source in sources)
    return Rules(made, REQUEST_LIMIT // (decl.min_size + 1), decl)


def _compile(source: Mapping[str, Any], environments: _Environments) -> Rule:
    text = source.get("rule") or ""
    if not text.strip():
        return Rule(source)
    try:
        program = compile_expression(text, environments.of(text, source), (BOOL,))
    except CompileError as error:
        return Rule(source, error=error.told)
    except OutputTypeError:
        return Rule(source, error="cel expression must evaluate to a bool")
    cost = _cost(program, environments.decl)
    message = source.get("messageExpression") or ""
    if not message:
        return Rule(source, program, "", cost)
    try:
        told = compile_expression(message, environments.of(message, source), (STRING,))
    except CompileError as error:
        step = "instantiation" if error.late else "compilation"
        return Rule(source, program, "", cost, message_error=f"messageExpression {step} failed: {error}")
    except OutputTypeError:
        return Rule(source, program, "", cost, message_error="messageExpression must evaluate to a string")
    return Rule(source, program, "", cost, told, "", _cost(told, environments.decl))


def _cost(program: Program, decl: Decl) -> int:
    cost = estimate(program.node, decl).high
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
