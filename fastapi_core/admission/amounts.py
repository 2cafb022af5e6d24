"""Amounts of resources of a pod: what its containers ask for together, as schedulers and quotas count it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fastapi_core.meta import quantity
from fastapi_core.meta.quantity import Quantity
from fastapi_core.registry.definition import Tree

Amounts = dict[str, Quantity]

#: Resources that may be asked for by a pod as a whole.
POD_LEVEL = ("cpu", "memory", "hugepages-")

parse = lru_cache(maxsize=4096)(quantity.parse)


def amounts(texts: Mapping[str, Any] | None) -> Amounts:
    """A resource list as quantities."""
    return {name: parse(str(text)) for name, text in texts.items()} if texts else {}


def texts(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in sorted(amounts.items())}


def add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        known = total.get(name)
        total[name] = amount if known is None else known + amount


def raise_to(total: Amounts, least: Amounts) -> None:
    """Each amount at least as large as in `least`."""
    for name, amount in least.items():
        known = total.get(name)
        if known is None or known < amount:
            total[name] = amount


def pod_amounts(spec: Tree, member: str, *, overhead: bool) -> Amounts:
    """What a pod needs: `member` is requests or limits.

    Containers run side by side; init containers one after the other, beside those before them that keep running. What
    the pod asks for as a whole comes in place of the sum.
    """
    total: Amounts = {}
    for container in spec.get("containers") or ():
        add(total, amounts((container.get("resources") or {}).get(member)))
    if spec.get("initContainers"):
        raise_to(total, _init(spec, member, total))
    whole: Tree = (spec.get("resources") or {}).get(member) or {}
    for name, text in whole.items():
        if name.startswith(POD_LEVEL):
            total[name] = parse(str(text))
    if overhead and spec.get("overhead"):
        extra = amounts(spec["overhead"])
        add(total, extra if member == "requests" else {k: v for k, v in extra.items() if k in total})
    return total


def _init(spec: Tree, member: str, total: Amounts) -> Amounts:
    """The most that is needed while init containers start; those that keep running are added to `total` too."""
    running: Amounts = {}
    most: Amounts = {}
    for container in spec["initContainers"]:
        needed = amounts((container.get("resources") or {}).get(member))
        if container.get("restartPolicy") == "Always":
            add(total, needed)
            add(running, needed)
            needed = running
        else:
            add(needed, running)
        raise_to(most, needed)
    return most


def quality(spec: Tree) -> str:
    """The quality of service class that follows from a pod's spec: Guaranteed, Burstable or BestEffort."""
    whole = spec.get("resources") or {}
    sources = [whole] if whole.get("requests") or whole.get("limits") else []
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    lists = sources or [container.get("resources") or {} for container in containers]
    asked = False
    guaranteed = True
    for resources in lists:
        requests, limits = amounts(resources.get("requests")), amounts(resources.get("limits"))
        for name in ("cpu", "memory"):
            request, limit = requests.get(name), limits.get(name)
            asked = asked or bool(request) or bool(limit)
            if not limit or (request is not None and request != limit):
                guaranteed = False
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
