"""What groups of other servers cost the front server: requests and watch events passed on, discovery with very many of them.

    python -m bench.aggregate [--seconds N] [--services 1000] [--dead 50]

Front, backend and the relay it is compared with are processes of their own over TLS; the numbers are the front's. The main
bench has the same rows.
"""

from __future__ import annotations

import argparse
import json
import pickle
import shutil
import statistics
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import objects
from bench.client import TOKEN, Client, pusher
from bench.fanout import fan_out
from bench.load import Shot, fire
from bench.process import Limit, Measured, Relay, Served

GET_ROW = "proxied GET 1 KB / a local one"
WATCH_ROW = "proxied watch event x 200 / bare relay"
DISCOVERY_ROW = "discovery of aggregated groups"
GROUP = "bench.example.com"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
LOCAL, PROXIED = "/api/v1/namespaces/default/configmaps/one", f"/apis/{GROUP}/v1/things/one"
WATCHED = f"/apis/{GROUP}/v1/things?watch=1"
WATCHERS = 200
#: Seconds between two events: enough for all watchers to get one.
SPACE = 0.05
#: Seconds without a request; long enough for every probe to have its turn.
IDLE = 40.0
_ACCEPTS = {
    "legacy": "application/json",
    "aggregated": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
}
Row = dict[str, Any]


class Stage:
    """A front server with `GROUP` behind it. `backend` answers with the bytes the front has for `LOCAL`."""

    def __init__(self, folder: Path, services: int) -> None:
        folder.mkdir()
        (folder / "tokens.csv").write_text(f'{TOKEN},admin,1,"system:masters"\n')
        self.log = folder / "log"
        self.folder = folder
        self.front = Served(folder / "data", self.log, "--token-auth-file", str(folder / "tokens.csv"))
        for name, kind in (("cert.pem", "crt"), ("key.pem", "key")):
            shutil.copy(folder / f"data/pki/apiserver.{kind}", folder / name)
        self.client = Client(self.front.port)
        self.client.send("POST", "/api/v1/namespaces/default/configmaps", objects.configmap("one"))
        groups = [GROUP, *(f"g{number:04d}.example.com" for number in range(services))]
        answers = {f"/apis/{group}/v1": _resources(group) for group in groups}
        (folder / "answers.bin").write_bytes(pickle.dumps({PROXIED: self.client.raw(Shot(LOCAL), 0), **answers}))
        self.backend = Limit(folder, folder / "backend.log")
        spec = {"type": "ExternalName", "externalName": "127.0.0.1"}
        self.client.send("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "backend"}, "spec": spec})
        self.client.send("POST", SERVICES, service(GROUP, self.backend.port))
        self.settled(f"v1.{GROUP}", "True")

    def settled(self, name: str, status: str) -> None:
        """Wait until the condition of an APIService says so."""
        end = time.monotonic() + 30
        while f'"status":"{status}"' not in self.client.send("GET", f"{SERVICES}/{name}").decode():
            if time.monotonic() > end:
                raise RuntimeError(f"{name} does not become Available={status}")
            time.sleep(0.05)

    def stop(self) -> None:
        for process in (self.front, self.backend):
            process.stop()


def _resources(group: str) -> bytes:
    """The answer that says what a group serves."""
    thing = {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get", "list"]}
    tree = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/v1", "resources": [thing]}
    text = json.dumps(tree).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(text), text)


def service(group: str, port: int) -> objects.Tree:
    return {
        "metadata": {"name": f"v1.{group}"},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": "default", "name": "backend", "port": port},
        },
    }  # fmt: skip


def passed_on(stage: Stage, *, seconds: float, connections: int, events: int) -> dict[str, Row]:
    """Row -> the front's cost, and what it is compared with."""
    load: dict[str, Any] = {"seconds": seconds, "connections": connections}
    local = fire(stage.front, stage.front.url, Shot(LOCAL), TOKEN, run="l", **load)
    ours = fire(stage.front, stage.front.url, Shot(PROXIED), TOKEN, run="p", **load)
    found: dict[str, Row] = {GET_ROW: {"ours": asdict(ours), "limit": asdict(local), "ratio": ours.cpu / local.cpu}}
    frame = b'{"type":"MODIFIED","object":' + stage.client.send("GET", LOCAL).rstrip() + b"}\n"
    relay = Relay(stage.folder, stage.folder / "relay.log", stage.backend.port)

    push = pusher(stage.backend, frame)

    def spaced(number: int) -> None:
        """Events that come together are passed on together: each is to be taken for itself."""
        push(number)
        time.sleep(SPACE)

    def streamed(server: Measured, port: int) -> dict[str, float]:
        return fan_out(server, port, WATCHED, TOKEN, WATCHERS, events, spaced)

    watched, bare = streamed(stage.front, stage.front.port), streamed(relay, relay.port)
    relay.stop()
    found[WATCH_ROW] = {"ours": watched, "limit": bare, "ratio": watched["cpu"] / bare["cpu"]}
    return found


def many(stage: Stage, services: int, dead: int) -> dict[str, float]:
    """Discovery with that many APIServices, of which some lead nowhere; what looking after them costs."""
    client, found = stage.client, {}
    for number in range(services):
        client.send("POST", SERVICES, service(f"g{number:04d}.example.com", 1 if number < dead else stage.backend.port))
    for number in (*range(dead), services - 1):
        stage.settled(f"v1.g{number:04d}.example.com", "False" if number < dead else "True")
    for name, accept in _ACCEPTS.items():
        times = [_asked(client, accept) for _ in range(100)]
        found[f"{name} /apis ms"] = statistics.median(times)
        found[f"{name} /apis, worst ms"] = max(times)
    path = f"{SERVICES}/v1.g{services - 1:04d}.example.com"
    changed: dict[str, list[float]] = {name: [] for name in _ACCEPTS}
    for number in range(20):
        spec = {"spec": {"versionPriority": 20 + number}}
        client.send("PATCH", path, spec, (("Content-Type", "application/merge-patch+json"),))
        for name, accept in _ACCEPTS.items():
            changed[name].append(_asked(client, accept))
    for name, times in changed.items():
        found[f"{name} /apis after a change ms"] = statistics.median(times)
        found[f"{name} /apis after a change, worst ms"] = max(times)
    before = stage.front.cpu()
    time.sleep(IDLE)
    found["idle CPU %"] = (stage.front.cpu() - before) / IDLE * 100
    return found


def _asked(client: Client, accept: str) -> float:
    """Milliseconds of one `/apis`."""
    begin = time.perf_counter()
    client.send("GET", "/apis", headers=(("Accept", accept),))
    return (time.perf_counter() - begin) * 1e3


def rows(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All of it, printed as it comes; `quick` leaves the many out."""
    stage = Stage(folder / "aggregate", options.services)
    try:
        found: dict[str, Any] = dict(
            passed_on(stage, seconds=options.seconds, connections=options.connections, events=options.events)
        )
        for name, row in found.items():
            print(f"{name:42} {row['ours']['cpu']:9.1f} {row['limit']['cpu']:9.1f} {row['ratio']:6.2f}x", flush=True)
        if not options.quick:
            found[DISCOVERY_ROW] = many(stage, options.services, options.dead)
            for name, value in found[DISCOVERY_ROW].items():
                print(f"{name:42} {value:9.2f}", flush=True)
    finally:
        stage.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--events", type=int, default=50)
    parser.add_argument("--services", type=int, default=1000)
    parser.add_argument("--dead", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="leave out the many")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fastapi-core-bench-") as folder:
        rows(Path(folder), options)


if __name__ == "__main__":
    main()
