from __future__ import annotations

import socket
import uuid
from pathlib import Path

import pytest

from fastapi_core.server.notify import notify


def receive(address: str, monkeypatch: pytest.MonkeyPatch, shown: str) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(address)
        receiver.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", shown)
        assert notify("READY=1")
        return receiver.recv(100)


def test_states_reach_the_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "n")
    assert receive(path, monkeypatch, path) == b"READY=1"
    name = f"fastapi-core-{uuid.uuid4()}"
    assert receive("\0" + name, monkeypatch, "@" + name) == b"READY=1"


def test_without_a_socket_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not notify("READY=1")
    for wrong in ("relative", str(tmp_path / "nobody"), "@nobody-there"):
        monkeypatch.setenv("NOTIFY_SOCKET", wrong)
        assert not notify("READY=1")
