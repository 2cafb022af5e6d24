"""Policies and bindings as they are in the store now: understood once a change, and for each kind of request those that
may be about it.

Expressions are compiled when a request first meets their policy, not when the policy is written: most policies of a
large cluster are about resources that are seldom written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from fastapi_core.admission.chain import Attributes
from fastapi_core.admission.matching import Candidate, Constraint, Namespaces, Rules, named
from fastapi_core.admission.objects import Objects
from fastapi_core.admission.policies.params import ConfigurationError, Directory, Parameters, Reference
from fastapi_core.obs import logs
from fastapi_core.registry.definition import ResourceDefinition, Tree

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.storage.cacher.changes import WatchEvent

log = logs.get("admission")

E = TypeVar("E")
T = TypeVar("T")

#: Never subject to policies: nobody shuts himself out of what he would have to change to get in again, and reviews that
#: others depend on.
EXEMPT = frozenset(
    {
        *(
            ("admissionregistration.k8s.io", f"{kind}{what}")
            for kind in ("validating", "mutating")
            for what in ("admissionpolicies", "admissionpolicybindings", "webhookconfigurations")
        ),
        *(("authentication.k8s.io", name) for name in ("tokenreviews", "selfsubjectreviews")),
        *(
            ("authorization.k8s.io", name)
            for name in (
                "subjectaccessreviews", "selfsubjectaccessreviews", "localsubjectaccessreviews",
                "selfsubjectrulesreviews",
            )
        ),
    }
)  # fmt: skip
#: More kinds of requests than this mean that custom resources come and go; the table is made anew.
_TABLE_LIMIT = 4096


class Narrowed:
    """What is left to be asked of a request once its kind is known to be meant."""

    __slots__ = ("_candidates", "_constraint", "_definition", "_excluded")

    def __init__(
        self,
        constraint: Constraint,
        definition: ResourceDefinition,
        candidates: list[Candidate] | None,
        excluded: list[Candidate],
    ) -> None:
        self._constraint = constraint
        self._definition = definition
        self._candidates = candidates
        self._excluded = excluded

    def target(self, attributes: Attributes, namespaces: Namespaces) -> ResourceDefinition | None:
        """The resource in whose version the object is wanted, None when the request is not meant. NotFound for a
        namespace that does not exist."""
        if self._excluded and named(self._excluded, attributes.name) is not None:
            return None
        found = self._definition if self._candidates is None else named(self._candidates, attributes.name)
        if found is None or not self._constraint.selected(attributes, namespaces):
            return None
        return found


class Criteria:
    """`matchConstraints` of a policy or `matchResources` of a binding."""

    __slots__ = ("_constraint", "_excluded", "_rules")

    def __init__(self, tree: Tree) -> None:
        policy = tree.get("matchPolicy") or ""
        self._constraint = Constraint(tree.get("namespaceSelector"), tree.get("objectSelector"))
        self._rules = Rules(tree.get("resourceRules"), policy)
        self._excluded = Rules(tree.get("excludeResourceRules"), policy)

    def narrowed(
        self, operation: str, definition: ResourceDefinition, subresource: str, directory: Directory
    ) -> Narrowed | None:
        """What to ask of requests of this kind, None when none is meant."""
        equals = directory.equivalents
        excluded = self._excluded.candidates(operation, definition, subresource, equals)
        if any(not names for _, names in excluded):
            return None
        candidates = self._rules.candidates(operation, definition, subresource, equals) if self._rules else None
        if candidates is not None and not candidates:
            return None
        return Narrowed(self._constraint, definition, candidates, excluded)


class Binding:
    """One binding."""

    __slots__ = ("actions", "criteria", "name", "policy", "reference")

    def __init__(self, obj: CachedObject) -> None:
        tree = obj.tree()
        spec: Tree = tree.get("spec") or {}
        self.name = obj.name
        self.policy: str = spec.get("policyName") or ""
        self.actions: list[str] = spec.get("validationActions") or []
        self.reference = Reference(spec["paramRef"]) if spec.get("paramRef") is not None else None
        resources = spec.get("matchResources")
        self.criteria = Criteria(resources) if resources is not None else None


class Policy(Generic[E]):
    """One policy."""

    __slots__ = ("_compile", "_evaluator", "criteria", "ignores", "name", "parameters", "spec")

    def __init__(self, obj: CachedObject, directory: Directory, compile_: Callable[[Policy[E]], E]) -> None:
        self.spec: Tree = obj.tree().get("spec") or {}
        self.name = obj.name
        self.ignores = self.spec.get("failurePolicy") == "Ignore"
        """What fails lets pass."""
        self.criteria = Criteria(self.spec.get("matchConstraints") or {})
        kind = self.spec.get("paramKind")
        self.parameters = Parameters(kind, directory) if kind is not None else None
        self._compile = compile_
        self._evaluator: E | None = None

    def compile(self) -> E:
        """Its compiled expressions. ConfigurationError for a spec that no validation has seen."""
        found = self._evaluator
        if found is None:
            try:
                found = self._evaluator = self._compile(self)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise ConfigurationError(f"its spec cannot be understood: {error!r}") from error
        return found


class Relevant(NamedTuple, Generic[E]):
    """A policy that may be about a kind of request, with those of its bindings that may be."""

    policy: Policy[E]
    narrowed: Narrowed
    bindings: list[tuple[Binding, Narrowed | None]]


class Source(Generic[E]):
    """All policies and bindings of one kind."""

    def __init__(
        self, policies: Objects, bindings: Objects, directory: Directory, compile_: Callable[[Policy[E]], E]
    ) -> None:
        self._stores = (policies, bindings)
        self._directory = directory
        self._compile = compile_
        self._policies: dict[str, tuple[CachedObject, Policy[E] | None]] = {}
        self._bindings: dict[str, tuple[CachedObject, Binding | None]] = {}
        self._pairs: list[tuple[Policy[E], list[Binding]]] = []
        self._table: dict[tuple[str, str, str, str, str], tuple[ResourceDefinition, list[Relevant[E]]]] = {}
        self._seen = (-1, -1)

    def follow(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each change, before whoever made it hears that it is done."""

        def deliver(events: list[WatchEvent]) -> None:
            changed()

        for objects in self._stores:
            cache = objects.store.cache
            cache.watch(since=cache.revision, deliver=deliver)

    def forget(self) -> None:
        """Other resources are served than before."""
        self._table.clear()

    def relevant(self, operation: str, definition: ResourceDefinition, subresource: str) -> list[Relevant[E]]:
        """The policies that may be about such requests, in order of their names."""
        policies, bindings = self._stores
        changes = (policies.store.cache.changes, bindings.store.cache.changes)
        if changes != self._seen:
            self._seen = changes
            self._read()
        key = (operation, definition.group, definition.version, definition.plural, subresource)
        known = self._table.get(key)
        if known is None or known[0] is not definition:
            if len(self._table) >= _TABLE_LIMIT:
                self._table.clear()
            known = self._table[key] = (definition, self._narrowed(operation, definition, subresource))
        return known[1]

    def _narrowed(self, operation: str, definition: ResourceDefinition, subresource: str) -> list[Relevant[E]]:
        if (definition.group, definition.plural) in EXEMPT:
            return []
        found = []
        for policy, bindings in self._pairs:
            narrowed = policy.criteria.narrowed(operation, definition, subresource, self._directory)
            if narrowed is None:
                continue
            mine: list[tuple[Binding, Narrowed | None]] = []
            for binding in bindings:
                if binding.criteria is None:
                    mine.append((binding, None))
                    continue
                further = binding.criteria.narrowed(operation, definition, subresource, self._directory)
                if further is not None:
                    mine.append((binding, further))
            found.append(Relevant(policy, narrowed, mine))
        return found

    def _read(self) -> None:
        """Take in what has changed; what has not stays as it was compiled."""
        policies, bindings = self._stores
        self._table.clear()
        self._policies = _taken(policies, self._policies, lambda obj: Policy(obj, self._directory, self._compile))
        self._bindings = _taken(bindings, self._bindings, Binding)
        bound: dict[str, list[Binding]] = {}
        for _, binding in self._bindings.values():
            if binding is not None:
                bound.setdefault(binding.policy, []).append(binding)
        self._pairs = [
            (policy, bound[policy.name])
            for _, policy in self._policies.values()
            if policy is not None and policy.name in bound
        ]


def _taken(
    objects: Objects, known: dict[str, tuple[CachedObject, T | None]], make: Callable[[CachedObject], T]
) -> dict[str, tuple[CachedObject, T | None]]:
    """Each object with what is made of it, None for one that makes no sense."""
    found: dict[str, tuple[CachedObject, T | None]] = {}
    for obj in objects.list():
        old = known.get(obj.key)
        if old is not None and old[0] is obj:
            found[obj.key] = old
            continue
        try:
            found[obj.key] = (obj, make(obj))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.error("An admission policy object cannot be understood and is not in force", error, key=obj.key)
            found[obj.key] = (obj, None)
    return found
