"""Kinds that the framework keeps: writes, status, hooks, columns, and what is there after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from fastapi_core.extension import AGE, APIError, Column, Extension, Field, FieldError, ObjectMeta, Scale, Stored
from tests.fixtures.extension import APPLY, MERGE, TABLE, serving, told

ROOT = "/apis/db.example.com/v1"
DBS = f"{ROOT}/namespaces/default/databases"


@dataclass
class Spec:
    engine: Annotated[Literal["postgres", "mysql"], Field(rules=("self == oldSelf",))]
    size: Annotated[int, Field(minimum=1)] = 1
    version: str = ""
    replicas: int = 1


@dataclass
class Status:
    phase: str = ""
    replicas: int = 0


@dataclass
class Database:
    metadata: ObjectMeta
    spec: Spec
    status: Status = field(default_factory=Status)


def databases() -> tuple[Extension, Stored[Database]]:
    app = Extension("db.example.com/v1")
    found = app.stored(
        Database,
        "databases",
        status=True,
        scale=Scale(".spec.replicas", ".status.replicas"),
        selectable=[".spec.engine"],
        columns=[Column("Engine", ".spec.engine"), Column("Phase", lambda d: d.status.phase), AGE],
    )

    @found.prepare
    def prepare(new: Database, old: Database | None) -> None:
        new.spec.version = new.spec.version or "17"
        if old is None:
            new.status.phase = "Pending"

    @found.validate
    def validate(new: Database, old: Database | None) -> Iterable[FieldError]:
        if old is not None and new.spec.size < old.spec.size:
            yield FieldError("Invalid value", "spec.size", "may not shrink", new.spec.size)

    return app, found


def tree(name: str, engine: str = "mysql", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "db.example.com/v1",
        "kind": "Database",
        "metadata": {"name": name, "labels": {"n": name}},
        "spec": {"engine": engine, **spec},
    }


async def test_a_write_is_prepared_checked_and_kept() -> None:
    app, _ = databases()
    async with serving(app) as served:
        made = await served.good("POST", DBS, {**tree("a"), "status": {"phase": "Mine"}})
        assert made["spec"] == {"engine": "mysql", "size": 1, "version": "17", "replicas": 1}
        assert made["status"] == {"phase": "Pending", "replicas": 0}
        assert made["metadata"]["generation"] == 1
        again = await served.good("GET", f"{DBS}/a")
        assert again == made
        same = await served.good("PUT", f"{DBS}/a", made)
        assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        bigger = await served.good("PATCH", f"{DBS}/a", {"spec": {"size": 3}, "status": {"phase": "Mine"}}, MERGE)
        assert bigger["metadata"]["generation"] == 2
        assert bigger["status"]["phase"] == "Pending"
        for spec, text in (
            ({"size": 2}, "spec.size: Invalid value: 2: may not shrink"),
            ({"size": 0}, "spec.size"),
            ({"engine": "postgres"}, "spec.engine"),
            ({"engine": "oracle"}, 'supported values: "postgres", "mysql"'),
        ):
            status, answer = await served.call("PATCH", f"{DBS}/a", {"spec": spec}, MERGE)
            assert (status, answer["reason"]) == (422, "Invalid"), spec
            assert text in answer["message"]
        stale = {**made, "spec": {**made["spec"], "size": 9}}
        assert (await served.call("PUT", f"{DBS}/a", stale))[0] == 409
        nameless = {**stale, "metadata": {"name": "a"}}
        status, answer = await served.call("PUT", f"{DBS}/a", nameless)
        assert status == 422
        assert "must be specified for an update" in answer["message"]


async def test_status_is_apart_and_no_generation() -> None:
    app, _ = databases()
    async with serving(app) as served:
        made = await served.good("POST", DBS, tree("a"))
        changed = {**made, "spec": {"engine": "mysql", "size": 50}, "status": {"phase": "Ready"}}
        ready = await served.good("PUT", f"{DBS}/a/status", changed)
        assert ready["status"]["phase"] == "Ready"
        assert ready["spec"]["size"] == 1
        assert ready["metadata"]["generation"] == 1
        owners = {(e["operation"], e.get("subresource")) for e in ready["metadata"]["managedFields"]}
        assert ("Update", "status") in owners
        scale = await served.good("GET", f"{DBS}/a/scale")
        assert scale["spec"] == {"replicas": 1}
        await served.good("PATCH", f"{DBS}/a/scale", {"spec": {"replicas": 3}}, MERGE)
        assert (await served.good("GET", f"{DBS}/a"))["spec"]["replicas"] == 3


async def test_apply_does_not_own_what_was_prepared() -> None:
    app, _ = databases()
    async with serving(app) as served:
        status, made = await served.call("PATCH", f"{DBS}/a?fieldManager=me", tree("a"), APPLY)
        assert status == 201
        assert made["spec"]["version"] == "17"
        (entry,) = made["metadata"]["managedFields"]
        assert entry["fieldsV1"]["f:spec"] == {"f:engine": {}}
        again = await served.good("PATCH", f"{DBS}/a?fieldManager=me", tree("a"), APPLY)
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_lists_watches_and_tables() -> None:
    app, _ = databases()
    async with serving(app) as served:
        for name, engine in (("a", "mysql"), ("b", "postgres"), ("c", "mysql")):
            await served.good("POST", DBS, tree(name, engine))
        found = await served.good("GET", f"{DBS}?fieldSelector=spec.engine%3Dmysql")
        assert [item["metadata"]["name"] for item in found["items"]] == ["a", "c"]
        table = await served.good("GET", DBS, headers=TABLE)
        assert [row["cells"][:3] for row in table["rows"]] == [
            ["a", "mysql", "Pending"], ["b", "postgres", "Pending"], ["c", "mysql", "Pending"]
        ]  # fmt: skip
        version = found["metadata"]["resourceVersion"]
        await served.good("PATCH", f"{DBS}/b", {"metadata": {"labels": {"n": "x"}}}, MERGE)
        await served.good("DELETE", f"{DBS}/a")
        query = f"watch=1&resourceVersion={version}&timeoutSeconds=1"
        found = await told(served, f"{DBS}?{query}")
        assert [(kind, name) for kind, name, _ in found] == [("MODIFIED", "b"), ("DELETED", "a")]
        found = await told(served, f"{DBS}?{query}&labelSelector=n%3Db")
        assert [(kind, name) for kind, name, _ in found] == [("DELETED", "b")]
        gone = await served.good("DELETE", DBS)
        assert len(gone["items"]) == 2
        assert (await served.good("GET", DBS))["items"] == []


async def test_objects_are_there_after_a_restart(tmp_path: Path) -> None:
    for expected in ([], ["a"]):
        app, found = databases()
        async with serving(app, f"--data-dir={tmp_path}") as served:
            listed = await found.objects.list()
            assert [database.metadata.name for database in listed] == expected
            if not expected:
                await served.good("POST", DBS, tree("a"))
    assert (tmp_path / "store.db").exists() or any(tmp_path.iterdir())


async def test_a_member_that_has_come_since_takes_its_default(tmp_path: Path) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    gadget = {
        "apiVersion": "db.example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "x"},
        "spec": {"a": "b", "c": 1},
    }
    app = Extension("db.example.com/v1")
    app.stored(schema, "gadgets", kind="Gadget", namespaced=False)
    async with serving(app, f"--data-dir={tmp_path}") as served:
        assert (await served.good("POST", f"{ROOT}/gadgets", gadget))["spec"] == {"a": "b"}
    schema["properties"]["spec"]["properties"]["size"] = {"type": "integer", "default": 5}
    later = Extension("db.example.com/v1")
    later.stored(schema, "gadgets", kind="Gadget", namespaced=False)
    async with serving(later, f"--data-dir={tmp_path}") as served:
        assert (await served.good("GET", f"{ROOT}/gadgets/x"))["spec"] == {"a": "b", "size": 5}


async def test_background_tasks_work_on_objects() -> None:
    app, found = databases()
    done, restarts = asyncio.Event(), 0

    @app.background
    async def controller() -> None:
        nonlocal restarts
        restarts += 1
        if restarts == 1:
            raise RuntimeError("begin again")
        if restarts == 2:
            raise SystemExit("and once more")
        async for event in found.objects.changes():
            if event.type != "DELETED" and event.object.status.phase == "Pending":
                event.object.status.phase = "Ready"
                await found.objects.update_status(event.object)
            elif event.type == "DELETED":
                done.set()

    from fastapi_core.extension import tasks

    before, tasks.PAUSE = tasks.PAUSE, 0.01
    try:
        async with serving(app):
            objects = found.objects
            made = await objects.create(Database(ObjectMeta(name="a", namespace="default"), Spec("mysql")))
            assert made.metadata.uid
            async for event in objects.changes("default", labels=""):
                if event.object.status.phase == "Ready":
                    break

            def grow(database: Database) -> None:
                database.spec.size += 1

            assert (await objects.modify("a", "default", grow)).spec.size == 2
            assert await objects.find("b", "default") is None
            stale = made
            stale.spec.size = 7
            with pytest.raises(APIError) as refused:
                await objects.update(stale)
            assert refused.value.reason == "Conflict"
            await objects.delete("a", "default")
            await asyncio.wait_for(done.wait(), 10)
        assert restarts == 3
    finally:
        tasks.PAUSE = before


async def test_changes_go_on_over_watches_that_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastapi_core.extension import client

    monkeypatch.setattr(client, "PAUSE", 0.02)
    app, found = databases()
    async with serving(app, "--min-request-timeout=0") as served:
        changes = found.objects.changes()
        waiting = asyncio.ensure_future(anext(changes))
        await served.good("POST", DBS, tree("a"))
        assert (await waiting).object.metadata.name == "a"
        await served.good("POST", DBS, tree("b"))
        assert (await anext(changes)).object.metadata.name == "b"
        await changes.aclose()
