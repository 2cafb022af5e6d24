"""Many clients, one range: no address and no node port twice, also when the server dies in the middle."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from fastapi_core.testing.server import RunningServer

TOKENS = (("admintoken", "admin", "1", "system:masters"),)
FLAGS = ("--service-cluster-ip-range=10.0.0.0/24,fd00::/112", "--service-node-port-range=30000-30099")
WRITERS = 8


class Client:
    def __init__(self, server: RunningServer) -> None:
        self.connection = http.client.HTTPSConnection(
            "127.0.0.1", server.port, context=server.ssl_context(), timeout=30
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": "Bearer admintoken", "Content-Type": "application/json"}
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


def service(name: str) -> dict[str, Any]:
    spec = {"type": "NodePort", "ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80}]}
    return {"metadata": {"name": name}, "spec": spec}


def write(server: RunningServer, writer: int, count: int, made: list[str], failures: list[str]) -> None:
    try:
        with Client(server) as client:
            for number in range(count):
                name = f"s{writer}-{number}"
                code, answer = client("POST", "/api/v1/namespaces/default/services", service(name))
                (made if code == 201 else failures).append(name if code == 201 else str(answer))
    except (OSError, http.client.HTTPException, ValueError) as error:
        failures.append(f"connection: {error!r}")


def start(server: RunningServer, count: int) -> tuple[list[threading.Thread], list[str], list[str]]:
    made: list[str] = []
    failures: list[str] = []
    threads = [threading.Thread(target=write, args=(server, w, count, made, failures)) for w in range(WRITERS)]
    for thread in threads:
        thread.start()
    return threads, made, failures


def holdings(client: Client) -> tuple[dict[str, Any], list[str], list[int]]:
    services = client("GET", "/api/v1/services")[1]["items"]
    addresses = [a for s in services for a in s["spec"].get("clusterIPs", ()) if a != "None"]
    ports = [p["nodePort"] for s in services for p in s["spec"].get("ports", ()) if p.get("nodePort")]
    return {s["metadata"]["name"]: s for s in services}, addresses, ports


def check(client: Client) -> dict[str, Any]:
    """Nothing twice, and exactly one address object for each address."""
    services, addresses, ports = holdings(client)
    assert [a for a, n in Counter(addresses).items() if n > 1] == []
    assert [p for p, n in Counter(ports).items() if n > 1] == []
    objects = client("GET", "/apis/networking.k8s.io/v1/ipaddresses")[1]["items"]
    assert sorted(o["metadata"]["name"] for o in objects) == sorted(addresses)
    return services


def test_concurrent_creates_until_the_ports_are_gone(tmp_path: Path) -> None:
    server = RunningServer(tmp_path, tokens=TOKENS, flags=FLAGS)
    try:
        threads, made, failures = start(server, 15)
        for thread in threads:
            thread.join(60)
        with Client(server) as client:
            services = check(client)
            assert set(made) < set(services)
            assert len(made) == 100, failures[:3]
            assert all("failed to allocate a nodePort: range is full" in failure for failure in failures)
            # What is given back can be had again, by type change and by delete.
            path = "/api/v1/namespaces/default/services/"
            freed = services[made[0]]["spec"]["ports"][0]["nodePort"]
            changed = {**services[made[0]], "spec": {"type": "ClusterIP", "ports": [{"port": 80}]}}
            assert client("PUT", path + made[0], changed)[0] == 200
            assert client("DELETE", path + made[1])[0] == 200
            again = [
                client("POST", path[:-1], service(f"again{i}"))[1]["spec"]["ports"][0]["nodePort"] for i in range(2)
            ]
            assert freed in again
            check(client)
            external = {"type": "ExternalName", "externalName": "a.b"}
            current = client("GET", path + made[2])[1]
            assert client("PUT", path + made[2], {**current, "spec": external})[0] == 200
            check(client)
    finally:
        server.kill()


def test_a_kill_in_the_middle(tmp_path: Path) -> None:
    server = RunningServer(tmp_path, tokens=TOKENS, flags=FLAGS)
    threads, made, _ = start(server, 12)
    while len(made) < 20 and any(thread.is_alive() for thread in threads):
        threads[0].join(0.01)
    server.kill()
    for thread in threads:
        thread.join(60)
    acknowledged = set(made)
    server = RunningServer(tmp_path, tokens=TOKENS, flags=FLAGS)
    try:
        with Client(server) as client:
            assert acknowledged <= set(check(client))
            again, more, failures = start(server, 3)
            for thread in again:
                thread.join(60)
            check(client)
            assert not [failure for failure in failures if "connection" in failure]
            assert more or failures
    finally:
        server.kill()
