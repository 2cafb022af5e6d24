"""The expressions of a validating policy, compiled, and what they find."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from fastapi_core.admission.evaluation import (
    STORED,
    Activation,
    ExhaustedError,
    Expression,
    FailedError,
    Input,
    MatchConditions,
    Variables,
)
from fastapi_core.cel import Budget
from fastapi_core.cel.admission import policy_environment
from fastapi_core.cel.types import BOOL, DYN, NULL, STRING, Type
from fastapi_core.registry.definition import Tree

#: Bytes of a message that an expression makes.
_LONGEST_MESSAGE: Final = 5 * 1024


class Finding(NamedTuple):
    """A validation that does not hold, or has no value (`error` says of what sort the failure is)."""

    place: int
    message: str
    reason: str
    error: str


class Outcome(NamedTuple):
    findings: list[Finding]
    notes: list[tuple[str, str]]
    """Audit annotations."""
    errors: list[str]
    """Audit annotations that failed."""


NOTHING: Final = Outcome([], [], [])


class _Validation(NamedTuple):
    expression: Expression
    message: str
    reason: str
    told: Expression | None


def variables_of(spec: Tree, *, params: bool) -> Variables:
    """The variables of a policy of either kind; each may use those before it."""
    types: dict[str, Type] = {}
    expressions: dict[str, Expression] = {}
    environment = policy_environment(types, params=params, version=STORED)
    for item in spec.get("variables") or ():
        found = expressions[item["name"]] = Expression(item["expression"], environment)
        types[item["name"]] = found.program.type if found.program is not None else DYN
        environment.put_variable(item["name"], types[item["name"]])
    return Variables(types, expressions)


class Rules:
    """One policy."""

    def __init__(self, spec: Tree) -> None:
        params = spec.get("paramKind") is not None
        self._variables = variables = variables_of(spec, params=params)
        environment = policy_environment(variables.types, params=params, version=STORED)
        telling = policy_environment(variables.types, params=params, authorizer=False, version=STORED)
        conditions = spec.get("matchConditions")
        self._conditions = MatchConditions(conditions, environment, variables) if conditions else None
        self._validations = [
            _Validation(
                Expression(item["expression"], environment, (BOOL,)),
                item.get("message") or "",
                item.get("reason") or "Invalid",
                Expression(item["messageExpression"], telling, (STRING,)) if item.get("messageExpression") else None,
            )
            for item in spec.get("validations") or ()
        ]
        self._annotations = [
            (item["key"], Expression(item["valueExpression"], environment, (STRING, NULL)))
            for item in spec.get("auditAnnotations") or ()
        ]

    def judge(self, source: Input, params: Tree | None) -> Outcome:
        """What this policy finds."""
        if self._conditions is not None:
            try:
                if self._conditions.unmet(source.conditions(params)) is not None:
                    return NOTHING
            except FailedError as error:
                return _failed(error)
        activation = source.activation(params)
        budget = Budget()
        self._variables.put(activation, budget)
        try:
            findings = self._validate(activation, budget)
        except ExhaustedError as error:
            return _failed(error)
        if findings and any(item.told is not None for item in self._validations):
            findings = self._told(source, params, budget, findings)
        if not self._annotations:
            return Outcome(findings, [], [])
        return self._annotated(source, params, findings)

    def _validate(self, activation: Activation, budget: Budget) -> list[Finding]:
        """Everything that does not hold; the messages are those that are written down. ExhaustedError."""
        findings = []
        for index, (expression, message, reason, _) in enumerate(self._validations):
            try:
                if expression.evaluate(activation, budget) is not True:
                    text = message.strip() or f"failed expression: {expression.text.strip()}"
                    findings.append(Finding(index, text, reason, ""))
            except ExhaustedError:
                raise
            except FailedError as error:
                findings.append(Finding(index, str(error), "", _sort(expression)))
        return findings

    def _told(self, source: Input, params: Tree | None, budget: Budget, findings: list[Finding]) -> list[Finding]:
        """The findings in the words of the message expressions, which share what is left of the budget."""
        activation = source.activation(params)
        self._variables.put(activation, budget)
        words: dict[int, str] = {}
        try:
            for index, item in enumerate(self._validations):
                if item.told is not None:
                    text = _message(item.told, activation, budget)
                    if text:
                        words[index] = text
        except ExhaustedError as error:
            text = f"failed messageExpression: {error}"
            known = {finding.place: finding for finding in findings if finding.error}
            return [
                known.get(index) or Finding(index, text, "", "invalid_error") for index in range(len(self._validations))
            ]
        return [
            finding if finding.error or finding.place not in words else finding._replace(message=words[finding.place])
            for finding in findings
        ]

    def _annotated(self, source: Input, params: Tree | None, findings: list[Finding]) -> Outcome:
        activation = source.activation(params)
        budget = Budget()
        self._variables.put(activation, budget)
        notes: list[tuple[str, str]] = []
        errors: list[str] = []
        for key, expression in self._annotations:
            try:
                value = expression.evaluate(activation, budget)
            except ExhaustedError as error:
                return _failed(error)
            except FailedError as error:
                errors.append(str(error))
                continue
            if value is not None and value.strip():
                notes.append((key, value.strip()))
        return Outcome(findings, notes, errors)


def _sort(expression: Expression) -> str:
    return "compile_error" if expression.program is None else "invalid_error"


def _failed(error: FailedError) -> Outcome:
    """The policy as a whole failed."""
    sort = "out_of_budget" if isinstance(error, ExhaustedError) else "invalid_error"
    return Outcome([Finding(0, str(error), "", sort)], [], [])


def _message(expression: Expression, activation: Mapping[str, object], budget: Budget) -> str:
    """What a message expression says, empty when that is nothing to show."""
    try:
        value = expression.evaluate(activation, budget)
    except ExhaustedError:
        raise
    except FailedError:
        return ""
    text = value.strip() if isinstance(value, str) else ""
    return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE else text
