"""Match conditions of authorization webhooks: the one place where their text becomes something that can be evaluated.

The compiler is loaded by the first condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fastapi_core.authz.modes import Condition

_NAMES: Final = ("namespace", "verb", "group", "version", "resource", "subresource", "name")


class ConditionError(ValueError):
    """An expression that cannot be compiled or evaluated; says why."""


def compile_condition(expression: str) -> Condition:
    """Compile an expression over `request`, the spec of a SubjectAccessReview. Raises ConditionError."""
    from fastapi_core import cel
    from fastapi_core.cel.identity import review_environment
    from fastapi_core.cel.types import BOOL

    try:
        program = cel.compile_expression(expression, review_environment(), (BOOL,))
    except cel.CompileError as error:
        raise ConditionError(error.told) from None
    except cel.OutputTypeError as error:
        raise ConditionError(str(error)) from None

    def holds(spec: dict[str, Any]) -> bool:
        try:
            return program.evaluate({"request": _shown(spec)}) is True
        except (cel.EvalError, cel.CostError) as error:
            text = f"expression '{expression}' resulted in error: {error}"
            raise ConditionError(f"cel evaluation error: {text}") from None

    return holds


def hold(conditions: Iterable[Condition], spec: dict[str, Any]) -> bool:
    """Whether all of them hold. ConditionError when some fail and none is known not to hold."""
    errors: dict[str, None] = {}
    for condition in conditions:
        try:
            if not condition(spec):
                return False
        except ConditionError as error:
            errors[str(error)] = None
    if errors:
        raise ConditionError(next(iter(errors)) if len(errors) == 1 else "[" + ", ".join(errors) + "]")
    return True


def _shown(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with everything that is left out as empty, which expressions need not ask for."""
    request = {"user": "", "uid": "", "groups": [], "extra": {}, **spec}
    for member, names in (("resourceAttributes", _NAMES), ("nonResourceAttributes", ("path", "verb"))):
        if member in spec:
            request[member] = {**dict.fromkeys(names, ""), **spec[member]}
    return request
