"""Logs, exec, port forwarding and node proxy against a kubelet of a few lines."""

from __future__ import annotations

import select
import socket
import ssl
from typing import Any

import pytest

from tests.fixtures.kubelet import LOG, Kubelet
from tests.fixtures.server import Api


def test_logs_come_from_the_kubelet(api: Api, kubelet: Kubelet, pod: str, namespace: str) -> None:
    code, text = api("GET", f"{pod}/log?tailLines=5&timestamps=true&follow=true")
    assert (code, text) == (200, b"".join(LOG).decode())
    first, headers = kubelet.requests[-1]
    assert first == f"GET /containerLogs/{namespace}/p/c?follow=true&tailLines=5&timestamps=true HTTP/1.1"
    assert "authorization" not in headers


def exchange(sock: ssl.SSLSocket, data: bytes) -> bytes:
    """Send `data` while reading until the end: one thread, as two may not use one TLS connection at a time."""
    received = b""
    sock.setblocking(False)
    while True:
        try:
            piece = sock.recv(65536)
            if not piece:
                return received
            received += piece
            continue
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        try:
            if data:
                data = data[sock.send(data[:16384]) :]
                continue
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        ready, writable, _ = select.select([sock], [sock] if data else [], [], 30)
        assert ready or writable, "nothing moves"


def upgrade(api: Api, path: str, protocol: str) -> tuple[ssl.SSLSocket, bytes]:
    raw = socket.create_connection(("127.0.0.1", api.server.port), timeout=30)
    sock = api.server.ssl_context().wrap_socket(raw, server_hostname="127.0.0.1")
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.token}\r\nContent-Length: 0\r\n"
    sock.sendall(f"{head}Connection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n".encode())
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        assert piece, data
        data += piece
    return sock, data


@pytest.mark.parametrize(
    ("subresource", "expected"),
    [
        (
            "exec?command=echo&command=a%20b&stdin=true&stdout=1",
            "/exec/{}/p/c?command=echo&command=a+b&input=1&output=1",
        ),
        ("portforward?ports=80", "/portForward/{}/p?port=80"),
    ],
)
def test_an_upgrade_becomes_a_tunnel(
    api: Api, kubelet: Kubelet, pod: str, namespace: str, subresource: str, expected: str
) -> None:
    sock, data = upgrade(api, f"{pod}/{subresource}", "SPDY/3.1")
    with sock:
        head, _, received = data.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        assert lines[0] == b"http/1.1 101 switching protocols"
        assert b"connection: upgrade" in lines
        assert b"upgrade: spdy/3.1" in lines
        assert b"x-stream-protocol-version: v4.channel.k8s.io" in lines
        assert not any(line.startswith((b"transfer-encoding", b"content-length")) for line in lines)
        received += exchange(sock, b"x" * 300_000 + b"bye")
    assert received.startswith(b"hello ")
    assert b"X" * 1000 in received
    assert kubelet.requests[-1][0] == f"POST {expected.format(namespace)} HTTP/1.1"


def test_exec_without_upgrade(api: Api, pod: str) -> None:
    code, status = api("POST", f"{pod}/exec?command=ls")
    assert (code, status["message"]) == (400, "Upgrade request required")


def test_a_kubelet_that_is_away(api: Api, pod: str, namespace: str) -> None:
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    status: Any = {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
    merge = {"Content-Type": "application/merge-patch+json"}
    assert api("PATCH", f"/api/v1/nodes/node-{namespace}/status", {"status": status}, merge)[0] == 200
    refused = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    code, answer = api("GET", f"{pod}/log")
    assert (code, answer["message"]) == (
        500,
        f'Get "https://127.0.0.1:{port}/containerLogs/{namespace}/p/c": {refused}',
    )
    sock, data = upgrade(api, f"{pod}/exec?command=ls", "websocket")
    with sock:
        assert b" 500 " in data.split(b"\r\n")[0]
    code, answer = api("GET", f"/api/v1/nodes/node-{namespace}/proxy/pods")
    assert (code, answer["reason"]) == (503, "ServiceUnavailable")
    assert answer["message"] == f"error trying to reach service: {refused}"


def test_a_node_that_is_not_there(api: Api, namespace: str) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}], "automountServiceAccountToken": False, "nodeName": "nowhere"}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    assert api("POST", pods, {"metadata": {"name": "p"}, "spec": spec})[0] == 201
    assert api("GET", f"{pods}/p/log")[1]["message"] == 'nodes "nowhere" not found'


def test_the_node_proxy_passes_requests_on(api: Api, kubelet: Kubelet, pod: str, namespace: str) -> None:
    node = f"/api/v1/nodes/node-{namespace}/proxy"
    code, answer = api("POST", f"{node}/run/a%2Fb?x=1&y=%20", {"a": 1}, {"Connection": "keep-alive"})
    assert (code, answer) == (404, {"path": "/run/a%2Fb?x=1&y=%20", "from": "https"})
    first, headers = kubelet.requests[-1]
    assert first.startswith("POST ")
    assert headers["content-type"] == "application/json"
    assert "authorization" not in headers
    assert headers["x-forwarded-for"] == "127.0.0.1"
    api.connection.request("GET", node, headers={"Authorization": f"Bearer {api.token}"})
    redirect = api.connection.getresponse()
    redirect.read()
    assert (redirect.status, redirect.getheader("Location")) == (301, f"{node}/")
    api.connection.request("GET", f"{node}/moved", headers={"Authorization": f"Bearer {api.token}"})
    redirect = api.connection.getresponse()
    redirect.read()
    assert (redirect.status, redirect.getheader("Location")) == (302, f"{node}/there?x=1")
    assert api("GET", f"{node}/?dryRun=All")[1]["message"] == "dryRun is not supported"
    assert api("GET", f"/api/v1/nodes/node-{namespace}:1/proxy/")[1]["message"] == "address not allowed"


def test_proxies_that_lead_nowhere(api: Api, pod: str, namespace: str) -> None:
    services = f"/api/v1/namespaces/{namespace}/services"
    assert api("POST", services, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})[0] == 201
    assert api("GET", f"{pod}/proxy/")[1]["message"] == "address not allowed"
    expected = {
        "s": (503, 'no endpoints available for service "s"'),
        "s:81": (503, 'no service port 81 found for service "s"'),
        "ftp:s:80": (400, 'invalid service request "ftp:s:80"'),
        "nope": (404, 'services "nope" not found'),
    }
    for name, (code, text) in expected.items():
        answered, status = api("GET", f"{services}/{name}/proxy/")
        assert (answered, status["message"]) == (code, text)
