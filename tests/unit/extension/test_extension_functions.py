"""Kinds that functions answer for: which verbs there are, and what is done to the answers."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from fastapi_core import errors
from fastapi_core.extension import (
    AGE,
    Column,
    Event,
    Extension,
    Listing,
    ModelError,
    ObjectMeta,
    Request,
    Storage,
    quick,
)
from tests.fixtures.extension import APPLY, MERGE, PARTIAL, TABLE, Served, serving

ROOT = "/apis/files.example.com/v1"
FILES = f"{ROOT}/namespaces/default/files"


@dataclass
class File:
    metadata: ObjectMeta
    content: str = ""
    mode: int = 644


class Disk(Storage[File]):
    """Versioned objects in memory, read slowly and written at once; `seen` are the calls."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], File] = {}
        self.version = 10
        self.seen: list[Request] = []
        self.conflicts = 0

    def get(self, request: Request, name: str) -> File | None:
        self.seen.append(request)
        assert threading.current_thread() is not threading.main_thread()
        return self.kept.get((request.namespace, name))

    async def list(self, request: Request) -> Listing[File]:
        self.seen.append(request)
        return Listing(list(self.kept.values()), str(self.version))

    @quick
    def create(self, request: Request, obj: File) -> File:
        assert threading.current_thread() is threading.main_thread()
        self.seen.append(request)
        if (request.namespace, obj.metadata.name) in self.kept:
            raise errors.already_exists("files", "files.example.com", obj.metadata.name)
        return self.put(obj)

    async def update(self, request: Request, obj: File, old: File) -> File:
        self.seen.append(request)
        if self.conflicts:
            self.conflicts -= 1
            raise errors.conflict("files", "files.example.com", obj.metadata.name, "somebody was faster")
        return self.put(obj)

    def delete(self, request: Request, obj: File) -> None:
        self.seen.append(request)
        del self.kept[obj.metadata.namespace, obj.metadata.name]
        self.version += 1

    def put(self, obj: File) -> File:
        self.version += 1
        obj.metadata.resource_version = str(self.version)
        self.kept[obj.metadata.namespace, obj.metadata.name] = obj
        return obj


def named(name: str, namespace: str = "default", **labels: str) -> File:
    return File(ObjectMeta(name=name, namespace=namespace, labels=labels), content=name)


def tree(name: str, content: str = "", **metadata: Any) -> dict[str, Any]:
    made = {"apiVersion": "files.example.com/v1", "kind": "File", "metadata": {"name": name, **metadata}}
    return {**made, "content": content} if content else made


def disk_of(*names: str) -> tuple[Extension, Disk]:
    app, disk = Extension("files.example.com/v1"), Disk()
    columns = [Column("Size", lambda file: len(file.content), "integer"), Column("Mode", ".mode", "integer"), AGE]
    app.kind(File, "files", storage=disk, columns=columns, selectable=[".mode"])
    for name in names:
        disk.put(named(name, n=name))
    return app, disk


async def test_only_verbs_with_handlers_are_served() -> None:
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files", namespaced=False, short_names=["fi"])

    @files.list
    async def all_files(request: Request) -> list[File]:
        return [File(ObjectMeta(name="b")), File(ObjectMeta(name="a"))]

    @files.get
    @quick
    def one(request: Request, name: str) -> File | None:
        return File(ObjectMeta(name=name)) if name == "a" else None

    async with serving(app) as served:
        found = await served.good("GET", ROOT)
        (resource,) = found["resources"]
        assert resource["verbs"] == ["get", "list"]
        assert resource["shortNames"] == ["fi"]
        listed = await served.good("GET", f"{ROOT}/files")
        assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
        # Nothing was said about versions, so nothing is shown.
        assert "resourceVersion" not in listed["metadata"]
        assert listed["items"][0]["metadata"] == {"name": "a"}
        assert (await served.good("GET", f"{ROOT}/files/a"))["kind"] == "File"
        status, missing = await served.call("GET", f"{ROOT}/files/b")
        assert (status, missing["reason"]) == (404, "NotFound")
        assert missing["message"] == 'files.files.example.com "b" not found'
        for method, path in (
            ("POST", "files"),
            ("DELETE", "files"),
            ("PUT", "files/a"),
            ("PATCH", "files/a"),
            ("DELETE", "files/a"),
        ):
            status, refused = await served.call(method, f"{ROOT}/{path}", tree("a"))
            assert (status, refused["reason"]) == (405, "MethodNotAllowed"), method
        status, refused = await served.call("GET", f"{ROOT}/files?watch=1")
        assert (status, refused["reason"]) == (405, "MethodNotAllowed")
        assert (await served.call("GET", f"{ROOT}/nothing"))[0] == 404


