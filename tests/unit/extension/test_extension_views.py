"""What one client's requests were answered does not reach another client, or the same one in another view."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from fastapi_core.extension import Event, Extension, Listing, ObjectMeta, Request
from fastapi_core.request.context import RequestContext, User
from tests.fixtures.extension import Served, serving

SECRETS = "/apis/files.example.com/v1/secrets"


@dataclass
class Secret:
    metadata: ObjectMeta
    owner: str = ""


class Named:
    """Users by headers, in all that handlers may tell them apart by."""

    def authenticate(self, ctx: RequestContext) -> User:
        def said(name: bytes) -> str:
            return (ctx.request.header(name) or b"").decode()

        groups, level = said(b"x-group"), said(b"x-level")
        return User(said(b"x-user"), said(b"x-uid"), (groups,) if groups else (), {"level": (level,)} if level else {})


class Shared:
    """Everybody sees his own, and handlers look at all that a request says of views."""

    def __init__(self) -> None:
        self.version = 7
        self.asked = 0
        self.story: list[Event[Secret]] = []
        self.app = Extension("files.example.com/v1")
        kind = self.app.kind(Secret, "secrets", namespaced=False)

        @kind.list
        async def mine(request: Request) -> Listing[Secret]:
            self.asked += 1
            return Listing([self.secret(request, number) for number in range(3)], str(self.version))

        @kind.watch
        async def events(request: Request) -> AsyncIterator[Event[Secret]]:
            for event in self.story:
                yield event

    @staticmethod
    def secret(request: Request, number: int) -> Secret:
        user, chosen = request.user, request.label_selector
        said = [
            user.name,
            user.uid,
            *user.groups,
            *(value for values in user.extra.values() for value in values),
            chosen,
        ]
        labels = dict([chosen.split("=")]) if chosen else {}
        name = "-".join(text.replace("=", "-") for text in said if text)
        return Secret(ObjectMeta(name=f"{name}-{number}", labels=labels, resource_version="5"), user.name)


async def get(served: Served, query: str, headers: dict[str, str]) -> tuple[int, Any]:
    def ask() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", served.server.port, timeout=20)
        try:
            connection.request("GET", f"{SECRETS}{query}", headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    status, body = await asyncio.to_thread(ask)
    lines = [json.loads(line) for line in body.splitlines()]
    return status, lines if "watch=1" in query else lines[0]


def names(found: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in found["items"]]


ALICE = {"x-user": "alice", "x-uid": "1", "x-group": "devs", "x-level": "low"}
OTHERS = [
    ({**ALICE, "x-user": "bob"}, ""),
    ({**ALICE, "x-uid": "2"}, ""),
    ({**ALICE, "x-group": "ops"}, ""),
    ({**ALICE, "x-level": "high"}, ""),
    (ALICE, "&labelSelector=a=b"),
]


@pytest.mark.parametrize(("other", "selector"), OTHERS)
async def test_a_kept_list_is_for_who_began_to_read_it(other: dict[str, str], selector: str) -> None:
    shared = Shared()
    async with serving(shared.app, authenticator=Named()) as served:
        _, page = await get(served, "?limit=1", ALICE)
        token = page["metadata"]["continue"]
        # While the source still has the version everybody goes on in his own list.
        status, found = await get(served, f"?limit=5&continue={token}{selector}", other)
        assert status == 200
        assert not set(names(found)) & {"alice-1-devs-low-1", "alice-1-devs-low-2"}
        shared.version = 8
        for query in (
            f"?limit=5&continue={token}{selector}",
            f"?resourceVersion=7&resourceVersionMatch=Exact{selector}",
        ):
            status, refused = await get(served, query, other)
            assert (status, refused["reason"]) == (410, "Expired")
        asked = shared.asked
        _, rest = await get(served, f"?limit=5&continue={token}", ALICE)
        assert names(rest) == ["alice-1-devs-low-1", "alice-1-devs-low-2"]
        assert shared.asked == asked


def event(kind: Any, name: str, version: int, **labels: str) -> Event[Secret]:
    return Event(kind, Secret(ObjectMeta(name=name, resource_version=str(version), labels=labels), "new"))


async def test_a_watch_knows_what_its_own_client_has_and_nothing_of_others() -> None:
    shared = Shared()
    shared.story = [event("MODIFIED", "alice-a-b-0", 8, a="c"), event("MODIFIED", "else", 9, a="c")]
    query = "?watch=1&labelSelector=a=b&timeoutSeconds=5&resourceVersion="
    async with serving(shared.app, authenticator=Named()) as served:
        assert len(names((await get(served, "?labelSelector=a=b", {"x-user": "alice"}))[1])) == 3
        _, found = await get(served, f"{query}7", {"x-user": "alice"})
        # What leaves is shown as it was when it could be seen; the other was never there.
        assert [(e["type"], e["object"]["metadata"]["name"], e["object"]["owner"]) for e in found] == [
            ("DELETED", "alice-a-b-0", "alice")
        ]
        assert found[0]["object"]["metadata"]["resourceVersion"] == "8"
        assert found[0]["object"]["metadata"]["labels"] == {"a": "b"}
        # The watch ended at 9: who goes on there goes on with what it left.
        shared.story = [event("MODIFIED", "alice-a-b-1", 10, a="b"), event("MODIFIED", "else", 11, a="b")]
        _, found = await get(served, f"{query}9", {"x-user": "alice"})
        assert [(e["type"], e["object"]["metadata"]["name"]) for e in found] == [
            ("MODIFIED", "alice-a-b-1"), ("ADDED", "else")
        ]  # fmt: skip
        # Of bob's client nothing is known, whatever alice's was told.
        shared.story = [event("MODIFIED", "alice-a-b-2", 12, a="c")]
        _, found = await get(served, f"{query}11", {"x-user": "bob"})
        assert [(e["type"], e["object"]["owner"]) for e in found] == [("DELETED", "new")]


async def test_a_source_that_never_waits_leaves_others_their_turns() -> None:
    app = Extension("files.example.com/v1")
    kind = app.kind(Secret, "secrets", namespaced=False)
    told, closed = 0, asyncio.Event()

    @kind.list
    async def none(request: Request) -> Listing[Secret]:
        return Listing([], "1")

    @kind.watch
    async def flood(request: Request) -> AsyncIterator[Event[Secret]]:
        nonlocal told
        try:
            while True:
                told += 1
                yield event("ADDED", f"n{told}", told + 1)
        finally:
            closed.set()

    async with serving(app) as served:
        stream = served.watch(f"{SECRETS}?watch=1&resourceVersion=1")
        assert (await anext(stream))["object"]["metadata"]["name"] == "n1"
        assert (await served.call("GET", SECRETS))[0] == 200
        await stream.aclose()
        await asyncio.wait_for(closed.wait(), 10)
        # And the time of a watch is over when it is over.
        closed.clear()
        pending = asyncio.create_task(get(served, "?watch=1&resourceVersion=1&timeoutSeconds=1", {"x-user": "a"}))
        assert (await asyncio.wait_for(pending, 20))[0] == 200
        await asyncio.wait_for(closed.wait(), 10)


async def test_a_source_that_catches_its_cancellation_ends_all_the_same() -> None:
    app = Extension("files.example.com/v1")
    kind = app.kind(Secret, "secrets", namespaced=False)
    closed = asyncio.Event()

    @kind.list
    async def none(request: Request) -> Listing[Secret]:
        return Listing([], "1")

    @kind.watch
    async def stubborn(request: Request) -> AsyncIterator[Event[Secret]]:
        try:
            for version in range(2, 1000):
                yield event("ADDED", f"n{version}", version)
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    pass
        finally:
            closed.set()

    async with serving(app) as served:
        stream = served.watch(f"{SECRETS}?watch=1&resourceVersion=1")
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(closed.wait(), 10)


async def test_a_long_list_is_made_in_turns() -> None:
    app = Extension("files.example.com/v1")
    kind = app.kind(Secret, "secrets", namespaced=False)

    @kind.list
    async def many(request: Request) -> Listing[Secret]:
        return Listing([Secret(ObjectMeta(name=f"n{number}")) for number in range(20_000)], "1")

    async with serving(app) as served:
        pending = asyncio.create_task(served.good("GET", f"{SECRETS}?limit=5"))
        turns = 0
        while not pending.done():
            await asyncio.sleep(0)
            turns += 1
        assert len((await pending)["items"]) == 5
        # It takes some hundred milliseconds, a turn every five.
        assert turns > 5
