"""What helm and kopf send, and what `kubectl rollout` makes of a deployment's history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPSConnection
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer
from tests.interop.test_kubectl import MANIFEST, Kubectl

pytestmark = pytest.mark.interop

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"


class Client:
    """One connection as the admin."""

    def __init__(self, server: RunningServer) -> None:
        self.connection = HTTPSConnection("127.0.0.1", server.port, context=server.ssl_context())

    def __call__(self, method: str, path: str, body: Any = None, type_: str = "application/json") -> Any:
        self.connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": type_})
        answer = self.connection.getresponse()
        tree = json.loads(answer.read())
        assert answer.status < 300, tree
        return tree


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    client = Client(server)
    yield client
    client.connection.close()


def deployment(image: str, **env: str) -> dict[str, Any]:
    container = {"name": "main", "image": image, "env": [{"name": k, "value": v} for k, v in env.items()]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "chart", "labels": {"app.kubernetes.io/managed-by": "Helm"}},
        "spec": {
            "selector": {"matchLabels": {"app": "chart"}},
            "template": {"metadata": {"labels": {"app": "chart"}}, "spec": {"containers": [container]}},
        },
    }


def test_three_way_merge_of_helm(client: Client, namespace: str) -> None:
    """An upgrade sends what changed between two charts, with directives for order and removal; what others have done
    to the live object meanwhile stays."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    client("POST", path, deployment("app:1", KEEP="1", DROP="2"))
    # Somebody scales, injects a container and adds a variable.
    client("PATCH", f"{path}/chart/scale", {"spec": {"replicas": 4}}, MERGE)
    injected = {"containers": [{"name": "proxy", "image": "proxy:1"}, {"name": "main", "env": [{"name": "SEEN"}]}]}
    client("PATCH", f"{path}/chart", {"spec": {"template": {"spec": injected}}}, STRATEGIC)
    upgrade = {
        "$setElementOrder/containers": [{"name": "main"}],
        "containers": [
            {
                "$setElementOrder/env": [{"name": "KEEP"}, {"name": "NEW"}],
                "name": "main",
                "image": "app:2",
                "env": [{"name": "NEW", "value": "3"}, {"$patch": "delete", "name": "DROP"}],
            }
        ],
    }
    after = client("PATCH", f"{path}/chart", {"spec": {"template": {"spec": upgrade}}}, STRATEGIC)
    assert after["spec"]["replicas"] == 4
    containers = {c["name"]: c for c in after["spec"]["template"]["spec"]["containers"]}
    assert containers["proxy"]["image"] == "proxy:1"
    assert containers["main"]["image"] == "app:2"
    assert {e["name"]: e.get("value", "") for e in containers["main"]["env"]} == {"KEEP": "1", "NEW": "3", "SEEN": ""}
    assert after["metadata"]["generation"] == 4
    # A rollback to the same chart is an empty patch, and changes nothing at all.
    assert client("PATCH", f"{path}/chart", {}, STRATEGIC) == after


def test_handling_of_an_object_by_kopf(client: Client, namespace: str) -> None:
    """Block deletion by a finalizer, keep progress in annotations and status, let the object go at the end."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    client("POST", path, deployment("app:1"))
    client("PATCH", f"{path}/chart", {"metadata": {"finalizers": ["kopf.zalando.org/KopfFinalizerMarker"]}}, MERGE)
    progress = json.dumps({"started": "2026-01-01T00:00:00", "retries": 1, "success": False})
    essence = json.dumps({"spec": {"replicas": 1}})
    notes = {"kopf.zalando.org/create_fn": progress, "kopf.zalando.org/last-handled-configuration": essence}
    client("PATCH", f"{path}/chart", {"metadata": {"annotations": notes}}, MERGE)
    done = client("PATCH", f"{path}/chart", {"metadata": {"annotations": {"kopf.zalando.org/create_fn": None}}}, MERGE)
    assert list(done["metadata"]["annotations"]) == ["kopf.zalando.org/last-handled-configuration"]
    status = client("PATCH", f"{path}/chart/status", {"status": {"observedGeneration": 1}}, MERGE)
    assert status["status"]["observedGeneration"] == 1
    assert {e["subresource"] for e in status["metadata"]["managedFields"] if "subresource" in e} == {"status"}
    event = {
        "metadata": {"generateName": "kopf-event-", "namespace": namespace},
        "action": "Action?",
        "type": "Normal",
        "reason": "Logging",
        "message": "Handler create_fn succeeded.",
        "reportingComponent": "kopf",
        "reportingInstance": "dev",
        "source": {"component": "kopf"},
        "firstTimestamp": "2026-01-01T00:00:00.000000Z",
        "lastTimestamp": "2026-01-01T00:00:00.000000Z",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "involvedObject": {"kind": "Deployment", "name": "chart", "namespace": namespace},
    }
    client("POST", f"/api/v1/namespaces/{namespace}/events", event)
    going = client("DELETE", f"{path}/chart")
    assert going["metadata"]["deletionTimestamp"]
    client("PATCH", f"{path}/chart", {"metadata": {"finalizers": []}}, MERGE)
    left = client("GET", path)
    assert left["items"] == []


def test_rollout(server: RunningServer, client: Client, namespace: str, tmp_path: Any) -> None:
    """The revisions of a deployment are replica sets, which its controller would have made."""
    kubectl = Kubectl(server, namespace, tmp_path)
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    live = client("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/web")
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": live["metadata"]["uid"],
        "controller": True,
    }
    for revision, image in (("1", "registry.example.test/web:0"), ("2", "registry.example.test/web:1")):
        template = json.loads(json.dumps(live["spec"]["template"]))
        template["spec"]["containers"][0]["image"] = image
        template["metadata"]["labels"]["pod-template-hash"] = revision
        labels = {"app": "web", "pod-template-hash": revision}
        replica_set = {
            "metadata": {
                "name": f"web-{revision}",
                "labels": labels,
                "annotations": {"deployment.kubernetes.io/revision": revision},
                "ownerReferences": [owner],
            },
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
        }
        client("POST", f"/apis/apps/v1/namespaces/{namespace}/replicasets", replica_set)
    kubectl("annotate", "deployment", "web", "deployment.kubernetes.io/revision=2")
    history = kubectl("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    assert "registry.example.test/web:0" in kubectl("rollout", "history", "deployment/web", "--revision=1")
    assert "rolled back" in kubectl("rollout", "undo", "deployment/web")
    assert "web:0" in kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    assert "paused" in kubectl("rollout", "pause", "deployment/web")
    assert "already paused" in kubectl("rollout", "pause", "deployment/web", code=1)
    kubectl("set", "image", "deployment/web", "main=registry.example.test/web:3")
    assert "resumed" in kubectl("rollout", "resume", "deployment/web")
    assert "restarted" in kubectl("rollout", "restart", "deployment/web")
    template = client("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/web")["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    generation = client("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/web")["metadata"]["generation"]
    status = {
        "observedGeneration": generation,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
    }
    client("PATCH", f"/apis/apps/v1/namespaces/{namespace}/deployments/web/status", {"status": status}, MERGE)
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=10s")
