"""After requests, watches, errors and cut connections, what lives is what is cached: nothing else stays.

Counted in a process of its own, where no other test has left or lets go of anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import json
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop

from fastapi_core._ext import http1, objects, selector
from fastapi_core.controlplane.compose import compose
from fastapi_core.options.complete import complete
from fastapi_core.options.options import Options
from fastapi_core.storage.cacher.resource import ResourceCache

ROOT = Path(__file__).parents[2]
MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


class Session:
    """One client's hard day."""

    def __init__(self, port: int, pki: Path) -> None:
        self.port = port
        self.context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self.context.load_cert_chain(pki / "admin.crt", pki / "admin.key")

    def __call__(self) -> None:
        self.connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=30)
        for number in range(20):
            self.ask("POST", MAPS, {"metadata": {"name": f"m-{number}", "labels": {"n": str(number % 3)}}}, wanted=201)
            self.ask("PUT", f"{MAPS}/m-{number}", {"metadata": {"name": f"m-{number}"}, "data": {"a": "b"}})
        for query in (
            "",
            "?limit=5",
            "?labelSelector=n%3D1",
            "?fieldSelector=metadata.name%3Dm-3",
            "?resourceVersion=0",
        ):
            for accept in ("application/json", "application/yaml", TABLE, PARTIAL):
                self.ask("GET", MAPS + query, accept=accept)
        self.errors()
        self.watches()
        self.cuts()
        for number in range(20):
            self.ask("DELETE", f"{MAPS}/m-{number}")
        self.connection.close()

    def ask(
        self, method: str, path: str, body: Any = None, *, wanted: int = 200, accept: str = "application/json"
    ) -> None:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        self.connection.request(method, path, data, {"Content-Type": "application/json", "Accept": accept})
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status == wanted, text

    def errors(self) -> None:
        self.ask("GET", f"{MAPS}/none", wanted=404)
        self.ask("GET", "/apis/none/v1/things", wanted=404)
        self.ask("POST", MAPS, {"metadata": {"name": "m-1"}}, wanted=409)
        self.ask("POST", MAPS, {"metadata": {"name": "Not A Name"}}, wanted=422)
        self.ask("POST", MAPS, b'{"metadata":', wanted=400)
        self.ask("GET", f"{MAPS}?labelSelector=%28", wanted=400)
        self.ask("GET", MAPS, accept="text/plain", wanted=406)
        self.ask("PUT", f"{MAPS}/m-1", {"metadata": {"name": "m-1", "resourceVersion": "1"}}, wanted=409)

    def watches(self) -> None:
        for query in (
            "&labelSelector=n%3D1",
            "&resourceVersion=1",
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        ):
            bookmarks = "&allowWatchBookmarks=true" if "sendInitial" in query else ""
            self.ask("GET", f"{MAPS}?watch=1&timeoutSeconds=1{query}{bookmarks}")

    def cuts(self) -> None:
        """Connections reset at every stage."""
        get = f"GET {MAPS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        watch = get.replace(b" HTTP", b"?watch=1 HTTP", 1)
        post = f"POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n".encode()
        for sent in (b"", get[:20], get, get * 5, watch, post, post + b"{" * 50, b"\x00garbage\r\n\r\n"):
            raw = socket.create_connection(("127.0.0.1", self.port), timeout=30)
            tls = self.context.wrap_socket(raw, server_hostname="localhost")
            tls.sendall(sent)
            if sent is watch:
                tls.recv(100)
            tls.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            tls.close()
        half = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        half.sendall(b"\x16\x03\x01\x02\x00")
        half.close()


def cached() -> int:
    """Distinct objects that the caches and their windows hold."""
    found = set()
    for cache in [o for o in gc.get_objects() if type(o) is ResourceCache]:
        # The lists are brought up to date when a range is asked for.
        found |= {id(obj) for obj in (*cache._store.by_key.values(), *cache._store.objects)}
        for change in cache._window._changes:
            found |= {id(obj) for obj in (change.object, change.previous) if obj is not None}
    return len(found)


async def settled(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        gc.collect()
        assert time.monotonic() < deadline, (http1.live(), objects.live(), cached())
        await asyncio.sleep(0.02)


def test_live_objects_are_the_cached_ones(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.leaks.test_live_objects", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr


async def live(home: Path) -> None:
    completed = complete(Options.parse(["--data-dir", str(home), "--bind-address", "127.0.0.1", "--secure-port", "0"]))
    server = await compose(completed)
    await server.start()
    try:
        loop = asyncio.get_running_loop()
        matchers = []
        for _ in range(2):
            await loop.run_in_executor(None, Session(server.port, home / "pki"))
            await settled(lambda: set(http1.live().values()) == {0})
            await settled(lambda: objects.live()["CachedObject"] == cached())
            matchers.append(selector.live()["Matcher"])
        assert matchers[0] == matchers[1], "matchers of requests long gone"
    finally:
        await server.stop()
    del server, completed  # its metrics know the caches
    await settled(lambda: objects.live()["CachedObject"] == 0)


def test_counters_count() -> None:
    """The counters themselves."""
    before = objects.live()["CachedObject"], selector.live()["Matcher"]
    value = b'{"kind":"A","apiVersion":"v1","metadata":{"name":"a","uid":"u"}}'
    kept = [objects.CachedObject("/k/a", "", "a", value, 2, 2), selector.Matcher([], [])]
    kept.append(kept[0].at_revision(3))
    assert (objects.live()["CachedObject"], selector.live()["Matcher"]) == (before[0] + 2, before[1] + 1)
    with contextlib.suppress(ValueError):
        objects.CachedObject("/k/b", "", "b", b"{", 2, 2)
    del kept
    assert (objects.live()["CachedObject"], selector.live()["Matcher"]) == before


if __name__ == "__main__":
    uvloop.run(live(Path(sys.argv[1])))
