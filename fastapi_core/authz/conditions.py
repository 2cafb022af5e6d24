"""Match conditions of authorization webhooks: the one place where their text becomes something that can be evaluated."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fastapi_core.authz.modes import Condition

if TYPE_CHECKING:
    from fastapi_core import cel

#: What evaluating one condition may cost.
_BUDGET = 1_000_000
_SPEC = "authorization.k8s.io/v1.SubjectAccessReviewSpec"


class ConditionError(ValueError):
    """An expression that cannot be compiled or evaluated; says why."""


@lru_cache(maxsize=1)
def _environment() -> cel.Environment:
    """One variable, `request`: what the webhook would be asked."""
    from fastapi_core import cel
    from fastapi_core.cel.schemas import from_type
    from fastapi_core.schema.tables import type_of

    return cel.Environment({"request": from_type(type_of(_SPEC))})


def compile_condition(expression: str) -> Condition:
    """Compile an expression over `request`. Raises ConditionError."""
    from fastapi_core import cel
    from fastapi_core.cel.types import BOOL

    try:
        program = cel.compile_expression(expression, _environment(), [BOOL])
    except cel.CompileError as error:
        raise ConditionError(f"compilation failed: {error}") from None
    except cel.OutputTypeError as error:
        raise ConditionError(str(error)) from None

    def holds(spec: dict[str, Any]) -> bool:
        try:
            return program.evaluate({"request": spec}, cel.Budget(_BUDGET)) is True
        except (cel.EvalError, cel.CostError) as error:
            raise ConditionError(f"expression {expression!r} resulted in error: {error}") from None

    return holds
