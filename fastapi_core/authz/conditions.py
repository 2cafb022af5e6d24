"""Match conditions of authorization webhooks: the one place where their text becomes something that can be evaluated."""

from __future__ import annotations

from fastapi_core.authz.modes import Condition


class ConditionError(ValueError):
    """An expression that cannot be compiled or evaluated; says why."""


def compile_condition(expression: str) -> Condition:
    """Compile an expression over `request`. Raises ConditionError."""
    raise ConditionError("expressions are not supported by this build, leave matchConditions out")
