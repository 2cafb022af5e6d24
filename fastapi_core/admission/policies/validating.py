"""ValidatingAdmissionPolicy: refuses, warns about or notes what its expressions find wrong with a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fastapi_core.admission.chain import CONNECT, CREATE, DELETE, UPDATE, Attributes
from fastapi_core.admission.objects import Objects
from fastapi_core.admission.policies.params import Directory
from fastapi_core.admission.policies.plugin import PolicyPlugin, inputs
from fastapi_core.admission.policies.source import Binding, Policy, Source
from fastapi_core.admission.policies.versions import Convert, Versions, renamed
from fastapi_core.admission.refusals import forbidden
from fastapi_core.authz.base import Authorizer
from fastapi_core.codec import json as json_codec
from fastapi_core.errors import REASON_CODES, APIError

if TYPE_CHECKING:
    from fastapi_core.admission.evaluation import Input, RequestAuthorizer
    from fastapi_core.admission.policies.rules import Finding, Rules
    from fastapi_core.obs.catalog import Metrics
    from fastapi_core.registry.definition import ResourceDefinition

FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
#: Failures that one audit event tells of, and bytes of a value it takes.
_MOST_FAILURES: Final = 50
_LONGEST_VALUE: Final = 10 * 1024


class _Denial(NamedTuple):
    message: str
    reason: str


class _Verdict:
    """What all policies together say; nothing of it is told before the last has spoken."""

    __slots__ = ("checks", "denial", "failures", "notes", "warnings")

    def __init__(self) -> None:
        self.denial: _Denial | None = None
        """The first refusal, which is the one the client hears."""
        self.warnings: list[str] = []
        self.failures: list[dict[str, Any]] = []
        self.notes: dict[str, list[str]] = {}
        self.checks: list[tuple[tuple[str, str, str, str], float]] = []
        """Labels of the metrics, and seconds."""

    def deny(self, policy: str, binding: Binding | None, message: str, reason: str = "") -> None:
        if self.denial is None:
            by = f" with binding '{binding.name}'" if binding is not None else ""
            text = f"ValidatingAdmissionPolicy '{policy}'{by} denied request: {message}"
            self.denial = _Denial(text, reason or "Invalid")

    def take(self, policy: str, binding: Binding, finding: Finding, seconds: float) -> None:
        """What a binding makes of something found."""
        for action in binding.actions:
            if action == "Deny":
                self.deny(policy, binding, finding.message, finding.reason)
            elif action == "Warn":
                self.warnings.append(
                    f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding.name}': "
                    f"{finding.message}"
                )
            elif action == "Audit":
                self.failures.append(
                    {
                        "message": finding.message,
                        "policy": policy,
                        "binding": binding.name,
                        "expressionIndex": finding.place,
                        "validationActions": binding.actions,
                    }
                )
            self.checks.append(((policy, binding.name, finding.error or "invalid_error", action.lower()), seconds))

    def note(self, key: str, value: str) -> None:
        known = self.notes.setdefault(key, [])
        cut = value.encode()[:_LONGEST_VALUE].decode("utf-8", "ignore")
        if cut not in known:
            known.append(cut)


class ValidatingAdmissionPolicy(PolicyPlugin["Rules"]):
    """The plugin."""

    name = "ValidatingAdmissionPolicy"
    operations = frozenset((CREATE, UPDATE, DELETE, CONNECT))

    def __init__(
        self,
        policies: Objects,
        bindings: Objects,
        namespaces: Objects,
        directory: Directory,
        authorizer: Authorizer,
        convert: Convert = renamed,
        metrics: Metrics | None = None,
    ) -> None:
        super().__init__(Source(policies, bindings, directory, _compiled), namespaces, convert)
        self._authorizer = authorizer
        self._metrics = metrics

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        if not self._relevant(attributes):
            return None
        from fastapi_core.admission.evaluation import RequestAuthorizer, settled

        authorizer = RequestAuthorizer(self._authorizer)
        found = settled(authorizer, partial(self._judge, attributes, authorizer, Versions(self._convert)))
        if isinstance(found, _Verdict):
            self._tell(attributes, found)
            return None
        return self._tell_later(attributes, found)

    def _judge(self, attributes: Attributes, authorizer: RequestAuthorizer, versions: Versions) -> _Verdict:
        verdict = _Verdict()
        version: Callable[[ResourceDefinition], Input] | None = None
        for policy, binding, target, params, error in self._invocations(attributes):
            if error:
                if not policy.ignores:
                    verdict.deny(policy.name, binding, error)
                continue
            if binding is None or target is None:
                continue
            if version is None:
                version = inputs(attributes, authorizer, versions, self._namespace(attributes))
            try:
                seen = version(target)
            except APIError as failure:
                if not policy.ignores:
                    text = f"failed to configure binding: failed to convert object version: {failure}"
                    verdict.deny(policy.name, binding, text)
                continue
            rules = policy.compile()
            for param in params:
                started = perf_counter()
                outcome = rules.judge(seen, param)
                seconds = perf_counter() - started
                for finding in outcome.findings:
                    if finding.error and policy.ignores:
                        verdict.checks.append(((policy.name, binding.name, finding.error, "allow"), seconds))
                    else:
                        verdict.take(policy.name, binding, finding, seconds)
                for key, value in outcome.notes:
                    verdict.note(f"{policy.name}/{key}", value)
                if not policy.ignores:
                    for text in outcome.errors:
                        verdict.deny(policy.name, binding, text)
        return verdict

    async def _tell_later(self, attributes: Attributes, pending: Awaitable[_Verdict]) -> None:
        self._tell(attributes, await pending)

    def _tell(self, attributes: Attributes, verdict: _Verdict) -> None:
        for text in verdict.warnings:
            attributes.warn(text)
        for key, values in verdict.notes.items():
            attributes.annotate(key, ", ".join(values))
        if verdict.failures:
            attributes.annotate(FAILURES, json_codec.encode(verdict.failures[:_MOST_FAILURES]).decode())
        if self._metrics is not None:
            for labels, seconds in verdict.checks:
                self._metrics.policy_checks.labels(*labels).inc()
                self._metrics.policy_seconds.labels(*labels).observe(seconds)
        if verdict.denial is not None:
            raise _refusal(attributes, verdict.denial)


def _refusal(attributes: Attributes, denial: _Denial) -> APIError:
    error = forbidden(attributes, denial.message)
    details = {**(error.details or {}), "causes": [{"message": denial.message}]}
    return APIError(denial.reason, error.message, code=REASON_CODES.get(denial.reason, 422), details=details)


def _compiled(policy: Policy[Rules]) -> Rules:
    from fastapi_core.admission.policies.rules import Rules

    return Rules(policy.spec)
