"""The contract of `Storage` as tests, for every back end, ours and others'.

Use it from a test module (pytest with pytest-asyncio in auto mode):

    pytest.register_assert_rewrite("fastapi_core.testing")  # in conftest.py, for readable failures

    class TestMine(storage_suite.StorageSuite):
        @pytest.fixture
        async def harness(self, tmp_path):
            harness = MyHarness(tmp_path)
            yield harness
            await harness.end()

`StorageSuite` is all of it; the parts can be taken one by one. `Harness` says what a harness has to do.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from fastapi_core.storage.interface import Code, Event, KeyValue, Page, Storage, StorageError
from fastapi_core.storage.keys import MAX_REQUEST_BYTES
from fastapi_core.testing.storage_harness import (
    PATIENCE,
    Harness,
    Recorder,
    StorageTests,
    accepted,
    in_time,
    random_write,
    refused,
)
from fastapi_core.testing.storage_history_suite import CompactSuite, EventSuite, ListSuite

__all__ = [
    "CompactSuite",
    "EventSuite",
    "ExpirySuite",
    "Harness",
    "ListSuite",
    "RestartSuite",
    "StorageSuite",
    "WriteSuite",
]


class WriteSuite(StorageTests):
    """create, update, delete, get."""

    async def test_empty_store_has_a_positive_revision(self, storage: Storage) -> None:
        assert storage.revision >= 1
        assert await storage.list("/") == Page([], storage.revision, 0)

    async def test_create_get(self, storage: Storage) -> None:
        before = storage.revision
        revision = await storage.create("/a/1", b"one")
        assert revision == before + 1
        assert storage.revision == revision
        assert await storage.get("/a/1") == KeyValue("/a/1", b"one", revision, revision)

    async def test_get_of_nothing(self, storage: Storage) -> None:
        assert await storage.get("/a/1") is None

    async def test_create_existing(self, storage: Storage) -> None:
        revision = await storage.create("/a/1", b"one")
        error = await refused(Code.KEY_EXISTS, storage.create("/a/1", b"two"))
        assert (error.key, error.revision) == ("/a/1", revision)
        assert storage.revision == revision
        assert await storage.get("/a/1") == KeyValue("/a/1", b"one", revision, revision)

    async def test_update(self, storage: Storage) -> None:
        created = await storage.create("/a/1", b"one")
        revision = await storage.update("/a/1", b"two", expected=created)
        assert revision == created + 1
        assert await storage.get("/a/1") == KeyValue("/a/1", b"two", created, revision)

    async def test_update_conflict_tells_the_actual_revision(self, storage: Storage) -> None:
        created = await storage.create("/a/1", b"one")
        newer = await storage.update("/a/1", b"two", expected=created)
        for expected in (created, newer + 1, 0):
            error = await refused(Code.CONFLICT, storage.update("/a/1", b"three", expected=expected))
            assert (error.key, error.revision) == ("/a/1", newer)
        assert storage.revision == newer

    async def test_update_of_nothing(self, storage: Storage) -> None:
        before = storage.revision
        error = await refused(Code.KEY_NOT_FOUND, storage.update("/a/1", b"one", expected=before))
        assert error.key == "/a/1"
        assert storage.revision == before

    async def test_delete(self, storage: Storage) -> None:
        created = await storage.create("/a/1", b"one")
        assert await storage.delete("/a/1", expected=created) == created + 1
        assert storage.revision == created + 1
        assert await storage.get("/a/1") is None
        await refused(Code.KEY_NOT_FOUND, storage.delete("/a/1", expected=created))

    async def test_delete_conflict(self, storage: Storage) -> None:
        created = await storage.create("/a/1", b"one")
        newer = await storage.update("/a/1", b"two", expected=created)
        error = await refused(Code.CONFLICT, storage.delete("/a/1", expected=created))
        assert (error.key, error.revision) == ("/a/1", newer)
        assert await storage.get("/a/1") is not None

    async def test_created_again_is_a_new_object(self, storage: Storage) -> None:
        created = await storage.create("/a/1", b"one")
        deleted = await storage.delete("/a/1", expected=created)
        again = await storage.create("/a/1", b"two")
        assert again == deleted + 1
        assert await storage.get("/a/1") == KeyValue("/a/1", b"two", again, again)

    async def test_values_are_bytes_of_any_kind(self, storage: Storage) -> None:
        values = [b"", b"\0", bytes(range(256)), "ü€😀".encode(), b"x" * 100_000]
        for number, value in enumerate(values):
            await storage.create(f"/a/{number}", value)
        for number, value in enumerate(values):
            found = await storage.get(f"/a/{number}")
            assert found is not None
            assert found.value == value
        assert [item.value for item in (await storage.list("/a/")).items] == values

    async def test_size_limit(self, storage: Storage) -> None:
        before = storage.revision
        error = await refused(Code.TOO_LARGE, storage.create("/a/1", b"x" * MAX_REQUEST_BYTES))
        assert "request is too large" in str(error)
        assert storage.revision == before
        created = await storage.create("/a/1", b"x" * (MAX_REQUEST_BYTES - 10_000))
        await refused(Code.TOO_LARGE, storage.update("/a/1", b"x" * (MAX_REQUEST_BYTES + 1), expected=created))

    async def test_many_writers_of_one_key(self, storage: Storage) -> None:
        """Exactly one create wins; read-modify-write loops lose no increment."""

        async def create() -> bool:
            return await accepted(storage.create("/counter", b"0"), otherwise=Code.KEY_EXISTS)

        async def increment() -> None:
            while True:
                current = await storage.get("/counter")
                assert current is not None
                update = storage.update("/counter", b"%d" % (int(current.value) + 1), expected=current.revision)
                if await accepted(update, otherwise=Code.CONFLICT):
                    return

        assert sum(await asyncio.gather(*(create() for _ in range(20)))) == 1
        await asyncio.gather(*(increment() for _ in range(20)))
        current = await storage.get("/counter")
        assert current is not None
        assert current.value == b"20"

    async def test_refused_writes_do_not_touch_their_neighbours(self, storage: Storage, harness: Harness) -> None:
        """Writes issued together are judged in order, each on what those before it left."""
        if not harness.ordered:
            pytest.skip("this back end has no order of writes issued together")
        taken = await storage.create("/a/taken", b"0")
        results = await asyncio.gather(
            storage.create("/a/1", b"1"),
            storage.create("/a/taken", b"1"),
            storage.update("/a/taken", b"2", expected=taken),
            storage.delete("/a/taken", expected=taken),
            storage.create("/a/1", b"2"),
            storage.update("/a/none", b"3", expected=taken),
            storage.create("/a/2", b"4"),
            return_exceptions=True,
        )
        codes = [r.code if isinstance(r, StorageError) else r for r in results]
        assert codes == [
            taken + 1,
            Code.KEY_EXISTS,
            taken + 2,
            Code.CONFLICT,
            Code.KEY_EXISTS,
            Code.KEY_NOT_FOUND,
            taken + 3,
        ]
        page = await storage.list("/a/")
        assert [(i.key, i.value, i.revision) for i in page.items] == [
            ("/a/1", b"1", taken + 1),
            ("/a/2", b"4", taken + 3),
            ("/a/taken", b"2", taken + 2),
        ]

    async def test_cancelled_writer_leaves_the_store_in_order(self, storage: Storage) -> None:
        task = asyncio.ensure_future(storage.create("/a/1", b"1"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await storage.create("/a/2", b"2")
        found = await storage.get("/a/1")
        assert found is None or found.value == b"1"
        assert found is not None or task.cancelled()

    async def test_key_that_is_no_text_harms_nobody(self, storage: Storage) -> None:
        """A lone surrogate has no UTF-8 form; the caller is told, the writes beside it go on."""
        results = await asyncio.gather(
            storage.create("/a/1", b"1"),
            storage.create("/a/\ud800", b"2"),
            storage.delete("/a/\ud800", expected=1),
            storage.create("/a/3", b"3"),
            return_exceptions=True,
        )
        assert [type(r) for r in results] == [int, UnicodeEncodeError, UnicodeEncodeError, int]

    async def test_not_open(self, harness: Harness) -> None:
        storage = await harness.make()
        await storage.close()
        await storage.close()
        await refused(Code.UNAVAILABLE, storage.create("/a/1", b"1"))
        await refused(Code.UNAVAILABLE, storage.get("/a/1"))
        await refused(Code.UNAVAILABLE, storage.list("/a/"))
        await refused(Code.UNAVAILABLE, storage.check())

    async def test_close_commits_what_was_asked_for(self, harness: Harness) -> None:
        storage = await harness.make()
        tasks = [asyncio.ensure_future(storage.create(f"/a/{n}", b"x")) for n in range(50)]
        await asyncio.sleep(0)
        await storage.close()
        assert len(set(await asyncio.gather(*tasks))) == 50

    async def test_healthy(self, storage: Storage) -> None:
        await storage.check()
        revision = await storage.create("/a/1", b"1")
        await storage.check()
        assert await storage.sync() == revision


class ExpirySuite(StorageTests):
    """Time to live."""

    async def test_expired_key_is_deleted_as_a_change(self, storage: Storage, harness: Harness) -> None:
        recorder = Recorder(storage)
        stays = await storage.create("/a/stays", b"")
        created = await storage.create("/a/1", b"one", ttl=harness.ttl)
        events = await recorder.wait(3)
        assert events[2] == Event("/a/1", created + 1, None, KeyValue("/a/1", b"one", created, created))
        page = await storage.list("/a/")
        assert [(i.key, i.revision) for i in page.items] == [("/a/stays", stays)]

    async def test_update_without_ttl_keeps_the_key(self, storage: Storage, harness: Harness) -> None:
        recorder = Recorder(storage)
        # Long enough that the update is in time; what ends after it shows that its time has passed.
        kept = await storage.create("/a/kept", b"", ttl=in_time(harness.ttl))
        await storage.update("/a/kept", b"", expected=kept)
        await storage.create("/a/gone", b"", ttl=in_time(harness.ttl) + harness.ttl)
        events = await recorder.wait(4)
        assert events[3].key == "/a/gone"
        assert await storage.get("/a/kept") is not None

    async def test_update_sets_the_ttl(self, storage: Storage, harness: Harness) -> None:
        recorder = Recorder(storage)
        created = await storage.create("/a/1", b"", ttl=3600)
        await storage.update("/a/1", b"", expected=created, ttl=harness.ttl)
        events = await recorder.wait(3)
        assert events[2].value is None

    async def test_created_again_starts_without_the_old_ttl(self, storage: Storage, harness: Harness) -> None:
        recorder = Recorder(storage)
        created = await storage.create("/a/1", b"", ttl=in_time(harness.ttl))
        await storage.delete("/a/1", expected=created)
        await storage.create("/a/1", b"")
        await storage.create("/a/2", b"", ttl=in_time(harness.ttl) + harness.ttl)
        events = await recorder.wait(5)
        assert events[4].key == "/a/2"
        assert await storage.get("/a/1") is not None

    async def test_many_expire(self, storage: Storage, harness: Harness) -> None:
        recorder = Recorder(storage)
        await asyncio.gather(*(storage.create(f"/a/{n}", b"", ttl=harness.ttl) for n in range(600)))
        events = await recorder.wait(1200)
        assert sum(event.value is None for event in events) == 600
        assert [e.revision for e in events] == list(range(events[0].revision, events[0].revision + 1200))
        assert (await storage.list("/a/")).items == []


class RestartSuite(StorageTests):
    """A store closed and opened again."""

    @pytest.fixture
    def restartable(self, harness: Harness) -> Harness:
        if not harness.durable:
            pytest.skip("this back end keeps nothing")
        return harness

    async def test_state_history_and_revision_survive(self, storage: Storage, restartable: Harness) -> None:
        recorder = Recorder(storage)
        base = storage.revision
        state: dict[str, KeyValue] = {}
        rng = random.Random(5)
        for _ in range(40):
            await random_write(storage, state, rng, keys=6)
        newest = storage.revision
        again = await restartable.restart(storage)
        assert again.revision == newest
        assert await again.list("/k/") == Page([state[key] for key in sorted(state)], newest, 0)
        assert await again.history("", after=base, until=newest) == recorder.events
        assert await again.create("/new", b"") == newest + 1

    async def test_revision_survives_full_compaction(self, storage: Storage, restartable: Harness) -> None:
        created = await storage.create("/a/1", b"")
        newest = await storage.delete("/a/1", expected=created)
        await storage.compact(newest)
        again = await restartable.restart(storage)
        assert (again.revision, again.compacted) == (newest, newest)
        await refused(Code.COMPACTED, again.history("", after=newest - 1, until=newest))
        assert await again.create("/a/1", b"") == newest + 1

    async def test_ttl_survives(self, storage: Storage, restartable: Harness) -> None:
        created = await storage.create("/a/1", b"one", ttl=restartable.ttl)
        await storage.create("/a/2", b"two", ttl=3600)
        again = await restartable.restart(storage)
        recorder = Recorder(again)
        # It may have ended before the restart, after it, or in between: always as one deletion.
        async with asyncio.timeout(PATIENCE):
            while await again.get("/a/1") is not None:
                await recorder.wait(1)
        events = await again.history("/a/1", after=created, until=again.revision)
        assert [event.value for event in events] == [None]
        assert await again.get("/a/2") is not None


class StorageSuite(WriteSuite, ListSuite, EventSuite, CompactSuite, ExpirySuite, RestartSuite):
    """The whole contract."""
