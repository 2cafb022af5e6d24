"""Extensions over real sockets: connections of subresources, health, documents, an end in order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from fastapi_core.authz.base import Attributes, Decision, Verdict
from fastapi_core.extension import Connection, Event, Extension, Listing, ObjectMeta, Request
from tests.fixtures.extension import MERGE, Served, serving

ROOT = "/apis/files.example.com/v1"
FILE = f"{ROOT}/namespaces/default/files/a"


@dataclass
class File:
    metadata: ObjectMeta
    content: str = ""


@dataclass
class Copy:
    """Where to copy a file to."""

    metadata: ObjectMeta
    target: str
    size: int = 0


class Client:
    """Bytes over one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, served: Served) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", served.server.port))

    async def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str]]:
        """Send a request; status and headers of the answer."""
        said = {"Host": "x", "Content-Length": str(len(body)), **{k.replace("_", "-"): v for k, v in headers.items()}}
        head = "".join(f"{name}: {value}\r\n" for name, value in said.items())
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        first, *rest = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        found = dict(line.lower().split(": ", 1) for line in rest if line)
        return int(first.split()[1]), found

    async def document(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        status, found = await self.send(method, path, data, **{"Content_Type": "application/json", **headers})
        text = await self.reader.readexactly(int(found.get("content-length", 0)))
        return status, json.loads(text) if text[:1] == b"{" else text.decode()

    async def chunk(self) -> bytes:
        size = int(await self.reader.readline(), 16)
        data = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        return data

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


def extension() -> tuple[Extension, list[Any]]:
    """Files with all sorts of subresources; what their handlers have seen."""
    app, seen = Extension("files.example.com/v1"), []
    files = app.kind(File, "files")
    kept = {"a": File(ObjectMeta(name="a", namespace="default"), "hello")}

    @files.get
    async def get(request: Request, name: str) -> File | None:
        return kept.get(name)

    @files.list
    async def all_files(request: Request) -> Listing[File]:
        return Listing(list(kept.values()), "7")

    @files.watch
    async def watch(request: Request) -> AsyncIterator[Event[File]]:
        for number in range(8, 1000):
            yield Event("MODIFIED", File(ObjectMeta(name="a", namespace="default", resource_version=str(number))))
            await asyncio.sleep(0.01)

    copies = files.subresource("copy", Copy)

    @copies.create
    def copy(request: Request, body: Copy) -> Copy:
        seen.append((request.verb, request.name, request.namespace, request.subresource, request.dry_run, body.target))
        body.size = 5
        return body

    @copies.get
    async def last(request: Request, name: str) -> Copy | None:
        return Copy(ObjectMeta(name=name), "there") if name in kept else None

    @copies.update
    async def move(request: Request, new: Copy, old: Copy) -> None:
        seen.append((old.target, new.target))

    contents = files.subresource("content", File, kind="Content")

    @contents.connect
    async def stream(request: Request, connection: Connection) -> None:
        try:
            if "once" in connection.query:
                connection.respond(kept[request.name].content.encode(), content_type="text/plain; charset=utf-8")
                return
            if "broken" in connection.query:
                raise RuntimeError("secret")
            if "silent" in connection.query:
                return
            await connection.stream()
            while True:
                await connection.send(b"tick")
                await asyncio.sleep(0.01)
        finally:
            seen.append("over")

    echoes = files.subresource("echo", File, kind="Echo")

    @echoes.connect
    async def echo(request: Request, connection: Connection) -> None:
        await connection.upgrade("echo")
        async for data in connection:
            if data == b"bye":
                return
            await connection.send(data.upper())

    return app, seen


async def test_actions_and_views() -> None:
    app, seen = extension()
    body = {"apiVersion": "files.example.com/v1", "kind": "Copy", "metadata": {}, "target": "b"}
    async with serving(app) as served:
        client = await Client.to(served)
        assert await client.document("POST", f"{FILE}/copy?dryRun=All", body) == (201, {**body, "size": 5})
        assert seen.pop() == ("create", "a", "default", "copy", True, "b")
        status, answer = await client.document("POST", f"{FILE}/copy", {**body, "target": 3})
        assert (status, answer["reason"]) == (422, "Invalid")
        status, answer = await client.document("POST", f"{FILE}/copy", {**body, "kind": "Other"})
        assert status == 422
        status, answer = await client.document("POST", f"{FILE}/copy?fieldValidation=Strict", {**body, "more": 1})
        assert status == 400
        assert (await client.document("GET", f"{FILE}/copy"))[1]["target"] == "there"
        assert (await client.document("GET", f"{ROOT}/namespaces/default/files/zz/copy"))[0] == 404
        assert (await client.document("PUT", f"{FILE}/copy", body))[0] == 200
        assert seen.pop() == ("there", "b")
        status, answer = await client.document(
            "PATCH", f"{FILE}/copy", {"target": "c"}, **{"Content_Type": MERGE["content-type"]}
        )
        assert (status, answer["target"]) == (200, "c")
        assert seen.pop() == ("there", "c")
        status, _ = await client.document(
            "PATCH", f"{FILE}/copy?dryRun=All", {"target": "c"}, **{"Content_Type": MERGE["content-type"]}
        )
        assert status == 200
        assert seen == []
        _, found = await client.document("GET", ROOT)
        assert {r["name"]: (r["kind"], r["verbs"]) for r in found["resources"]} == {
            "files": ("File", ["get", "list", "watch"]),
            "files/copy": ("Copy", ["create", "get", "patch", "update"]),
            "files/content": ("Content", ["create", "get"]),
            "files/echo": ("Echo", ["create", "get"]),
        }
        _, document = await client.document("GET", "/openapi/v3/apis/files.example.com/v1")
        assert "com.example.files.v1.Copy" in document["components"]["schemas"]
        assert f"{ROOT}/namespaces/{{namespace}}/files/{{name}}/copy" in document["paths"]
        await client.close()


async def test_streams_end_with_their_handler_their_client_and_the_server() -> None:
    app, seen = extension()
    async with serving(app) as served:
        client = await Client.to(served)
        assert await client.document("GET", f"{FILE}/content?once") == (200, "hello")
        assert (await client.document("GET", f"{FILE}/content?silent"))[0] == 200
        status, answer = await client.document("POST", f"{FILE}/content?broken")
        assert status == 500
        assert "secret" not in str(answer)
        seen.clear()
        assert (await client.send("GET", f"{FILE}/content"))[0] == 200
        assert await client.chunk() == b"tick"
        await client.close()
        while not seen:
            await asyncio.sleep(0.01)
        last = await Client.to(served)
        await last.send("GET", f"{FILE}/content")
        await last.chunk()
    assert seen == ["over", "over"]
    assert (await last.reader.read()).endswith(b"0\r\n\r\n")
    await last.close()


async def test_an_upgrade_goes_both_ways() -> None:
    app, _ = extension()
    async with serving(app) as served:
        client = await Client.to(served)
        status, answer = await client.document("GET", f"{FILE}/echo")
        assert (status, answer["message"]) == (400, "upgrade request required, to echo")
        status, headers = await client.send("GET", f"{FILE}/echo", Connection="Upgrade", Upgrade="echo")
        assert (status, headers["upgrade"]) == (101, "echo")
        for word in (b"one", b"two"):
            client.writer.write(word)
            assert await client.reader.readexactly(3) == word.upper()
        client.writer.write(b"bye")
        assert await client.reader.read() == b""
        await client.close()


class Readers:
    """Lets everybody get, and nobody create."""

    generation = 0

    def authorize(self, attributes: Attributes) -> Verdict:
        return Verdict(Decision.NO_OPINION if attributes.verb == "create" else Decision.ALLOW, "readers read")


async def test_who_may_only_read_opens_no_connection() -> None:
    app, _ = extension()
    async with serving(app, authorizer=Readers()) as served:
        client = await Client.to(served)
        status, answer = await client.document("GET", f"{FILE}/echo", Connection="Upgrade", Upgrade="echo")
        assert (status, answer["reason"]) == (403, "Forbidden")
        status, answer = await client.document("POST", f"{FILE}/content")
        assert (status, answer["reason"]) == (403, "Forbidden")
        await client.close()


async def test_pages_of_the_server() -> None:
    app, _ = extension()
    async with serving(app) as served:
        client = await Client.to(served)
        for path in ("/livez", "/readyz", "/healthz"):
            assert await client.document("GET", path) == (200, "ok")
        assert (await client.document("GET", "/version"))[1]["major"] == "1"
        _, groups = await client.document("GET", "/apis")
        assert [group["name"] for group in groups["groups"]] == ["files.example.com"]
        aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        _, found = await client.document("GET", "/apis", Accept=aggregated)
        assert found["kind"] == "APIGroupDiscoveryList"
        resource = found["items"][0]["versions"][0]["resources"][0]
        assert resource["responseKind"] == {"group": "files.example.com", "version": "v1", "kind": "File"}
        assert (await client.document("GET", "/apis/files.example.com"))[1]["preferredVersion"]["version"] == "v1"
        _, index = await client.document("GET", "/openapi/v3")
        assert set(json.loads(index)["paths"] if isinstance(index, str) else index["paths"]) == {
            "apis", "version", "apis/files.example.com/v1"
        }  # fmt: skip
        _, v2 = await client.document("GET", "/openapi/v2")
        definition = v2["definitions"]["com.example.files.v1.File"]
        assert definition["x-kubernetes-group-version-kind"] == [
            {"group": "files.example.com", "kind": "File", "version": "v1"}
        ]
        _, metrics = await client.document("GET", "/metrics")
        assert "apiserver_request_total" in metrics
        assert (await client.document("GET", f"{ROOT}/nothing"))[1]["reason"] == "NotFound"
        assert (await client.document("GET", "/api"))[0] == 404
        assert (await client.document("GET", "/apis/other.example.com"))[0] == 404
        await client.close()


async def test_a_watch_over_a_socket_ends_with_the_server() -> None:
    app, _ = extension()
    async with serving(app) as served:
        client = await Client.to(served)
        status, _ = await client.send("GET", f"{ROOT}/files?watch=1")
        assert status == 200
        event = json.loads(await client.chunk())
        assert (event["type"], event["object"]["content"]) == ("ADDED", "hello")
        assert json.loads(await client.chunk())["object"]["metadata"]["resourceVersion"] == "8"
    assert (await client.reader.read()).endswith(b"0\r\n\r\n")
    await client.close()


def test_subresources_that_cannot_be() -> None:
    from fastapi_core.extension import ModelError

    app = Extension("files.example.com/v1")
    files = app.kind(File, "files")
    for name, kind, text in (("status", "", "option"), ("x", "PodOptions", "do not end in")):
        with pytest.raises(ModelError, match=text):
            files.subresource(name, File, kind=kind)
    files.get(lambda request, name: None)
    part = files.subresource("part", File, kind="Part")
    with pytest.raises(ModelError, match="no handler"):
        app.description  # noqa: B018
    part.update(lambda request, new, old: None)
    with pytest.raises(ModelError, match="update needs get"):
        app.description  # noqa: B018
    part.get(lambda request, name: None)

    async def connect(request: Request, connection: Connection) -> None:
        return None

    part.connect(connect)
    with pytest.raises(ModelError, match="connect stands alone"):
        app.description  # noqa: B018
    with pytest.raises(ModelError, match="there already"):
        files.subresource("part", File)
