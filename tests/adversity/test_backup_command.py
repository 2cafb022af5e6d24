"""`fastapi-core backup` beside a server under load; the copy as the store of another server."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fastapi_core.cli.main import main
from fastapi_core.testing.server import RunningServer
from tests.adversity import killing
from tests.adversity.killing import Client

pytestmark = pytest.mark.adversity


def run_backup(data_dir: Path, target: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fastapi_core.cli.main", "backup", f"--data-dir={data_dir}", str(target)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_backup_beside_a_running_server_is_one_moment(tmp_path: Path) -> None:
    data_dir, target = tmp_path / "data", tmp_path / "copy.db"
    killing.prepare(data_dir)
    server = RunningServer(data_dir)
    stop = threading.Event()
    crew = [killing.Writer(server, f"w{n}", n, stop) for n in range(4)]
    try:
        for writer in crew:
            writer.start()
        while sum(w.writes for w in crew) < 50:
            stop.wait(0.01)
        before = {name: state for w in crew for name, state in dict(w.acknowledged).items()}
        done = run_backup(data_dir, target)
        assert done.returncode == 0, done.stderr
        revision = int(done.stdout.split()[2])
        assert revision >= max(revision for _, revision in before.values())
        stop.set()
        for writer in crew:
            writer.join(30)
            assert not writer.refused
    finally:
        stop.set()
        assert server.stop() == 0
    assert target.stat().st_mode & 0o777 == 0o600

    # Restored as the command says: everything acknowledged before the copy began is there, at one revision.
    restored = tmp_path / "restored"
    restored.mkdir()
    shutil.copy(target, restored / "store.db")
    server = RunningServer(restored)
    try:
        client = Client(server)
        _, listing = client("GET", f"{killing.PATH}?resourceVersion={revision}&resourceVersionMatch=Exact")
        _, now = client("GET", killing.PATH)
        assert int(now["metadata"]["resourceVersion"]) >= revision  # a start on another port writes where it listens
        assert now["items"] == listing["items"]
        found = {o["metadata"]["name"]: int(o["metadata"]["resourceVersion"]) for o in now["items"]}
        assert all(found[name] >= at for name, (_, at) in before.items() if at and name in found)
        assert all(found_at <= revision for found_at in found.values())
        assert client("POST", killing.PATH, {"metadata": {"name": "after"}})[0] == 201
        client.close()
    finally:
        assert server.stop() == 0


def test_backup_of_a_killed_server_has_its_log(tmp_path: Path) -> None:
    server = RunningServer(tmp_path / "data")
    client = Client(server)
    status, made = client("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "last"}})
    assert status == 201
    server.kill()
    client.close()
    done = run_backup(tmp_path / "data", tmp_path / "copy.db")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[2]) >= int(made["metadata"]["resourceVersion"])


def test_backup_refuses_what_it_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store.db"
    copy = tmp_path / "copy.db"

    def said(code: int, *arguments: str) -> str:
        assert main(["backup", *arguments]) == code
        assert not copy.exists()
        assert not list(tmp_path.glob("*.partial"))
        return capsys.readouterr().err

    assert "no store in" in said(1, "--data-dir", str(tmp_path), str(copy))
    assert not store.exists()
    other = sqlite3.connect(store)
    other.execute("CREATE TABLE t (a)")
    other.close()
    assert "database of another program" in said(1, "--data-dir", str(tmp_path), str(copy))
    store.write_bytes(b"x" * 5000)
    assert "cannot back up" in said(1, "--data-dir", str(tmp_path), str(copy))
    assert "--data-dir is missing" in said(2, str(copy))
    assert "one file" in said(2, "--data-dir", str(tmp_path))
    assert "unknown flag --dir" in said(2, "--dir=x", str(copy))
    assert main(["backup", "--help"]) == 0
