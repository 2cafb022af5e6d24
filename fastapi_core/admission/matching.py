"""Which requests a webhook or policy wants to see: rules, selectors of the namespace and of the object.

Everything that depends only on the kind of request (operation, resource, version, subresource) is answered once, when a
configuration or the table of a plugin is made (`Rules.candidates`); what is left for each request are selectors and
names (`Constraint.selected`, `named`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from fastapi_core import errors
from fastapi_core.admission.chain import CREATE, UPDATE, Attributes
from fastapi_core.meta import selectors
from fastapi_core.meta.selectors import Requirement
from fastapi_core.registry.definition import ResourceDefinition, Tree

EQUIVALENT = "Equivalent"
_NO_LABELS: Mapping[str, str] = {}


class Namespaces(Protocol):
    """Where namespaces are found (`objects.Objects` of them)."""

    def get(self, namespace: str, name: str) -> Tree | None: ...


Equivalents = Callable[[ResourceDefinition, str], Sequence[ResourceDefinition]]
"""(resource, subresource) -> all resources with the same stored objects and this subresource, itself among them."""


class Kind(NamedTuple):
    """A kind in a version."""

    group: str
    version: str
    kind: str


class Candidate(NamedTuple):
    """A rule that matches a kind of request."""

    target: ResourceDefinition
    """The resource of the rule: in its version the object is wanted. The request's own unless versions were matched."""
    names: frozenset[str]
    """Only objects of these names; empty: all."""


def kind_of(definition: ResourceDefinition, subresource: str) -> Kind:
    """The kind of the object in a request."""
    found = definition.subresources.get(subresource) if subresource else None
    if found is None or not found.kind:
        return Kind(definition.group, definition.version, definition.kind)
    if not found.version:
        return Kind(definition.group, definition.version, found.kind)
    return Kind(found.group, found.version, found.kind)


def equivalents(definitions: Iterable[ResourceDefinition]) -> Equivalents:
    """Equivalents among these definitions."""
    shared: dict[str, list[ResourceDefinition]] = {}
    for definition in definitions:
        if definition.key_prefix:
            shared.setdefault(definition.key_prefix, []).append(definition)

    def find(definition: ResourceDefinition, subresource: str) -> Sequence[ResourceDefinition]:
        found = shared.get(definition.key_prefix, ()) if definition.key_prefix else ()
        return [d for d in found if not subresource or subresource in d.subresources]

    return find


class _Rule:
    """One rule with its operations and names."""

    __slots__ = ("groups", "names", "operations", "resources", "scope", "versions")

    def __init__(self, tree: Tree) -> None:
        self.operations = frozenset(tree.get("operations") or ())
        self.groups = frozenset(tree.get("apiGroups") or ())
        self.versions = frozenset(tree.get("apiVersions") or ())
        self.scope = tree.get("scope") or "*"
        self.names = frozenset(tree.get("resourceNames") or ())
        self.resources = [tuple(item.partition("/")[::2]) for item in tree.get("resources") or ()]

    def matches(self, operation: str, definition: ResourceDefinition, namespaced: bool, subresource: str) -> bool:
        """Whether it is about requests for this resource, which `namespaced` says where it is."""
        return (
            _in(operation, self.operations)
            and _in(definition.group, self.groups)
            and _in(definition.version, self.versions)
            and (self.scope == "*" or (self.scope == "Namespaced") == namespaced)
            and any(
                resource in ("*", definition.plural) and part in ("*", subresource) for resource, part in self.resources
            )
        )


def _in(item: str, chosen: frozenset[str]) -> bool:
    return item in chosen or "*" in chosen


class Rules:
    """The rules of a webhook or policy and how exactly they are meant."""

    def __init__(self, trees: Iterable[Tree] | None, policy: str) -> None:
        self._rules = [_Rule(tree) for tree in trees or ()]
        self._equivalent = policy == EQUIVALENT

    def __bool__(self) -> bool:
        return bool(self._rules)

    def candidates(
        self, operation: str, definition: ResourceDefinition, subresource: str, equals: Equivalents
    ) -> list[Candidate]:
        """The rules that match such requests, in the order in which they count: the request's own version first."""
        namespaced = definition.namespaced
        found = [
            Candidate(definition, rule.names)
            for rule in self._rules
            if rule.matches(operation, definition, namespaced, subresource)
        ]
        if self._equivalent and not (found and not found[0].names):
            others = [other for other in equals(definition, subresource) if not _same(other, definition)]
            found += [
                Candidate(other, rule.names)
                for rule in self._rules
                for other in others
                if rule.matches(operation, other, namespaced, subresource)
            ]
        return found


def _same(one: ResourceDefinition, other: ResourceDefinition) -> bool:
    return (one.group, one.version, one.plural) == (other.group, other.version, other.plural)


def named(candidates: Sequence[Candidate], name: str) -> ResourceDefinition | None:
    """The resource in whose version an object of this name is wanted, None when no rule is about it."""
    for target, names in candidates:
        if not names or name in names:
            return target
    return None


class Selector:
    """A label selector, ready to be asked."""

    __slots__ = ("requirements",)

    def __init__(self, tree: Tree | None) -> None:
        self.requirements: tuple[Requirement, ...] = selectors.from_object(tree) if tree else ()

    def __bool__(self) -> bool:
        """Whether it requires anything."""
        return bool(self.requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, operator, values in self.requirements:
            if operator == "in":
                if labels.get(key) not in values:
                    return False
            elif operator == "exists":
                if key not in labels:
                    return False
            elif operator == "!":
                if key in labels:
                    return False
            elif key in labels and labels[key] in values:
                return False
        return True


class Constraint:
    """The two selectors every webhook and policy has."""

    __slots__ = ("namespace", "object")

    def __init__(self, namespace: Tree | None, object_: Tree | None) -> None:
        self.namespace = Selector(namespace)
        self.object = Selector(object_)

    def selected(self, attributes: Attributes, namespaces: Namespaces) -> bool:
        """Whether both select what a request is about. NotFound for a namespace that does not exist.

        Asked only of requests that a rule matches, as a missing namespace matters only to them.
        """
        if self.object.requirements and not self._object(attributes):
            return False
        if not self.namespace.requirements or not in_namespace(attributes):
            return True
        return self.namespace.matches(labels_of(attributes, namespaces))

    def _object(self, attributes: Attributes) -> bool:
        """The object before or after the request; what has no metadata has no labels to select it by."""
        for tree in (attributes.object, attributes.old):
            if tree is not None and "metadata" in tree and self.object.matches(tree["metadata"].get("labels") or {}):
                return True
        return False


def in_namespace(attributes: Attributes) -> bool:
    """Whether selectors of namespaces concern a request; objects outside of all of them are always selected."""
    return bool(attributes.namespace) or attributes.definition.plural == "namespaces"


def labels_of(attributes: Attributes, namespaces: Namespaces) -> Mapping[str, str]:
    """Labels of the namespace of a request, or of the namespace that the request writes."""
    if _writes_namespace(attributes):
        metadata = (attributes.object or {}).get("metadata") or {}
        return metadata.get("labels") or _NO_LABELS
    found = namespaces.get("", attributes.namespace)
    if found is None:
        raise errors.not_found("namespaces", "", attributes.namespace)
    return found["metadata"].get("labels") or _NO_LABELS


def _writes_namespace(attributes: Attributes) -> bool:
    definition = attributes.definition
    return definition.plural == "namespaces" and not attributes.subresource and attributes.operation in (CREATE, UPDATE)
