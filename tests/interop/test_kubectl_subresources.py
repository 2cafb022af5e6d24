"""kubectl on what lies below a resource: nodes taken out of service, evictions, tokens, signing requests, logs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fastapi_core.authn.issuer import decoded
from fastapi_core.testing.server import RunningServer
from tests.fixtures.kubelet import LOG, Kubelet
from tests.fixtures.server import Api
from tests.interop.test_kubectl import Kubectl

pytestmark = pytest.mark.interop
MERGE = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture
def kubectl(server: RunningServer, namespace: str, tmp_path: Path) -> Kubectl:
    return Kubectl(server, namespace, tmp_path)


def test_logs_and_streams(kubectl: Kubectl, kubelet: Kubelet, pod: str, namespace: str) -> None:
    assert kubectl("logs", "p", "--tail=2") == b"".join(LOG).decode()
    assert "container nope is not valid for pod p" in kubectl("logs", "p", "-c", "nope", code=1)
    kubectl("exec", "p", "--", "true", code=1)  # this kubelet hangs up in the middle of SPDY
    assert any(first.startswith(("GET /exec/", "POST /exec/")) for first, _ in kubelet.requests)


def test_streams_without_a_node(kubectl: Kubectl, api: Api, namespace: str) -> None:
    spec = {"containers": [{"name": "c", "image": "x"}], "automountServiceAccountToken": False}
    assert api("POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": "p"}, "spec": spec})[0] == 201
    assert kubectl("logs", "p") == ""
    assert "pod p does not have a host assigned" in kubectl("exec", "p", "--", "true", code=1)
    assert "pod is not running" in kubectl("port-forward", "pod/p", "18080:80", code=1)


def test_taking_a_node_out_of_service(kubectl: Kubectl, api: Api, pod: str, namespace: str) -> None:
    node = f"node-{namespace}"
    assert "cordoned" in kubectl("cordon", node)
    assert kubectl("get", "node", node, "-o", "jsonpath={.spec.unschedulable}") == "true"
    assert "uncordoned" in kubectl("uncordon", node)
    assert "tainted" in kubectl("taint", "node", node, "team=a:NoSchedule")
    assert "untainted" in kubectl("taint", "node", node, "team=a:NoSchedule-")
    budget: Any = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}}
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    assert api("POST", budgets, budget)[0] == 201
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    assert api("PATCH", f"{pod}/status", running, MERGE)[0] == 200
    none_left = {"status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}}
    assert (
        api("PATCH", f"{budgets}/b/status", {**none_left, "status": {**none_left["status"], "expectedPods": 1}}, MERGE)[
            0
        ]
        == 200
    )
    refused = kubectl("drain", node, "--force", "--timeout=1s", code=1)
    assert "Cannot evict pod as it would violate the pod's disruption budget" in refused
    one_left = {"status": {"disruptionsAllowed": 1, "desiredHealthy": 0}}
    assert api("PATCH", f"{budgets}/b/status", one_left, MERGE)[0] == 200
    dry = kubectl("drain", node, "--force", "--dry-run=server")
    assert "evicted" in dry or "drained" in dry
    assert api("GET", f"{budgets}/b")[1]["status"]["disruptionsAllowed"] == 1
    evicting = kubectl.start("drain", node, "--force", "--timeout=20s", "--grace-period=0")
    status: dict[str, Any] = {}
    while not status.get("disruptedPods"):
        status = api("GET", f"{budgets}/b")[1]["status"]
        assert evicting.poll() in (None, 0)
    evicting.wait(30)
    assert evicting.stdout is not None
    evicting.stdout.close()
    assert evicting.returncode == 0
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
    assert api("GET", pod)[0] == 404


def test_tokens(kubectl: Kubectl, namespace: str) -> None:
    token = kubectl("create", "token", "default", "--duration=20m", "--audience=me").strip()
    _, claims = decoded(token)
    assert claims["sub"] == f"system:serviceaccount:{namespace}:default"
    assert (claims["aud"], claims["exp"] - claims["iat"]) == (["me"], 1200)
    assert "not found" in kubectl("create", "token", "nobody", code=1)
    assert "10 minutes" in kubectl("create", "token", "default", "--duration=1m", code=1)


def test_signing_requests(kubectl: Kubectl, namespace: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    pem = base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()
    spec = {"request": pem, "signerName": "example.com/signer", "usages": ["client auth"]}
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    for name in (f"yes-{namespace}", f"no-{namespace}"):
        kubectl("create", "-f", "-", stdin=json.dumps({**kind, "metadata": {"name": name}, "spec": spec}))
    assert "approved" in kubectl("certificate", "approve", f"yes-{namespace}")
    assert "denied" in kubectl("certificate", "deny", f"no-{namespace}")
    shown = kubectl("get", "csr")
    assert [line.split()[-1] for line in shown.splitlines() if namespace in line] == ["Denied", "Approved"]
    kubectl("delete", "csr", f"yes-{namespace}", f"no-{namespace}")


def test_component_statuses(kubectl: Kubectl) -> None:
    shown = kubectl("get", "componentstatuses")
    assert "v1 ComponentStatus is deprecated in v1.19+" in shown
    lines = {line.split()[0]: line for line in shown.splitlines()[1:]}
    assert lines["etcd-0"].split()[1:] == ["Healthy", "ok"]
    assert "connection refused" in lines["scheduler"]
    assert kubectl("get", "cs", "etcd-0", "-o", "name").splitlines()[0] == "componentstatus/etcd-0"
    assert "not found" in kubectl("get", "cs", "none", code=1)


def test_debug_containers(kubectl: Kubectl, pod: str) -> None:
    kubectl("debug", "p", "--image=busybox", "-c", "dbg", "--attach=false")
    assert kubectl("get", "pod", "p", "-o", "jsonpath={.spec.ephemeralContainers[*].name}") == "dbg"
