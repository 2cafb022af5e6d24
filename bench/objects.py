"""The objects the benchmarks use: sizes and shapes of real ones."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]
NAMESPACE = "bench"


def configmap(name: str, size: int = 1024) -> Tree:
    """A ConfigMap whose served JSON is about `size` bytes."""
    filler = "x" * max(size - 300, 1)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "data": {"key": filler},
    }


def _container(number: int) -> Tree:
    return {
        "name": f"container-{number}",
        "image": f"registry.example.test/team/service-{number}:v1.2.{number}",
        "args": ["--listen=0.0.0.0:8080", "--log-level=info", f"--shard={number}"],
        "env": [{"name": f"SETTING_{i}", "value": f"value-{i}-of-{number}"} for i in range(4)],
        "ports": [{"name": "http", "containerPort": 8080 + number, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "500m", "memory": "512Mi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080 + number}, "periodSeconds": 5},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/service"}, {"name": "cache", "mountPath": "/var/cache"}],
    }


def pod(name: str, number: int = 0) -> Tree:
    """A Pod of about 5 KB once defaulted, with a status and managedFields; one in a hundred carries the label `rare=yes`."""
    labels = {"app": "service", "pod-template-hash": "6d4cf56db6", "tier": f"t{number % 7}"}
    if number % 100 == 0:
        labels["rare"] = "yes"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"example.test/checksum": "0" * 64, "example.test/owner": "team-bench"},
        },
        "spec": {
            "nodeName": f"node-{number % 50}",
            "automountServiceAccountToken": False,
            "containers": [_container(0)],
            "volumes": [
                {"name": "config", "configMap": {"name": "service-config"}},
                {"name": "cache", "emptyDir": {}},
            ],
        },
    }


def pod_status(number: int) -> Tree:
    """What a kubelet reports, as a merge patch of the status subresource."""
    stamp = "2026-01-02T03:04:05Z"
    return {
        "status": {
            "phase": "Running",
            "podIP": f"10.1.{number // 250}.{number % 250}",
            "podIPs": [{"ip": f"10.1.{number // 250}.{number % 250}"}],
            "hostIP": "192.0.2.10",
            "startTime": stamp,
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp}
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {
                    "name": f"container-{i}",
                    "state": {"running": {"startedAt": stamp}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": f"registry.example.test/team/service-{i}:v1.2.{i}",
                    "imageID": "sha256:" + "a" * 64,
                    "containerID": "containerd://" + "b" * 64,
                    "started": True,
                }
                for i in range(1)
            ],
        }
    }


def lease(name: str) -> Tree:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-02T03:04:05.000000Z"},
    }
