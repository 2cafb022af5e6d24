"""The live half of the recordings: pytest files over scripted webhook and extension servers, run as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.fixtures.pki import authority
from tests.fixtures.server import TOKENS

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "golden"

pytestmark = [
    pytest.mark.golden,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not RECORDINGS.is_dir(), reason="recordings of the reference are not here"),
]


def replayed(area: str, server: RunningServer, **environment: str) -> None:
    tokens = ["--token", "admin=admintoken", "--token", "alice=usertoken"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", area, "--url", server.url, *tokens]
    env = {**os.environ, **environment}
    done = subprocess.run(command, cwd=RECORDINGS, env=env, capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


def test_webhooks(server: RunningServer) -> None:
    replayed("webhooks", server)


def test_aggregation(tmp_path: Path) -> None:
    """With a front proxy's authority and certificate, and backends reached by their endpoints."""
    ca = authority("front-proxy-ca")
    bundle, _ = ca.write(tmp_path, "ca")
    cert, key = ca.issue("front-proxy-client").write(tmp_path, "client")
    flags = [
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--requestheader-client-ca-file={bundle}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={cert}",
        f"--proxy-client-key-file={key}",
        "--enable-aggregator-routing=true",
    ]
    server = RunningServer(tmp_path / "data", tokens=TOKENS, flags=flags)
    try:
        replayed("aggregation", server, GOLDEN_ROUTING="1")
    finally:
        assert server.stop() == 0
