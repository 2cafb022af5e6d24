"""Plugins about the namespace an object is in: it exists, it is not being deleted, the system's own stay."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.chain import CONNECT, CREATE, DELETE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import Objects, decoded, is_core
from fastapi_core.admission.refusals import forbidden
from fastapi_core.registry.definition import ResourceDefinition

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
#: After a delete of a namespace creates in it ask the store itself for this long, in seconds.
LIVE_SECONDS = 30.0
REVIEWS = frozenset({"SubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview"})


class NamespaceLifecycle(Plugin):
    """Nothing is created in a namespace that is missing or terminating; some namespaces cannot be deleted."""

    name = "NamespaceLifecycle"

    def __init__(self, namespaces: Objects, clock: Callable[[], float] = time.monotonic) -> None:
        self._namespaces = namespaces
        self._clock = clock
        self._deleted: dict[str, float] = {}

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        if is_core(definition, "namespaces"):
            return operation == DELETE
        if definition.kind in REVIEWS and definition.group == "authorization.k8s.io":
            return False
        return definition.namespaced and operation in (CREATE, UPDATE)

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        if attributes.operation == DELETE:
            self._delete(attributes)
            return None
        name = attributes.namespace
        if not name:
            return None
        namespace = self._namespaces.find("", name)
        if namespace is None or (self._deleted and self._doubtful(name)):
            pending = self._namespaces.fresh()
            if pending is not None:
                return self._live(attributes, pending)
        self._judge(attributes, namespace)
        return None

    def _delete(self, attributes: Attributes) -> None:
        if attributes.name in IMMORTAL:
            raise errors.forbidden("namespaces", "", attributes.name, "this namespace may not be deleted")
        now = self._clock()
        for name in [name for name, since in self._deleted.items() if now - since > LIVE_SECONDS]:
            del self._deleted[name]
        self._deleted[attributes.name] = now

    def _doubtful(self, name: str) -> bool:
        since = self._deleted.get(name)
        return since is not None and self._clock() - since <= LIVE_SECONDS

    async def _live(self, attributes: Attributes, pending: Awaitable[None]) -> None:
        await pending
        self._judge(attributes, self._namespaces.find("", attributes.namespace))

    @staticmethod
    def _judge(attributes: Attributes, namespace: CachedObject | None) -> None:
        name = attributes.namespace
        if namespace is None:
            raise errors.not_found("namespaces", "", name)
        if attributes.operation != CREATE:
            return
        if (decoded(namespace).get("status") or {}).get("phase") != "Terminating":
            return
        text = f"unable to create new content in namespace {name} because it is being terminated"
        refusal = forbidden(attributes, text)
        cause = {"reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated"}
        refusal.details = {**(refusal.details or {}), "causes": [{**cause, "field": "metadata.namespace"}]}
        raise refusal


class NamespaceAutoProvision(Plugin):
    """Makes the namespace that something is created in. `provide(name)` creates it unless it is there."""

    name = "NamespaceAutoProvision"

    def __init__(self, namespaces: Objects, provide: Callable[[str], Awaitable[None]]) -> None:
        self._namespaces = namespaces
        self._provide = provide

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return operation == CREATE and definition.namespaced

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        name = attributes.namespace
        if attributes.dry_run or not name or self._namespaces.find("", name) is not None:
            return None
        return self._provide(name)


class NamespaceExists(Plugin):
    """Every request about something in a namespace needs the namespace."""

    name = "NamespaceExists"

    def __init__(self, namespaces: Objects) -> None:
        self._namespaces = namespaces

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return definition.namespaced and operation != CONNECT

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        name = attributes.namespace
        if not name or self._namespaces.find("", name) is not None:
            return None
        pending = self._namespaces.fresh()
        if pending is None:
            raise errors.not_found("namespaces", "", name)
        return self._live(name, pending)

    async def _live(self, name: str, pending: Awaitable[None]) -> None:
        await pending
        if self._namespaces.find("", name) is None:
            raise errors.not_found("namespaces", "", name)
