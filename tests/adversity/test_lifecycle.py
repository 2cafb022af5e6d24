"""Starting, reloading and stopping a real process: real TLS, real signals, a service manager that listens."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.unit.http.http_support import Authority

EVENTS = ["started", "shutdown_initiated", "after_shutdown_delay", "not_accepting", "drained", "stopped"]


#: Connections and answers of the test that runs, closed at its end.
OPEN: list[http.client.HTTPSConnection | http.client.HTTPResponse] = []


class Life:
    """Starts servers and sees to it that none is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers: list[RunningServer] = []

    def start(self, *flags: str) -> RunningServer:
        server = RunningServer(self.folder / f"data{len(self.servers)}", flags=flags)
        self.servers.append(server)
        return server

    def end(self) -> None:
        for closable in OPEN:
            closable.close()
        OPEN.clear()
        for server in self.servers:
            server.kill()  # it may be gone already; its pipes are closed in any case


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path)
    yield found
    found.end()


def connect(server: RunningServer) -> http.client.HTTPSConnection:
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=server.ssl_context(), timeout=20)
    OPEN.append(connection)
    return connection


def get(connection: http.client.HTTPSConnection, path: str) -> tuple[int, http.client.HTTPResponse, bytes]:
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer, answer.read()


def log(server: RunningServer) -> str:
    return (server.data_dir / "server.log").read_text()


def events(server: RunningServer) -> list[str]:
    return re.findall(r'"Lifecycle event" event="(\w+)"', log(server))


def until(server: RunningServer, event: str) -> None:
    """Wait until the server has said that this happened."""
    end = time.monotonic() + 20
    while event not in events(server):
        assert time.monotonic() < end, log(server)
        time.sleep(0.01)


def test_the_service_manager_hears_of_start_and_stop(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        server = life.start()
        assert manager.recv(200).startswith(b"READY=1")
        assert get(connect(server), "/readyz")[0] == 200
        server.process.send_signal(signal.SIGTERM)
        assert manager.recv(200).startswith(b"STOPPING=1")
    assert server.process.wait(20) == 0
    assert events(server) == EVENTS


def test_during_the_delay_only_readiness_fails(life: Life) -> None:
    server = life.start("--shutdown-delay-duration=1500ms")
    kept = connect(server)
    assert get(kept, "/readyz")[0] == 200
    server.process.send_signal(signal.SIGTERM)
    until(server, "shutdown_initiated")
    status, _, body = get(kept, "/readyz")
    assert (status, b"[-]shutdown failed" in body) == (500, True)
    # Somebody who has not noticed yet is still served, on a new connection too.
    assert get(connect(server), "/livez")[0] == 200
    assert get(connect(server), "/api/v1/namespaces/default")[0] == 200
    assert server.process.wait(20) == 0
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset
        get(connect(server), "/livez")


def test_a_second_signal_ends_the_process_at_once(life: Life) -> None:
    server = life.start("--shutdown-delay-duration=10m")
    server.process.send_signal(signal.SIGTERM)
    until(server, "shutdown_initiated")
    started = time.monotonic()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(20) == 1
    assert time.monotonic() - started < 5
    assert "stopped" not in events(server)


def watch(server: RunningServer) -> http.client.HTTPResponse:
    connection = connect(server)
    connection.request("GET", "/api/v1/namespaces?watch=1&resourceVersion=0")
    answer = connection.getresponse()
    OPEN.append(answer)
    assert answer.status == 200
    answer.readline()
    return answer


def test_watches_end_as_whole_answers(life: Life) -> None:
    server = life.start()
    watches = [watch(server) for _ in range(3)]
    server.process.send_signal(signal.SIGTERM)
    # read() raises IncompleteRead unless the last chunk came.
    assert [w.read().count(b"ERROR") for w in watches] == [0, 0, 0]
    assert server.process.wait(20) == 0


def test_clients_are_sent_away_while_watches_end_one_after_the_other(life: Life) -> None:
    server = life.start("--shutdown-send-retry-after", "--shutdown-watch-termination-grace-period=2s")
    watches = [watch(server) for _ in range(4)]
    server.process.send_signal(signal.SIGTERM)
    until(server, "not_accepting")
    status, answer, body = get(connect(server), "/api/v1/namespaces/default")
    assert (status, body) == (429, b"The apiserver is shutting down, please try again later.\n")
    assert (answer.getheader("Retry-After"), answer.getheader("Connection")) == ("5", "close")
    assert get(connect(server), "/livez")[0] in (200, 503)
    ends = []
    for one in watches:
        one.read()
        ends.append(time.monotonic())
    assert server.process.wait(20) == 0
    assert events(server) == EVENTS


def served(server: RunningServer, ca: str, name: str) -> str:
    """Common name of the certificate shown to a client that asks for `name`."""
    context = ssl.create_default_context(cafile=ca)
    context.check_hostname = False
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname=name) as secured,
    ):
        subject = secured.getpeercert()
    assert subject is not None
    names = subject["subject"]
    return str(names[0][0][1])  # type: ignore[index]


def test_certificates_are_reloaded_and_connections_live_on(life: Life, tmp_path: Path) -> None:
    authority = Authority("test authority")
    ca = authority.write_ca(tmp_path / "ca.pem")
    cert, key = authority.write_pair(tmp_path / "a.crt", tmp_path / "a.key", "first")
    sni_cert, sni_key = authority.write_pair(tmp_path / "b.crt", tmp_path / "b.key", "named")
    server = life.start(
        f"--tls-cert-file={cert}",
        f"--tls-private-key-file={key}",
        f"--tls-sni-cert-key={sni_cert},{sni_key}:*.example.com",
    )
    assert served(server, ca, "localhost") == "first"
    assert served(server, ca, "api.example.com") == "named"
    context = ssl.create_default_context(cafile=ca)
    kept = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=20)
    OPEN.append(kept)
    assert get(kept, "/livez")[0] == 200

    authority.write_pair(tmp_path / "a.crt", tmp_path / "a.key", "second")
    authority.write_pair(tmp_path / "b.crt", tmp_path / "b.key", "named again")
    server.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + 20
    while served(server, ca, "localhost") != "second":
        assert time.monotonic() < end, log(server)
        time.sleep(0.01)
    assert served(server, ca, "api.example.com") == "named again"
    assert get(kept, "/livez")[0] == 200, "the old connection is still there"
    assert server.stop() == 0


def test_only_suites_and_versions_of_the_flags(life: Life) -> None:
    server = life.start("--tls-min-version=VersionTLS13")
    context = server.ssl_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", server.port), timeout=20) as plain:
        context.wrap_socket(plain, server_hostname="127.0.0.1")
    assert get(connect(server), "/livez")[0] == 200


def test_a_shared_port(life: Life) -> None:
    first = life.start("--permit-port-sharing")
    second = RunningServer(life.folder / "second", flags=["--permit-port-sharing"], port=first.port)
    life.servers.append(second)
    assert second.port == first.port
    refused = subprocess.run(
        [*second.process.args[:4], f"--data-dir={life.folder / 'third'}", "--bind-address=127.0.0.1",  # type: ignore[index]
         f"--secure-port={first.port}"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert refused.returncode == 1
    assert "is taken" in refused.stderr
