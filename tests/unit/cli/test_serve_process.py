"""`fastapi-core serve` as a process: what it prints, how it ends, what it says when it cannot start."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer

ROOT = Path(__file__).parents[3]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    running = RunningServer(tmp_path / "data")
    yield running
    if running.process.poll() is None:
        running.kill()


def serve(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fastapi_core.cli.main", "serve", "--bind-address=127.0.0.1", *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)


def test_from_ready_to_a_clean_end(server: RunningServer) -> None:
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=server.ssl_context(), timeout=10)
    connection.request("GET", "/readyz?verbose")
    answer = connection.getresponse()
    body = answer.read().decode()
    assert answer.status == 200
    assert "[+]etcd ok\n" in body
    assert body.endswith("[+]shutdown ok\nreadyz check passed\n")
    connection.close()
    assert server.kubeconfig.exists()
    assert server.stop() == 0


def test_a_port_or_a_directory_in_use(server: RunningServer, tmp_path: Path) -> None:
    taken = serve(f"--secure-port={server.port}", f"--data-dir={tmp_path / 'other'}")
    assert taken.returncode == 1
    assert taken.stderr.splitlines()[-1] == (
        f"fastapi-core: --secure-port: {server.port} is taken, choose another, or 0 for any free port"
    )
    assert not taken.stdout
    locked = serve("--secure-port=0", f"--data-dir={server.data_dir}")
    assert locked.returncode == 1
    assert locked.stderr.startswith(
        f"fastapi-core: --data-dir: the data directory {server.data_dir} is in use by process"
    )


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    foreign = serve("--bind-address=203.0.113.7", "--secure-port=0", f"--data-dir={tmp_path}")
    assert foreign.returncode == 1
    assert "--bind-address: 203.0.113.7 is no address of this machine" in foreign.stderr
