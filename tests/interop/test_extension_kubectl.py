"""The example extensions behind a server, with the real kubectl: every process one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.fixtures.pki import authority
from tests.interop.test_kubectl import Kubectl

pytestmark = pytest.mark.interop

ROOT = Path(__file__).resolve().parents[2]
PROXY = "front-proxy-client"
NODE = """
apiVersion: v1
kind: Node
metadata: {name: here}
status: {allocatable: {cpu: "2", memory: 8Gi}}
"""
DATABASE = """
apiVersion: db.example.com/v1
kind: Database
metadata: {name: shop, labels: {team: web}}
spec: {engine: postgres, sizeGi: 2}
"""


class Example:
    """One of `examples/` as a process, registered at the front."""

    def __init__(self, name: str, front: RunningServer, folder: Path, **environment: str) -> None:
        self._script = str(ROOT / "examples" / f"{name}.py")
        self._data = str(folder / name)
        self._environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "KUBECONFIG": str(front.kubeconfig), **environment
        }  # fmt: skip
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, self._script, "serve", "--bind-address=127.0.0.1", "--secure-port=0"),
                    *(f"--data-dir={self._data}", f"--kubeconfig={front.kubeconfig}"),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environment,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "Serving" in line, self.log.read_text()[-3000:]
        self.port = int(line.rpartition(":")[2])

    def command(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, self._script, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            env=self._environment,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr + self.log.read_text()[-2000:]
        return done.stdout

    def register(self) -> str:
        return self.command("register", f"--external-name=localhost:{self.port}", f"--data-dir={self._data}")

    def stop(self) -> int:
        self.process.terminate()
        self.process.communicate(timeout=20)
        return self.process.returncode


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("extensions")
    proxies = authority("proxies")
    (folder / "proxies.pem").write_bytes(proxies.pem)
    cert, key = proxies.issue(PROXY).write(folder, "proxy")
    running = RunningServer(
        folder / "front",
        flags=[
            f"--proxy-client-cert-file={cert}",
            f"--proxy-client-key-file={key}",
            f"--requestheader-client-ca-file={folder / 'proxies.pem'}",
            f"--requestheader-allowed-names={PROXY}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ],
    )
    yield running
    assert running.stop() == 0


@pytest.fixture
def kubectl(front: RunningServer, tmp_path: Path) -> Kubectl:
    return Kubectl(front, "default", tmp_path)


def test_top(front: RunningServer, kubectl: Kubectl, tmp_path: Path) -> None:
    environment = {"NODE_NAME": "here", "METRICS_PERIOD": "0.5", "POD_NAME": "metrics-0", "POD_NAMESPACE": "default"}
    environment["CONTAINER_NAME"] = "main"
    metrics = Example("metrics_api", front, tmp_path, **environment)
    try:
        assert "metrics.k8s.io/v1beta1 is available" in metrics.register()
        kubectl("create", "-f", "-", stdin=NODE)
        header, node = kubectl("top", "nodes").splitlines()
        assert header.split()[:2] == ["NAME", "CPU(cores)"]
        assert node.split()[0] == "here"
        assert node.split()[1].endswith("m")
        assert node.split()[3].endswith("Mi")
        pods = kubectl("top", "pods", "--containers").splitlines()
        # Other processes of this machine may be pods, too.
        assert ["metrics-0", "main"] in [line.split()[:2] for line in pods[1:]]
        assert kubectl("get", "nodes.metrics.k8s.io").splitlines()[0].split() == ["NAME", "CPU", "MEMORY"]
        raw = json.loads(kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes"))
        assert "resourceVersion" not in raw["metadata"]
        assert raw["items"][0]["metadata"] == {"name": "here"}
        verbs = kubectl("api-resources", "--api-group=metrics.k8s.io", "-o", "wide")
        assert "get,list" in verbs
        assert "create" not in verbs
        assert "unregister" not in metrics.command("unregister")
        assert "error" in kubectl("top", "nodes", code=1).lower()
    finally:
        assert metrics.stop() == 0


@pytest.fixture(scope="module")
def databases(front: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Example]:
    running = Example("db_api", front, tmp_path_factory.mktemp("databases"))
    assert "db.example.com/v1 is available" in running.register()
    yield running
    running.command("unregister")
    assert running.stop() == 0


def test_apply_watch_and_status(databases: Example, kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=DATABASE)
    kubectl("wait", "--for=jsonpath={.status.phase}=Ready", "database/shop", "--timeout=20s")
    row = kubectl("get", "db", "-o", "wide").splitlines()
    assert row[0].split() == ["NAME", "ENGINE", "SIZE", "PHASE", "ENDPOINT", "AGE"]
    assert row[1].split()[:5] == ["shop", "postgres", "2Gi", "Ready", "shop.default.db.example.com:5432"]
    assert "shop" in kubectl("get", "databases", "--field-selector", "spec.engine=postgres", "-l", "team=web")
    assert "No resources found" in kubectl("get", "databases", "--field-selector", "spec.engine=mysql")
    described = kubectl("describe", "database", "shop")
    assert "Observed Generation:" in described
    tree = json.loads(kubectl("get", "database", "shop", "-o", "json", "--show-managed-fields"))
    owners = {(entry["manager"], entry["operation"]) for entry in tree["metadata"]["managedFields"]}
    assert ("kubectl", "Apply") in owners
    assert tree["spec"]["version"] == "17"
    raw = json.loads(kubectl("get", "--raw", "/apis/db.example.com/v1/namespaces/default/databases/shop/credentials"))
    assert raw["kind"] == "Credentials"
    watcher = kubectl.start("get", "databases", "--watch", "--output-watch-events", "--no-headers")
    assert watcher.stdout is not None
    assert watcher.stdout.readline().split()[:2] == ["ADDED", "shop"]
    kubectl("label", "database", "shop", "team=ops", "--overwrite")
    assert watcher.stdout.readline().split()[:2] == ["MODIFIED", "shop"]
    kubectl("delete", "database", "shop")
    seen = watcher.stdout.readline().split()[0]
    while seen != "DELETED":
        seen = watcher.stdout.readline().split()[0]
    watcher.terminate()
    watcher.communicate(timeout=20)
    assert "NotFound" in kubectl("get", "database", "shop", code=1)


def test_rules_explain_and_client_side_apply(databases: Example, kubectl: Kubectl) -> None:
    assert "sizeGi\t<integer>" in kubectl("explain", "databases.spec")
    assert "Cannot be changed later." in kubectl("explain", "databases.spec.engine")
    kubectl("apply", "-f", "-", stdin=DATABASE)
    assert "configured" in kubectl("apply", "-f", "-", stdin=DATABASE.replace("sizeGi: 2", "sizeGi: 3"))
    refused = kubectl("patch", "database", "shop", "--type=merge", "-p", '{"spec":{"sizeGi":1}}', code=1)
    assert "a database cannot shrink" in refused
    refused = kubectl("patch", "database", "shop", "--type=merge", "-p", '{"spec":{"engine":"mysql"}}', code=1)
    assert "spec.engine" in refused
    refused = kubectl("create", "-f", "-", stdin=DATABASE.replace("postgres", "oracle"), code=1)
    assert 'supported values: "postgres", "mysql"' in refused
    refused = kubectl("apply", "-f", "-", stdin=DATABASE.replace("sizeGi", "size"), code=1)
    assert 'unknown field "spec.size"' in refused
    kubectl("delete", "databases", "--all")