def test_verbs_that_need_others() -> None:
    def nothing(*arguments: Any) -> Any:
        return None

    for verbs, text in (
        ((), "no handler"),
        (("update",), "update needs get"),
        (("delete",), "delete needs get"),
        (("watch",), "watch needs list"),
    ):
        app = Extension("files.example.com/v1")
        files = app.kind(File, "files")
        for verb in verbs:
            getattr(files, verb)(nothing)
        with pytest.raises(ModelError, match=text):
            app.description  # noqa: B018


async def test_lists_are_sorted_selected_and_paged() -> None:
    app, disk = disk_of("c", "a", "b")
    disk.put(named("a", "other"))
    async with serving(app) as served:
        whole = await served.good("GET", f"{ROOT}/files")
        assert [(i["metadata"]["namespace"], i["metadata"]["name"]) for i in whole["items"]] == [
            ("default", "a"), ("default", "b"), ("default", "c"), ("other", "a")
        ]  # fmt: skip
        assert whole["metadata"]["resourceVersion"] == "14"
        for query, names in (
            ("labelSelector=n+in+(a,c)", "ac"),
            ("fieldSelector=metadata.name%3Db", "b"),
            ("fieldSelector=mode%3D644", "abc"),
            ("fieldSelector=mode!%3D644", ""),
        ):
            found = await served.good("GET", f"{FILES}?{query}")
            assert "".join(item["metadata"]["name"] for item in found["items"]) == names, query
        assert (await served.call("GET", f"{FILES}?fieldSelector=content%3Dx"))[0] == 400
        first = await served.good("GET", f"{FILES}?limit=2")
        assert first["metadata"]["remainingItemCount"] == 1
        # The rest of a list is that of its version, whatever has come since.
        disk.put(named("bb"))
        token = quote(first["metadata"]["continue"])
        rest = await served.good("GET", f"{FILES}?limit=2&continue={token}")
        assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
        assert rest["metadata"]["resourceVersion"] == "14"
        for number in range(12):
            disk.put(named(f"x{number}"))
            await served.good("GET", f"{FILES}?limit=1")
        status, gone = await served.call("GET", f"{FILES}?limit=2&continue={token}")
        assert (status, gone["reason"]) == (410, "Expired")
        assert gone["metadata"]["continue"]
        selected = await served.good("GET", f"{FILES}?labelSelector=n&limit=1")
        assert "remainingItemCount" not in selected["metadata"]


async def test_versions_of_lists() -> None:
    app, disk = disk_of("a")
    async with serving(app) as served:
        now = disk.version
        assert (await served.good("GET", f"{FILES}?resourceVersion={now}"))["items"]
        assert (await served.good("GET", f"{FILES}?resourceVersion={now}&resourceVersionMatch=Exact"))["items"]
        status, answer = await served.call("GET", f"{FILES}?resourceVersion={now + 5}")
        assert (status, answer["reason"]) == (504, "Timeout")
        status, answer = await served.call("GET", f"{FILES}?resourceVersion={now - 1}&resourceVersionMatch=Exact")
        assert (status, answer["reason"]) == (410, "Expired")
        status, answer = await served.call("GET", f"{FILES}?resourceVersion=x")
        assert status == 400
        disk.version += 3
        # The list is newer than the object.
        assert (await served.good("GET", f"{FILES}/a?resourceVersion={now + 3}"))["content"] == "a"
        status, answer = await served.call("GET", f"{FILES}/a?resourceVersion={now + 4}")
        assert (status, answer["reason"]) == (504, "Timeout")
        assert (await served.call("GET", f"{FILES}/a?resourceVersion=x"))[0] == 500
        assert (await served.call("GET", f"{FILES}/a?resourceVersion=0"))[0] == 200


async def test_pages_without_versions_go_on_from_where_they_were() -> None:
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files", namespaced=False)
    names = ["a", "b", "c", "d"]

    @files.list
    def all_files(request: Request) -> list[File]:
        return [File(ObjectMeta(name=name)) for name in names]

    async with serving(app) as served:
        first = await served.good("GET", f"{ROOT}/files?limit=2")
        names.remove("c")
        rest = await served.good("GET", f"{ROOT}/files?limit=2&continue={quote(first['metadata']['continue'])}")
        assert [item["metadata"]["name"] for item in rest["items"]] == ["d"]


async def test_other_forms() -> None:
    app, _ = disk_of("a", "bb")
    async with serving(app) as served:
        table = await served.good("GET", FILES, headers=TABLE)
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size", "Mode", "Age"]
        assert [row["cells"][:3] for row in table["rows"]] == [["a", 1, 644], ["bb", 2, 644]]
        one = await served.good("GET", f"{FILES}/a", headers=TABLE)
        assert len(one["rows"]) == 1
        partial = await served.good("GET", FILES, headers=PARTIAL)
        assert partial["kind"] == "PartialObjectMetadataList"
        assert set(partial["items"][0]) == {"kind", "apiVersion", "metadata"}
        yaml = await served.ask("GET", f"{FILES}/a", headers={"accept": "application/yaml"})
        assert b"kind: File" in (yaml.body if isinstance(yaml.body, bytes) else b"")
        status, _ = await served.call("GET", FILES, headers={"accept": "application/vnd.kubernetes.protobuf"})
        assert status == 406


