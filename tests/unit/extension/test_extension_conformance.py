"""Kinds of every sort through the conformance kit: what any client may rely on holds for them."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from fastapi_core import errors
from fastapi_core.authn.base import MASTERS
from fastapi_core.authz.base import PrivilegedGroup
from fastapi_core.extension import Event, Extension, Listing, ObjectMeta, Quantity, Request, Storage, User, quick
from fastapi_core.request.context import RequestContext
from fastapi_core.testing import conformance
from tests.fixtures.extension import ADMIN, serving

GROUP = "kit.example.com"


@dataclass
class Spec:
    text: str = ""
    number: int = 1


@dataclass
class Status:
    phase: str = ""


@dataclass
class Thing:
    metadata: ObjectMeta
    spec: Spec = field(default_factory=Spec)
    status: Status = field(default_factory=Status)


@dataclass
class Reading:
    metadata: ObjectMeta
    value: Quantity


class Cabinet(Storage[Thing]):
    """An author's own store, as the guide says that one should be: versions, conflicts, events."""

    def __init__(self, app: Extension) -> None:
        self.kind = app.kind(Thing, "sheets", kind="Sheet", storage=self, status=True)
        self.kept: dict[tuple[str, str], Thing] = {}
        self.events: list[Event[Thing]] = []
        self.version = self.first = 100
        self.changed = asyncio.Event()

    async def get(self, request: Request, name: str) -> Thing | None:
        return copy.deepcopy(self.kept.get((request.namespace, name)))

    async def list(self, request: Request) -> Listing[Thing]:
        return Listing(copy.deepcopy(list(self.kept.values())), str(self.version))

    async def create(self, request: Request, obj: Thing) -> Thing:
        if self.key(obj) in self.kept:
            raise self.kind.already_exists(obj.metadata.name)
        return self.put("ADDED", obj)

    async def update(self, request: Request, obj: Thing, old: Thing) -> Thing:
        self.same(old)
        return self.put("MODIFIED", obj)

    async def delete(self, request: Request, obj: Thing) -> None:
        self.same(obj)
        del self.kept[self.key(obj)]
        self.put("DELETED", obj)

    async def watch(self, request: Request) -> AsyncIterator[Event[Thing]]:
        since = int(request.resource_version or self.version)
        if since < self.first:
            raise errors.expired(f"too old resource version: {since} ({self.first})")
        told = 0
        while True:
            changed = self.changed
            for event in self.events[told:]:
                told += 1
                if int(event.object.metadata.resource_version) > since:
                    yield event
            if told == len(self.events):
                await changed.wait()

    def key(self, obj: Thing) -> tuple[str, str]:
        return obj.metadata.namespace, obj.metadata.name

    def same(self, old: Thing) -> None:
        kept = self.kept.get(self.key(old))
        if kept is None or kept.metadata.resource_version != old.metadata.resource_version:
            raise self.kind.conflict(old.metadata.name)

    def put(self, kind: str, obj: Thing) -> Thing:
        self.version += 1
        obj.metadata.resource_version = str(self.version)
        if kind != "DELETED":
            self.kept[self.key(obj)] = obj
        self.events.append(Event(kind, copy.deepcopy(obj)))  # type: ignore[arg-type]
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()
        return obj


def extension() -> Extension:
    app = Extension(f"{GROUP}/v1")
    Cabinet(app)
    app.stored(Thing, "things", status=True, selectable=[".spec.text"])
    readings = app.kind(Reading, "readings", namespaced=False)

    @readings.list
    @quick
    def all_readings(request: Request) -> Sequence[Reading]:
        return [Reading(ObjectMeta(name=f"r{number}"), Quantity(f"{number}m")) for number in range(5)]

    @readings.get
    def reading(request: Request, name: str) -> Reading | None:
        return next((found for found in all_readings(request) if found.metadata.name == name), None)

    return app


class Tokens:
    """Users by their tokens."""

    def authenticate(self, ctx: RequestContext) -> User | None:
        said = ctx.request.header(b"authorization")
        if said is None:
            return None
        name = said.decode().removeprefix("Bearer ")
        if name not in ("admin", "nobody"):
            raise errors.unauthorized()
        return ADMIN if name == "admin" else User("nobody")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("plural", ["things", "sheets", "readings"])
async def test_what_clients_rely_on(plural: str) -> None:
    async with serving(extension(), authenticator=Tokens(), authorizer=PrivilegedGroup(MASTERS)) as served:
        target = conformance.Target(
            f"http://127.0.0.1:{served.server.port}",
            credential=conformance.Credential(token="admin"),
            other=conformance.Credential(token="nobody"),
        )
        report = await conformance.run_async(
            target,
            GROUP,
            resources=[plural],
            namespace="kit",
            other_namespace="other",
            # Namespaces are the front server's; an extension does not know them.
            skip=["create.namespace-missing"],
        )
    assert report.ok, report.text()
    assert len([result for result in report.results if result.outcome is conformance.Outcome.PASS]) > 50, report.text()


@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_status_that_a_controller_owns(stubborn: bool) -> None:
    app = Extension(f"{GROUP}/v1")
    things = app.stored(Thing, "things", status=True)

    @app.background
    async def controller() -> None:
        async for event in things.objects.changes():
            status = event.object.status
            if event.type == "DELETED" or (status.phase != "" and not stubborn) or status.phase == "Ready":
                continue
            status.phase = "Ready"
            try:
                await things.objects.update_status(event.object)
            except errors.APIError as error:
                if error.code not in (404, 409):
                    raise

    async with serving(app) as served:
        sample = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "spec": {"text": "a"}, "status": {"phase": "Ready"}}
        report = await conformance.run_async(
            conformance.Target(served.url), GROUP, samples=[sample], namespace="kit", only=["status.*"]
        )
    assert report.ok, report.text()
    assert not report.failures(), report.text()
    assert len(report.passed) >= 4, report.text()
    # Whether the controller or the kit's next read is first is open; if the controller is, that is what is said.
    reasons = {result.reason[0] for result in report.skipped if result.check in ("status.written", "status.patch")}
    assert reasons <= {"a controller writes the status again at once: what is sent does not stay"}
