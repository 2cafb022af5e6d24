"""The file events go to, and the thread that writes it."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastapi_core.audit.backend import Throttle, Union
from fastapi_core.audit.event import PREFIX
from fastapi_core.audit.log import LogBackend
from fastapi_core.audit.logfile import LogFile, Rotation, StandardOutput
from fastapi_core.obs.catalog import Metrics


def line(number: int, size: int = 40) -> bytes:
    text = b'"n":%d' % number
    return PREFIX + text + b',"pad":"' + b"x" * size + b'"}\n'


def numbers(data: bytes) -> list[int]:
    return [json.loads(text)["n"] for text in data.splitlines()]


class Small(Rotation):
    """A limit that tests reach."""

    @property
    def bytes(self) -> int:
        return self.size


def aside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.startswith("audit-"))


def test_rotation_keeps_every_line_whole_and_in_order(tmp_path: Path) -> None:
    file = LogFile(str(tmp_path / "sub/audit.log"), Small(1000))
    for start in range(0, 100, 7):
        file.write([line(number) for number in range(start, min(start + 7, 100))])
    file.close()
    old = aside(tmp_path / "sub")
    assert len(old) > 5
    assert all(path.stat().st_size <= 1000 for path in old)
    data = b"".join(path.read_bytes() for path in [*old, tmp_path / "sub/audit.log"])
    assert numbers(data) == list(range(100))
    assert (tmp_path / "sub/audit.log").stat().st_mode & 0o777 == 0o600


def test_a_line_larger_than_the_limit_is_written_alone(tmp_path: Path) -> None:
    file = LogFile(str(tmp_path / "audit.log"), Small(100))
    file.write([line(1, 5), line(2, 500), line(3, 5)])
    file.close()
    assert [numbers(path.read_bytes()) for path in [*aside(tmp_path), tmp_path / "audit.log"]] == [[1], [2], [3]]


def test_old_files_are_removed_by_number_and_compressed(tmp_path: Path) -> None:
    (tmp_path / "audit-notes.txt").write_text("somebody else's")
    file = LogFile(str(tmp_path / "audit.log"), Small(100, backups=3, compress=True))
    for number in range(10):
        file.write([line(number)])
    file.close()
    # What the last rotation left to do is done at the next start.
    LogFile(str(tmp_path / "audit.log"), Small(100, backups=3, compress=True)).close()
    old = [path for path in aside(tmp_path) if path.name != "audit-notes.txt"]
    assert [path.suffix for path in old] == [".gz"] * 3
    assert [numbers(gzip.decompress(path.read_bytes())) for path in old] == [[6], [7], [8]]
    assert (tmp_path / "audit-notes.txt").exists()
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in old)


def test_old_files_are_removed_by_age(tmp_path: Path) -> None:
    def stamped(days: float) -> Path:
        at = time.gmtime(time.time() - days * 86400)
        return tmp_path / f"audit-{time.strftime('%Y-%m-%dT%H-%M-%S', at)}.000.log"

    stamped(3).write_bytes(line(1))
    stamped(1).write_bytes(line(2))
    LogFile(str(tmp_path / "audit.log"), Rotation(age=2)).close()
    assert aside(tmp_path) == [stamped(1)]


@pytest.mark.parametrize("cut", [b"", PREFIX + b'"n":0', line(0)[:-1]])
def test_after_a_kill_lines_begin_anew(tmp_path: Path, cut: bytes) -> None:
    (tmp_path / "audit.log").write_bytes(line(7) + cut)
    file = LogFile(str(tmp_path / "audit.log"), Rotation())
    file.write([line(8)])
    file.close()
    texts = (tmp_path / "audit.log").read_bytes().splitlines()
    assert texts[0] == line(7)[:-1]
    assert texts[-1] == line(8)[:-1]
    assert len(texts) == 2 + bool(cut)


def test_a_full_disk_tears_one_line_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = LogFile(str(tmp_path / "audit.log"), Rotation())
    write, left = os.write, [130]

    def full(fd: int, data: bytes | memoryview) -> int:
        if not left[0]:
            raise OSError(28, "No space left on device")
        written = write(fd, data[: left[0]])
        left[0] -= written
        return written

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        file.write([line(0), line(1), line(2)])
    with pytest.raises(OSError, match="No space"):
        file.write([line(3)])
    left[0] = 10_000
    file.write([line(4)])
    file.close()
    texts = (tmp_path / "audit.log").read_bytes().splitlines(keepends=True)
    assert texts[0] == line(0)
    assert texts[-1] == line(4)
    assert len(texts) == 3


def test_standard_output_is_written_to_the_end(tmp_path: Path) -> None:
    read, write = os.pipe()
    output = StandardOutput(write)
    output.write([line(1), line(2)])
    output.close()
    assert numbers(os.read(read, 10_000)) == [1, 2]
    os.close(read)
    os.close(write)


class Held:
    """An output that stands still until it is let go, or fails."""

    def __init__(self, *, fails: bool = False) -> None:
        self.go = threading.Event()
        self.fails = fails
        self.lines: list[bytes] = []
        self.closed = False

    def write(self, lines: Sequence[bytes]) -> None:
        assert self.go.wait(20)
        if self.fails:
            raise OSError(28, "No space left on device")
        self.lines += lines

    def close(self) -> None:
        self.closed = True


def lost(metrics: Metrics) -> dict[str, float]:
    return {values[0]: child.value for values, child in metrics.audit_errors.children.items() if child.value}


async def test_everything_taken_is_written_before_it_closes() -> None:
    metrics, held = Metrics(), Held()
    held.go.set()
    backend = LogBackend(held, metrics.audit_errors)
    for number in range(1000):
        backend.put(line(number))
        if number % 100 == 0:
            await asyncio.sleep(0)
    await backend.close()
    assert numbers(b"".join(held.lines)) == list(range(1000))
    assert held.closed
    assert lost(metrics) == {}
    backend.put(line(0))
    assert lost(metrics) == {"buffered": 1}
    await backend.close()


async def test_a_disk_that_stands_still_costs_bounded_memory() -> None:
    metrics, held = Metrics(), Held()
    backend = LogBackend(held, metrics.audit_errors, mode="batch", buffer=50)
    for number in range(500):
        backend.put(line(number))
    assert not backend.congested
    held.go.set()
    await backend.close()
    assert numbers(b"".join(held.lines)) == list(range(50))
    assert lost(metrics) == {"buffered": 450}


async def test_blocking_lets_requests_wait_and_loses_nothing_before_that() -> None:
    metrics, held = Metrics(), Held()
    size = len(line(10))
    backend = LogBackend(held, metrics.audit_errors, mode="blocking", backlog=10 * size)
    for number in range(10, 21):
        backend.put(line(number))
    assert backend.congested
    waiting = asyncio.ensure_future(backend.room())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    held.go.set()
    await asyncio.wait_for(waiting, 10)
    assert not backend.congested
    await backend.close()
    assert numbers(b"".join(held.lines)) == list(range(10, 21))
    # Whoever does not wait cannot make it keep more than twice as much.
    metrics, held = Metrics(), Held()
    backend = LogBackend(held, metrics.audit_errors, mode="blocking", backlog=10 * size)
    for number in range(10, 60):
        backend.put(line(number))
    assert lost(metrics) == {"buffered": 30}
    held.go.set()
    await backend.close()


async def test_strict_tells_whether_an_event_is_written() -> None:
    metrics, held = Metrics(), Held()
    backend = LogBackend(held, metrics.audit_errors, mode="blocking-strict")
    assert backend.waits
    stores = [asyncio.ensure_future(backend.store(line(number))) for number in range(3)]
    await asyncio.sleep(0.05)
    assert not any(store.done() for store in stores)
    held.go.set()
    assert await asyncio.gather(*stores) == [True] * 3
    held.fails = True
    assert await backend.store(line(9)) is False
    assert lost(metrics) == {"log": 1}
    await backend.close()
    assert await backend.store(line(9)) is False


async def test_events_that_are_too_large_are_counted() -> None:
    metrics, held = Metrics(), Held()
    held.go.set()
    backend = LogBackend(held, metrics.audit_errors, event_limit=100)
    backend.put(line(1, 5))
    backend.put(line(2, 500))
    await backend.close()
    assert numbers(b"".join(held.lines)) == [1]
    assert lost(metrics) == {"truncate": 1}


async def test_two_backends_get_every_event() -> None:
    metrics, first, second = Metrics(), Held(), Held(fails=True)
    first.go.set()
    second.go.set()
    relaxed = LogBackend(first, metrics.audit_errors)
    strict = LogBackend(second, metrics.audit_errors, mode="blocking-strict")
    both = Union([relaxed, strict])
    assert both.strict
    assert both.waits
    assert not both.congested
    assert await both.store(line(1)) is False
    both.put(line(2))
    await both.room()
    await both.close()
    assert numbers(b"".join(first.lines)) == [1, 2]
    assert lost(metrics) == {"log": 2}


def test_a_throttle_spends_its_burst_and_then_its_rate() -> None:
    throttle = Throttle(10, 2)
    assert [throttle.delay(100.0) for _ in range(4)] == pytest.approx([0, 0, 0.1, 0.2])
    assert throttle.delay(100.3) == pytest.approx(0)
    assert throttle.delay(200.0) == 0
