"""What custom resource definitions cost: memory of one, time to Established, discovery of all of them.

    python -m bench.custom [--count 1000]

The main bench adds them as a row; GET and create of a custom object are rows there.
"""

from __future__ import annotations

import argparse
import http.client
import json
import ssl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.process import Served

TOKEN = "bench-token"
GROUP = "bench.example.test"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
Tree = dict[str, Any]


def definition(plural: str, group: str = GROUP) -> Tree:
    """A definition of some 5 KB: six parts of eight described members each."""
    member = {"type": "string", "description": "What this member of the part is good for, in a few words."}
    part = {"type": "object", "properties": {f"member{number}": member for number in range(8)}}
    spec = {
        "type": "object",
        "properties": {f"part{number}": part for number in range(6)} | {"text": {"type": "string"}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.title()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }


def thing(name: str, size: int = 1024) -> Tree:
    """A custom object whose JSON is about `size` bytes."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Things",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": {"text": "x" * max(size - 300, 1), "part1": {"member2": "a"}},
    }


class _Client:
    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context())

    def __call__(self, method: str, path: str, tree: Tree | None = None, accept: str = "application/json") -> int:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Accept": accept}
        self._connection.request(method, path, None if tree is None else json.dumps(tree), headers)
        answer = self._connection.getresponse()
        answer.read()
        return answer.status


def measure(folder: Path, count: int = 1000) -> dict[str, float]:
    """Of `count` definitions created in a row, in a tenth as many groups, by a server of its own; and of its starts with
    none and with all of them."""
    (folder / "custom.csv").write_text(f'{TOKEN},admin,1,"system:masters"\n')

    def serve() -> Served:
        return Served(folder / "custom", folder / "custom.log", "--token-auth-file", str(folder / "custom.csv"))

    serve().stop()
    empty, spent = _start(serve)
    server = serve()
    try:
        found = _measure(server, _Client(server.port), count)
    finally:
        server.stop()
    full, spent_full = _start(serve)
    return {
        **found,
        "start with none s": empty,
        "start with all s": full,
        "start per definition CPU us": (spent_full - spent) / count * 1e6,
    }


def _start(serve: Callable[[], Served]) -> tuple[float, float]:
    """Seconds from exec to ready and of CPU, the best of three."""
    ready, spent = [], []
    for _ in range(3):
        server = serve()
        ready.append(server.ready_seconds)
        spent.append(server.cpu())
        server.stop()
    return min(ready), min(spent)


def _measure(server: Served, client: _Client, count: int) -> dict[str, float]:
    for number in range(10):  # what comes with the first ones
        _established(client, f"warm{number}", "warm.example.test")
    before, stored, times = server.resident(), 0, []
    for number in range(count):
        group = f"g{number % max(count // 10, 1)}.example.test"
        stored += len(json.dumps(definition(f"things{number}", group)))
        times.append(_established(client, f"things{number}", group))
    times.sort()
    found = {
        "memory per definition KB": (server.resident() - before - stored) / count / 1024,
        "established p50 ms": times[count // 2] * 1e3,
        "established worst ms": times[-1] * 1e3,
    }
    for name, path, accept in (("groups", "/apis", "application/json"), ("aggregated", "/apis", AGGREGATED)):
        client("GET", path, accept=accept)
        spent = server.cpu()
        for _ in range(50):
            client("GET", path, accept=accept)
        found[f"discovery {name} CPU ms"] = (server.cpu() - spent) / 50 * 1e3
    _established(client, "late", "late.example.test")
    spent = server.cpu()
    client("GET", "/apis", accept=AGGREGATED)
    found["discovery after a change CPU ms"] = (server.cpu() - spent) * 1e3
    return found


def _established(client: _Client, plural: str, group: str) -> float:
    """Seconds from the create until its objects are answered for. Nobody uses it: an unserved path is a 404 of another kind."""
    begin = time.perf_counter()
    status = client("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(plural, group))
    if status != 201:
        raise RuntimeError(f"a definition was answered with {status}")
    while client("GET", f"/apis/{group}/v1") != 200:
        time.sleep(0.0005)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fastapi-core-bench-") as folder:
        for name, value in measure(Path(folder), options.count).items():
            print(f"{name:40} {value:9.2f}", flush=True)


if __name__ == "__main__":
    main()
