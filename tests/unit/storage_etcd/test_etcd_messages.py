"""Messages of etcd as bytes, keys under a prefix, endpoints, versions; and answers that are no good."""

from __future__ import annotations

from typing import Any

import grpc.aio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.storage.etcd import messages
from fastapi_core.storage.etcd.following import Stream, StreamEndedError, tells_progress
from fastapi_core.storage.etcd.names import Names
from fastapi_core.storage.etcd.settings import Settings, physical_root, target, wrong_endpoint
from fastapi_core.storage.etcd.store import EtcdStorage
from fastapi_core.storage.interface import Event, KeyValue, StorageError

ANSWERS = (
    messages.RANGE_RESPONSE,
    messages.TXN_RESPONSE,
    messages.WATCH_RESPONSE,
    messages.LEASE_RESPONSE,
    messages.STATUS_RESPONSE,
)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
KEY_VALUES = st.fixed_dictionaries(
    {},
    optional={
        "key": st.binary(max_size=30) | st.just(b"/registry/a/b"),
        "value": st.binary(max_size=30),
        "create_revision": NUMBERS,
        "mod_revision": NUMBERS,
        "version": NUMBERS,
    },
)
EVENTS = st.fixed_dictionaries({}, optional={"type": NUMBERS, "kv": KEY_VALUES, "prev_kv": KEY_VALUES})
WATCH_ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "header": st.fixed_dictionaries({}, optional={"revision": NUMBERS}),
        "created": st.booleans(),
        "canceled": st.booleans(),
        "compact_revision": NUMBERS,
        "cancel_reason": st.text(max_size=10),
        "fragment": st.booleans(),
        "events": st.lists(EVENTS, max_size=4),
    },
)


