"""The status of validating admission policies: what type checking has to say about them, once for each generation.

Written a moment after the policy, through the server itself, like any controller would.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi_core.errors import APIError
from fastapi_core.later import later
from fastapi_core.obs import logs
from fastapi_core.request.aside import aside

if TYPE_CHECKING:
    from fastapi_core.admission import objects
    from fastapi_core.admission.policies.typecheck import TypeChecker
    from fastapi_core.cel.decls import Decl
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.controlplane.served import Served
    from fastapi_core.crd import form as crd_form
    from fastapi_core.registry.definition import ResourceDefinition
    from fastapi_core.server.generic import GenericServer
    from fastapi_core.storage.cacher.changes import WatchEvent
else:
    objects = later("fastapi_core.admission.objects")
    crd_form = later("fastapi_core.crd.form")

log = logs.get("admission")

MANAGER = "validatingadmissionpolicy-status"
PREFIX = "/registry/validatingadmissionpolicies/"
_PATH = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
#: Seconds between a change and the look at it, and until what could not be written is tried again.
DELAY = 1.0
AGAIN = 10.0


class PolicyStatus:
    """Follows the policies and writes their status."""

    def __init__(self, resources: Resources, server: GenericServer, *, delay: float = DELAY) -> None:
        self._store = resources.stores[PREFIX]
        self._served = resources.served
        self._loopback = server.loopback
        self._delay = delay
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def install(self, server: GenericServer) -> None:
        """From now on, until the server shuts down."""
        cache = self._store.cache
        cache.watch(since=cache.revision, deliver=self._follow)
        if self._pending():
            self._wake()
        server.on_shutdown(self.stop, "policy status")

    def _follow(self, events: list[WatchEvent]) -> None:
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="policy status")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _pending(self) -> list[str]:
        """Policies whose status is behind them."""
        found = []
        for obj in self._store.cache.list().objects:
            tree = objects.decoded(obj)
            seen = (tree.get("status") or {}).get("observedGeneration") or 0
            if (tree["metadata"].get("generation") or 0) > seen and not tree["metadata"].get("deletionTimestamp"):
                found.append(obj.name)
        return found

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._delay)
            self._changed.clear()
            for name in self._pending():
                try:
                    await self._write(name)
                except APIError as error:
                    if error.reason != "NotFound":
                        log.warning("The status of a policy will be written later", name=name, error=str(error))
                        asyncio.get_running_loop().call_later(AGAIN, self._changed.set)

    async def _write(self, name: str) -> None:
        obj = self._store.cache.get(PREFIX + name)
        if obj is None:
            return
        tree = obj.tree()
        checker = _checker(self._served)
        # Many expressions about many kinds take a while; others go on meanwhile.
        warnings = await aside(
            lambda: [found for found in checker.warnings(tree.get("spec") or {}) if found is not None]
        )
        config = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "status": {
                "observedGeneration": tree["metadata"].get("generation") or 0,
                "typeChecking": {"expressionWarnings": warnings} if warnings else {},
            },
        }
        target = f"{_PATH}/{quote(name, safe='')}/status?fieldManager={MANAGER}&force=true"
        await self._loopback.call("PATCH", target, config, [(b"content-type", b"application/apply-patch+yaml")])


def _checker(served: Served) -> TypeChecker:
    from fastapi_core.admission.policies.typecheck import TypeChecker, declared, of_schema

    def find(group: str, version: str, kind: str) -> ResourceDefinition | None:
        found = served.find(group, version, kind)
        return found.definition if found is not None else None

    def declare(definition: ResourceDefinition) -> Decl | None:
        if not definition.custom:
            return declared(definition)
        form = definition.form
        return of_schema(form.openapi(), definition.kind) if isinstance(form, crd_form.LazyForm) else None

    return TypeChecker(served.named, find, declare)
