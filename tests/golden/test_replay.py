"""Replays the recorded answers of the reference against a running server.

`gaps.txt` lists the cases that do not pass yet with the reason; with `--gaps` (`make golden`) they are run too, and one
that passes must leave the list.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer

AREAS = ("core", "listwatch", "openapi", "patch", "builtins", "access", "crd")
RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "golden"
GAPS = dict(
    line.split(None, 1)
    for line in (Path(__file__).parent / "gaps.txt").read_text().splitlines()
    if line and line[0] != "#"
)
CASES = [f"{area}/{path.stem}" for area in AREAS for path in sorted((RECORDINGS / area).glob("*.json"))]


def replayer() -> Any:
    spec = importlib.util.spec_from_file_location("replay", RECORDINGS / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.golden
@pytest.mark.skipif(not CASES, reason="recordings of the reference are not here")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_case(name: str, server: RunningServer, request: pytest.FixtureRequest) -> None:
    if name in GAPS and not request.config.getoption("--gaps"):
        pytest.skip(GAPS[name])
    replay = replayer()
    target = replay.Target(server.url, {"admin": "admintoken", "alice": "usertoken"})
    problems = replay.run_case(target, json.loads((RECORDINGS / f"{name}.json").read_text()), False)
    if name in GAPS:
        assert problems, f"{name} passes now: take it out of gaps.txt ({GAPS[name]})"
        return
    assert not problems, "\n".join(problems[:8])


@pytest.mark.golden
def test_gaps_name_real_cases() -> None:
    if CASES:
        assert set(GAPS) <= set(CASES)
