"""Public projects' definitions with the real kubectl: applied both ways, filled, listed, explained, deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer
from tests.interop.test_kubectl import Kubectl
from tests.interop.test_manifests import UPGRADES

pytestmark = pytest.mark.interop

FOLDERS = ("crds-cert-manager", "crds-gateway-api", "crds-prometheus-operator")
OBJECTS = """
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: own}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web}
spec: {secretName: web-tls, dnsNames: [web.example.test], issuerRef: {name: own, kind: Issuer}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: front}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: web}
spec: {groups: [{name: web, rules: [{alert: Down, expr: up == 0, for: 5m}]}]}
---
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: web}
spec: {replicas: 2}
"""
KINDS = ("issuers", "certificates", "httproutes", "prometheusrules", "prometheuses")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(tmp_path_factory.mktemp("definitions"))
    yield running
    assert running.stop() == 0


@pytest.fixture
def kubectl(server: RunningServer, tmp_path: Path) -> Kubectl:
    return Kubectl(server, "default", tmp_path)


def files(shared: Path, folder: str) -> list[str]:
    """Definitions of a project, as arguments."""
    found = sorted((shared / "manifests" / folder).glob("*.yaml"))
    return [word for path in found if not path.name.endswith(UPGRADES) for word in ("-f", str(path))]


@pytest.mark.timeout(240)
def test_definitions_are_applied_filled_listed_explained_and_deleted(kubectl: Kubectl, shared: Path) -> None:
    for folder in FOLDERS[:2]:
        kubectl("apply", *files(shared, folder))
    # Some are too large for the annotation of a client-side apply.
    for folder in FOLDERS:
        kubectl("apply", "--server-side", "--force-conflicts", *files(shared, folder))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")
    for way in ((), ("--server-side", "--force-conflicts")):
        kubectl("apply", *way, "-f", "-", stdin=OBJECTS)
    for plural in KINDS:
        assert "web" in kubectl("get", plural) or plural == "issuers"
    columns = kubectl("get", "certificates").splitlines()[0].split()
    assert columns == ["NAME", "READY", "SECRET", "AGE"]
    assert "own" in kubectl("get", "cert-manager")
    route = json.loads(kubectl("get", "httproute", "web", "-o", "json"))
    assert route["spec"]["parentRefs"] == [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "front"}]
    assert route["spec"]["rules"][0]["matches"] == [{"path": {"type": "PathPrefix", "value": "/"}}]
    assert "secretName" in kubectl("explain", "certificate.spec")
    assert "<ObjectMeta>" in kubectl("explain", "httproute")
    kubectl("scale", "--replicas=3", "prometheus/web")
    assert json.loads(kubectl("get", "prometheus", "web", "-o", "json"))["spec"]["shards"] == 3
    kubectl("patch", "issuer", "own", "--type=merge", "-p", '{"metadata":{"labels":{"a":"b"}}}')
    assert "own" in kubectl("get", "issuers", "-l", "a=b")
    kubectl("delete", "certificate", "web")
    kubectl("delete", "crd", "--all", "--timeout=60s")
    assert "No resources found" in kubectl("get", "crd")


@pytest.mark.timeout(120)
def test_what_a_schema_forbids_is_told(kubectl: Kubectl, shared: Path) -> None:
    kubectl("apply", "-f", str(shared / "manifests" / "crds-cert-manager" / "cert-manager.io_certificates.yaml"))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")
    bad = OBJECTS.split("---")[1].replace("secretName: web-tls, ", "")
    assert "spec.secretName: Required value" in kubectl("apply", "-f", "-", stdin=bad, code=1)
    kubectl("delete", "crd", "--all", "--timeout=60s")
