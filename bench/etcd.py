"""Reads and writes of a server whose objects are in etcd: our CPU for each, without that of etcd."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bench import objects
from bench.client import Client
from bench.load import Shot, fire
from bench.process import Served

#: Rows of the main bench that are measured again, and consistent reads beside reads of what is in memory.
NAMES = ("GET configmap 1 KB", "create configmap 1 KB", "lease renewal")
TITLE = "on etcd"
_PORTS = 23_792, 23_793


def measure(folder: Path, options: argparse.Namespace, rows: Mapping[str, Shot], token: str) -> dict[str, float]:
    """The rows; none where there is no etcd."""
    beside = Path(sys.executable).with_name("etcd")
    program = str(beside) if beside.exists() else shutil.which("etcd")
    if program is None:
        return {}
    etcd, url = _start(program, folder)
    found: dict[str, float] = {}
    try:
        tokens = folder / "tokens.csv"
        server = Served(
            folder / "on-etcd", folder / "etcd-server.log", "--token-auth-file", str(tokens), f"--etcd-servers={url}"
        )
        _populate(Client(server.port))
        load = {"seconds": options.seconds, "connections": options.connections}
        for name in NAMES:
            row = fire(server, server.url, rows[name], token, run=f"e{len(found)}", **load)
            found[name] = row.cpu
        server.stop()
    finally:
        # The script of the package has started the program as a child.
        os.killpg(etcd.pid, signal.SIGKILL)
        etcd.wait()
    return found


def _start(program: str, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    url, peer = (f"http://127.0.0.1:{port}" for port in _PORTS)
    command = [
        program, "--data-dir", str(folder / "etcd"), "--unsafe-no-fsync", "--log-level", "error",
        "--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peer,
        "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
    ]  # fmt: skip
    process = subprocess.Popen(command, start_new_session=True)
    while True:
        try:
            socket.create_connection(("127.0.0.1", _PORTS[0]), timeout=1).close()
            return process, url
        except OSError:
            if process.poll() is not None:
                raise RuntimeError("etcd did not start") from None
            time.sleep(0.05)


def _populate(client: Client) -> None:
    name = objects.NAMESPACE
    client.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    client.send("POST", f"/api/v1/namespaces/{name}/configmaps", objects.configmap("one"))
    for number in range(64):
        client.send("POST", f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases", objects.lease(f"lease-{number}"))
