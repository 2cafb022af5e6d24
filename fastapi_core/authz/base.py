"""May they: the authorizer protocol, what a decision depends on, and the authorizers that need no policy."""

from __future__ import annotations

import enum
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from fastapi_core.authn.base import PUBLIC_PATHS
from fastapi_core.errors import APIError, forbidden, go_quote
from fastapi_core.request.context import ANONYMOUS, User

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext


UNAUTHENTICATED = "system:unauthenticated"


class Decision(enum.Enum):
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class Attributes(NamedTuple):
    """All a decision may depend on: equal attributes get equal answers until the policy objects change."""

    user: User
    verb: str
    api_group: str
    api_version: str
    namespace: str
    resource: str
    subresource: str
    name: str
    path: str
    is_resource_request: bool
    label_selector: str
    field_selector: str


class Verdict(NamedTuple):
    decision: Decision
    reason: str = ""
    error: str = ""
    """What kept an authorizer from judging; a request that nobody allows is then answered 500."""
    lasting: bool = True
    """Whether it holds until `generation` changes; else it is asked for each time."""


ALLOWED = Verdict(Decision.ALLOW)
NO_OPINION = Verdict(Decision.NO_OPINION)


class Authorizer(Protocol):
    """One source of decisions. `generation` grows whenever an old lasting answer might not hold any more.

    An awaited answer is never remembered by who asks: only the authorizer that fetched it knows for how long it holds.
    """

    @property
    def generation(self) -> int: ...

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]: ...


class Grants(NamedTuple):
    """What a user may do in a namespace, as far as an authorizer can list it (`SubjectRulesReviewStatus`).

    Rules are trees: verbs, apiGroups, resources, resourceNames; or verbs, nonResourceURLs."""

    resource_rules: list[dict[str, Any]]
    path_rules: list[dict[str, Any]]
    incomplete: bool = False
    error: str = ""


NOTHING = Grants([], [])


@runtime_checkable
class RuleLister(Protocol):
    """An authorizer that can list what somebody may do."""

    def grants(self, user: User, namespace: str) -> Grants: ...


class AlwaysAllow:
    """Mode AlwaysAllow, the reference's default when no mode is set: everything, to whoever is known.

    The unknown get no further than health and version. The reference shuts them out when the mode is set by flag; here
    that holds wherever the mode comes from, a configuration that is exchanged later included.
    """

    generation = 0

    def authorize(self, attributes: Attributes) -> Verdict:
        if attributes.user.name == ANONYMOUS.name or UNAUTHENTICATED in attributes.user.groups:
            public = not attributes.is_resource_request and attributes.path in PUBLIC_PATHS
            return ALLOWED if public else NO_OPINION
        return ALLOWED

    def grants(self, user: User, namespace: str) -> Grants:
        rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return Grants([rule], [{"verbs": ["*"], "nonResourceURLs": ["*"]}])


class AlwaysDeny:
    """Mode AlwaysDeny: for tests of clients."""

    generation = 0

    def authorize(self, attributes: Attributes) -> Verdict:
        return Verdict(Decision.NO_OPINION, "Everything is forbidden.")

    def grants(self, user: User, namespace: str) -> Grants:
        return NOTHING


class PrivilegedGroup:
    """Lets a group do everything, whatever the policy objects say; in front of the others."""

    generation = 0

    def __init__(self, group: str) -> None:
        self._group = group

    def authorize(self, attributes: Attributes) -> Verdict:
        return ALLOWED if self._group in attributes.user.groups else NO_OPINION


AttributesKey = tuple[User, str, str, str, str, str, str, str, str, bool, str, str]
"""The values of `Attributes`, in order: cheaper to make, equal and hashed alike."""


def attributes_key(ctx: RequestContext) -> AttributesKey:
    """What a decision on this request depends on; `Attributes(*key)` gives it names."""
    info = ctx.info
    resource = info.is_resource_request
    return (
        ctx.user, info.verb, info.api_group, info.api_version, info.namespace, info.resource, info.subresource,
        info.name, "" if resource else info.path, resource, info.label_selector, info.field_selector,
    )  # fmt: skip


def attributes_of(ctx: RequestContext) -> Attributes:
    return Attributes(*attributes_key(ctx))


def denied(attributes: Attributes, reason: str = "") -> APIError:
    """The 403 of a refused request, worded as the reference words it."""
    a = attributes
    who = f"User {go_quote(a.user.name)} cannot {a.verb}"
    if not a.is_resource_request:
        text = f"{who} path {go_quote(a.path)}"
        return forbidden("", "", "", f"{text}: {reason}" if reason else text)
    resource = f"{a.resource}/{a.subresource}" if a.subresource else a.resource
    where = f"in the namespace {go_quote(a.namespace)}" if a.namespace else "at the cluster scope"
    text = f"{who} resource {go_quote(resource)} in API group {go_quote(a.api_group)} {where}"
    return forbidden(a.resource, a.api_group, a.name, f"{text}: {reason}" if reason else text)
