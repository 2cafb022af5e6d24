"""Waiting for an API, and what is said when it does not become available."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from fastapi_core.authn.outbound import OutboundError
from fastapi_core.extension.description import Description, GroupVersion
from fastapi_core.extension.registration import availability
from fastapi_core.extension.registration.availability import wait

ABOUT = Description("db", "data", (GroupVersion("db.example.com", "v1"),), ())


def state(status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    condition = {"type": "Available", "status": status, "reason": reason, "message": message}
    return {"metadata": {"name": "v1.db.example.com", "resourceVersion": "1"}, "status": {"conditions": [condition]}}


SILENT = {"metadata": {"name": "v1.db.example.com", "resourceVersion": "1"}}


class Core:
    """Answers the state it has, then the events."""

    def __init__(self, first: dict[str, Any], *events: Any) -> None:
        self.first, self.events = first, list(events)

    async def get(self, path: str) -> dict[str, Any]:
        assert path == "/apis/apiregistration.k8s.io/v1/apiservices/v1.db.example.com"
        return self.first

    async def watch(self, path: str) -> AsyncGenerator[Any, None]:
        assert "fieldSelector=metadata.name%3Dv1.db.example.com" in path
        for event in self.events:
            if isinstance(event, Exception):
                self.events = []
                self.first = state("True")
                raise event
            yield event


async def waited(core: Core, timeout: float = 0.0) -> list[str]:
    client: Any = core
    return await wait(client, ABOUT, timeout)


async def test_what_is_available_is_not_waited_for() -> None:
    assert await waited(Core(state("True")), 5) == []


async def test_changes_are_waited_for() -> None:
    later = [{"type": "MODIFIED", "object": tree} for tree in (state("False", "MissingEndpoints"), state("True"))]
    assert await waited(Core(SILENT, *later), 5) == []


async def test_a_watch_that_breaks_is_begun_again() -> None:
    assert await waited(Core(state("False"), OutboundError("cut")), 5) == []


@pytest.mark.parametrize(
    ("reason", "message", "advice"),
    [
        ("ServiceNotFound", 'service/db in "data" is not present', "the Service data/db is missing: register again"),
        (
            "MissingEndpoints",
            "no endpoints",
            "no ready pod stands behind the Service data/db: `kubectl -n data get pods",
        ),
        ("FailedDiscoveryCheck", "dial tcp 10.0.0.1:443: connect: connection refused", "nothing listens there"),
        ("FailedDiscoveryCheck", "dial tcp 10.0.0.1:443: i/o timeout", "without kube-proxy start it with"),
        (
            "FailedDiscoveryCheck",
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "the serving certificate is not signed by the registered CA",
        ),
        ("FailedDiscoveryCheck", "Hostname mismatch, certificate is not valid for", "it needs db.data.svc"),
        ("FailedDiscoveryCheck", "bad status from https://x: 404", "does it serve db.example.com/v1?"),
        ("FailedDiscoveryCheck", "bad status from https://x: 403", "by --aggregator-make-proxy-certificate"),
    ],
)
async def test_advice(reason: str, message: str, advice: str) -> None:
    lines = await waited(Core(state("False", reason, message), {"type": "ERROR", "object": {}}), 0.01)
    assert lines[0] == f"apiservice/v1.db.example.com is not available: {reason}: {message}"
    assert advice in lines[1]


REFUSED = state(
    "False", "FailedDiscoveryCheck", "failing or missing response from https://x: bad status from https://x: 403"
)


@pytest.mark.timeout(20)
async def test_a_refusal_is_not_waited_for_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "_PATIENCE", 0.01)
    lines = await waited(Core(REFUSED), 600)
    assert "the server takes the API server for a stranger" in lines[1]


async def test_a_refusal_that_passes_was_none() -> None:
    later = [{"type": "MODIFIED", "object": tree} for tree in (REFUSED, state("False", "Busy"), state("True"))]
    assert await waited(Core(SILENT, *later), 600) == []


async def test_a_server_that_does_not_aggregate() -> None:
    lines = await waited(Core(SILENT), 0.01)
    assert lines == [
        "apiservice/v1.db.example.com is not available: the API server has said nothing of it: does it aggregate APIs?"
    ]
