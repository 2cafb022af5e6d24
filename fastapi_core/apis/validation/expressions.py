"""Expressions in objects: compiled with the variables they will have, so that what is wrong is told when they are written.

The compiler is loaded by the first object that has an expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fastapi_core.apis.validation.rules import Report, Tree

if TYPE_CHECKING:
    from fastapi_core.cel import Environment
    from fastapi_core.cel.types import Type

_DEVICE_LENGTH: Final = 10 * 1024


def compiled(text: str, environment: Environment, returns: Sequence[Type], path: str, report: Report) -> Type | None:
    """The type of the result; None when the expression is refused, which is reported."""
    from fastapi_core import cel

    try:
        return cel.compile_expression(text, environment, returns).type
    except cel.CompileError as error:
        if error.late:
            report.internal(path, error.told)
        else:
            report.invalid(path, text, error.told)
    except cel.OutputTypeError as error:
        report.invalid(path, text, str(error))
    return None


def match_condition(text: str, path: str, report: Report, *, params: bool) -> None:
    """A condition of a webhook or policy."""
    from fastapi_core.cel.admission import base_environment
    from fastapi_core.cel.types import BOOL

    compiled(text, base_environment(params=params, authorizer=True), (BOOL,), path, report)


class PolicyExpressions:
    """The expressions of one policy, in order: its variables first."""

    def __init__(self, spec: Tree, report: Report) -> None:
        self._params = spec.get("paramKind") is not None
        self._named = bool(spec.get("variables"))
        self._report = report
        self._types: dict[str, Type] = {}
        self._environments: dict[tuple[bool, bool], Environment] = {}

    def _compile(
        self, text: str, returns: Sequence[Type], path: str, *, authorizer: bool = True, patches: bool = False
    ) -> Type | None:
        from fastapi_core.cel.admission import base_environment, policy_environment

        if not self._named:
            base = base_environment(params=self._params, authorizer=authorizer, patches=patches)
            return compiled(text.strip(), base, returns, path, self._report)
        environment = self._environments.get((authorizer, patches))
        if environment is None:
            environment = policy_environment(self._types, params=self._params, authorizer=authorizer, patches=patches)
            self._environments[authorizer, patches] = environment
        return compiled(text.strip(), environment, returns, path, self._report)

    def condition(self, text: str, path: str) -> None:
        match_condition(text.strip(), path, self._report, params=self._params)

    def variable(self, name: str, text: str, path: str, *, patches: bool) -> None:
        """One variable, which the expressions after it may use whatever became of it."""
        from fastapi_core.cel.types import DYN

        found = self._types[name] = self._compile(text, (), path, patches=patches) or DYN
        for environment in self._environments.values():
            environment.put_variable(name, found)

    def validation(self, text: str, path: str) -> None:
        from fastapi_core.cel.types import BOOL

        self._compile(text, (BOOL,), path)

    def message(self, text: str, path: str) -> None:
        from fastapi_core.cel.types import STRING

        self._compile(text, (STRING,), path, authorizer=False)

    def annotation(self, text: str, path: str) -> None:
        from fastapi_core.cel.types import NULL, STRING

        self._compile(text, (STRING, NULL), path)

    def mutation(self, text: str, kind: str, path: str) -> None:
        from fastapi_core.cel.admission import APPLY_CONFIGURATION, JSON_PATCH

        wanted = APPLY_CONFIGURATION if kind == "ApplyConfiguration" else JSON_PATCH
        found = self._compile(text, (), path, patches=True)
        if found is not None and found != wanted:
            self._report.invalid(path, text.strip(), f"must evaluate to {wanted} but got {found}")


def device_selector(text: str, path: str, report: Report) -> None:
    """An expression that selects devices."""
    from fastapi_core import cel
    from fastapi_core.cel.devices import COST_LIMIT, device_declaration, device_environment
    from fastapi_core.cel.estimate import estimate
    from fastapi_core.cel.types import BOOL, is_dyn

    if len(text.encode()) > _DEVICE_LENGTH:
        report.too_long(path, _DEVICE_LENGTH)
        return
    try:
        program = cel.compile_expression(text, device_environment())
    except cel.CompileError as error:
        report.invalid(path, text, error.told)
        return
    if program.type != BOOL and not is_dyn(program.type):
        report.invalid(path, text, f"must evaluate to bool or the unknown type, not {program.type}")
    elif estimate(program.node, device_declaration(), "device").high > COST_LIMIT:
        report.forbidden(path, "too complex, exceeds cost limit")
