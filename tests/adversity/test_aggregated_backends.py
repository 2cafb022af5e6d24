"""Backends of the front server over real TLS: certificates renewed on both sides, restarts under load, killed streams."""

from __future__ import annotations

import base64
import contextlib
import datetime
import http.client
import http.server
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fastapi_core.testing.server import RunningServer
from tests.fixtures.server import TOKENS, Api

pytestmark = pytest.mark.adversity

GROUP = "faults.example.test"
PATH = f"/apis/{GROUP}/v1/things"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class Authority:
    """A CA that writes certificate and key of a name into one file."""

    def __init__(self, folder: Path) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
        self.pem = self._sign("authority", self.key, ca=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(self.pem)

    def _sign(self, name: str, key: ec.EllipticCurvePrivateKey, *, ca: bool = False) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(self.name if ca else x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)

    def issue(self, file: Path, name: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        temporary = file.with_suffix(".new")
        temporary.write_bytes(self._sign(name, key) + secret)
        temporary.rename(file)


class Backend:
    """An HTTPS server that asks for a client certificate and answers with who showed one."""

    def __init__(self, pair: Path, authority: Authority, port: int = 0) -> None:
        backend = self
        self.sockets: list[Any] = []
        self.dying = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                backend.sockets.append(self.request)
                self.request.do_handshake()
                super().setup()

            def log_message(self, *arguments: Any) -> None:
                """Quiet."""

            def do_GET(self) -> None:
                if "watch=1" in self.path:
                    self.send_response(200)
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.wfile.write(b"3\r\none\r\n")
                    self.wfile.flush()
                    backend.dying.wait(30)
                    return
                subject = dict(part[0] for part in (self.connection.getpeercert() or {}).get("subject", ()))
                body = json.dumps({"peer": subject.get("commonName"), "port": backend.port}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair)
        context.load_verify_locations(cadata=authority.pem.decode())
        context.verify_mode = ssl.CERT_REQUIRED
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.handle_error = lambda *arguments: None  # type: ignore[method-assign]
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.dying.set()
        for connection in self.sockets:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)


class Stage:
    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.proxy, self.pair = folder / "proxy.pem", folder / "backend.pem"
        self.authority.issue(self.proxy, "proxy-1")
        self.authority.issue(self.pair, "backend.default.svc")
        flags = [f"--proxy-client-cert-file={self.proxy}", f"--proxy-client-key-file={self.proxy}"]
        self.front = RunningServer(folder / "data", flags=flags, tokens=TOKENS)
        self.api = Api(self.front)
        self.backend = Backend(self.pair, self.authority)

    def register(self) -> None:
        spec = {"type": "ExternalName", "externalName": "localhost"}
        made = self.api("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "backend"}, "spec": spec})
        assert made[0] == 201
        service = {"namespace": "default", "name": "backend", "port": self.backend.port}
        bundle = base64.b64encode(self.authority.pem).decode()
        tree = {"group": GROUP, "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1, "caBundle": bundle}
        made = self.api("POST", SERVICES, {"metadata": {"name": f"v1.{GROUP}"}, "spec": {**tree, "service": service}})
        assert made[0] == 201, made
        self.until(lambda: self.api("GET", PATH)[0] == 200)

    def until(self, true: Callable[[], Any]) -> Any:
        end = time.monotonic() + 20
        while not (found := true()):
            assert time.monotonic() < end, "does not happen"
            time.sleep(0.05)
        return found

    def close(self) -> None:
        self.api.connection.close()
        assert self.front.stop() == 0
        self.backend.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    try:
        made.register()
        yield made
    finally:
        made.close()


def test_certificates_are_renewed_while_requests_run(stage: Stage) -> None:
    assert stage.api("GET", PATH)[1]["peer"] == "proxy-1"
    stage.authority.issue(stage.proxy, "proxy-2")

    def renewed() -> bool:
        status, answer = stage.api("GET", PATH)
        assert status == 200, answer
        return bool(answer["peer"] == "proxy-2")

    stage.until(renewed)


def test_a_restart_under_load_loses_only_what_meets_no_server(stage: Stage) -> None:
    stop, wrong, good = threading.Event(), [], [0]

    def load() -> None:
        client = Api(stage.front)
        while not stop.is_set():
            status, answer = client("GET", PATH)
            good[0] += status == 200
            if status != 200 and not (status == 503 and ("refused" in str(answer) or "unavailable" in str(answer))):
                wrong.append((status, answer))
        client.connection.close()

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        port = stage.backend.port
        stage.backend.close()
        stage.backend = Backend(stage.pair, stage.authority, port)
        before = good[0]
        stage.until(lambda before=before: good[0] > before + 20)
    stop.set()
    for thread in threads:
        thread.join()
    # What was on its way on a connection that the backend cut may have been answered half.
    assert [entry for entry in wrong if "EOF" not in str(entry) and "reset" not in str(entry)] == []


def test_a_killed_backend_ends_its_streams_and_nobody_elses(stage: Stage) -> None:
    connection = http.client.HTTPSConnection(
        "127.0.0.1", stage.front.port, context=stage.front.ssl_context(), timeout=20
    )
    connection.request("GET", PATH + "?watch=1", headers={"Authorization": "Bearer admintoken"})
    answer = connection.getresponse()
    assert answer.read(3) == b"one"
    port = stage.backend.port
    stage.backend.close()
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        answer.read()
    connection.close()
    start = time.monotonic()
    assert stage.api("GET", PATH)[0] == 503
    for path in ("/apis", "/apis/apps/v1", "/api/v1/namespaces"):
        assert stage.api("GET", path)[0] == 200
    assert time.monotonic() - start < 2
    stage.backend = Backend(stage.pair, stage.authority, port)
    stage.until(lambda: stage.api("GET", PATH)[0] == 200)


def test_a_stream_under_way_does_not_hold_the_shutdown_up(stage: Stage) -> None:
    context = stage.front.ssl_context()
    connection = http.client.HTTPSConnection("127.0.0.1", stage.front.port, context=context, timeout=20)
    connection.request("GET", PATH + "?watch=1", headers={"Authorization": "Bearer admintoken"})
    answer = connection.getresponse()
    assert answer.read(3) == b"one"
    start = time.monotonic()
    assert stage.front.stop() == 0
    assert time.monotonic() - start < 10
    with contextlib.suppress(http.client.IncompleteRead, OSError):
        answer.read()
    connection.close()
