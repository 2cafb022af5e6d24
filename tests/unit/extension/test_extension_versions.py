"""A kept kind in several versions: every verb through each, hooks that see one, owners of fields across them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fastapi_core.extension import Column, Extension, FieldError, ModelError, ObjectMeta, Request, Scale, Stored
from fastapi_core.extension.models import model_of
from fastapi_core.extension.models.base import PRESERVE
from fastapi_core.extension.versions import has_path
from tests.fixtures.extension import APPLY, MERGE, TABLE, serving, told

V1, V2 = (f"/apis/db.example.com/{version}/namespaces/default/databases" for version in ("v1", "v2"))


@dataclass
class Spec:
    size: str = "1Gi"
    owner: str = ""


@dataclass
class Database:
    metadata: ObjectMeta
    spec: Spec = field(default_factory=Spec)


@dataclass
class Storage:
    gigabytes: int = 1


@dataclass
class SpecV2:
    storage: Storage = field(default_factory=Storage)
    owners: list[str] = field(default_factory=list)


@dataclass
class DatabaseV2:
    metadata: ObjectMeta
    spec: SpecV2 = field(default_factory=SpecV2)


def show(kept: Database) -> DatabaseV2:
    owners = kept.spec.owner.split(",") if kept.spec.owner else []
    return DatabaseV2(kept.metadata, SpecV2(Storage(int(kept.spec.size.removesuffix("Gi"))), owners))


def keep(shown: DatabaseV2) -> Database:
    return Database(shown.metadata, Spec(f"{shown.spec.storage.gigabytes}Gi", ",".join(shown.spec.owners)))


def extension() -> tuple[Extension, Stored[Database]]:
    app = Extension("db.example.com/v1")
    databases = app.stored(Database, "databases", columns=[Column("Size", ".spec.size")])
    databases.version(
        "v2",
        DatabaseV2,
        show=show,
        keep=keep,
        columns=[Column("GB", lambda d: d.spec.storage.gigabytes, "integer")],
        selectable=[".spec.storage.gigabytes"],
        scale=Scale(".spec.storage.gigabytes", ".spec.storage.gigabytes"),
    )

    @databases.validate
    def validate(new: Database, old: Database | None) -> Iterable[FieldError]:
        if new.spec.owner == "nobody":
            yield FieldError("Forbidden", "spec.owner", "somebody has to")

    @databases.prepare
    def prepare(new: Database, old: Database | None) -> None:
        new.metadata.labels["prepared"] = "yes"

    return app, databases


def v1(name: str, **spec: object) -> dict[str, object]:
    return {"apiVersion": "db.example.com/v1", "kind": "Database", "metadata": {"name": name}, "spec": spec}


def v2(name: str, **spec: object) -> dict[str, object]:
    return {**v1(name, **spec), "apiVersion": "db.example.com/v2"}


async def test_every_version_shows_every_object() -> None:
    app, databases = extension()
    async with serving(app) as served:
        one = await served.good("POST", V1, v1("a", size="3Gi", owner="x,y"))
        two = await served.good("POST", V2, v2("b", storage={"gigabytes": 5}, owners=["z"]))
        assert two["spec"] == {"storage": {"gigabytes": 5}, "owners": ["z"]}
        assert two["metadata"]["labels"] == {"prepared": "yes"}
        assert (await served.good("GET", f"{V1}/b"))["spec"] == {"size": "5Gi", "owner": "z"}
        shown = await served.good("GET", f"{V2}/a")
        assert shown["apiVersion"] == "db.example.com/v2"
        assert shown["spec"] == {"storage": {"gigabytes": 3}, "owners": ["x", "y"]}
        for name in ("uid", "resourceVersion", "creationTimestamp"):
            assert shown["metadata"][name] == one["metadata"][name]
        listed = await served.good("GET", V2)
        assert [item["spec"]["storage"]["gigabytes"] for item in listed["items"]] == [3, 5]
        found = await served.good("GET", f"{V2}?fieldSelector=spec.storage.gigabytes%3D5")
        assert [item["metadata"]["name"] for item in found["items"]] == ["b"]
        rows = [
            [row["cells"][1] for row in (await served.good("GET", path, headers=TABLE))["rows"]] for path in (V1, V2)
        ]
        assert rows == [["3Gi", "5Gi"], [3, 5]]
        kept = await databases.objects.get("b", "default")
        assert kept.spec == Spec("5Gi", "z")
        assert (await databases.versions[0].objects.get("a", "default")).spec.owners == ["x", "y"]


async def test_writes_and_watches_of_another_version() -> None:
    app, _ = extension()
    async with serving(app) as served:
        made = await served.good("POST", V2, v2("a", storage={"gigabytes": 5}))
        changed = await served.good("PATCH", f"{V2}/a", {"spec": {"storage": {"gigabytes": 6}}}, MERGE)
        assert changed["metadata"]["generation"] == 2
        assert (await served.call("PUT", f"{V2}/a", made))[0] == 409
        status, refused = await served.call("PATCH", f"{V2}/a", {"spec": {"owners": ["nobody"]}}, MERGE)
        assert (status, refused["reason"]) == (422, "Invalid")
        assert (await served.call("PATCH", f"{V2}/a", {"spec": {"storage": {"gigabytes": "x"}}}, MERGE))[0] == 422
        await served.good("PATCH", f"{V2}/a/scale", {"spec": {"replicas": 9}}, MERGE)
        assert (await served.good("GET", f"{V1}/a"))["spec"]["size"] == "9Gi"
        assert (await served.call("GET", f"{V1}/a/scale"))[0] == 404
        await served.good("DELETE", f"{V1}/a")
        query = f"watch=1&timeoutSeconds=1&resourceVersion={made['metadata']['resourceVersion']}"
        seen = [
            [(kind, obj["apiVersion"], obj["spec"]) for kind, _, obj in await told(served, f"{path}?{query}")]
            for path in (V1, V2)
        ]
        assert seen[0][0] == ("MODIFIED", "db.example.com/v1", {"size": "6Gi"})
        assert seen[1][0] == ("MODIFIED", "db.example.com/v2", {"storage": {"gigabytes": 6}})
        assert [kind for kind, _, _ in seen[1]] == ["MODIFIED", "MODIFIED", "DELETED"]


async def test_owners_of_fields_across_versions() -> None:
    app, _ = extension()
    async with serving(app) as served:
        applied = await served.call("PATCH", f"{V2}/a?fieldManager=two", v2("a", storage={"gigabytes": 5}), APPLY)
        assert applied[0] == 201
        status, conflict = await served.call("PATCH", f"{V1}/a?fieldManager=one", v1("a", size="6Gi"), APPLY)
        assert (status, conflict["reason"]) == (409, "Conflict")
        both = await served.good("PATCH", f"{V1}/a?fieldManager=one", v1("a", size="5Gi", owner="x"), APPLY)
        owners = {entry["manager"]: entry["apiVersion"] for entry in both["metadata"]["managedFields"]}
        assert owners == {"two": "db.example.com/v2", "one": "db.example.com/v1"}


async def test_documents_tell_of_all_versions() -> None:
    app, _ = extension()
    assert [str(version) for version in app.description.versions] == ["db.example.com/v1", "db.example.com/v2"]
    async with serving(app) as served:
        group = await served.good("GET", "/apis/db.example.com")
        assert [version["version"] for version in group["versions"]] == ["v2", "v1"]
        document = await served.good("GET", "/openapi/v3/apis/db.example.com/v2")
        spec = document["components"]["schemas"]["com.example.db.v2.Database"]["properties"]["spec"]
        assert set(spec["properties"]) == {"storage", "owners"}
        resources = await served.good("GET", "/apis/db.example.com/v2")
        assert [resource["name"] for resource in resources["resources"]] == ["databases", "databases/scale"]


async def test_what_was_kept_in_a_version_that_is_a_further_one_now(tmp_path: Path) -> None:
    first = Extension("db.example.com/v1")
    first.stored(Database, "databases")
    async with serving(first, f"--data-dir={tmp_path}") as served:
        await served.good("POST", V1, v1("a", size="3Gi"))
    later = Extension("db.example.com/v2")
    databases = later.stored(DatabaseV2, "databases")
    databases.version("v1", Database, show=keep, keep=show)
    async with serving(later, f"--data-dir={tmp_path}") as served:
        assert (await served.good("GET", f"{V2}/a"))["spec"] == {"storage": {"gigabytes": 3}}
        await served.good("PATCH", f"{V2}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
        assert (await served.good("GET", f"{V1}/a"))["spec"]["size"] == "3Gi"


@dataclass
class Backup:
    metadata: ObjectMeta
    place: str = ""


@dataclass
class Replicas:
    replicas: int = 0


@dataclass
class Pool:
    metadata: ObjectMeta
    spec: Replicas = field(default_factory=Replicas)
    status: Replicas = field(default_factory=Replicas)


@dataclass
class Copies:
    copies: int = 0


@dataclass
class PoolV2:
    metadata: ObjectMeta
    spec: Copies = field(default_factory=Copies)
    status: Replicas = field(default_factory=Replicas)


async def test_what_a_kind_has_all_its_versions_have() -> None:
    app = Extension("db.example.com/v1")
    pools = app.stored(
        Pool,
        "pools",
        status=True,
        scale=Scale(".spec.replicas", ".status.replicas"),
        selectable=[".spec.replicas", ".status.replicas"],
        columns=[
            Column("Wanted", ".spec.replicas", "integer"),
            Column("There", ".status.replicas", "integer"),
            Column("Twice", lambda pool: 2 * pool.spec.replicas, "integer"),
        ],
    )
    pools.version("v1beta1", Pool, show=lambda kept: kept, keep=lambda shown: shown)
    pools.version(
        "v2",
        PoolV2,
        show=lambda kept: PoolV2(kept.metadata, Copies(kept.spec.replicas), kept.status),
        keep=lambda shown: Pool(shown.metadata, Replicas(shown.spec.copies), shown.status),
    )
    pools.version("v3", Pool, show=lambda kept: kept, keep=lambda shown: shown, columns=(), selectable=())
    backups = pools.subresource("backup", Backup)

    @backups.create
    async def back_up(request: Request, body: Backup) -> Backup:
        return Backup(body.metadata, f"{request.name} at {body.place}")

    told = {
        "v1": (["spec.replicas", "status.replicas"], ["Name", "Wanted", "There", "Twice"], ["a", 3, 1, 6]),
        "v1beta1": (["spec.replicas", "status.replicas"], ["Name", "Wanted", "There", "Twice"], ["a", 3, 1, 6]),
        "v2": (["status.replicas"], ["Name", "There", "Twice"], ["a", 1, 6]),
        "v3": ([], ["Name", "Age"], None),
    }
    async with serving(app) as served:
        for version, (selectable, columns, cells) in told.items():
            group_version = f"db.example.com/{version}"
            path = f"/apis/{group_version}/namespaces/default/pools"
            resources = (await served.good("GET", f"/apis/{group_version}"))["resources"]
            assert {r["name"] for r in resources} == {"pools", "pools/backup", "pools/scale", "pools/status"}
            await served.good("POST", path, {"apiVersion": group_version, "kind": "Pool", "metadata": {"name": "a"}})
            status = {"status": {"replicas": 1}}
            assert (await served.good("PATCH", f"{path}/a/status", status, MERGE))["apiVersion"] == group_version
            scaled = await served.good("PATCH", f"{path}/a/scale", {"spec": {"replicas": 3}}, MERGE)
            assert (scaled["kind"], scaled["status"]["replicas"]) == ("Scale", 1)
            assert (await served.good("GET", f"{path}/a/scale"))["spec"] == {"replicas": 3}
            body = {"apiVersion": group_version, "kind": "Backup", "metadata": {"name": "a"}, "place": "here"}
            made = await served.good("POST", f"{path}/a/backup", body)
            assert (made["apiVersion"], made["place"]) == (group_version, "a at here")
            table = await served.good("GET", path, headers=TABLE)
            assert [column["name"] for column in table["columnDefinitions"]] == columns
            assert cells is None or table["rows"][0]["cells"] == cells
            for name in ("spec.replicas", "status.replicas"):
                code, _ = await served.call("GET", f"{path}?fieldSelector={name}=1")
                assert code == (200 if name in selectable else 400)
            document = await served.good("GET", f"/openapi/v3/apis/{group_version}")
            assert f"com.example.db.{version}.Backup" in document["components"]["schemas"]
            await served.good("DELETE", f"{path}/a")
        assert (await served.call("GET", "/openapi/v2"))[0] == 200


def test_paths_of_a_schema() -> None:
    schema = model_of(Pool, "").schema
    known = {".spec.replicas": True, ".spec.copies": False, ".metadata.labels.a": True, ".spec.replicas.x": False}
    assert {path: has_path(schema, path) for path in known} == known
    listed = {"properties": {"items": {"type": "array", "items": {"type": "string"}}, "any": {PRESERVE: True}}}
    known = {".items[0]": True, ".items[?(@=='a')].b": True, ".items.b": False, ".any.b.c": True, ".no[0]": False}
    assert {path: has_path(listed, path) for path in known} == known


def test_versions_that_cannot_be() -> None:
    _, databases = extension()
    for name, text in (("v1", "already"), ("v2", "already"), ("V3", "cannot be a version")):
        with pytest.raises(ModelError, match=text):
            databases.version(name, DatabaseV2, show=show, keep=keep)
