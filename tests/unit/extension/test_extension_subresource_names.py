"""Subresources of an extension under the names that built-in kinds use for theirs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.extension import Connection, Extension, ObjectMeta, Request
from tests.fixtures.extension import serving

NAMES = sorted({name for definition in builtin() for name in definition.subresources} - {"status", "scale"})
THINGS = "/apis/names.example.com/v1/namespaces/default/things"


@dataclass
class Thing:
    metadata: ObjectMeta


@dataclass
class Part:
    metadata: ObjectMeta
    text: str = ""


@pytest.mark.parametrize("connected", [False, True])
async def test_documents_and_requests(connected: bool) -> None:
    app = Extension("names.example.com/v1")
    things = app.stored(Thing, "things")
    for name in NAMES:
        sub = things.subresource(name, Part)
        if connected:

            @sub.connect
            async def connect(request: Request, connection: Connection) -> None:
                await connection.respond(request.subresource.encode())
        else:

            @sub.get
            async def get(request: Request, name: str) -> Part:
                return Part(ObjectMeta(name=name), request.subresource)

    async with serving(app) as served:
        v3 = await served.good("GET", "/openapi/v3/apis/names.example.com/v1")
        v2 = await served.good("GET", "/openapi/v2")
        for paths in (v2["paths"], v3["paths"]):
            assert {path.rpartition("/")[2] for path in paths if "{name}/" in path} == set(NAMES)
        await served.good(
            "POST", THINGS, {"apiVersion": "names.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
        )
        for name in NAMES:
            status, found = await served.call("GET", f"{THINGS}/a/{name}")
            assert (status, found if connected else found["text"]) == (200, name)
