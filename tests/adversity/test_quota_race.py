"""Many clients create at once against a quota: exactly as many get in as it allows."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastapi_core.testing.server import RunningServer
from tests.fixtures.server import Api

CLIENTS, EACH, LIMIT = 20, 10, 100


def limited(api: Api, namespace: str, hard: dict[str, str]) -> str:
    """A quota that a controller has seen."""
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    quota: dict[str, Any] = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
    assert api("POST", path, quota)[0] == 201
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    assert api("PUT", f"{path}/q/status", {**quota, "status": status})[0] == 200
    return f"{path}/q"


def test_concurrent_creates_stop_at_the_quota(server: RunningServer, api: Api, namespace: str) -> None:
    quota = limited(api, namespace, {"configmaps": str(LIMIT), "count/secrets": "7"})

    def work(number: int) -> Counter[tuple[str, int]]:
        client = Api(server)
        outcomes: Counter[tuple[str, int]] = Counter()
        for index in range(EACH):
            plural = "secrets" if index % 5 == 4 else "configmaps"
            body = {"metadata": {"name": f"n-{number}-{index}"}}
            outcomes[plural, client("POST", f"/api/v1/namespaces/{namespace}/{plural}", body)[0]] += 1
            if index % 5 != 4:
                # Taken already: what it would have used is given back.
                outcomes["again", client("POST", f"/api/v1/namespaces/{namespace}/{plural}", body)[0]] += 1
        client.connection.close()
        return outcomes

    with ThreadPoolExecutor(CLIENTS) as pool:
        outcomes = sum(pool.map(work, range(CLIENTS)), Counter[tuple[str, int]]())
    made = len(api("GET", f"/api/v1/namespaces/{namespace}/configmaps")[1]["items"])
    assert outcomes["configmaps", 201] + outcomes["again", 201] == made == LIMIT
    assert outcomes["secrets", 201] == 7
    assert {code for _, code in outcomes} <= {201, 403, 409}
    used = api("GET", quota)[1]["status"]["used"]
    assert used == {"configmaps": str(LIMIT), "count/secrets": "7"}