class Answers:
    """A call that answers what it is given."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)

    async def read(self) -> Any:
        return self.answers.pop(0) if self.answers else grpc.aio.EOF

    async def code(self) -> None:
        return None

    async def details(self) -> str:
        return "over"


def stream(*answers: bytes, prefix: str = "/registry/") -> Stream:
    made = Stream(None, Names("/registry/", "/registry/"), prefix)  # type: ignore[arg-type]
    made._call = Answers(*answers)
    return made


async def drained(made: Stream) -> None:
    """Read until something is raised."""
    while True:
        events, revision = await made.next()
        assert all(isinstance(event, Event) for event in events)
        assert isinstance(revision, int)


def test_requests_are_what_the_protocol_says() -> None:
    """By hand after rpc.proto: field number and wire type, length, value."""
    assert messages.watch(b"/a", b"/b", 5) == b"\x0a\x10\x0a\x02/a\x12\x02/b\x18\x05\x20\x01\x30\x01\x40\x01"
    assert messages.PROGRESS == b"\x1a\x00"
    tree = {"compare": [messages.compare_mod(b"k", 7)], "success": [messages.put(b"k", b"", 9)], "failure": []}
    assert (
        messages.encode(messages.TXN_REQUEST, tree)
        == b"\x0a\x07\x10\x02\x1a\x01k\x30\x07\x12\x09\x12\x07\x0a\x01k\x12\x00\x18\x09"
    )
    assert messages.encode(messages.TXN_REQUEST, {"success": [messages.delete(b"k")]}) == b"\x12\x05\x1a\x03\x0a\x01k"
    assert (
        messages.encode(messages.TXN_REQUEST, {"failure": [messages.look(b"k")]})
        == b"\x1a\x07\x0a\x05\x0a\x01k\x40\x01"
    )


@given(st.binary(max_size=200), st.sampled_from(ANSWERS))
def test_any_bytes_are_an_answer_or_an_error(data: bytes, message: Any) -> None:
    try:
        assert isinstance(messages.decode(message, data), dict)
    except ValueError:
        pass


@given(WATCH_ANSWERS)
def test_answers_come_through_as_they_were(tree: dict[str, Any]) -> None:
    data = messages.encode(messages.WATCH_RESPONSE, tree)
    assert messages.encode(messages.WATCH_RESPONSE, messages.decode(messages.WATCH_RESPONSE, data)) is not None
    found = messages.decode(messages.WATCH_RESPONSE, data)
    for raw, again in zip(tree.get("events", []), found.get("events", []), strict=True):
        assert again.get("kv", {}).get("key", b"") == raw.get("kv", {}).get("key", b"")
        assert again.get("type", 0) == raw.get("type", 0)


@given(st.lists(WATCH_ANSWERS, max_size=5))
async def test_a_stream_ends_with_one_of_its_errors(trees: list[dict[str, Any]]) -> None:
    """Whatever a server answers: events, the end of the stream, or a ValueError, which begins it anew."""
    made = stream(*(messages.encode(messages.WATCH_RESPONSE, tree) for tree in trees))
    with pytest.raises((StreamEndedError, ValueError)):
        await drained(made)


@given(st.binary(max_size=100))
async def test_a_stream_of_other_bytes(data: bytes) -> None:
    with pytest.raises((StreamEndedError, ValueError)):
        await drained(stream(data))


@given(st.binary(max_size=100))
async def test_a_store_with_answers_of_other_bytes(data: bytes) -> None:
    storage = EtcdStorage(Settings(("http://127.0.0.1:1",)))

    class Wrong:
        async def call(self, *args: Any, **options: Any) -> bytes:
            return data

    class Anywhere:
        revision = 2**63

    storage._connection = Wrong()  # type: ignore[assignment]
    storage._following = Anywhere()  # type: ignore[assignment]
    key = "/registry/a/b"
    for call in (
        lambda: storage.get(key),
        lambda: storage.list("/registry/a/"),
        lambda: storage.create(key, b""),
        lambda: storage.update(key, b"", expected=1),
        lambda: storage.sync(),
        lambda: storage.turn("k", 1, b""),
    ):
        try:
            await call()
        except StorageError:
            pass


def event(key: bytes, revision: int, *, kind: int = 0) -> dict[str, Any]:
    return {"type": kind, "kv": {"key": key, "mod_revision": revision, "create_revision": revision, "value": b"v"}}


async def test_pieces_of_a_revision_are_put_together() -> None:
    """An answer in pieces may be cut within a revision, which is told when all of it is there."""
    first = {"fragment": True, "events": [event(b"/registry/a", 5), event(b"/registry/b", 6)]}
    second = {"fragment": True, "events": [event(b"/registry/c", 6)]}
    last = {"events": [event(b"/registry/d", 6), event(b"/other/e", 7)]}
    made = stream(*(messages.encode(messages.WATCH_RESPONSE, tree) for tree in (first, second, last)))
    told = [await made.next() for _ in range(3)]
    assert [([e.key for e in events], revision) for events, revision in told] == [
        (["/registry/a"], 5),
        ([], 5),
        (["/registry/b", "/registry/c", "/registry/d"], 7),
    ]


async def test_progress_and_the_end() -> None:
    progress = {"header": {"revision": 9}}
    created = {"header": {"revision": 9}, "created": True}
    made = stream(*(messages.encode(messages.WATCH_RESPONSE, tree) for tree in (created, progress)))
    assert [await made.next(), await made.next()] == [([], 0), ([], 9)]
    with pytest.raises(StreamEndedError, match="over"):
        await made.next()
    compacted = messages.encode(messages.WATCH_RESPONSE, {"canceled": True, "compact_revision": 7})
    with pytest.raises(StreamEndedError) as caught:
        await stream(compacted).next()
    assert caught.value.compacted == 7


def test_keys_below_a_prefix() -> None:
    names = Names("/registry/", "/cluster/one/")
    assert names.key("/registry/pods/ä") == "/cluster/one/pods/ä".encode()
    assert names.name("/cluster/one/pods/ä".encode()) == "/registry/pods/ä"
    assert names.name(b"/cluster/two/pods") is None
    assert names.name(b"/cluster/one/\xff") is None
    assert names.span("/registry/pods/") == (b"/cluster/one/pods/", b"/cluster/one/pods0")
    assert names.span("/") == names.span("/registry/") == (b"/cluster/one/", b"/cluster/one0")
    with pytest.raises(ValueError, match="not below"):
        names.key("/elsewhere/x")
    previous = {"key": b"/cluster/one/a", "mod_revision": 3, "create_revision": 2, "value": b"old"}
    gone = names.event({"type": 1, "kv": {"key": b"/cluster/one/a", "mod_revision": 4}, "prev_kv": previous})
    assert gone == Event("/registry/a", 4, None, KeyValue("/registry/a", b"old", 2, 3))


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_the_end_of_a_prefix_is_the_least_above_it(prefix: bytes, rest: bytes) -> None:
    end = messages.range_end(prefix)
    assert end == b"\0" or (prefix + rest < end and not end.startswith(prefix))


@pytest.mark.parametrize(
    ("version", "sound"),
    [("3.5.1", False), ("3.5.8", True), ("3.6.0", True), ("3.4.25", True), ("3.4.3", False), ("3.3.30", False),
     ("4.0.0", True), ("3.5.13-rc.1", True), ("", False), ("new", False)],
)  # fmt: skip
def test_which_etcd_tells_progress_in_order(version: str, sound: bool) -> None:
    assert tells_progress(version) is sound


def test_endpoints() -> None:
    assert [wrong_endpoint(text) for text in ("http://a:1", "https://[::1]:2379", "https://a.b/")] == ["", "", ""]
    for text in (
        "a:1",
        "ftp://a",
        "http://",
        "http://a:99999",
        "http://a/b",
        "http://u@a",
        "http://a:0",
        "http://[::1",
    ):
        assert wrong_endpoint(text), text
    assert target("http://10.0.0.1") == ("ipv4:10.0.0.1:2379", False)
    assert target("https://[::1]:1") == ("ipv6:[::1]:1", True)
    assert target("https://etcd.local:1") == ("dns:///etcd.local:1", True)
    assert [physical_root(text) for text in ("/registry", "a/b/", "", "/")] == ["/registry/", "/a/b/", "/", "/"]
