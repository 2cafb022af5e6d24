"""Which requests are written down, and how much of them: the rules of an audit policy, the first that matches wins."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core._ext.reqinfo import RequestInfo
    from fastapi_core.request.context import User


class Level(IntEnum):
    """How much of a request an event holds; each includes the ones before."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


LEVELS = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.REQUEST_RESPONSE,
}
LEVEL_NAMES = {level: name for name, level in LEVELS.items()}

RECEIVED = "RequestReceived"
STARTED = "ResponseStarted"
COMPLETE = "ResponseComplete"
PANIC = "Panic"
STAGES = (RECEIVED, STARTED, COMPLETE, PANIC)


class Ruling(NamedTuple):
    """What a policy says of one request."""

    level: Level
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


@dataclass(frozen=True, slots=True)
class GroupResources:
    """Resources of one API group; no resources: all of the group, subresources included."""

    group: str = ""
    resources: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()

    def matches(self, info: RequestInfo) -> bool:
        if self.group != info.api_group:
            return False
        if not self.resources:
            return True
        if self.names and info.name not in self.names:
            return False
        resource, subresource = info.resource, info.subresource
        combined = f"{resource}/{subresource}" if subresource else resource
        return any(
            pattern in ("*", combined)
            or (subresource and pattern == f"*/{subresource}")
            or (pattern.endswith("/*") and pattern[:-2] == resource)
            for pattern in self.resources
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; what is empty matches everything."""

    ruling: Ruling
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    resources: tuple[GroupResources, ...] = ()
    namespaces: frozenset[str] = frozenset()
    urls: tuple[str, ...] = ()

    def matches(self, user: User | None, info: RequestInfo) -> bool:
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.groups and (user is None or self.groups.isdisjoint(user.groups)):
            return False
        if self.verbs and info.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return self._matches_resource(info)
        if self.urls:
            return not info.is_resource_request and any(_covers(pattern, info.path) for pattern in self.urls)
        return True

    def _matches_resource(self, info: RequestInfo) -> bool:
        if not info.is_resource_request:
            return False
        # Requests outside any namespace match the empty name.
        if self.namespaces and info.namespace not in self.namespaces:
            return False
        return not self.resources or any(resources.matches(info) for resources in self.resources)


def _covers(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules in order, and what holds for requests that none of them matches: nothing is written down."""

    rules: tuple[Rule, ...]

    def rule_on(self, user: User | None, info: RequestInfo) -> Ruling:
        """`user` is None when nobody could be authenticated: rules about users do not match then."""
        for rule in self.rules:
            if rule.matches(user, info):
                return rule.ruling
        return NOTHING


NOTHING = Ruling(Level.NONE)
