from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from fastapi_core.obs.files import FileWatcher


def follow(watcher: FileWatcher, *paths: Path) -> list[str]:
    seen: list[str] = []
    watcher.follow([str(p) for p in paths], lambda: seen.append(paths[0].read_text()))
    return seen


def test_content_counts_not_the_time_of_change(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    watcher = FileWatcher()
    seen = follow(watcher, file)
    watcher.check()
    os.utime(file, (1, 1))
    watcher.check()
    file.write_text("one")
    watcher.check()
    assert seen == []
    file.write_text("two")
    watcher.check()
    watcher.check()
    assert seen == ["two"]


def test_a_mounted_secret_is_swapped_by_its_link(tmp_path: Path) -> None:
    for name in ("v1", "v2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tls.crt").write_text(name)
    (tmp_path / "data").symlink_to("v1")
    watcher = FileWatcher()
    seen = follow(watcher, tmp_path / "data" / "tls.crt")
    (tmp_path / "new").symlink_to("v2")
    (tmp_path / "new").rename(tmp_path / "data")
    watcher.check()
    assert seen == ["v2"]


def test_a_file_that_is_gone_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "a"
    watcher = FileWatcher()
    seen = follow(watcher, file)
    watcher.check()
    file.write_text("born")
    watcher.check()
    file.unlink()
    watcher.check()
    file.write_text("born")
    watcher.check()
    assert seen == ["born"]


def test_several_files_are_told_once_and_others_not_at_all(tmp_path: Path) -> None:
    cert, key, other = (tmp_path / name for name in ("cert", "key", "other"))
    for path in (cert, key, other):
        path.write_text("1")
    watcher = FileWatcher()
    pair, alone = follow(watcher, cert, key), follow(watcher, other)
    cert.write_text("2")
    key.write_text("2")
    watcher.check()
    assert (pair, alone) == (["2"], [])


def test_a_failure_is_tried_again_until_it_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a"
    file.write_text("1")
    watcher = FileWatcher()
    attempts = []

    def use() -> None:
        attempts.append(1)
        if len(attempts) < 3:
            raise ValueError("half written")

    stop = watcher.follow([str(file)], use)
    file.write_text("2")
    for _ in range(5):
        watcher.check()
    assert len(attempts) == 3
    file.write_text("3")
    stop()
    stop()
    watcher.check()
    assert len(attempts) == 3


async def test_one_timer_looks_until_it_is_closed(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("1")
    watcher = FileWatcher(0.001)
    came = asyncio.Event()
    watcher.follow([str(file)], came.set)
    watcher.start()
    watcher.start()
    file.write_text("2")
    await asyncio.wait_for(came.wait(), 5)
    watcher.close()
    watcher.close()
