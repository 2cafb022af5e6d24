"""The pod row: status text, readiness and restarts as `kubectl get pods` shows them."""

from __future__ import annotations

from typing import Any

from fastapi_core.registry.printers.cells import AGE, NAME, NONE, condition_true, filled, wide
from fastapi_core.registry.printers.engine import Age, Cell, Column, Conditions, Tree, epoch, since

COLUMNS = (
    NAME,
    Column("Ready"),
    Column("Status"),
    Column("Restarts"),
    AGE,
    wide("IP"),
    wide("Node", filled("spec.nodeName")),
    wide("Nominated Node"),
    wide("Readiness Gates"),
)

_DONE = {
    "Succeeded": {"reason": "Succeeded", "message": "The pod has completed successfully."},
    "Failed": {"reason": "Failed", "message": "The pod failed."},
}


class _Progress:
    """What the container statuses add up to."""

    __slots__ = ("init_restarts", "last_finished", "ready", "restarts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.ready = 0
        self.restarts = 0
        self.init_restarts = 0
        self.last_finished = ""

    def seen(self, status: Tree) -> None:
        """Note when the container's previous run ended."""
        finished = ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        if finished > self.last_finished:
            self.last_finished = finished


def _is_sidecar(container: Tree | None) -> bool:
    return container is not None and container.get("restartPolicy") == "Always"


def _init_phase(progress: _Progress, statuses: list[Tree], init: list[Tree]) -> bool:
    """Walk the init containers in order; true when one of them still decides the status text."""
    by_name = {container.get("name"): container for container in init}
    for index, status in enumerate(statuses):
        restarts = status.get("restartCount") or 0
        progress.init_restarts += restarts
        progress.seen(status)
        sidecar = _is_sidecar(by_name.get(status.get("name")))
        if sidecar:
            progress.restarts += restarts
        state = status.get("state") or {}
        ended = state.get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if sidecar and status.get("started"):
            progress.ready += bool(status.get("ready"))
            continue
        if ended is not None:
            progress.text = "Init:" + _ended_text(ended)
        else:
            reason = (state.get("waiting") or {}).get("reason")
            progress.text = f"Init:{reason}" if reason and reason != "PodInitializing" else f"Init:{index}/{len(init)}"
        return True
    return False


def _ended_text(ended: Tree) -> str:
    """Reason of a terminated container, else its signal or exit code."""
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode') or 0}"


def _main_phase(progress: _Progress, tree: Tree, statuses: list[Tree]) -> None:
    """Walk the containers from the last to the first; the first one decides."""
    running = False
    failure = ""
    for status in reversed(statuses):
        progress.restarts += status.get("restartCount") or 0
        progress.seen(status)
        state = status.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting and waiting.get("reason"):
            progress.text = waiting["reason"]
        elif ended is not None:
            progress.text = _ended_text(ended)
            if ended.get("exitCode"):
                failure = progress.text
        elif status.get("ready") and state.get("running") is not None:
            running = True
            progress.ready += 1
    if progress.text == "Completed":
        if running and condition_true(tree, "Ready"):
            progress.text = "Running"
        elif failure:
            progress.text = failure
        elif running:
            progress.text = "NotReady"


def _start_text(status: Tree) -> str:
    for entry in status.get("conditions") or ():
        if entry.get("type") == "PodScheduled" and entry.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return status.get("reason") or status.get("phase") or ""


def _restarts(count: int, last_finished: str) -> Cell:
    if count and last_finished:
        return Age(epoch(last_finished), f"{count} (", " ago)")
    return str(count)


def _gates(spec: Tree, tree: Tree) -> str:
    gates: list[Tree] = spec.get("readinessGates") or []
    if not gates:
        return NONE
    passed = sum(condition_true(tree, gate.get("conditionType", "")) for gate in gates)
    return f"{passed}/{len(gates)}"


def pod_row(tree: Tree) -> tuple[list[Cell], Conditions | None]:
    """The cells of a pod, and the Completed row condition of one that has ended."""
    metadata: Tree = tree.get("metadata") or {}
    spec: Tree = tree.get("spec") or {}
    status: Tree = tree.get("status") or {}
    init: list[Tree] = spec.get("initContainers") or []
    progress = _Progress(_start_text(status))
    initializing = _init_phase(progress, status.get("initContainerStatuses") or [], init)
    if not initializing or condition_true(tree, "Initialized"):
        _main_phase(progress, tree, status.get("containerStatuses") or [])
        restarts = progress.restarts
    else:
        restarts = progress.init_restarts
    phase = status.get("phase") or ""
    if metadata.get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            progress.text = "Unknown"
        elif phase not in _DONE:
            progress.text = "Terminating"
    total = len(spec.get("containers") or ()) + sum(map(_is_sidecar, init))
    addresses: list[dict[str, Any]] = status.get("podIPs") or []
    cells: list[Cell] = [
        metadata.get("name") or "",
        f"{progress.ready}/{total}",
        progress.text,
        _restarts(restarts, progress.last_finished),
        since(metadata.get("creationTimestamp")),
        (addresses[0].get("ip") if addresses else None) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, tree),
    ]
    done = _DONE.get(phase)
    return cells, [{"type": "Completed", "status": "True", **done}] if done else None
