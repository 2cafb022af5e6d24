"""kill -9 under load: what was acknowledged is there, revisions go on, history has no hole."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from fastapi_core.storage.interface import Event, KeyValue
from fastapi_core.storage.keys import FIRST_REVISION
from fastapi_core.storage.sqlite.settings import Settings
from fastapi_core.storage.sqlite.store import SqliteStorage

pytestmark = pytest.mark.adversity

ROUNDS = 8

#: Writers that create, update and delete their own keys and say so after each acknowledgement; compaction runs along.
#: A line is one `write` of less than PIPE_BUF, so a line that arrives is whole.
CHILD = """
import asyncio, os, random, sys
from pathlib import Path
from fastapi_core.storage.sqlite.settings import Settings
from fastapi_core.storage.sqlite.store import SqliteStorage

async def writer(storage, name, seed):
    rng = random.Random(seed)
    number = 0
    while True:
        number += 1
        key = f"/k/{name}/{number}"
        value = f"{name}.{number}".encode() + b"." * rng.choice((0, 300, 6000))
        revision = await storage.create(key, value)
        os.write(1, f"{revision} {key} {len(value)}\\n".encode())
        for _ in range(rng.randrange(4)):
            value += b"+"
            revision = await storage.update(key, value, expected=revision)
            os.write(1, f"{revision} {key} {len(value)}\\n".encode())
        if rng.random() < 0.5:
            revision = await storage.delete(key, expected=revision)
            os.write(1, f"{revision} {key} -1\\n".encode())

async def compactor(storage, lowest):
    while True:
        await asyncio.sleep(0.02)
        await storage.compact(max(storage.compacted, lowest, storage.revision - 500))

async def main():
    storage = SqliteStorage(Settings(Path(sys.argv[1])))
    await storage.open()
    os.write(1, f"open {storage.revision}\\n".encode())
    seed = int(sys.argv[2])
    await asyncio.gather(compactor(storage, 1), *(writer(storage, f"{seed}-{n}", seed * 100 + n) for n in range(24)))

asyncio.run(main())
"""


async def run_and_kill(directory: Path, seed: int, rng: random.Random) -> tuple[int, dict[int, tuple[str, int]]]:
    """One round; returns the revision the child began with and what it acknowledged: revision -> (key, length)."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, str(directory), str(seed), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    first = await asyncio.wait_for(process.stdout.readline(), 30)
    began = int(first.split()[1])
    # By amount of work and not by time, so that a slow machine tests as much; any moment of a commit is as likely.
    lines = [await asyncio.wait_for(process.stdout.readline(), 30) for _ in range(rng.randrange(50, 3000))]
    os.kill(process.pid, signal.SIGKILL)
    lines += (await asyncio.wait_for(process.stdout.read(), 30)).splitlines()
    assert await process.wait() == -signal.SIGKILL
    acknowledged = {}
    for line in lines:
        revision, key, length = line.decode().split()
        acknowledged[int(revision)] = (key, int(length))
    assert len(acknowledged) == len(lines)
    return began, acknowledged


def replay(events: list[Event], state: dict[str, KeyValue]) -> None:
    for event in events:
        assert event.previous == state.get(event.key)
        if event.value is None:
            del state[event.key]
        else:
            state[event.key] = event.value


async def test_kill(tmp_path: Path) -> None:
    rng = random.Random()
    newest: dict[str, tuple[int, int]] = {}  # key -> (revision, length) of the last acknowledgement
    last_known = 1
    for number in range(ROUNDS):
        began, acknowledged = await run_and_kill(tmp_path, number, rng)
        assert began == last_known
        storage = SqliteStorage(Settings(tmp_path))
        await storage.open()
        assert storage.revision >= max(acknowledged)
        for revision in sorted(acknowledged):
            newest[acknowledged[revision][0]] = (revision, acknowledged[revision][1])

        after = storage.compacted
        events = await storage.history("", after=after, until=storage.revision)
        assert [e.revision for e in events] == list(range(max(after, FIRST_REVISION) + 1, storage.revision + 1))
        for event in events:
            if event.revision in acknowledged:
                key, length = acknowledged[event.revision]
                assert (event.key, -1 if event.value is None else len(event.value.value)) == (key, length)

        # A watcher that begins at the compacted revision arrives at the present.
        state = {item.key: item for item in (await storage.list("", revision=after)).items} if after else {}
        replay(events, state)
        current = {item.key: item for item in (await storage.list("")).items}
        assert state == current

        by_key = {e.key: e for e in events}
        for key, (revision, length) in newest.items():
            item = current.get(key)
            if item is not None and item.revision == revision:
                assert len(item.value) == length
            elif item is None and length == -1:
                continue
            else:
                # Killed between the commit of the next change and its acknowledgement.
                assert key in by_key, key
                assert by_key[key].revision > revision
        last_known = storage.revision
        newest = {key: (item.revision, len(item.value)) for key, item in current.items()}
        await storage.close()
