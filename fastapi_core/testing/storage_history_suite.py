"""The part of the storage contract about lists, events and history; taken through `storage_suite`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from fastapi_core.storage.interface import Code, Event, KeyValue, Page, Storage
from fastapi_core.testing.storage_harness import PATIENCE, Recorder, StorageTests, random_write, refused


class ListSuite(StorageTests):
    """list: ranges, pages, past revisions."""

    async def test_key_order_is_bytewise(self, storage: Storage) -> None:
        keys = ["/a/b", "/a/B", "/a/b/c", "/a/b-c", "/a/é", "/a/😀", "/a/\ud7ff", "/a/\ue000", "/a/1", "/a/10"]
        for key in random.Random(0).sample(keys, len(keys)):
            await storage.create(key, key.encode())
        page = await storage.list("/a/")
        assert [item.key for item in page.items] == sorted(keys, key=str.encode)

    async def test_prefix_is_a_string_prefix(self, storage: Storage) -> None:
        names = ("pods/a/1", "pods/a/2", "pods/ab/1", "pods/a", "podsx/a/1", "pod", "pods/b/1", "pods/\ud7ff1")
        for name in names:
            await storage.create("/" + name, b"")

        async def keys(prefix: str) -> list[str]:
            return [item.key for item in (await storage.list(prefix)).items]

        assert await keys("/pods/a/") == ["/pods/a/1", "/pods/a/2"]
        assert await keys("/pods/a") == ["/pods/a", "/pods/a/1", "/pods/a/2", "/pods/ab/1"]
        assert len(await keys("/pods/")) == 6
        assert len(await keys("")) == 8
        assert await keys("/pods/\ud7ff") == ["/pods/\ud7ff1"]
        assert await keys("/pods/a/1") == ["/pods/a/1"]
        assert await keys("/none/") == []

    async def test_start(self, storage: Storage) -> None:
        for number in range(5):
            await storage.create(f"/a/{number}", b"")
        await storage.create("/b/0", b"")
        assert [i.key for i in (await storage.list("/a/", start="/a/2")).items] == ["/a/2", "/a/3", "/a/4"]
        assert [i.key for i in (await storage.list("/a/", start="/a/2\0")).items] == ["/a/3", "/a/4"]
        assert [i.key for i in (await storage.list("/a/", start="/0")).items] == [f"/a/{n}" for n in range(5)]
        assert (await storage.list("/a/", start="/b")).items == []

    async def test_pages(self, storage: Storage) -> None:
        for number in range(10):
            await storage.create(f"/a/{number}", b"")
        await storage.create("/b/0", b"")
        for limit in (1, 3, 5, 10, 11):
            seen: list[str] = []
            start = ""
            while True:
                page = await storage.list("/a/", start=start, limit=limit)
                seen += [item.key for item in page.items]
                assert len(page.items) <= limit
                assert page.remaining == 10 - len(seen)
                if not page.remaining:
                    break
                start = page.items[-1].key + "\0"
            assert seen == [f"/a/{n}" for n in range(10)]

    async def test_past(self, storage: Storage) -> None:
        """Every revision still in the history can be listed as it was."""
        states: dict[int, dict[str, KeyValue]] = {storage.revision: {}}
        state: dict[str, KeyValue] = {}
        rng = random.Random(7)
        for _ in range(60):
            await random_write(storage, state, rng, keys=8)
            states[storage.revision] = dict(state)
        for revision, then in states.items():
            page = await storage.list("/k/", revision=revision)
            assert page == Page([then[key] for key in sorted(then)], revision, 0)
            first = await storage.list("/k/", revision=revision, limit=3)
            rest = await storage.list("/k/", revision=revision, start="/k/3")
            assert first.items == page.items[:3]
            assert first.remaining == max(0, len(then) - 3)
            assert rest.items == [item for item in page.items if item.key >= "/k/3"]

    async def test_future(self, storage: Storage) -> None:
        revision = await storage.create("/a/1", b"")
        error = await refused(Code.FUTURE_REVISION, storage.list("/a/", revision=revision + 1))
        assert error.revision == revision

    async def test_page_is_not_ahead_of_listeners(self, storage: Storage) -> None:
        recorder = Recorder(storage)
        running = True

        async def write() -> None:
            number = 0
            while running:
                number += 1
                await storage.create(f"/a/{number}", b"")
                await asyncio.sleep(0)

        writers = [asyncio.ensure_future(write())]
        base = storage.revision
        for _ in range(30):
            page = await storage.list("/a/")
            heard = recorder.events[-1].revision if recorder.events else base
            assert page.revision <= heard
            assert page.revision <= storage.revision
            await asyncio.sleep(0)
        running = False
        await asyncio.wait_for(asyncio.gather(*writers), PATIENCE)


class EventSuite(StorageTests):
    """listen and history."""

    async def test_event_before_return(self, storage: Storage) -> None:
        recorder = Recorder(storage)
        created = await storage.create("/a/1", b"one")
        first = KeyValue("/a/1", b"one", created, created)
        assert recorder.events == [Event("/a/1", created, first, None)]
        updated = await storage.update("/a/1", b"two", expected=created)
        second = KeyValue("/a/1", b"two", created, updated)
        assert recorder.events[1:] == [Event("/a/1", updated, second, first)]
        deleted = await storage.delete("/a/1", expected=updated)
        assert recorder.events[2:] == [Event("/a/1", deleted, None, second)]

    async def test_revision_is_set_before_listeners_hear(self, storage: Storage) -> None:
        seen: list[tuple[int, int]] = []
        storage.listen(lambda events: seen.append((events[-1].revision, storage.revision)))
        await storage.create("/a/1", b"")
        assert all(a == b for a, b in seen)

    async def test_no_event_for_refused_writes(self, storage: Storage) -> None:
        await storage.create("/a/1", b"one")
        recorder = Recorder(storage)
        await refused(Code.KEY_EXISTS, storage.create("/a/1", b"two"))
        await refused(Code.CONFLICT, storage.update("/a/1", b"two", expected=1_000))
        await refused(Code.KEY_NOT_FOUND, storage.delete("/a/2", expected=1))
        assert recorder.events == []

    async def test_every_listener_hears_everything_in_order(self, storage: Storage) -> None:
        recorders = [Recorder(storage) for _ in range(3)]
        base = storage.revision

        async def writer(name: int) -> None:
            for number in range(10):
                revision = await storage.create(f"/a/{name}/{number}", b"")
                for recorder in recorders:
                    assert recorder.events[-1].revision >= revision

        await asyncio.gather(*(writer(n) for n in range(16)))
        for recorder in recorders:
            assert [e.revision for e in recorder.events] == list(range(base + 1, base + 161))
            assert all(batch for batch in recorder.batches)

    async def test_stopped_listener_hears_no_more(self, storage: Storage) -> None:
        first, second = Recorder(storage), Recorder(storage)
        await storage.create("/a/1", b"")
        first.stop()
        first.stop()
        await storage.create("/a/2", b"")
        assert [len(r.events) for r in (first, second)] == [1, 2]

    async def test_failing_listener_harms_nobody(self, storage: Storage) -> None:
        reported: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))

        def fail(events: Sequence[Event]) -> None:
            raise ValueError("broken listener")

        storage.listen(fail)
        recorder = Recorder(storage)
        await storage.create("/a/1", b"")
        loop.set_exception_handler(None)
        assert len(recorder.events) == 1
        assert [type(error) for error in reported] == [ValueError]

    async def test_history_is_what_listeners_heard(self, storage: Storage) -> None:
        recorder = Recorder(storage)
        base = storage.revision
        state: dict[str, KeyValue] = {}
        rng = random.Random(3)
        for _ in range(50):
            await random_write(storage, state, rng, keys=6)
        newest = storage.revision
        assert await storage.history("", after=base, until=newest) == recorder.events
        for after in range(base, newest, 7):
            for until in (after, after + 5, newest):
                expected = [e for e in recorder.events if after < e.revision <= until]
                assert await storage.history("/k/", after=after, until=until) == expected
        some = [e for e in recorder.events if e.key.startswith("/k/1")]
        assert await storage.history("/k/1", after=base, until=newest) == some
        assert await storage.history("/none/", after=base, until=newest) == []
        assert await storage.history("", after=newest - 1, until=2**70) == recorder.events[-1:]
        assert await storage.history("", after=newest, until=newest - 5) == []


class CompactSuite(StorageTests):
    """compact."""

    async def test_history_below_is_gone(self, storage: Storage) -> None:
        recorder = Recorder(storage)
        base = storage.revision
        state: dict[str, KeyValue] = {}
        rng = random.Random(11)
        states = {}
        for _ in range(40):
            await random_write(storage, state, rng, keys=5)
            states[storage.revision] = dict(state)
        newest = storage.revision
        middle = base + 20
        await storage.compact(middle)
        assert storage.compacted == middle
        error = await refused(Code.COMPACTED, storage.history("", after=middle - 1, until=newest))
        assert error.revision == middle
        error = await refused(Code.COMPACTED, storage.list("", revision=middle - 1))
        assert error.revision == middle
        assert await storage.history("", after=middle, until=newest) == recorder.events[20:]
        for revision in range(middle, newest + 1):
            then = states[revision]
            assert (await storage.list("/k/", revision=revision)).items == [then[key] for key in sorted(then)]
        assert storage.revision == newest

    async def test_current_state_stays(self, storage: Storage) -> None:
        first = await storage.create("/a/1", b"one")
        second = await storage.create("/a/2", b"two")
        gone = await storage.create("/a/3", b"three")
        newest = await storage.delete("/a/3", expected=gone)
        await storage.compact(newest)
        page = await storage.list("/a/")
        assert page.items == [KeyValue("/a/1", b"one", first, first), KeyValue("/a/2", b"two", second, second)]
        assert page.revision == newest
        assert await storage.history("", after=newest, until=newest) == []
        recorder = Recorder(storage)
        updated = await storage.update("/a/1", b"new", expected=first)
        assert updated == newest + 1
        assert recorder.events[0].previous == KeyValue("/a/1", b"one", first, first)
        assert await storage.history("", after=newest, until=updated) == recorder.events

    async def test_compacting_again_or_less_changes_nothing(self, storage: Storage) -> None:
        for number in range(5):
            await storage.create(f"/a/{number}", b"")
        await storage.compact(storage.revision - 1)
        compacted = storage.compacted
        await storage.compact(compacted)
        await storage.compact(compacted - 2)
        assert storage.compacted == compacted

    async def test_future(self, storage: Storage) -> None:
        before = storage.compacted
        error = await refused(Code.FUTURE_REVISION, storage.compact(storage.revision + 1))
        assert error.revision == storage.revision
        assert storage.compacted == before

    async def test_with_writes_going_on(self, storage: Storage) -> None:
        recorder = Recorder(storage)
        base = storage.revision

        async def writer(name: int) -> None:
            revision = await storage.create(f"/a/{name}", b"0")
            for number in range(30):
                revision = await storage.update(f"/a/{name}", b"%d" % number, expected=revision)

        async def compactor() -> None:
            for _ in range(5):
                await asyncio.sleep(0)
                await storage.compact(max(storage.compacted, storage.revision - 10))

        await asyncio.gather(compactor(), *(writer(n) for n in range(8)))
        assert [e.revision for e in recorder.events] == list(range(base + 1, base + 8 * 31 + 1))
        kept = storage.compacted
        expected = [e for e in recorder.events if e.revision > kept]
        assert await storage.history("", after=kept, until=storage.revision) == expected