async def test_create_stamps_validates_and_calls() -> None:
    app, disk = disk_of()
    async with serving(app) as served:
        made = await served.good("POST", f"{FILES}?fieldManager=me", tree("a", "x"))
        metadata = made["metadata"]
        assert metadata["resourceVersion"] == "11"
        assert metadata["uid"]
        assert metadata["creationTimestamp"]
        assert made["mode"] == 644
        assert metadata["managedFields"][0]["manager"] == "me"
        request = disk.seen[-1]
        assert (request.verb, request.namespace, request.name, request.field_manager) == (
            "create",
            "default",
            "a",
            "me",
        )
        assert request.user.name == "system:apiserver"
        status, answer = await served.call("POST", FILES, tree("a"))
        assert (status, answer["reason"]) == (409, "AlreadyExists")
        generated = await served.good("POST", FILES, tree("", generateName="f-"))
        assert generated["metadata"]["name"].startswith("f-")
        status, answer = await served.call("POST", FILES, {**tree("b"), "mode": "rw"})
        assert (status, answer["reason"]) == (422, "Invalid")
        status, answer = await served.call("POST", FILES, tree("No Name"))
        assert status == 422
        answer = await served.ask("POST", FILES, {**tree("c"), "more": 1})
        assert answer.status == 201
        assert any(b"unknown field" in value for name, value in answer.headers if name.lower() == b"warning")
        status, _ = await served.call("POST", f"{FILES}?fieldValidation=Strict", {**tree("d"), "more": 1})
        assert status == 400
        assert "d" not in {name for _, name in disk.kept}


async def test_dry_runs_call_nobody() -> None:
    app, disk = disk_of("a")
    async with serving(app) as served:
        before = disk.version
        assert "resourceVersion" not in (await served.good("POST", f"{FILES}?dryRun=All", tree("n")))["metadata"]
        status, answer = await served.call("POST", f"{FILES}?dryRun=All", tree("a"))
        assert (status, answer["reason"]) == (409, "AlreadyExists")
        patched = await served.good("PATCH", f"{FILES}/a?dryRun=All", {"content": "new"}, MERGE)
        assert patched["content"] == "new"
        await served.good("DELETE", f"{FILES}/a?dryRun=All")
        assert disk.version == before
        assert disk.kept["default", "a"].content == "a"


async def test_update_patch_and_apply_come_from_get_and_update() -> None:
    app, disk = disk_of("a")
    async with serving(app) as served:
        current = await served.good("GET", f"{FILES}/a")
        updated = await served.good("PUT", f"{FILES}/a", {**current, "content": "two"})
        assert updated["content"] == "two"
        status, answer = await served.call("PUT", f"{FILES}/a", {**current, "content": "three"})
        assert (status, answer["reason"]) == (409, "Conflict")
        status, answer = await served.call("PUT", f"{FILES}/zz", tree("zz"))
        assert (status, answer["reason"]) == (404, "NotFound")
        version = disk.version
        # What changes nothing is not handed on.
        await served.good("PATCH", f"{FILES}/a", {"content": "two"}, MERGE)
        assert disk.version == version
        body = json.dumps([{"op": "replace", "path": "/content", "value": "four"}]).encode()
        patched = await served.good("PATCH", f"{FILES}/a", body, {"content-type": "application/json-patch+json"})
        assert patched["content"] == "four"
        status, _ = await served.call(
            "PATCH", f"{FILES}/a", {}, {"content-type": "application/strategic-merge-patch+json"}
        )
        assert status == 415
        status, conflict = await served.call("PATCH", f"{FILES}/a?fieldManager=me", tree("a", "five"), APPLY)
        assert (status, conflict["reason"]) == (409, "Conflict")
        applied = await served.good("PATCH", f"{FILES}/a?fieldManager=me&force=true", tree("a", "five"), APPLY)
        assert ("me", "Apply") in {(e["manager"], e["operation"]) for e in applied["metadata"]["managedFields"]}
        status, created = await served.call("PATCH", f"{FILES}/new?fieldManager=me", tree("new", "x"), APPLY)
        assert status == 201
        assert created["metadata"]["uid"]


