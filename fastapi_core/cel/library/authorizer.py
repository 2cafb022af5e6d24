"""`authorizer`: questions about what a user may do, asked from expressions.

The evaluator does not know authorizers: an `AuthorizerValue` holds a function that answers a `Check`. A function that
has to wait for the answer raises `WaitingError`, which no operator absorbs; its caller waits, remembers the answer and
evaluates the expression again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.functions import library
from fastapi_core.cel.values import Opaque
from fastapi_core.meta import names


class Check(NamedTuple):
    """One question. `service_account` is (namespace, name) when it is not about the user of the request."""

    service_account: tuple[str, str] | None
    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


class Answer(NamedTuple):
    """What came back; `error` is empty without one."""

    allowed: bool
    reason: str = ""
    error: str = ""


class WaitingError(Exception):
    """The answer is not there yet: await `answer` and evaluate again."""

    def __init__(self, check: Check, answer: Awaitable[Any]) -> None:
        super().__init__("an answer of the authorizer is needed")
        self.check = check
        self.answer = answer


Ask = Callable[[Check], Answer]


class AuthorizerValue(Opaque):
    """The variable `authorizer`."""

    __slots__ = ("ask", "service_account")
    cel_type = "kubernetes.authorization.Authorizer"

    def __init__(self, ask: Ask, service_account: tuple[str, str] | None = None) -> None:
        self.ask = ask
        self.service_account = service_account

    def request_resource(self, group: str, resource: str, subresource: str, namespace: str, name: str) -> CheckValue:
        """The variable `authorizer.requestResource`."""
        check = Check(self.service_account, "", "", group, resource, subresource, namespace, name)
        return CheckValue("kubernetes.authorization.ResourceCheck", self.ask, check)


class CheckValue(Opaque):
    """A question being put together."""

    __slots__ = ("ask", "check", "kind")

    def __init__(self, kind: str, ask: Ask, check: Check) -> None:
        self.kind = kind
        self.ask = ask
        self.check = check

    @property
    def cel_type(self) -> str:
        return self.kind


class DecisionValue(Opaque):
    """An answer."""

    __slots__ = ("answer",)
    cel_type = "kubernetes.authorization.Decision"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def _path(authorizer: AuthorizerValue, path: str) -> CheckValue:
    if not path.strip():
        raise EvalError("path must not be empty")
    check = Check(authorizer.service_account, "", path)
    return CheckValue("kubernetes.authorization.PathCheck", authorizer.ask, check)


def _group(authorizer: AuthorizerValue, group: str) -> CheckValue:
    check = Check(authorizer.service_account, "", "", group)
    return CheckValue("kubernetes.authorization.GroupCheck", authorizer.ask, check)


def _service_account(authorizer: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    if names.dns1123_subdomain(name):
        raise EvalError("Invalid service account name")
    if names.dns1123_label(namespace):
        raise EvalError("Invalid service account namespace")
    return AuthorizerValue(authorizer.ask, (namespace, name))


def _resource(group: CheckValue, resource: str) -> CheckValue:
    if not resource.strip():
        raise EvalError("resource must not be empty")
    return CheckValue("kubernetes.authorization.ResourceCheck", group.ask, group.check._replace(resource=resource))


def _replaced(check: Check, field: str, text: str) -> Check:
    fields = check._asdict()
    fields[field] = text
    return Check(**fields)


def _narrow(field: str) -> Callable[[CheckValue, str], CheckValue]:
    def narrowed(value: CheckValue, text: str) -> CheckValue:
        return CheckValue(value.kind, value.ask, _replaced(value.check, field, text))

    return narrowed


def _check(value: CheckValue, verb: str) -> DecisionValue:
    return DecisionValue(value.ask(value.check._replace(verb=verb)))


AUTHORIZER: Final = library(
    [
        ("authorizer_path Authorizer::path(string) -> PathCheck", _path),
        ("authorizer_group Authorizer::group(string) -> GroupCheck", _group),
        ("authorizer_serviceaccount Authorizer::serviceAccount(string, string) -> Authorizer", _service_account),
        ("groupcheck_resource GroupCheck::resource(string) -> ResourceCheck", _resource),
        ("resourcecheck_subresource ResourceCheck::subresource(string) -> ResourceCheck", _narrow("subresource")),
        ("resourcecheck_namespace ResourceCheck::namespace(string) -> ResourceCheck", _narrow("namespace")),
        ("resourcecheck_name ResourceCheck::name(string) -> ResourceCheck", _narrow("name")),
        ("pathcheck_check PathCheck::check(string) -> Decision", _check),
        ("resourcecheck_check ResourceCheck::check(string) -> Decision", _check),
        ("decision_errored Decision::errored() -> bool", lambda decision: bool(decision.answer.error)),
        ("decision_error Decision::error() -> string", lambda decision: decision.answer.error),
        ("decision_allowed Decision::allowed() -> bool", lambda decision: decision.answer.allowed),
        ("decision_reason Decision::reason() -> string", lambda decision: decision.answer.reason),
    ],
    since=(1, 27),
)
SELECTORS: Final = library(
    [
        ("authorizer_fieldselector ResourceCheck::fieldSelector(string) -> ResourceCheck", _narrow("field_selector")),
        ("authorizer_labelselector ResourceCheck::labelSelector(string) -> ResourceCheck", _narrow("label_selector")),
    ],
    since=(1, 31),
)
