"""The metrics API of this machine: what `kubectl top nodes` and `kubectl top pods` ask for.

The node is this machine, by /proc/stat and /proc/meminfo. A pod is every process whose environment says which one it is
(POD_NAME, POD_NAMESPACE, and CONTAINER_NAME where there are several), as the downward API of Kubernetes puts it there.

    python examples/metrics_api.py --secure-port 4443 --kubeconfig admin.kubeconfig
    python examples/metrics_api.py register --kubeconfig admin.kubeconfig ...
    kubectl top nodes

`kubectl top nodes` asks for the Node itself, too, and a pod is any process that says it is one. Where nobody makes them:

    echo '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "'$(hostname | tr A-Z a-z)'"}}' | kubectl create -f -
    POD_NAME=sleeper POD_NAMESPACE=default sleep 600 &
    kubectl top pods
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi_core.extension import Column, Extension, ObjectMeta, Quantity, Request, quick

PROC = Path("/proc")
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
PERIOD = float(os.environ.get("METRICS_PERIOD", "10"))

app = Extension(
    "metrics.k8s.io/v1beta1", name="metrics-api", namespace="kube-system", group_priority=100, version_priority=100
)


@dataclass
class ContainerMetrics:
    name: str
    usage: dict[str, Quantity]


@dataclass
class NodeMetrics:
    """Usage of a node over the window before the timestamp."""

    metadata: ObjectMeta
    timestamp: datetime
    window: timedelta
    usage: dict[str, Quantity]


@dataclass
class PodMetrics:
    """Usage of a pod's containers over the window before the timestamp."""

    metadata: ObjectMeta
    timestamp: datetime
    window: timedelta
    containers: list[ContainerMetrics]


@dataclass
class Sample:
    """What has been used up at one moment: CPU in seconds since the start, memory in bytes."""

    at: float
    node: tuple[float, int]
    containers: dict[tuple[str, str, str], tuple[float, int]] = field(default_factory=dict)


def measure() -> Sample:
    """Read everything once."""
    busy = [int(text) for text in (PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    memory = dict(line.split(":", 1) for line in (PROC / "meminfo").read_text().splitlines())
    used = int(memory["MemTotal"].split()[0]) - int(memory["MemAvailable"].split()[0])
    sample = Sample(time.monotonic(), ((sum(busy) - busy[3] - busy[4]) / TICKS, used * 1024))
    for key, cpu, resident in processes():
        before = sample.containers.get(key, (0.0, 0))
        sample.containers[key] = (before[0] + cpu, before[1] + resident)
    return sample


def processes() -> Iterator[tuple[tuple[str, str, str], float, int]]:
    """((namespace, pod, container), CPU seconds, bytes) of every process that belongs to a pod."""
    for folder in PROC.glob("[0-9]*"):
        try:
            pairs = (pair.partition(b"=") for pair in (folder / "environ").read_bytes().split(b"\0"))
            said = {
                name.decode(): value.decode() for name, _, value in pairs if name.startswith((b"POD_", b"CONTAINER_"))
            }
            if "POD_NAME" in said:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                key = (said.get("POD_NAMESPACE", "default"), said["POD_NAME"], said.get("CONTAINER_NAME", "main"))
                yield key, (int(stat[11]) + int(stat[12])) / TICKS, int(stat[21]) * PAGE
        except (OSError, UnicodeDecodeError):
            continue  # gone, or another user's


class Window:
    """The last two samples, and what lies between them."""

    def __init__(self) -> None:
        self.old = self.new = measure()
        self.taken = datetime.now(UTC)

    def advance(self, sample: Sample) -> None:
        self.old, self.new, self.taken = self.new, sample, datetime.now(UTC)

    @property
    def length(self) -> timedelta:
        return timedelta(seconds=round(self.new.at - self.old.at, 3))

    def usage(self, new: tuple[float, int], old: tuple[float, int] | None) -> dict[str, Quantity]:
        seconds = self.length.total_seconds()
        cores = max(new[0] - old[0], 0.0) / seconds if old is not None and seconds else 0.0
        return {"cpu": Quantity(f"{round(cores * 1e9)}n"), "memory": Quantity(f"{new[1] // 1024}Ki")}

    def node(self) -> NodeMetrics:
        name = os.environ.get("NODE_NAME", socket.gethostname().lower())
        usage = self.usage(self.new.node, self.old.node)
        return NodeMetrics(ObjectMeta(name=name), self.taken, self.length, usage)

    def pods(self) -> list[PodMetrics]:
        found: dict[tuple[str, str], PodMetrics] = {}
        for (namespace, pod, container), used in sorted(self.new.containers.items()):
            made = PodMetrics(ObjectMeta(name=pod, namespace=namespace), self.taken, self.length, [])
            usage = self.usage(used, self.old.containers.get((namespace, pod, container)))
            found.setdefault((namespace, pod), made).containers.append(ContainerMetrics(container, usage))
        return list(found.values())


window = Window()


@app.background
async def sample() -> None:
    while True:
        await asyncio.sleep(PERIOD)
        window.advance(await asyncio.to_thread(measure))


nodes = app.kind(
    NodeMetrics, "nodes", namespaced=False, columns=[Column("CPU", ".usage.cpu"), Column("Memory", ".usage.memory")]
)
pods = app.kind(PodMetrics, "pods", columns=[Column("Containers", lambda pod: len(pod.containers), "integer")])


@nodes.list
@quick
def list_nodes(request: Request) -> list[NodeMetrics]:
    return [window.node()]


@nodes.get
@quick
def get_node(request: Request, name: str) -> NodeMetrics | None:
    node = window.node()
    return node if node.metadata.name == name else None


@pods.list
@quick
def list_pods(request: Request) -> list[PodMetrics]:
    return window.pods()


@pods.get
@quick
def get_pod(request: Request, name: str) -> PodMetrics | None:
    wanted = (request.namespace, name)
    return next((pod for pod in window.pods() if (pod.metadata.namespace, pod.metadata.name) == wanted), None)


if __name__ == "__main__":
    raise SystemExit(app.main())