async def test_a_lost_race_is_tried_again() -> None:
    app, disk = disk_of("a")
    async with serving(app) as served:
        disk.conflicts = 3
        assert (await served.good("PATCH", f"{FILES}/a", {"content": "new"}, MERGE))["content"] == "new"
        assert disk.conflicts == 0
        disk.conflicts = 100
        status, answer = await served.call("PATCH", f"{FILES}/a", {"content": "newer"}, MERGE)
        assert (status, answer["reason"]) == (409, "Conflict")
        assert disk.conflicts == 100 - 6


async def test_delete_and_deletecollection() -> None:
    app, disk = disk_of("a", "b", "c")
    async with serving(app) as served:
        current = await served.good("GET", f"{FILES}/a")
        wrong = {"preconditions": {"resourceVersion": "3"}, "kind": "DeleteOptions", "apiVersion": "v1"}
        assert (await served.call("DELETE", f"{FILES}/a", wrong))[0] == 409
        right = {**wrong, "preconditions": {"resourceVersion": current["metadata"]["resourceVersion"]}}
        gone = await served.good("DELETE", f"{FILES}/a", right)
        assert gone["status"] == "Success"
        assert (await served.call("DELETE", f"{FILES}/a"))[0] == 404
        listed = await served.good("DELETE", f"{FILES}?labelSelector=n%3Db")
        assert [item["metadata"]["name"] for item in listed["items"]] == ["b"]
        assert [name for _, name in disk.kept] == ["c"]


async def test_a_patch_handler_of_its_own_and_answers_that_are_none() -> None:
    app, disk = disk_of("a")
    (files,) = app.kinds
    patched: list[str] = []

    async def patch(request: Request, obj: File, old: File) -> None:
        patched.append(f"{old.content}->{obj.content}")
        disk.put(obj)

    files.patch(patch)  # type: ignore[attr-defined]
    async with serving(app) as served:
        answer = await served.good("PATCH", f"{FILES}/a", {"content": "b"}, MERGE)
        assert patched == ["a->b"]
        # Nothing was answered, so it was read again.
        assert answer["metadata"]["resourceVersion"] == str(disk.version)


@dataclass
class Part:
    replicas: int = 1


@dataclass
class Set:
    metadata: ObjectMeta
    spec: Part = field(default_factory=Part)
    status: Part = field(default_factory=Part)


async def test_status_and_scale_of_functions() -> None:
    from fastapi_core.extension import Scale

    app = Extension("files.example.com/v1")
    sets = app.kind(Set, "sets", status=True, scale=Scale(".spec.replicas", ".status.replicas"))
    kept = Set(ObjectMeta(name="a", namespace="default", resource_version="1"))
    seen: list[str] = []

    @sets.get
    async def get(request: Request, name: str) -> Set | None:
        return kept if name == "a" else None

    @sets.update
    async def update(request: Request, obj: Set, old: Set) -> Set:
        nonlocal kept
        seen.append(request.subresource)
        obj.metadata.resource_version = str(int(old.metadata.resource_version) + 1)
        kept = obj
        return obj

    path = f"{ROOT}/namespaces/default/sets/a"
    async with serving(app) as served:
        await served.good("PATCH", path, {"spec": {"replicas": 2}, "status": {"replicas": 9}}, MERGE)
        assert (kept.spec.replicas, kept.status.replicas) == (2, 1)
        await served.good("PATCH", f"{path}/status", {"spec": {"replicas": 9}, "status": {"replicas": 5}}, MERGE)
        assert (kept.spec.replicas, kept.status.replicas) == (2, 5)
        scale = await served.good("GET", f"{path}/scale")
        assert (scale["kind"], scale["spec"], scale["status"]) == ("Scale", {"replicas": 2}, {"replicas": 5})
        await served.good("PUT", f"{path}/scale", {**scale, "spec": {"replicas": 7}})
        assert kept.spec.replicas == 7
        assert seen == ["", "status", "scale"]
        assert (await served.call("GET", f"{ROOT}/namespaces/default/sets/b/scale"))[0] == 404
        found: Served = served
        assert [r["name"] for r in (await found.good("GET", ROOT))["resources"]] == [
            "sets",
            "sets/status",
            "sets/scale",
        ]


def test_events_have_a_type() -> None:
    assert Event("ADDED", 1).previous is None


async def test_an_age_is_shown_where_one_is_known() -> None:
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files")

    @files.list
    async def list_files(request: Request) -> list[File]:
        born = datetime(2020, 1, 1, tzinfo=UTC)
        return [
            File(ObjectMeta(name="a", namespace="default")),
            File(ObjectMeta("b", "default", creation_timestamp=born)),
        ]

    async with serving(app) as served:
        table = await served.good("GET", FILES, headers=TABLE)
        assert [(column["name"], column["type"]) for column in table["columnDefinitions"]][1:] == [("Age", "date")]
        assert table["rows"][0]["cells"] == ["a", None]
        assert re.fullmatch(r"\d+y(\d+d)?", table["rows"][1]["cells"][1])
