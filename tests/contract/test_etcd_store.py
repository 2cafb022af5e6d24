"""What the etcd store does beyond the contract, against a real etcd: others that write, holes, endpoints, TLS, leases."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509

from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.etcd.compaction import TurnCompactor
from fastapi_core.storage.etcd.settings import Settings
from fastapi_core.storage.etcd.store import EtcdStorage
from fastapi_core.storage.interface import Code, Storage, StorageError
from fastapi_core.testing.storage_harness import Recorder, refused
from tests.fixtures.etcd import Etcd, free_port
from tests.fixtures.pki import authority
from tests.fixtures.relay import Relay

PREFIX = "/registry/configmaps/"
BODY = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"%s"},"data":{"n":"%d"}}'
_numbers = itertools.count()


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    etcd = Etcd(tmp_path_factory.mktemp("etcd"))
    etcd.start()
    yield etcd
    etcd.kill()


class Stores:
    """Opens stores of one folder and closes them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.open: list[EtcdStorage] = []

    async def one(self, **changes: object) -> EtcdStorage:
        storage = EtcdStorage(replace(self.settings, **changes))  # type: ignore[arg-type]
        await storage.open()
        self.open.append(storage)
        return storage


@pytest.fixture
async def stores(etcd: Etcd) -> AsyncIterator[Stores]:
    stores = Stores(Settings((etcd.url,), prefix=f"/t{next(_numbers)}/", patience=10.0))
    yield stores
    for storage in stores.open:
        await storage.close()


def body(name: str, number: int = 1) -> bytes:
    return BODY % (name.encode(), number)


async def test_what_another_writes_is_seen(stores: Stores) -> None:
    first, second = await stores.one(), await stores.one()
    recorder = Recorder(second)
    created = await first.create(PREFIX + "a", b"1")
    updated = await first.update(PREFIX + "a", b"2", expected=created)
    assert await second.sync() >= updated
    assert [event.revision for event in recorder.events] == [created, updated]
    error = await refused(Code.CONFLICT, second.update(PREFIX + "a", b"3", expected=created))
    assert error.revision == updated
    deleted = await second.delete(PREFIX + "a", expected=updated)
    await first.sync()
    assert first.revision >= deleted
    assert await first.get(PREFIX + "a") is None


