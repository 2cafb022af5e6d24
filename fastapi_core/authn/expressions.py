"""Expressions over claims and users: the one place where their text becomes something that can be evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core.cel import Environment
    from fastapi_core.cel.syntax import Node

CLAIMS, USER = "claims", "user"


class ExpressionError(ValueError):
    """An expression that cannot be compiled or evaluated; says why."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression: `evaluate` gets the value of its one variable, and raises ExpressionError."""

    text: str
    evaluate: Callable[[Mapping[str, Any]], Any]
    selects: frozenset[str] = frozenset()
    """Fields of the variable it reads, such as `claims.email`."""


def compile_expression(text: str, variable: str, *, condition: bool = False) -> Expression:
    """Compile an expression over `variable` (`claims` or `user`), for a `condition` one that yields true or false.

    Raises ExpressionError.
    """
    from fastapi_core import cel
    from fastapi_core.cel.types import BOOL

    try:
        program = cel.compile_expression(text, _environment(variable), [BOOL] if condition else [])
    except cel.CompileError as error:
        raise ExpressionError(error.told) from None
    except cel.OutputTypeError:
        raise ExpressionError("must evaluate to bool") from None

    def evaluate(value: Mapping[str, Any]) -> Any:
        try:
            return program.evaluate({variable: value})
        except (cel.EvalError, cel.CostError) as error:
            raise ExpressionError(f"expression '{text}' resulted in error: {error}") from None

    found = (f"{variable}.{name}" for name in _selected(program.node, variable))
    return Expression(text, evaluate, frozenset(found))


def _environment(variable: str) -> Environment:
    """Claims are whatever the issuer says; a user has its four parts."""
    from fastapi_core.cel.identity import claims_environment, user_environment

    return claims_environment() if variable == CLAIMS else user_environment()


def _selected(node: Node, variable: str) -> Iterator[str]:
    """Names of the fields of the variable that are read anywhere in the tree."""
    from fastapi_core.cel.syntax import Entry, Ident, Node, Select

    waiting: list[Any] = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Select) and isinstance(current.operand, Ident) and current.operand.name == variable:
            yield current.field
        if isinstance(current, list | tuple):
            waiting += current
        elif isinstance(current, Node | Entry):
            waiting += (
                getattr(current, name) for kind in type(current).__mro__ for name in getattr(kind, "__slots__", ())
            )
