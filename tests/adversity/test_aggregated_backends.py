"""Backends of the front server over real TLS: certificates renewed on both sides, restarts under load, streams that break
off or are not read."""

from __future__ import annotations

import contextlib
import http.client
import time
from pathlib import Path

import pytest

from tests.fixtures.aggregated import NAME, PATH, Backend, Stage, issue
from tests.fixtures.pki import authority

pytestmark = pytest.mark.adversity


def test_our_certificate_is_renewed_under_load(stage: Stage) -> None:
    with stage.load() as answers:
        issue(stage.authority, stage.proxy, "proxy-2")
        stage.until(lambda: [answer for _, answer in answers[-3:] if answer["peer"] == "proxy-2"])
    assert {status for status, _ in answers} == {200}
    shown = [answer["peer"] for _, answer in answers]
    assert shown[0] == "proxy-1"
    assert set(shown) == {"proxy-1", "proxy-2"}


def test_a_certificate_that_cannot_be_used_leaves_the_old_one_in_force(stage: Stage) -> None:
    whole = stage.proxy.read_bytes()
    stage.proxy.write_bytes(whole[: len(whole) // 2])
    with stage.load() as answers:
        stage.until(lambda: "proxy.pem" in (stage.front.data_dir / "server.log").read_text())
    assert {(status, answer["peer"]) for status, answer in answers} == {(200, "proxy-1")}


def test_the_backends_certificate_is_renewed_under_load(stage: Stage) -> None:
    """Under the same authority, then under another one that is trusted beside the old one for a while."""
    newer = authority("newer")
    with stage.load() as answers:
        for ca, before, after in (
            (stage.authority, (stage.authority,), (stage.authority, newer)),
            (newer, (stage.authority, newer), (newer,)),
        ):
            stage.trust(*before)
            stage.until(lambda: stage.api("GET", PATH)[0] == 200)
            stage.backend.renew(issue(ca, stage.pair, NAME, server=True))
            now = stage.backend.generation
            stage.until(lambda now=now: [a for s, a in answers[-3:] if a["generation"] == now])
            stage.trust(*after)
        count = len(answers)
        stage.until(lambda: len(answers) > count + 20)
    assert {status for status, _ in answers} == {200}
    assert {answer["generation"] for _, answer in answers} == {0, 1, 2}


def test_a_backend_under_a_strange_certificate_gets_no_request(stage: Stage) -> None:
    stage.backend.renew(issue(authority("strange"), stage.pair, NAME, server=True))
    assert stage.api("GET", PATH)[0] == 200, "on the connection it has, and that ends"
    status, answer = stage.api("GET", PATH)
    assert status == 503
    assert "certificate signed by unknown authority" in str(answer)


def test_a_restart_under_load_loses_only_what_meets_no_server(stage: Stage) -> None:
    with stage.load(4) as answers:
        for _ in range(3):
            port = stage.backend.port
            stage.backend.close()
            stage.backend = Backend(stage.pair, stage.authority, port)
            count = len(answers)
            stage.until(lambda count=count: sum(status == 200 for status, _ in answers[count:]) > 20)
    wrong = [(status, answer) for status, answer in answers if status != 200]
    # What was on its way on a connection that the backend cut may have been answered half.
    expected = ("refused", "unavailable", "EOF", "reset")
    assert [entry for entry in wrong if entry[0] != 503 or not any(w in str(entry[1]) for w in expected)] == []


def test_a_killed_backend_ends_its_streams_and_nobody_elses(stage: Stage) -> None:
    port = stage.backend.port
    with stage.watch() as answer:
        assert answer.read(3) == b"one"
        stage.backend.close()
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            answer.read()
    start = time.monotonic()
    assert stage.api("GET", PATH)[0] == 503
    for path in ("/apis", "/apis/apps/v1", "/api/v1/namespaces"):
        assert stage.api("GET", path)[0] == 200
    assert time.monotonic() - start < 2
    stage.backend = Backend(stage.pair, stage.authority, port)
    stage.until(lambda: stage.api("GET", PATH)[0] == 200)


def test_a_client_that_does_not_read_makes_the_backend_wait(stage: Stage) -> None:
    def resident() -> int:
        text = Path(f"/proc/{stage.front.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) // 1024

    total, before = 3000, resident()
    with stage.watch(f"watch=1&flood={total}") as answer:
        stage.until(lambda: _still(stage))
        assert stage.backend.flooded // 16 < 40, "MiB that sockets on the way, and we, have taken in advance"
        assert resident() - before < 16
        assert stage.api("GET", PATH)[0] == 200, "others are answered meanwhile"
        size = 0
        while piece := answer.read(1 << 20):
            size += len(piece)
        assert size == total << 16
    assert resident() - before < 24


def _still(stage: Stage) -> bool:
    """Whether the flood has begun and does not go on."""
    seen = stage.backend.flooded
    time.sleep(0.3)
    return 0 < stage.backend.flooded == seen


def test_a_client_that_goes_ends_the_stream_at_the_backend(stage: Stage) -> None:
    with stage.watch("watch=1&flood=1000000") as answer:
        assert answer.read(1 << 16)
    stage.until(lambda: _still(stage))
    assert stage.backend.flooded < 1_000_000
    assert stage.api("GET", PATH)[0] == 200


def test_a_stream_under_way_does_not_hold_the_shutdown_up(stage: Stage) -> None:
    with stage.watch() as answer:
        assert answer.read(3) == b"one"
        start = time.monotonic()
        assert stage.front.stop() == 0
        assert time.monotonic() - start < 10
        with contextlib.suppress(http.client.IncompleteRead, OSError):
            answer.read()
