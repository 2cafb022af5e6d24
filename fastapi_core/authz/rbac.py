"""RBAC: roles and bindings as they are in the watch cache, indexed by who is bound.

Each object is decoded once a change. The index follows the cache commit by commit, before the write that made the commit
is acknowledged, so a decision is always about what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi_core.authz.base import Attributes, Decision, Grants, Verdict
from fastapi_core.authz.rules import RuleSet, combined
from fastapi_core.authz.union import aggregate
from fastapi_core.errors import go_quote
from fastapi_core.obs import logs
from fastapi_core.request.context import User
from fastapi_core.storage.interface import StorageError

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.storage.cacher.changes import WatchEvent
    from fastapi_core.storage.cacher.resource import ResourceCache

Tree = dict[str, Any]
log = logs.get("rbac")

ACCOUNT_PREFIX = "system:serviceaccount:"


class Binding:
    """One binding, prepared for judging requests. `namespace` empty for a ClusterRoleBinding."""

    __slots__ = ("groups", "kind", "name", "namespace", "reference", "role", "subjects", "users")

    def __init__(self, tree: Tree, namespace: str) -> None:
        self.namespace = namespace
        self.name: str = tree["metadata"]["name"]
        reference = tree.get("roleRef") or {}
        self.kind: str = reference.get("kind") or ""
        self.reference: str = reference.get("name") or ""
        self.role = role_key(self.kind, namespace, self.reference)
        self.subjects: list[Tree] = tree.get("subjects") or []
        self.users: set[str] = set()
        self.groups: set[str] = set()
        for subject in self.subjects:
            kind, name = subject.get("kind"), subject.get("name") or ""
            if kind == "User":
                self.users.add(name)
            elif kind == "Group":
                self.groups.add(name)
            elif kind == "ServiceAccount" and (home := subject.get("namespace") or namespace):
                self.users.add(f"{ACCOUNT_PREFIX}{home}:{name}")

    def describe(self, user: User) -> str:
        """Binding, role and the subject that `user` is, for the reason of a verdict."""
        kind = "RoleBinding" if self.namespace else "ClusterRoleBinding"
        name = f"{self.name}/{self.namespace}" if self.namespace else self.name
        subject = next((s for s in self.subjects if _is(s, user, self.namespace)), {})
        who = subject.get("name") or ""
        if subject.get("kind") == "ServiceAccount":
            who = f"{who}/{subject.get('namespace') or self.namespace}"
        whom = f"{subject.get('kind')} {go_quote(who)}"
        return f"{kind} {go_quote(name)} of {self.kind} {go_quote(self.reference)} to {whom}"

    def missing(self) -> str:
        """Why the role of this binding has no rules."""
        if not self.role:
            return f"unsupported role reference kind: {go_quote(self.kind)}"
        return f"{self.kind.lower()}.rbac.authorization.k8s.io {go_quote(self.reference)} not found"


def _is(subject: Tree, user: User, namespace: str) -> bool:
    kind, name = subject.get("kind"), subject.get("name") or ""
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return bool(home) and user.name == f"{ACCOUNT_PREFIX}{home}:{name}"
    return name == user.name if kind == "User" else kind == "Group" and name in user.groups


def role_key(kind: str, namespace: str, name: str) -> str:
    """Where a role is found: the part of its storage key that tells it from other roles; empty for no kind of role."""
    return f"{namespace}/{name}" if kind == "Role" else f"/{name}" if kind == "ClusterRole" else ""


class Bindings:
    """The bindings of one namespace, or those of the cluster, by user and by group."""

    __slots__ = ("_groups", "_users")

    def __init__(self) -> None:
        self._users: dict[str, dict[str, Binding]] = {}
        self._groups: dict[str, dict[str, Binding]] = {}

    def add(self, binding: Binding) -> None:
        for table, names in ((self._users, binding.users), (self._groups, binding.groups)):
            for name in names:
                table.setdefault(name, {})[binding.name] = binding

    def remove(self, binding: Binding) -> None:
        for table, names in ((self._users, binding.users), (self._groups, binding.groups)):
            for name in names:
                del table[name][binding.name]
                if not table[name]:
                    del table[name]

    def of(self, user: User) -> Iterator[dict[str, Binding]]:
        """Tables of bindings that apply to a user. A binding may come more than once."""
        found = self._users.get(user.name)
        if found is not None:
            yield found
        groups = self._groups
        for group in user.groups:
            found = groups.get(group)
            if found is not None:
                yield found

    def __bool__(self) -> bool:
        return bool(self._users or self._groups)


class RoleIndex:
    """Roles and bindings of the whole store; filled on first use, then kept current by the watch cache.

    `generation` grows with every change of a role or binding.
    """

    def __init__(
        self,
        cluster_roles: ResourceCache,
        roles: ResourceCache,
        cluster_bindings: ResourceCache,
        bindings: ResourceCache,
    ) -> None:
        self.generation = 0
        self._roles: dict[str, RuleSet] = {}
        self._known: dict[str, Binding] = {}
        self._cluster = Bindings()
        self._namespaces: dict[str, Bindings] = {}
        self._caches = (cluster_roles, roles, cluster_bindings, bindings)
        self._binds = frozenset({cluster_bindings.prefix, bindings.prefix})
        self._unread: set[str] = set()
        self._loaded = False

    # Following the cache

    def load(self) -> None:
        """Read everything and follow it from there on; the second time does nothing."""
        if self._loaded:
            return
        self._loaded = True
        for cache in self._caches:
            self._read(cache)
            cache.watch(since=cache.revision, deliver=partial(self._follow, cache))

    def _read(self, cache: ResourceCache) -> None:
        try:
            objects = cache.list().objects
        except StorageError as error:
            # Without an object that cannot be read nobody knows what it grants or to whom: nothing of its kind does.
            log.error("Policy objects cannot be read, none of their kind is in force", error, prefix=cache.prefix)
            self._unread.add(cache.prefix)
            return
        self._unread.discard(cache.prefix)
        for obj in objects:
            self._take(cache.prefix, obj, deleted=False)

    def _follow(self, cache: ResourceCache, events: list[WatchEvent]) -> None:
        self.generation += 1
        if cache.prefix in self._unread:
            self._read(cache)
            return
        for event in events:
            self._take(cache.prefix, event.change.object, deleted=event.change.deleted)

    def _take(self, prefix: str, obj: CachedObject, *, deleted: bool) -> None:
        """Take an object in place of its former self. One that makes no sense grants nothing."""
        try:
            tree = None if deleted else obj.tree()
            if prefix in self._binds:
                self._put_binding(obj, None if tree is None else Binding(tree, obj.namespace))
            else:
                self._put_role(obj, None if tree is None else RuleSet(tree.get("rules") or ()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.error("A policy object cannot be understood and grants nothing", error, key=obj.key)
            if prefix in self._binds:
                self._put_binding(obj, None)
            else:
                self._put_role(obj, None)

    def _put_role(self, obj: CachedObject, rules: RuleSet | None) -> None:
        key = f"{obj.namespace}/{obj.name}"
        if rules is None:
            self._roles.pop(key, None)
        else:
            self._roles[key] = rules

    def _put_binding(self, obj: CachedObject, binding: Binding | None) -> None:
        namespace, key = obj.namespace, f"{obj.namespace}/{obj.name}"
        scope = self._namespaces.setdefault(namespace, Bindings()) if namespace else self._cluster
        former = self._known.pop(key, None)
        if former is not None:
            scope.remove(former)
        if binding is not None:
            self._known[key] = binding
            scope.add(binding)
        elif namespace and not scope:
            del self._namespaces[namespace]

    # Asking

    def _scopes(self, user: User, namespace: str) -> Iterable[dict[str, Binding]]:
        """Bindings of a user that count in a namespace: the cluster's first."""
        yield from self._cluster.of(user)
        if namespace:
            local = self._namespaces.get(namespace)
            if local is not None:
                yield from local.of(user)

    def rules(self, kind: str, namespace: str, name: str) -> RuleSet | None:
        """The rules of a role; None when there is none."""
        self.load()
        return self._roles.get(role_key(kind, namespace, name))

    def rules_of(self, user: User, namespace: str) -> tuple[list[Tree], str]:
        """All rules that apply to a user in a namespace, and what is wrong with the bindings."""
        self.load()
        found: dict[tuple[str, str], Binding] = {}
        for bindings in self._scopes(user, namespace):
            for binding in bindings.values():
                found[binding.namespace, binding.name] = binding
        rules: list[Tree] = []
        problems: list[str] = []
        for _, binding in sorted(found.items()):
            role = self._roles.get(binding.role)
            if role is None:
                problems.append(binding.missing())
            else:
                rules += role.trees
        return rules, aggregate(problems)

    def authorize(self, attributes: Attributes) -> Verdict:
        """The first binding that allows the request."""
        self.load()
        user, verb, group, _, namespace, resource, subresource, name, path, of_resource, _, _ = attributes
        what = combined(resource, subresource)
        roles = self._roles
        problems: list[str] = []
        for bindings in self._scopes(user, namespace):
            for binding in bindings.values():
                role = roles.get(binding.role)
                if role is None:
                    problems.append(binding.missing())
                elif not of_resource:
                    if role.allows_path(verb, path):
                        return _allowed(binding, user)
                else:
                    for rule in role.concerning(what):
                        if rule.allows_resource(verb, group, what, subresource, name):
                            return _allowed(binding, user)
        return Verdict(Decision.NO_OPINION, f"RBAC: {aggregate(problems)}" if problems else "")

    def grants(self, user: User, namespace: str) -> Grants:
        rules, error = self.rules_of(user, namespace)
        return Grants(
            [_shown(rule, "apiGroups", "resources", "resourceNames") for rule in rules if rule.get("resources")],
            [_shown(rule, "nonResourceURLs") for rule in rules if rule.get("nonResourceURLs")],
            False,
            error,
        )


def _allowed(binding: Binding, user: User) -> Verdict:
    return Verdict(Decision.ALLOW, f"RBAC: allowed by {binding.describe(user)}")


def _shown(rule: Tree, *members: str) -> Tree:
    return {member: rule[member] for member in ("verbs", *members) if rule.get(member)}
