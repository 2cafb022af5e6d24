"""A server in trouble with its surroundings: disk, directory, certificates, signals."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity import killing
from tests.adversity.killing import Client

pytestmark = pytest.mark.adversity

MAPS = "/api/v1/namespaces/default/configmaps"


def serve(data_dir: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """A server that is expected not to come up."""
    command = [sys.executable, "-m", "fastapi_core.cli.main", "serve", "--data-dir", str(data_dir), *flags]
    return subprocess.run([*command, "--secure-port", "0"], capture_output=True, text=True, timeout=30, check=False)


def test_sigterm_under_load_keeps_every_acknowledged_write(tmp_path: Path) -> None:
    ledger = killing.prepare(tmp_path)
    rng = random.Random()
    for number in range(2):
        killing.load(RunningServer(tmp_path), ledger, number, rng, writers=6, gracefully=True)
    server = RunningServer(tmp_path)
    try:
        killing.verify(server, ledger)
    finally:
        assert server.stop() == 0


def test_full_disk_while_running(tmp_path: Path) -> None:
    server = RunningServer(tmp_path)
    try:
        client = Client(server)
        noted: dict[str, str] = {}
        store = tmp_path / "store.db"
        room = store.stat().st_size + 3_000_000
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        refused = None
        for number in range(400):
            name = f"fill-{number}"
            body = {"metadata": {"name": name}, "data": {"k": "x" * 50_000}}
            status, answer = client("POST", MAPS, body)
            if status != 201:
                refused = (status, answer)
                break
            noted[name] = answer["metadata"]["resourceVersion"]
        assert refused is not None, "the disk was never full"
        status, answer = refused
        assert status in (500, 503), answer
        assert answer["kind"] == "Status"
        assert answer["message"]
        # Reads go on, health says so, nothing of the refused write is there.
        status, listing = client("GET", MAPS)
        found = {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in listing["items"]}
        found.pop("kube-root-ca.crt", None)
        assert found == noted
        client.connection.request("GET", "/readyz")
        ready = client.connection.getresponse()
        ready.read()
        assert ready.status == 500
        # Space again: writes work without a restart.
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, resource.RLIM_INFINITY))
        deadline = time.monotonic() + 20
        while client("POST", MAPS, {"metadata": {"name": "after"}})[0] != 201:
            assert time.monotonic() < deadline, "writes do not come back"
            time.sleep(0.1)
        client.connection.request("GET", "/readyz")
        ready = client.connection.getresponse()
        assert (ready.status, ready.read()) == (200, b"ok")
        client.close()
        server.kill()
        server = RunningServer(tmp_path)
        client = Client(server)
        for name, revision in noted.items():
            assert client("GET", f"{MAPS}/{name}")[1]["metadata"]["resourceVersion"] == revision
        client.close()
    finally:
        server.kill()


def test_second_server_on_the_same_directory(tmp_path: Path) -> None:
    server = RunningServer(tmp_path)
    try:
        before = {p: p.read_bytes() for p in [*(tmp_path / "pki").iterdir(), server.kubeconfig]}
        second = serve(tmp_path)
        assert second.returncode == 1
        assert f"in use by process {server.process.pid}" in second.stderr
        assert "--data-dir" in second.stderr
        assert "Traceback" not in second.stderr
        assert {p: p.read_bytes() for p in before} == before, "the refused server changed files of the running one"
        client = Client(server)
        assert client("POST", MAPS, {"metadata": {"name": "still"}})[0] == 201
        client.close()
    finally:
        assert server.stop() == 0


def test_data_directory_that_cannot_be_used(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a directory")
    for path in (file, file / "below", Path("/proc/nothing-here")):
        refused = serve(path)
        assert refused.returncode in (1, 2), refused
        assert "--data-dir" in refused.stderr
        assert "Traceback" not in refused.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_data_directory(tmp_path: Path) -> None:
    server = RunningServer(tmp_path / "d")
    assert server.stop() == 0
    for path in (tmp_path / "d").iterdir():
        path.chmod(0o500 if path.is_dir() else 0o400)
    (tmp_path / "d").chmod(0o500)
    try:
        refused = serve(tmp_path / "d")
        assert refused.returncode == 1, refused
        assert "--data-dir" in refused.stderr
        assert "Traceback" not in refused.stderr
    finally:
        (tmp_path / "d").chmod(0o700)


@pytest.mark.parametrize("damage", ["garbage", "truncated", "directory"])
def test_damaged_database_is_named(tmp_path: Path, damage: str) -> None:
    server = RunningServer(tmp_path)
    client = Client(server)
    for number in range(30):
        assert client("POST", MAPS, {"metadata": {"name": f"m-{number}"}, "data": {"k": "x" * 4000}})[0] == 201
    client.close()
    assert server.stop() == 0
    store = tmp_path / "store.db"
    size = store.stat().st_size
    if damage == "garbage":
        store.write_bytes(random.Random(1).randbytes(size))
    elif damage == "truncated":
        os.truncate(store, size // 2)
    else:
        store.unlink()
        store.mkdir()
    refused = serve(tmp_path)
    assert refused.returncode == 1, refused
    assert str(store) in refused.stderr or str(tmp_path) in refused.stderr
    assert "Traceback" not in refused.stderr


def test_rewritten_certificates_are_used_without_dropping_connections(tmp_path: Path) -> None:
    """Another server's certificate files in place of the first one's: new handshakes see them, old connections stay."""
    other = RunningServer(tmp_path / "other")
    assert other.stop() == 0
    server = RunningServer(tmp_path / "this")
    try:
        old_context = server.ssl_context()
        kept = Client(server)
        assert kept("GET", "/api/v1/namespaces")[0] == 200
        watcher = killing.Watcher(server, since=int(kept("GET", MAPS)[1]["metadata"]["resourceVersion"]), path=MAPS)
        watcher.start()
        for name in ("apiserver.crt", "apiserver.key"):
            shutil.copy(tmp_path / "other/pki" / name, tmp_path / "this/pki" / f"{name}.new")
            os.replace(tmp_path / "this/pki" / f"{name}.new", tmp_path / "this/pki" / name)
        (tmp_path / "ca").mkdir()
        shutil.copy(tmp_path / "other/pki/ca.crt", tmp_path / "ca/ca.crt")
        deadline = time.monotonic() + 30
        while not _handshake(server, tmp_path / "ca/ca.crt"):
            assert time.monotonic() < deadline, "the new certificate is never used"
            time.sleep(0.2)
        assert kept("POST", MAPS, {"metadata": {"name": "kept"}, "data": {"number": "1"}})[0] == 201
        kept.close()
        while not watcher.events:
            assert watcher.is_alive(), "the watch was dropped"
            time.sleep(0.01)
        assert watcher.events[0].name == "kept"
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            _connect(server, old_context)
    finally:
        assert server.stop() == 0
    watcher.join(10)
    assert not watcher.is_alive()
    assert watcher.problem is None


def _connect(server: RunningServer, context: object) -> None:
    import socket
    import ssl

    assert isinstance(context, ssl.SSLContext)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        context.wrap_socket(raw, server_hostname="localhost").close()


def _handshake(server: RunningServer, ca: Path) -> bool:
    import ssl

    try:
        _connect(server, ssl.create_default_context(cafile=str(ca)))
    except ssl.SSLError:
        return False
    return True
