"""The webhooks in force: parsed once a change of their configuration, looked up once a kind of request.

The configurations come from the watch cache as it is: the request after an acknowledged write sees what was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi_core.admission.matching import Constraint, Equivalents, Kind, Rules, kind_of
from fastapi_core.admission.webhooks import review
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.schema.tables import type_for

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.admission.evaluation import MatchConditions
    from fastapi_core.admission.objects import Objects
    from fastapi_core.admission.webhooks.caller import Server
    from fastapi_core.schema.types import Type

GROUP = "admissionregistration.k8s.io"
#: Never sent to a webhook, so that an administrator can always change or delete what is in the way.
EXEMPT = frozenset(
    f"{kind}{part}"
    for kind, parts in (
        ("MutatingWebhookConfiguration", ("",)),
        ("ValidatingWebhookConfiguration", ("",)),
        ("MutatingAdmissionPolicy", ("", "Binding")),
        ("ValidatingAdmissionPolicy", ("", "Binding")),
    )
    for part in parts
)
#: Kinds of request remembered; more mean that custom resources come and go.
_TABLE_LIMIT = 4096


def exempt(definition: ResourceDefinition) -> bool:
    return definition.group == GROUP and definition.kind in EXEMPT


class Hook:
    """One webhook of a configuration."""

    __slots__ = (
        "_compiled", "_conditions", "client", "configuration", "constraint", "dry_run", "if_needed", "ignore", "index",
        "name", "rules", "server", "timeout", "uid", "version",
    )  # fmt: skip

    def __init__(self, configuration: str, tree: Tree, number: int) -> None:
        self.configuration = configuration
        self.name: str = tree.get("name") or ""
        self.uid = f"{configuration}/{self.name}/{number}"
        self.index = 0
        """Its place among all webhooks."""
        self.rules = Rules(tree.get("rules"), tree.get("matchPolicy") or "")
        self.constraint = Constraint(tree.get("namespaceSelector"), tree.get("objectSelector"))
        self.client: Tree = tree.get("clientConfig") or {}
        self.server: Server | None = None
        """Made when it is first called."""
        self.ignore = tree.get("failurePolicy") == "Ignore"
        self.dry_run = tree.get("sideEffects") in ("None", "NoneOnDryRun")
        self.timeout: float = tree.get("timeoutSeconds") or 10
        self.if_needed = tree.get("reinvocationPolicy") == "IfNeeded"
        known = [version for version in tree.get("admissionReviewVersions") or () if version in review.VERSIONS]
        self.version: str = known[0] if known else ""
        self._conditions: list[Tree] = tree.get("matchConditions") or []
        self._compiled: MatchConditions | None = None

    @property
    def conditional(self) -> bool:
        return bool(self._conditions)

    @property
    def conditions(self) -> MatchConditions:
        """Compiled when they are first looked at."""
        if self._compiled is None:
            from fastapi_core.admission.evaluation import MatchConditions

            self._compiled = MatchConditions(self._conditions)
        return self._compiled


class Match:
    """A webhook whose rules match a kind of request: what it is shown, and the words of its reviews."""

    __slots__ = ("hook", "kind", "main", "own_type", "target", "type", "words")

    def __init__(
        self, hook: Hook, target: ResourceDefinition, definition: ResourceDefinition, subresource: str
    ) -> None:
        self.hook = hook
        self.target = target
        self.kind = kind_of(target, subresource)
        own = kind_of(definition, subresource)
        self.main = own == Kind(definition.group, definition.version, definition.kind)
        """It is about objects of the resource itself and not of a subresource."""
        self.type = _type(target, self.kind)
        self.own_type = _type(definition, own)
        self.words = review.words(target, self.kind, definition, own, subresource)


def _type(definition: ResourceDefinition, kind: Kind) -> Type | None:
    """The type by which objects are decoded; None for custom resources."""
    if kind == Kind(definition.group, definition.version, definition.kind):
        return None if definition.custom else definition.type
    return type_for(*kind)


class Hooks:
    """All webhooks of one kind of configuration, in the order in which they are called."""

    def __init__(self, configurations: Objects, equivalents: Equivalents) -> None:
        self._objects = configurations
        self._cache = configurations.store.cache
        self._equivalents = equivalents
        self._seen = -1
        self._parsed: dict[str, tuple[CachedObject, list[Hook]]] = {}
        self._hooks: list[Hook] = []
        self._table: dict[tuple[int, str, str], tuple[ResourceDefinition, list[Match]]] = {}

    def matching(self, operation: str, definition: ResourceDefinition, subresource: str) -> list[Match]:
        """Those whose rules match such requests."""
        changes = self._cache.changes
        if changes != self._seen:
            self._read()
            self._seen = changes
        if not self._hooks:
            return _NONE
        # Definitions live as long as their routes; the table keeps each alive that it knows by its address.
        key = (id(definition), operation, subresource)
        known = self._table.get(key)
        if known is None:
            if len(self._table) >= _TABLE_LIMIT:
                self._table.clear()
            known = self._table[key] = definition, self._matching(operation, definition, subresource)
        return known[1]

    def forget(self) -> None:
        """Look everything up anew: which versions a resource has may have changed."""
        self._table.clear()

    def _matching(self, operation: str, definition: ResourceDefinition, subresource: str) -> list[Match]:
        found = []
        for hook in self._hooks:
            candidates = hook.rules.candidates(operation, definition, subresource, self._equivalents)
            if candidates:
                found.append(Match(hook, candidates[0].target, definition, subresource))
        return found

    def _read(self) -> None:
        """Parse what has changed."""
        old, self._parsed = self._parsed, {}
        self._hooks = []
        for obj in self._objects.list():
            known = old.get(obj.key)
            if known is None or known[0] is not obj:
                known = obj, parse(obj.tree())
            self._parsed[obj.key] = known
            self._hooks += known[1]
        for index, hook in enumerate(self._hooks):
            hook.index = index
        self._table.clear()


_NONE: list[Match] = []


def parse(tree: dict[str, Any]) -> list[Hook]:
    """The webhooks of a configuration."""
    name = tree["metadata"]["name"]
    numbers: dict[str, int] = {}
    hooks = []
    for entry in tree.get("webhooks") or ():
        number = numbers.get(entry.get("name") or "", 0)
        numbers[entry.get("name") or ""] = number + 1
        hooks.append(Hook(name, entry, number))
    return hooks
