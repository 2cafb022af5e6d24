"""A locust scenario for people who prefer it.

    pip install locust
    locust -f bench/locustfile.py --host https://127.0.0.1:6443 --headless -u 32 -r 32 -t 30s

Needs FASTAPI_CORE_TOKEN, a token the server accepts (`--token-auth-file`).
"""

from __future__ import annotations

import os
import uuid

from locust import HttpUser, between, task  # type: ignore[import-not-found]

from bench import objects

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class Operator(HttpUser):  # type: ignore[misc]
    """Reads mostly, writes now and then, as a controller does."""

    wait_time = between(0.0, 0.01)

    def on_start(self) -> None:
        self.client.verify = False
        self.client.headers["Authorization"] = f"Bearer {os.environ['FASTAPI_CORE_TOKEN']}"
        self.name = f"locust-{uuid.uuid4().hex[:12]}"
        self.client.post(CONFIGMAPS, json=objects.configmap(self.name), name="create")

    @task(20)  # type: ignore[untyped-decorator]
    def read(self) -> None:
        self.client.get(f"{CONFIGMAPS}/{self.name}", name="get")

    @task(2)  # type: ignore[untyped-decorator]
    def list(self) -> None:
        self.client.get(f"{CONFIGMAPS}?limit=50", name="list")

    @task(5)  # type: ignore[untyped-decorator]
    def patch(self) -> None:
        self.client.patch(
            f"{CONFIGMAPS}/{self.name}",
            json={"data": {"n": uuid.uuid4().hex}},
            headers={"Content-Type": "application/merge-patch+json"},
            name="merge patch",
        )

    def on_stop(self) -> None:
        self.client.delete(f"{CONFIGMAPS}/{self.name}", name="delete")
