"""The live half of the recordings: pytest files over scripted webhook servers, run as they are against a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "golden"
AREAS = ("webhooks", "aggregation")


@pytest.mark.golden
@pytest.mark.timeout(600)
@pytest.mark.parametrize("area", AREAS)
def test_live(area: str, server: RunningServer) -> None:
    if not (RECORDINGS / area).is_dir():
        pytest.skip("recordings of the reference are not here")
    tokens = ["--token", "admin=admintoken", "--token", "alice=usertoken"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", area, "--url", server.url, *tokens]
    done = subprocess.run(command, cwd=RECORDINGS, capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
