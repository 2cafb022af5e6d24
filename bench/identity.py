"""GETs by how the caller proves who it is: a service account token, or a client certificate.

    python -m bench.identity PORT TARGET CERT KEY SECONDS CONNECTIONS

The command is the load with a certificate, which wrk cannot show: connections that ask again as soon as they have an
answer; it prints how many answers came.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import uvloop

from bench.load import Result, Shot, fire

if TYPE_CHECKING:
    from bench.client import Client
    from bench.process import Served

TOKEN_ROW = "GET configmap 1 KB, service account token"
CERTIFICATE_ROW = "GET configmap 1 KB, client certificate"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


class Asker(asyncio.Protocol):
    """One connection; answers to the same request are of the same length."""

    def __init__(self, request: bytes, counts: list[int]) -> None:
        self.request, self.counts = request, counts
        self.data = b""
        self.length = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.data += data
        if not self.length:
            head, end, _ = self.data.partition(b"\r\n\r\n")
            if not end:
                return
            assert head.startswith(b"HTTP/1.1 200"), head
            size = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
            self.length = len(head) + 4 + int(size.partition(b":")[2])
        if len(self.data) >= self.length:
            self.data = self.data[self.length :]
            self.counts[0] += 1
            self.transport.write(self.request)


async def load(port: int, target: str, cert: str, key: str, seconds: float, connections: int) -> int:
    context = ssl._create_unverified_context()
    context.load_cert_chain(cert, key)
    counts = [0]
    request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: Asker(request, counts), "127.0.0.1", port, ssl=context)
    print("ready", flush=True)
    await asyncio.sleep(seconds)
    return counts[0]


def rows(
    server: Served, client: Client, data: Path, shot: Shot, bare: Result, *, seconds: float, connections: int
) -> dict[str, dict[str, Any]]:
    """Both rows, beside the limit `bare` of the same request."""
    ours = fire(server, server.url, shot, account_token(client), seconds=seconds, connections=connections, run="sa")
    cpu, count = certified(server, data, shot.target, seconds, connections)
    certificate = {"cpu": cpu, "requests": count, "per_second": count / seconds}
    return {
        TOKEN_ROW: {"ours": asdict(ours), "limit": asdict(bare), "ratio": ours.cpu / bare.cpu},
        CERTIFICATE_ROW: {"ours": certificate, "limit": asdict(bare), "ratio": cpu / bare.cpu},
    }


def account_token(client: Client) -> str:
    """A token of an account that may do everything."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    client.send("POST", accounts, {"metadata": {"name": "bench"}})
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": "bench"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    client.send("POST", _BINDINGS, {"metadata": {"name": "bench"}, "roleRef": role, "subjects": [subject]})
    answer = client.send("POST", f"{accounts}/bench/token", {"spec": {}})
    return str(json.loads(answer)["status"]["token"])


def certified(server: Served, data: Path, target: str, seconds: float, connections: int) -> tuple[float, int]:
    """Microseconds of server CPU for each answer, and how many came; handshakes are done before."""
    pair = [str(data / "pki/admin.crt"), str(data / "pki/admin.key")]
    command = [sys.executable, "-m", "bench.identity", str(server.port), target, *pair, str(seconds), str(connections)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    before = server.cpu()
    count = int(process.stdout.readline())
    spent = server.cpu() - before
    process.wait(30)
    return spent / max(count, 1) * 1e6, count


def main() -> None:
    port, target, cert, key, seconds, connections = sys.argv[1:]
    print(uvloop.run(load(int(port), target, cert, key, float(seconds), int(connections))), flush=True)


if __name__ == "__main__":
    main()
