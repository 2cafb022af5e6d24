"""A front server and extension servers behind it, each a process of its own, over real TLS; and a client that is one."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cryptography import x509

from fastapi_core.testing.server import RunningServer
from tests.fixtures.pki import Pair, authority
from tests.fixtures.server import TOKENS, Api

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PATIENCE = 20.0
DELAY = "500ms"
PROXY = "front-proxy-client"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def own_address() -> str:
    """An address of this machine that an endpoint may have; "" when there is only the loopback one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return ""
        found = str(probe.getsockname()[0])
    return "" if found.startswith(("127.", "169.254.")) else found


def until(true: Callable[[], Any], what: str = "it") -> Any:
    """The first answer that is true."""
    end = time.monotonic() + PATIENCE
    while not (found := true()):
        assert time.monotonic() < end, f"{what} does not happen"
        time.sleep(0.02)
    return found


def replace(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_bytes(data)
    temporary.rename(path)


def free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


class Process:
    """A Python process of the test; `log` is what it writes to standard error."""

    def __init__(self, log: Path, *arguments: str, tag: str = "") -> None:
        self.log = log
        self._sink = log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=self._sink,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TAG": tag},
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        found = self.process.stdout.readline()
        assert found, self.log.read_text()[-3000:]
        return found

    def tell(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code and the rest of its standard output."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=PATIENCE)
        self._sink.close()
        return self.process.returncode, rest


class Service:
    """An extension as it is registered, and the servers behind it by their tags."""

    def __init__(self, stage: Stage, name: str, tags: Sequence[str], extension: Path | None = None) -> None:
        self.stage, self.name, self.group = stage, name, f"{name}.example.test"
        self.extension = extension
        self.folder = stage.folder / name
        self.folder.mkdir()
        self.ports = {tag: free_port(stage.address) for tag in tags}
        self.servers: dict[str, Process] = {}
        self.cert, self.key = self.folder / "tls.crt", self.folder / "tls.key"
        self.bundle = self.folder / "bundle.pem"
        self.mount(stage.serving)
        self.bundle.write_bytes(stage.serving.pem)

    def mount(self, ca: Pair) -> None:
        """Another serving certificate, as a Secret that is mounted brings it."""
        names = [x509.DNSName(f"{self.name}.default.svc")]
        pair = ca.issue(self.name, names=names, server=True)
        cert, key = pair.write(self.folder, "fresh")
        # The pair is taken when it fits, whichever file comes first.
        Path(key).rename(self.key)
        Path(cert).rename(self.cert)

    def register(self, *flags: str) -> str:
        endpoints = [f"--endpoint={self.stage.address}:{port}" for port in self.ports.values()]
        return self.stage.command("register", *self._about(), *endpoints, "--ca-file", str(self.bundle), *flags)

    def unregister(self) -> str:
        return self.stage.command("unregister", *self._about())

    def _about(self) -> list[str]:
        if self.extension is not None:
            return [str(self.extension)]
        return ["--name", self.name, "--group-version", f"{self.group}/v1"]

    def kubeconfig(self) -> Path:
        """How the servers reach the front: by a token of the account that `register` made."""
        path = f"/api/v1/namespaces/default/serviceaccounts/{self.name}/token"
        status, tree = self.stage.api("POST", path, {"spec": {"expirationSeconds": 3600}})
        assert status == 201, tree
        token = self.folder / "token"
        token.write_text(tree["status"]["token"])
        front = self.stage.front
        document = {
            "clusters": [
                {
                    "name": "c",
                    "cluster": {"server": front.url, "certificate-authority": str(front.data_dir / "pki/ca.crt")},
                }
            ],
            "users": [{"name": "u", "user": {"tokenFile": str(token)}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        found = self.folder / "kubeconfig"
        found.write_text(json.dumps(document))
        return found

    def start(self, tag: str, *flags: str, port: int = 0, wait: bool = True) -> Process:
        if self.extension is not None:
            program = [str(self.extension), "serve"]
        else:
            program = [str(HERE / "backend_process.py"), "--name", self.name, "--group", self.group, "--tag", tag]
        process = self.servers[tag] = Process(
            self.folder / f"{tag}.log",
            *program,
            f"--data-dir={self.folder / tag}",
            f"--kubeconfig={self.folder / 'kubeconfig'}",
            f"--bind-address={self.stage.address}",
            f"--secure-port={port or self.ports[tag]}",
            f"--tls-cert-file={self.cert}",
            f"--tls-private-key-file={self.key}",
            # As in every deployment: requests that were on their way when the endpoint went still find somebody.
            f"--shutdown-delay-duration={DELAY}",
            *flags,
            tag=tag,
        )
        if wait:
            process.line()
        return process

    def ready(self, tag: str, ready: bool) -> None:
        """Tell the front whether an endpoint takes requests, as the controller of endpoints does."""
        path = f"{SLICES}/{self.name}-ipv4-{self.ports[tag]}"
        status, tree = self.stage.api("GET", path)
        assert status == 200, tree
        for endpoint in tree["endpoints"]:
            endpoint["conditions"] = {"ready": ready}
        assert self.stage.api("PUT", path, tree)[0] == 200

    def get(self, name: str = "x", token: str = "admintoken") -> tuple[int, Any]:
        return self.stage.ask(token, f"/apis/{self.group}/v1/things/{name}")

    def direct(
        self, tag: str, path: str, headers: dict[str, str] | None = None, pair: Pair | None = None
    ) -> tuple[int, Any]:
        """Ask a server itself, past the front."""
        context = ssl.create_default_context(cadata=self.bundle.read_text())
        if pair is not None:
            context.load_cert_chain(*pair.write(self.folder, "client"))
        # The certificate is for the name of the Service, whatever the address is.
        name = f"{self.name}.default.svc"
        with (
            socket.create_connection((self.stage.address, self.ports[tag]), PATIENCE) as plain,
            context.wrap_socket(plain, server_hostname=name) as secured,
        ):
            client = http.client.HTTPConnection(name)
            client.sock = secured
            client.request("GET", path, headers={"Connection": "close", **(headers or {})})
            answer = client.getresponse()
            body = answer.read()
        try:
            return answer.status, json.loads(body)
        except ValueError:
            return answer.status, body.decode()


class Stage:
    """The front and two services: `one` has two servers made by hand, `two` two made with the framework."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = own_address()
        self.serving = authority("serving-1")
        self.proxies = authority("proxies-1")
        self.proxy_bundle = folder / "proxies.pem"
        self.proxy_bundle.write_bytes(self.proxies.pem)
        self.clients: dict[str, Api] = {}
        cert, key = self.proxies.issue(PROXY).write(folder, "proxy")
        self.front = RunningServer(
            folder / "front",
            tokens=TOKENS,
            flags=[
                f"--proxy-client-cert-file={cert}",
                f"--proxy-client-key-file={key}",
                f"--requestheader-client-ca-file={self.proxy_bundle}",
                f"--requestheader-allowed-names={PROXY}",
                "--requestheader-username-headers=X-Remote-User",
                "--requestheader-group-headers=X-Remote-Group",
                "--requestheader-extra-headers-prefix=X-Remote-Extra-",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--enable-aggregator-routing=true",
            ],
        )
        self.one = Service(self, "one", ("one-a", "one-b"))
        self.two = Service(self, "two", ("two-a", "two-b"), HERE / "extension_process.py")

    def open(self) -> None:
        """Register, run the servers, wait until both groups are available."""
        for service in (self.one, self.two):
            service.register("--timeout=0")
            service.kubeconfig()
        processes = [(s, tag, s.start(tag, wait=False)) for s in (self.one, self.two) for tag in s.ports]
        for _, _, process in processes:
            process.line()
        for service in (self.one, self.two):
            assert "is available" in service.register()

    def api(self, method: str, path: str, body: Any = None, token: str = "admintoken") -> tuple[int, Any]:
        client = self.clients.get(token)
        if client is None:
            client = self.clients[token] = Api(self.front, token)
            if token != "admintoken":
                # The certificate of the admin would go before the token.
                client.connection = http.client.HTTPSConnection(
                    "127.0.0.1", self.front.port, context=self.trust(), timeout=PATIENCE
                )
        return client(method, path, body)

    def trust(self) -> ssl.SSLContext:
        """Of a client without a certificate."""
        return ssl.create_default_context(cafile=str(self.front.data_dir / "pki/ca.crt"))

    def ask(self, token: str, path: str) -> tuple[int, Any]:
        return self.api("GET", path, token=token)

    def command(self, *arguments: str) -> str:
        """`fastapi-core extension ...` with the admin's kubeconfig; what it prints."""
        found = subprocess.run(
            [
                sys.executable,
                "-m",
                "fastapi_core.cli.main",
                "extension",
                *arguments,
                f"--kubeconfig={self.front.kubeconfig}",
            ],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
            timeout=60,
        )
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout

    def load(self) -> Process:
        groups = f"{self.one.group},{self.two.group}"
        ca = str(self.front.data_dir / "pki/ca.crt")
        process = Process(
            self.folder / "load.log", str(HERE / "load_process.py"), str(self.front.port), ca, "admintoken", groups
        )
        process.line()
        return process

    def show(self, ca: Pair) -> str:
        """Let the front show another proxy certificate; the end of it, as servers tell it."""
        pair = ca.issue(PROXY)
        cert, key = pair.write(self.folder, "proxy-fresh")
        Path(key).rename(self.folder / "proxy.key")
        Path(cert).rename(self.folder / "proxy.crt")
        self.front.process.send_signal(signal.SIGHUP)
        return pair.der[-16:].hex()

    def close(self) -> None:
        servers = [server for service in (self.one, self.two) for server in service.servers.values()]
        for server in servers:
            if server.process.poll() is None:
                server.tell(signal.SIGTERM)
        for server in servers:
            server.process.wait(PATIENCE)
            server.end()
        for client in self.clients.values():
            client.connection.close()
        assert self.front.stop() == 0
