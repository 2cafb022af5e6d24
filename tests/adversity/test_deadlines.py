"""Writes that run out of time: each has happened or has not, and the server knows which."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import Client

pytestmark = pytest.mark.adversity

MAPS = "/api/v1/namespaces/default/configmaps"


def test_a_commit_under_way_is_finished(tmp_path: Path) -> None:
    server = RunningServer(tmp_path)
    client = Client(server)
    answers: dict[str, int] = {}
    for number in range(120):
        name = f"m-{number}"
        tree = {"metadata": {"name": name}, "data": {"a": "x" * 2000, "n": str(number)}}
        answers[name], told = client("POST", f"{MAPS}?timeout={200 + 40 * number}us", tree)
        assert answers[name] in (201, 504)
        if answers[name] == 504:
            assert told["reason"] == "Timeout"
            assert told["message"].startswith("Timeout: request did not complete within ")
    # Without a limit everything still works, and what was written is whole.
    assert client("POST", MAPS, {"metadata": {"name": "last"}})[0] == 201
    found = {item["metadata"]["name"]: item for item in client("GET", MAPS)[1]["items"]}
    for name, status in answers.items():
        if status == 201:
            assert name in found
        if name in found:
            assert found[name]["data"] == {"a": "x" * 2000, "n": name[2:]}
            assert client("DELETE", f"{MAPS}/{name}")[0] == 200
    assert {status for name, status in answers.items() if name not in found} <= {504}
    client.close()
    assert server.stop() == 0
    again = RunningServer(tmp_path)
    client = Client(again)
    assert not answers.keys() & {item["metadata"]["name"] for item in client("GET", MAPS)[1]["items"]}
    client.close()
    assert again.stop() == 0
