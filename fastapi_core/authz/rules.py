"""Policy rules of roles: what a rule allows, what of one set of rules another does not cover, and their texts.

A rule is its tree (`rbac/v1.PolicyRule`) for everything that reads it seldom, and a `Rule` where requests are judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fastapi_core.errors import go_quote

if TYPE_CHECKING:
    from fastapi_core.authz.base import Attributes

Tree = dict[str, Any]

ALL = "*"
#: Every right there is: what somebody must hold to hand out rights that are not known yet.
FULL_AUTHORITY: tuple[Tree, ...] = (
    {"apiGroups": [ALL], "resources": [ALL], "verbs": [ALL]},
    {"nonResourceURLs": [ALL], "verbs": [ALL]},
)
_MEMBERS = frozenset({"verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"})


def _list(tree: Tree, member: str) -> list[str]:
    return tree.get(member) or []


def _is_sound(tree: Any) -> bool:
    return isinstance(tree, dict) and all(
        isinstance(values, list) and all(isinstance(value, str) for value in values)
        for member, values in tree.items()
        if member in _MEMBERS and values is not None
    )


class Rule:
    """One rule, prepared for judging requests."""

    __slots__ = ("every_group", "every_verb", "groups", "names", "prefixes", "resources", "urls", "verbs")

    def __init__(self, tree: Tree) -> None:
        self.verbs = frozenset(_list(tree, "verbs"))
        self.every_verb = ALL in self.verbs
        self.groups = frozenset(_list(tree, "apiGroups"))
        self.every_group = ALL in self.groups
        self.resources = frozenset(_list(tree, "resources"))
        self.names = frozenset(_list(tree, "resourceNames"))
        self.urls = frozenset(_list(tree, "nonResourceURLs"))
        self.prefixes = tuple(url.rstrip(ALL) for url in self.urls if url.endswith(ALL))

    @property
    def wild(self) -> bool:
        """Whether it may apply to resources that it does not name."""
        return any(resource == ALL or resource.startswith("*/") for resource in self.resources)

    def allows_resource(self, verb: str, group: str, resource: str, subresource: str, name: str) -> bool:
        """`resource` includes the subresource: `pods/log`."""
        return (
            (self.every_verb or verb in self.verbs)
            and (self.every_group or group in self.groups)
            and (
                resource in self.resources
                or ALL in self.resources
                or (bool(subresource) and f"*/{subresource}" in self.resources)
            )
            and (not self.names or name in self.names)
        )

    def allows_path(self, verb: str, path: str) -> bool:
        return (self.every_verb or verb in self.verbs) and (
            path in self.urls or (bool(self.prefixes) and path.startswith(self.prefixes))
        )


class RuleSet:
    """The rules of one role, prepared on first use; those that may concern a resource are found by its name."""

    __slots__ = ("_by_resource", "_paths", "_wild", "trees")

    def __init__(self, trees: Iterable[Tree]) -> None:
        """Raises ValueError for a rule of another shape: half understood it might allow more than meant."""
        self.trees = tuple(trees)
        if not all(_is_sound(tree) for tree in self.trees):
            raise ValueError("a rule is not what a rule should be")
        self._by_resource: dict[str, tuple[Rule, ...]] | None = None
        self._paths: tuple[Rule, ...] = ()
        self._wild: tuple[Rule, ...] = ()

    def _prepare(self) -> dict[str, tuple[Rule, ...]]:
        rules = [Rule(tree) for tree in self.trees]
        self._paths = tuple(rule for rule in rules if rule.urls)
        wild = self._wild = tuple(rule for rule in rules if rule.wild)
        named: dict[str, list[Rule]] = {}
        for rule in rules:
            if not rule.wild:
                for resource in rule.resources:
                    named.setdefault(resource, []).append(rule)
        found = self._by_resource = {resource: (*wild, *concerning) for resource, concerning in named.items()}
        return found

    def concerning(self, resource: str) -> tuple[Rule, ...]:
        """The rules that may allow something on a resource (with its subresource)."""
        table = self._by_resource
        if table is None:
            table = self._prepare()
        return table.get(resource, self._wild)

    def allows_resource(self, verb: str, group: str, resource: str, subresource: str, name: str) -> bool:
        rules = self.concerning(resource)
        return any(rule.allows_resource(verb, group, resource, subresource, name) for rule in rules)

    def allows_path(self, verb: str, path: str) -> bool:
        if self._by_resource is None:
            self._prepare()
        return any(rule.allows_path(verb, path) for rule in self._paths)

    def allows(self, attributes: Attributes) -> bool:
        a = attributes
        if not a.is_resource_request:
            return self.allows_path(a.verb, a.path)
        return self.allows_resource(a.verb, a.api_group, combined(a.resource, a.subresource), a.subresource, a.name)


def combined(resource: str, subresource: str) -> str:
    """A resource as rules name it."""
    return f"{resource}/{subresource}" if subresource else resource


# Covering


def uncovered(owned: Sequence[Tree], wanted: Iterable[Tree]) -> list[Tree]:
    """The parts of `wanted` (one verb on one resource or path each) that no single rule of `owned` contains."""
    return [part for rule in wanted for part in parts(rule) if not any(_covers(own, part) for own in owned)]


def parts(rule: Tree) -> list[Tree]:
    """A rule taken apart, so that each part is covered by a rule or is not."""
    found: list[Tree] = []
    for group in _list(rule, "apiGroups"):
        for resource in _list(rule, "resources"):
            for verb in _list(rule, "verbs"):
                part: Tree = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = _list(rule, "resourceNames")
                found += [{**part, "resourceNames": [name]} for name in names] if names else [part]
    for url in _list(rule, "nonResourceURLs"):
        found += [{"nonResourceURLs": [url], "verbs": [verb]} for verb in _list(rule, "verbs")]
    return found


def _covers(own: Tree, part: Tree) -> bool:
    owned_names = _list(own, "resourceNames")
    names = _list(part, "resourceNames")
    return (
        _has(_list(own, "verbs"), _list(part, "verbs"))
        and _has(_list(own, "apiGroups"), _list(part, "apiGroups"))
        and all(_covers_resource(_list(own, "resources"), resource) for resource in _list(part, "resources"))
        and all(_covers_url(_list(own, "nonResourceURLs"), url) for url in _list(part, "nonResourceURLs"))
        and (not owned_names or (bool(names) and all(name in owned_names for name in names)))
    )


def _has(owned: list[str], wanted: list[str]) -> bool:
    return ALL in owned or all(value in owned for value in wanted)


def _covers_resource(owned: list[str], resource: str) -> bool:
    if ALL in owned or resource in owned:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in owned


def _covers_url(owned: list[str], url: str) -> bool:
    return any(own == url or (own.endswith(ALL) and url.startswith(own.rstrip(ALL))) for own in owned)


# Texts


def compact(rules: Iterable[Tree]) -> list[Tree]:
    """Rules that differ in their verbs alone, taken together."""
    others: list[Tree] = []
    simple: dict[tuple[str, str, str | None], Tree] = {}
    for rule in rules:
        groups, resources, names = (_list(rule, m) for m in ("apiGroups", "resources", "resourceNames"))
        if len(names) > 1 or rule.get("nonResourceURLs") or len(groups) != 1 or len(resources) != 1:
            others.append(rule)
            continue
        key = groups[0], resources[0], names[0] if names else None
        known = simple.get(key)
        if known is None:
            simple[key] = {**rule, "verbs": list(_list(rule, "verbs"))}
        else:
            known["verbs"] += _list(rule, "verbs")
    return [*others, *simple.values()]


_SHOWN = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def text(rule: Tree) -> str:
    """A rule in one line, as refusals show it."""
    shown = [f"{name}:{quoted(rule[member])}" for name, member in _SHOWN if rule.get(member)]
    return "{" + ", ".join(shown) + "}"


def quoted(values: Iterable[str]) -> str:
    """A list of strings as Go's %q prints it."""
    return "[" + " ".join(go_quote(value) for value in values) + "]"
