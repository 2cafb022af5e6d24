"""What a request for an aggregated group costs the front server, and discovery with very many of them.

    python -m bench.micro_aggregate [--requests 3000] [--services 1000] [--dead 50]

The front server and the backend are processes of their own over TLS; CPU microseconds of the front server per request, of a
GET it answers itself and of one it passes on, of an event of a watch that it passes on, and milliseconds of discovery.
"""

from __future__ import annotations

import argparse
import http.client
import json
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.micro_webhooks import certificate
from bench.process import Served

BODY = b"x" * 1024
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
_SERVER = """
import asyncio, ssl, sys, uvloop
body = b"x" * 1024
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            if b"watch=1" in head:
                writer.write(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
                for _ in range(20000):
                    writer.write(b"400\\r\\n" + body + b"\\r\\n")
                    await writer.drain()
                    await asyncio.sleep(0)
                writer.write(b"0\\r\\n\\r\\n")
            else:
                writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: 1024\\r\\n\\r\\n" + body)
    except (OSError, EOFError):
        pass
    writer.close()
async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1])
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
uvloop.run(main())
"""


class Client:
    """One connection to the front server."""

    def __init__(self, port: int) -> None:
        context = ssl._create_unverified_context()
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)

    def ask(self, method: str, path: str, tree: Any = None, accept: str = "application/json") -> tuple[int, bytes]:
        headers = {"Authorization": "Bearer bench", "Accept": accept, "Content-Type": "application/json"}
        self.connection.request(method, path, None if tree is None else json.dumps(tree), headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def must(self, method: str, path: str, tree: Any = None) -> Any:
        status, body = self.ask(method, path, tree)
        assert status < 300, (status, body[:500])
        return json.loads(body)


def service(group: str, port: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"v1.{group}"},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": "default", "name": "backend", "port": port},
        },
    }  # fmt: skip


def cost(server: Served, client: Client, path: str, requests: int) -> float:
    """CPU microseconds of the server per request."""
    for _ in range(200):
        client.ask("GET", path)
    before = server.cpu()
    for _ in range(requests):
        assert client.ask("GET", path)[0] == 200
    return (server.cpu() - before) / requests * 1e6


def run(requests: int, services: int, dead: int) -> dict[str, float]:
    """Row -> number."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        certificate(home)
        command = [sys.executable, "-c", _SERVER, str(home / "pair.pem")]
        backend = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert backend.stdout is not None
        port = int(backend.stdout.readline())
        (home / "tokens").write_text('bench,admin,1,"system:masters"\n')
        server = Served(home / "data", home / "log", "--token-auth-file", str(home / "tokens"))
        try:
            return _measure(server, Client(server.port), port, requests, services, dead)
        finally:
            server.process.terminate()
            server.process.wait()
            backend.terminate()
            backend.wait()


def _measure(server: Served, client: Client, port: int, requests: int, services: int, dead: int) -> dict[str, float]:
    tree = {"metadata": {"name": "backend"}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}
    client.must("POST", "/api/v1/namespaces/default/services", tree)
    client.must(
        "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "one"}, "data": {"a": "x" * 700}}
    )
    client.must("POST", SERVICES, service("bench.example.com", port))
    _available(client, "v1.bench.example.com")
    found = {
        "local GET": cost(server, client, "/api/v1/namespaces/default/configmaps/one", requests),
        "proxied GET": cost(server, client, "/apis/bench.example.com/v1/things/one", requests),
    }
    before = server.cpu()
    client.ask("GET", "/apis/bench.example.com/v1/things?watch=1")
    found["proxied watch event"] = (server.cpu() - before) / 20_000 * 1e6
    for number in range(services):
        gone = number < dead
        client.must("POST", SERVICES, service(f"g{number:04d}.example.com", 1 if gone else port))
    _available(client, f"v1.g{services - 1:04d}.example.com")
    time.sleep(5)
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    for name, accept in (("discovery", "application/json"), ("aggregated discovery", aggregated)):
        times = []
        for _ in range(100):
            start = time.perf_counter()
            client.ask("GET", "/apis", accept=accept)
            times.append(time.perf_counter() - start)
        found[f"{name} of {services} services, {dead} dead, median ms"] = sorted(times)[50] * 1e3
        found[f"{name} of {services} services, {dead} dead, worst ms"] = max(times) * 1e3
    before = server.cpu()
    time.sleep(10)
    found["idle CPU with them, percent"] = (server.cpu() - before) / 10 * 100
    return found


def _available(client: Client, name: str) -> None:
    for _ in range(200):
        tree = client.must("GET", f"{SERVICES}/{name}")
        conditions = (tree.get("status") or {}).get("conditions") or [{}]
        if conditions[0].get("status") == "True":
            return
        time.sleep(0.1)
    raise AssertionError(f"{name} does not become available")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--services", type=int, default=1000)
    parser.add_argument("--dead", type=int, default=50)
    given = parser.parse_args()
    for name, number in run(given.requests, given.services, given.dead).items():
        print(f"{name:60} {number:10.1f}")


if __name__ == "__main__":
    main()
