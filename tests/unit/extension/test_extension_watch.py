"""Watches of an author's source: initial events, selectors, versions, the end; and a feed as such a source."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from fastapi_core import errors
from fastapi_core.extension import Event, Extension, Feed, Listing, ObjectMeta, Request
from fastapi_core.extension.sync import events_of
from tests.fixtures.extension import TABLE, Served, serving, told

FILES = "/apis/files.example.com/v1/namespaces/default/files"
ALL = "/apis/files.example.com/v1/files"


@dataclass
class File:
    metadata: ObjectMeta
    content: str = ""


def file(name: str, version: int, namespace: str = "default", **labels: str) -> File:
    return File(ObjectMeta(name=name, namespace=namespace, resource_version=str(version), labels=labels))


Found = list[tuple[str, str, str]]


async def watched(served: Served, path: str) -> Found:
    return [
        (kind, name, obj.get("metadata", {}).get("resourceVersion", "")) for kind, name, obj in await told(served, path)
    ]


class Script:
    """A source that tells the same story to every watch, and then ends (or fails)."""

    def __init__(
        self, listed: list[File], version: int, story: list[Event[File]], end: Exception | None = None
    ) -> None:
        self.app = Extension("files.example.com/v1")
        files = self.app.kind(File, "files")
        self.asked: list[Request] = []
        self.closed = 0

        @files.list
        async def all_files(request: Request) -> Listing[File]:
            return Listing(listed, str(version))

        @files.watch
        async def events(request: Request) -> AsyncIterator[Event[File]]:
            self.asked.append(request)
            try:
                for event in story:
                    if int(event.object.metadata.resource_version) > int(request.resource_version or 0):
                        yield event
                if end is not None:
                    raise end
            finally:
                self.closed += 1


def story() -> Script:
    listed = [file("a", 3, x="1"), file("b", 4, x="2"), file("z", 2, "other", x="1")]
    return Script(
        listed,
        5,
        [
            Event("MODIFIED", file("a", 6, x="2")),
            Event("MODIFIED", file("b", 7, x="1")),
            Event("ADDED", file("c", 8, x="1")),
            Event("MODIFIED", file("z", 9, "other", x="1")),
            Event("DELETED", file("c", 10, x="1")),
            Event("BOOKMARK", file("", 15)),
        ],
    )


async def test_initial_events_come_from_the_list_and_the_rest_from_the_generator() -> None:
    script = story()
    async with serving(script.app) as served:
        added = [("ADDED", "a", "3"), ("ADDED", "b", "4")]
        rest = [("MODIFIED", "a", "6"), ("MODIFIED", "b", "7"), ("ADDED", "c", "8"), ("DELETED", "c", "10")]
        assert await watched(served, f"{FILES}?watch=1") == added + rest
        assert script.asked[-1].resource_version == "5"
        assert script.asked[-1].verb == "watch"
        assert await watched(served, f"{FILES}?watch=1&resourceVersion=7") == rest[2:]
        assert script.asked[-1].resource_version == "7"
        everywhere = await watched(served, f"{ALL}?watch=1&resourceVersion=8")
        assert everywhere == [("MODIFIED", "z", "9"), ("DELETED", "c", "10")]
        one = await watched(served, f"{FILES}?watch=1&fieldSelector=metadata.name%3Db")
        assert one == [("ADDED", "b", "4"), ("MODIFIED", "b", "7")]
        assert script.closed == 4


async def test_selectors_turn_changes_into_comings_and_goings() -> None:
    script = story()
    async with serving(script.app) as served:
        found = await watched(served, f"{FILES}?watch=1&labelSelector=x%3D1")
        assert found == [
            ("ADDED", "a", "3"), ("DELETED", "a", "6"), ("ADDED", "b", "7"), ("ADDED", "c", "8"), ("DELETED", "c", "10")
        ]  # fmt: skip


async def test_who_goes_on_with_a_selector_hears_of_every_departure() -> None:
    script = story()
    async with serving(script.app) as served:
        # Nobody has listed yet, so the server cannot know what the client has.
        found = await watched(served, f"{FILES}?watch=1&resourceVersion=5&labelSelector=x%3D1")
        assert found[0] == ("DELETED", "a", "6")
        known = Script([], 5, [Event("MODIFIED", file("q", 6, x="9"), previous=file("q", 5, x="8"))])
    async with serving(known.app) as served:
        assert await watched(served, f"{FILES}?watch=1&resourceVersion=5&labelSelector=x%3D1") == []
        assert await watched(served, f"{FILES}?watch=1&resourceVersion=5&labelSelector=x%3D8") == [
            ("DELETED", "q", "6")
        ]
        assert await watched(served, f"{FILES}?watch=1&resourceVersion=5&labelSelector=x%3D9") == [("ADDED", "q", "6")]


async def test_bookmarks() -> None:
    script = story()
    async with serving(script.app) as served:
        query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        found = await told(served, f"{FILES}?{query}")
        kinds = [kind for kind, _, _ in found]
        assert kinds[:3] == ["ADDED", "ADDED", "BOOKMARK"]
        metadata = found[2][2]["metadata"]
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert metadata["resourceVersion"] == "5"
        assert found[2][2]["kind"] == "File"


async def test_tables_of_watches() -> None:
    script = story()
    async with serving(script.app) as served:
        answer = await served.server.loopback.send(
            "GET", f"{FILES}?watch=1", headers=[(b"accept", TABLE["accept"].encode())]
        )
        assert answer.status == 200


async def test_errors_end_a_watch() -> None:
    for end, code, text in (
        (errors.expired("too old resource version"), 410, "too old resource version"),
        (RuntimeError("secret"), 500, "Internal error occurred: the source of events failed"),
        (ValueError("secret"), 500, "Internal error occurred: the source of events failed"),
    ):
        script = Script([], 5, [Event("ADDED", file("a", 6))], end)
        async with serving(script.app) as served:
            found = await told(served, f"{FILES}?watch=1")
            assert [kind for kind, _, _ in found] == ["ADDED", "ERROR"]
            status = found[-1][2]
            assert (status["kind"], status["code"], status["message"]) == ("Status", code, text)


async def test_a_generator_is_closed_with_its_client() -> None:
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files")
    began, closed = asyncio.Event(), asyncio.Event()

    @files.list
    async def all_files(request: Request) -> Listing[File]:
        return Listing([], "1")

    @files.watch
    async def events(request: Request) -> AsyncIterator[Event[File]]:
        try:
            began.set()
            yield Event("ADDED", file("a", 2))
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with serving(app) as served:
        stream = served.watch(f"{FILES}?watch=1")
        assert (await anext(stream))["type"] == "ADDED"
        assert began.is_set()
        await stream.aclose()
        await asyncio.wait_for(closed.wait(), 10)
        # And with its time.
        closed.clear()
        assert await watched(served, f"{FILES}?watch=1&timeoutSeconds=1") == [("ADDED", "a", "2")]
        await asyncio.wait_for(closed.wait(), 10)
        closed.clear()
        last = served.watch(f"{FILES}?watch=1")
        await anext(last)
    # And with the server.
    await asyncio.wait_for(closed.wait(), 10)
    with pytest.raises(StopAsyncIteration):
        await anext(last)


async def test_a_plain_generator_runs_in_a_thread() -> None:
    names: list[str] = []
    ended = threading.Event()

    def source() -> Iterator[int]:
        try:
            names.append(threading.current_thread().name)
            yield 1
            yield 2
        finally:
            ended.set()

    assert [item async for item in events_of(source())] == [1, 2]
    assert names == ["watch"]
    taken = events_of(source())
    assert await anext(taken) == 1
    ended.clear()
    await taken.aclose()  # type: ignore[attr-defined]
    assert await asyncio.to_thread(ended.wait, 10)

    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        [item async for item in events_of(failing())]


def feeding(window: int = 1000) -> tuple[Extension, Feed[File]]:
    app, feed = Extension("files.example.com/v1"), Feed[File](window)
    app.kind(File, "files", storage=feed)
    return app, feed


def put(feed: Feed[File], name: str, content: str = "", **labels: str) -> None:
    feed.put(File(ObjectMeta(name=name, namespace="default", labels=labels), content))


async def test_a_feed_is_read_and_watched() -> None:
    app, feed = feeding()
    put(feed, "a", x="1")
    async with serving(app) as served:
        listed = await served.good("GET", FILES)
        version = listed["metadata"]["resourceVersion"]
        assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
        stream = served.watch(f"{FILES}?watch=1&resourceVersion={version}")
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        put(feed, "b", x="1")
        assert (await waiting)["type"] == "ADDED"
        shared = File(ObjectMeta(name="b", namespace="default"), "one")
        feed.put(shared)
        shared.content = "two"
        feed.put(shared)
        feed.remove("a", "default")
        feed.remove("nothing", "default")
        events = [await anext(stream) for _ in range(3)]
        assert [(e["type"], e["object"]["metadata"]["name"], e["object"].get("content", "")) for e in events] == [
            ("MODIFIED", "b", "one"), ("MODIFIED", "b", "two"), ("DELETED", "a", "")
        ]  # fmt: skip
        numbers = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
        assert numbers == sorted(set(numbers))
        await stream.aclose()
        assert (await served.call("GET", f"{FILES}/a"))[0] == 404
        assert (await served.good("GET", f"{FILES}/b"))["content"] == "two"
        found = await watched(served, f"{FILES}?watch=1&resourceVersion={version}&labelSelector=x%3D1&timeoutSeconds=1")
        assert [(kind, name) for kind, name, _ in found] == [("ADDED", "b"), ("DELETED", "b"), ("DELETED", "a")]


async def test_a_feed_forgets() -> None:
    app, feed = feeding(2)
    put(feed, "a")
    async with serving(app) as served:
        version = (await served.good("GET", FILES))["metadata"]["resourceVersion"]
        for number in range(3):
            put(feed, "a", str(number))
        found = await told(served, f"{FILES}?watch=1&resourceVersion={version}")
        assert [(kind, obj["code"]) for kind, _, obj in found] == [("ERROR", 410)]
        found = await told(served, f"{FILES}?watch=1&resourceVersion=1")
        assert found[0][2]["reason"] == "Expired"
