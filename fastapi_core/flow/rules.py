"""What FlowSchema and PriorityLevelConfiguration objects say, in the form requests are classified by.

An object whose spec makes no sense (written before it was validated, or by a newer server) is left out, as the
reference leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from fastapi_core.flow.sharding import can_deal
from fastapi_core.request.context import User

Tree = dict[str, Any]
#: A list of words of a rule; None matches everything.
Words = frozenset[str] | None

EXEMPT = "exempt"
CATCH_ALL = "catch-all"
BY_USER, BY_NAMESPACE = "ByUser", "ByNamespace"
_ACCOUNT = "system:serviceaccount:"


class Digest(NamedTuple):
    """All of a request, beside its user, that classification depends on. `path` is empty for resource requests."""

    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    path: str
    is_resource: bool


class LevelSpec(NamedTuple):
    """One priority level. `queues` 0 rejects what finds no seat; `borrowing` None borrows whatever there is."""

    name: str
    uid: str
    exempt: bool
    shares: int
    lendable: int
    borrowing: int | None = None
    queues: int = 0
    hand: int = 0
    length: int = 0


def level_spec(tree: Tree) -> LevelSpec | None:
    """The priority level of an object; None when its spec is not one that can be followed."""
    metadata, spec = tree["metadata"], tree.get("spec") or {}
    name, kind = metadata["name"], spec.get("type")
    if (kind == "Exempt") != (name == EXEMPT):
        return None
    if kind == "Exempt":
        exempt = spec.get("exempt") or {}
        return LevelSpec(
            name,
            metadata.get("uid", ""),
            True,
            exempt.get("nominalConcurrencyShares") or 0,
            exempt.get("lendablePercent") or 0,
        )
    limited = spec.get("limited")
    if kind != "Limited" or not limited:
        return None
    response = limited.get("limitResponse") or {}
    queuing = response.get("queuing")
    if (response.get("type") == "Reject") != (queuing is None):
        return None
    queues, hand, length = ((queuing or {}).get(name) or 0 for name in ("queues", "handSize", "queueLengthLimit"))
    if queuing is not None and not can_deal(queues, hand):
        return None
    shares = limited.get("nominalConcurrencyShares")
    return LevelSpec(
        name,
        metadata.get("uid", ""),
        False,
        30 if shares is None else shares,
        limited.get("lendablePercent") or 0,
        limited.get("borrowingLimitPercent"),
        queues,
        hand,
        length,
    )


class ResourceRule(NamedTuple):
    verbs: Words
    groups: Words
    resources: Words
    namespaces: Words
    cluster_scope: bool

    def matches(self, digest: Digest) -> bool:
        if self.verbs is not None and digest.verb not in self.verbs:
            return False
        if self.resources is not None:
            resource = f"{digest.resource}/{digest.subresource}" if digest.subresource else digest.resource
            if resource not in self.resources:
                return False
        if self.groups is not None and digest.group not in self.groups:
            return False
        if not digest.namespace:
            return self.cluster_scope
        return self.namespaces is None or digest.namespace in self.namespaces


class PathRule(NamedTuple):
    verbs: Words
    paths: Words
    prefixes: tuple[str, ...]
    """What is below a listed path matches too, whether or not it ends in a star."""

    def matches(self, digest: Digest) -> bool:
        if self.verbs is not None and digest.verb not in self.verbs:
            return False
        return self.paths is None or digest.path in self.paths or digest.path.startswith(self.prefixes)


class Rule(NamedTuple):
    """Subjects and what they ask for. `accounts` are user name prefixes of all service accounts of a namespace."""

    users: Words
    groups: Words
    accounts: tuple[str, ...]
    resources: tuple[ResourceRule, ...]
    paths: tuple[PathRule, ...]

    def matches(self, user: User, digest: Digest) -> bool:
        if not self._is_subject(user):
            return False
        if digest.is_resource:
            return any(rule.matches(digest) for rule in self.resources)
        return any(rule.matches(digest) for rule in self.paths)

    def _is_subject(self, user: User) -> bool:
        if self.users is None or self.groups is None:
            return True
        if user.name in self.users or not self.groups.isdisjoint(user.groups):
            return True
        return bool(self.accounts) and user.name.startswith(self.accounts)


class SchemaSpec(NamedTuple):
    """One flow schema. `method` is empty when all its requests are one flow."""

    name: str
    uid: str
    level: str
    precedence: int
    method: str
    rules: tuple[Rule, ...]

    @property
    def order(self) -> tuple[int, str]:
        """Schemas are tried in this order."""
        return self.precedence, self.name

    def matches(self, user: User, digest: Digest) -> bool:
        return any(rule.matches(user, digest) for rule in self.rules)

    def distinguisher(self, user: User, digest: Digest) -> str:
        """What tells the flows of this schema apart."""
        if self.method == BY_USER:
            return user.name
        return digest.namespace if self.method == BY_NAMESPACE else ""


def schema_spec(tree: Tree) -> SchemaSpec:
    """The flow schema of an object."""
    metadata, spec = tree["metadata"], tree.get("spec") or {}
    return SchemaSpec(
        metadata["name"],
        metadata.get("uid", ""),
        (spec.get("priorityLevelConfiguration") or {}).get("name") or "",
        spec.get("matchingPrecedence") or 0,
        (spec.get("distinguisherMethod") or {}).get("type") or "",
        tuple(_rule(rule) for rule in spec.get("rules") or ()),
    )


def _rule(rule: Tree) -> Rule:
    users: set[str] = set()
    groups: set[str] = set()
    accounts: list[str] = []
    for subject in rule.get("subjects") or ():
        kind = subject.get("kind")
        if kind == "User":
            users.add((subject.get("user") or {}).get("name") or "")
        elif kind == "Group":
            groups.add((subject.get("group") or {}).get("name") or "")
        elif kind == "ServiceAccount":
            account = subject.get("serviceAccount") or {}
            prefix = f"{_ACCOUNT}{account.get('namespace') or ''}:"
            if account.get("name") == "*":
                accounts.append(prefix)
            else:
                users.add(prefix + (account.get("name") or ""))
    return Rule(
        None if "*" in users else frozenset(users),
        None if "*" in groups else frozenset(groups),
        tuple(accounts),
        tuple(_resource_rule(part) for part in rule.get("resourceRules") or ()),
        tuple(_path_rule(part) for part in rule.get("nonResourceRules") or ()),
    )


def _resource_rule(part: Tree) -> ResourceRule:
    return ResourceRule(
        _words(part.get("verbs")),
        _words(part.get("apiGroups")),
        _words(part.get("resources")),
        _words(part.get("namespaces")),
        bool(part.get("clusterScope")),
    )


def _path_rule(part: Tree) -> PathRule:
    urls = part.get("nonResourceURLs") or ()
    if "*" in urls:
        return PathRule(_words(part.get("verbs")), None, ())
    below = (url.removesuffix("*") for url in urls)
    prefixes = tuple(prefix if prefix.endswith("/") else prefix + "/" for prefix in below)
    return PathRule(_words(part.get("verbs")), frozenset(urls), prefixes)


def _words(words: Iterable[str] | None) -> Words:
    found = frozenset(words or ())
    return None if found == {"*"} else found