@pytest.fixture(params=["all keys", "word of progress"])
def watching(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to learn that a revision has come. (The etcd of these tests is one of those whose word of progress may be
    early, but only while there is something to tell.)"""
    monkeypatch.setattr("fastapi_core.storage.etcd.following.tells_progress", lambda _: request.param != "all keys")


async def test_history_ends_where_it_should(stores: Stores) -> None:
    ours, others = await stores.one(), await stores.one(prefix=f"/other{next(_numbers)}/")
    base = ours.revision
    written = [await ours.create(f"{PREFIX}{number}", b"") for number in range(5)]
    other = [await others.create(f"{PREFIX}{number}", b"") for number in range(5)]
    await ours.sync()
    events = await ours.history(PREFIX, after=base, until=other[-1])
    assert [event.revision for event in events] == written
    assert [event.revision for event in await ours.history("", after=written[1], until=written[3])] == written[2:4]
    assert await ours.history(PREFIX, after=written[-1], until=other[2]) == []


@pytest.mark.usefixtures("watching")
async def test_revisions_of_other_folders_are_waited_for_without_events(stores: Stores) -> None:
    """A consistent read waits for a revision that no event of ours brings."""
    ours, others = await stores.one(), await stores.one(prefix=f"/other{next(_numbers)}/")
    cacher = Cacher(ours, remote=True)
    await cacher.open()
    recorder = Recorder(ours)
    for number in range(3):
        revision = await others.create(f"{PREFIX}{number}", b"{}")
        assert await ours.sync() >= revision
        pending = cacher.fresh()
        assert pending is not None
        await pending
        assert cacher.revision >= revision
        assert (await ours.list("/registry/")).revision >= revision
    assert recorder.events == []
    await cacher.close()


async def test_a_cut_watch_goes_on_without_a_hole(etcd: Etcd, stores: Stores) -> None:
    relay = Relay(etcd.port)
    await relay.open()
    ours, others = await stores.one(endpoints=(relay.url,)), await stores.one()
    recorder = Recorder(ours)
    written = []
    for round_ in range(3):
        written.append(await others.create(f"{PREFIX}{round_}-a", b""))
        await relay.cut()
        written += [await others.create(f"{PREFIX}{round_}-{n}", b"") for n in range(5)]
        await relay.open()
        written.append(await ours.create(f"{PREFIX}{round_}-b", b""))
    assert [event.revision for event in recorder.events] == written
    await ours.close()
    await relay.cut()


async def test_a_compacted_hole_is_told_and_the_cache_lists_anew(etcd: Etcd, stores: Stores) -> None:
    relay = Relay(etcd.port)
    await relay.open()
    ours, others = await stores.one(endpoints=(relay.url,)), await stores.one()
    cacher = Cacher(ours, remote=True)
    cache = cacher.resource(PREFIX)
    revisions = {name: await others.create(PREFIX + name, body(name)) for name in ("kept", "changed", "gone")}
    unclaimed = await others.create("/registry/things/x", body("x"))
    await cacher.open()
    inside: list[tuple[str, str]] = []
    ends: list[int] = []
    cache.watch(since=cacher.revision, deliver=lambda es: inside.extend((e.type, e.change.object.name) for e in es))
    cache.watch(since=cacher.revision, deliver=lambda events: None, lost=ends.append)
    before = cacher.revision
    await relay.cut()
    await others.update(PREFIX + "changed", body("changed", 2), expected=revisions["changed"])
    await others.delete(PREFIX + "gone", expected=revisions["gone"])
    await others.delete("/registry/things/x", expected=unclaimed)
    newest = await others.create(PREFIX + "new", body("new"))
    await others.compact(newest)
    await relay.open()
    pending = cacher.fresh()
    assert pending is not None
    await pending
    assert [obj.name for obj in cache.list().objects] == ["changed", "kept", "new"]
    assert cache.list().objects[0].tree()["data"] == {"n": "2"}
    assert sorted(inside) == [("ADDED", "new"), ("DELETED", "gone"), ("MODIFIED", "changed")]
    assert cacher.revision >= newest
    assert len(ends) == 1
    assert cacher.resource("/registry/things/").count() == 0
    answer = cache.watch(since=before, deliver=lambda events: None)
    assert isinstance(answer, Awaitable)
    await refused(Code.COMPACTED, answer)
    # And it goes on from there.
    await ours.create(PREFIX + "later", body("later"))
    assert inside[-1] == ("ADDED", "later")
    await cacher.close()
    await ours.close()
    await relay.cut()


async def test_another_endpoint_is_used_while_one_is_gone(etcd: Etcd, stores: Stores) -> None:
    relay = Relay(etcd.port)
    await relay.open()
    gone = f"http://127.0.0.1:{free_port()}"
    storage = await stores.one(endpoints=(gone, relay.url, etcd.url))
    recorder = Recorder(storage)
    first = await storage.create(PREFIX + "1", b"")
    assert relay.connections
    await relay.cut()
    # A write that is sent down the way that has just been cut may fail: nobody knows what has become of it.
    await asyncio.wait_for(_until_it_answers(storage), 10)
    second = await storage.create(PREFIX + "2", b"")
    assert [event.revision for event in recorder.events] == [first, second]


async def test_nobody_there(stores: Stores) -> None:
    gone = f"http://127.0.0.1:{free_port()}"
    storage = EtcdStorage(replace(stores.settings, endpoints=(gone,), opening=0.2))
    error = await refused(Code.TIMEOUT, storage.open())
    assert "etcd does not answer" in str(error)
    await storage.close()


async def test_an_outage_fails_writes_with_what_the_reference_says(etcd: Etcd, stores: Stores) -> None:
    relay = Relay(etcd.port)
    await relay.open()
    storage = await stores.one(endpoints=(relay.url,), patience=0.3, check_seconds=0.1)
    await relay.cut()
    await refused(Code.TIMEOUT, storage.create(PREFIX + "1", b""))
    with pytest.raises(StorageError):
        await storage.check()
    await relay.open()
    await asyncio.wait_for(_until_it_answers(storage), 10)
    assert await storage.get(PREFIX + "1") is None
    await storage.close()
    await relay.cut()


async def _until_it_answers(storage: Storage) -> None:
    while True:
        try:
            return await storage.check()
        except StorageError:
            await asyncio.sleep(0.01)


async def test_keys_of_one_time_to_live_share_a_lease(stores: Stores) -> None:
    storage = await stores.one()
    granted = []
    grant = storage._grant

    async def counted(seconds: int) -> int:
        granted.append(seconds)
        return await grant(seconds)

    storage._leases._grant = counted
    await asyncio.gather(*(storage.create(f"{PREFIX}{n}", b"", ttl=3600) for n in range(20)))
    await storage.create(PREFIX + "short", b"", ttl=7)
    assert sorted(granted) == [7, 3660]


async def test_a_lease_that_is_gone_is_replaced(stores: Stores) -> None:
    storage = await stores.one()
    await storage.create(PREFIX + "1", b"", ttl=3600)
    (known,) = storage._leases._known.values()
    lost: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    lost.set_result(4711)
    known.number = lost
    await storage.create(PREFIX + "2", b"", ttl=3600)
    assert await storage.get(PREFIX + "2") is not None


async def test_one_of_several_compacts(stores: Stores) -> None:
    first, second = await stores.one(), await stores.one()
    one, other = TurnCompactor(first), TurnCompactor(second)
    await one.tick()
    await other.tick()
    turns = []
    for number in range(4):
        await first.create(f"{PREFIX}{number}", b"")
        compacted = first.compacted, second.compacted
        turns.append((await one.tick(), await other.tick()))
        assert one.last_error is None
        assert other.last_error is None
        assert (first.compacted, second.compacted) != compacted or not any(turns[-1])
    assert all(sum(turn) == 1 for turn in turns[1:])
    third = await stores.one()
    assert third.compacted == max(first.compacted, second.compacted) > 0


async def test_tls_with_client_certificates(stores: Stores, tmp_path: Path) -> None:
    ca, stranger = authority("etcd-ca"), authority("another")
    local = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    cert, key = ca.issue("etcd", names=local, server=True).write(tmp_path, "server")
    roots, _ = ca.write(tmp_path, "ca")
    own_cert, own_key = ca.issue("client").write(tmp_path, "client")
    bad_cert, bad_key = stranger.issue("client").write(tmp_path, "stranger")
    flags = ["--cert-file", cert, "--key-file", key, "--client-cert-auth", "--trusted-ca-file", roots]
    secure = Etcd(tmp_path / "etcd", flags=flags, scheme="https")
    secure.start()
    try:
        files = {"ca_file": roots, "cert_file": own_cert, "key_file": own_key, "endpoints": (secure.url,)}
        storage = await stores.one(**files)
        assert await storage.create(PREFIX + "1", b"x") > 0
        for wrong in ({"cert_file": bad_cert, "key_file": bad_key}, {"ca_file": stranger.write(tmp_path, "no")[0]}):
            refusing = EtcdStorage(replace(stores.settings, **{**files, **wrong, "opening": 0.5}))  # type: ignore[arg-type]
            with pytest.raises(StorageError):
                await refusing.open()
        missing = EtcdStorage(replace(stores.settings, endpoints=(secure.url,), ca_file=str(tmp_path / "none")))
        with pytest.raises(StorageError, match="none cannot be read"):
            await missing.open()
        await storage.close()
    finally:
        secure.kill()


async def test_objects_that_were_stored_as_protobuf_are_read(stores: Stores) -> None:
    """As the reference stores them, before the start and after."""
    from fastapi_core.codec.protobuf import document
    from fastapi_core.schema.tables import type_of

    tree = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "p"}, "data": {"a": "b"}}
    message = document(type_of("core/v1.ConfigMap"), tree)
    others = await stores.one()
    created = await others.create(PREFIX + "ns/before", message)
    await others.create(PREFIX + "ns/broken", b"k8s\0\xff")
    storage = await stores.one()
    cacher = Cacher(storage, remote=True)
    cache = cacher.resource(PREFIX)
    await cacher.open()
    await others.create(PREFIX + "ns/after", message)
    await others.create(PREFIX + "ns/text", body("text") + b"\n")
    pending = cacher.fresh()
    assert pending is not None
    await pending
    for name in ("before", "after"):
        obj = cache.get(f"{PREFIX}ns/{name}")
        assert obj is not None
        assert obj.tree()["data"] == {"a": "b"}
        assert obj.tree()["kind"] == "ConfigMap"
    before = cache.get(PREFIX + "ns/before")
    assert before is not None
    assert before.revision == created
    assert cache.get(PREFIX + "ns/text") is not None
    with pytest.raises(StorageError):
        cache.get(PREFIX + "ns/broken")
    await cacher.close()
