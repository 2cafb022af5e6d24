"""Resource names and amounts: what containers, quotas and limit ranges accept."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.rules import NOT_NEGATIVE, Report, Tree
from fastapi_core.meta.quantity import Quantity, parse

HUGE: Final = "hugepages-"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTED = (
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
)  # fmt: skip
CONTAINER: Final = frozenset(_COMPUTE)
STANDARD: Final = frozenset(
    {
        *_COMPUTE,
        *_COUNTED,
        "storage",
        "requests.storage",
        *(f"{side}.{name}" for side in ("requests", "limits") for name in _COMPUTE),
    }
)
QUOTA: Final = STANDARD - {"storage"}
_INTEGER: Final = frozenset(_COUNTED)
UNKNOWN: Final = "must be a standard resource type or fully qualified"
NOT_FOR_CONTAINERS: Final = "must be a standard resource for containers"

amount = lru_cache(8192)(parse)


def native(name: str) -> bool:
    """Kubernetes' own: without a domain, or with one of its own."""
    return "/" not in name or "kubernetes.io/" in name


def extended(name: str) -> bool:
    """A resource that a device plugin or an operator brings."""
    return not native(name) and not name.startswith("requests.") and not formats.qualified("requests." + name)


def whole_only(name: str) -> bool:
    return name in _INTEGER or extended(name)


@lru_cache(8192)
def resource_name(name: str) -> tuple[str, ...]:
    """A resource of any kind."""
    problems = formats.qualified(name)
    if problems:
        return tuple(problems)
    if "/" not in name and name not in STANDARD and not name.startswith((HUGE, "requests." + HUGE)):
        return (UNKNOWN,)
    return ()


@lru_cache(8192)
def container_resource(name: str) -> tuple[str, ...]:
    """A resource that a container can ask for."""
    problems = resource_name(name)
    if "/" not in name:
        if name not in CONTAINER and not name.startswith(HUGE):
            return (*problems, NOT_FOR_CONTAINERS)
    elif not native(name) and not extended(name):
        return (*problems, "doesn't follow extended resource name standard")
    return problems


def quantity(name: str, text: str, path: str, report: Report) -> None:
    """An amount of a resource: not negative, whole where only whole ones make sense."""
    value = amount(text)
    if value.nanos < 0:
        report.invalid(path, text, NOT_NEGATIVE)
    if whole_only(name) and value.nanos % 1_000_000_000:
        report.invalid(path, text, "must be an integer")


#: Limits and requests that were found in order: the same few come with nearly every container.
_sound: set[tuple[tuple[tuple[str, str], ...], ...]] = set()
_MOST_SOUND: Final = 2048


def requirements(tree: Tree, path: str, report: Report) -> None:
    """Requests and limits of a container."""
    limits, requests = tree.get("limits") or {}, tree.get("requests") or {}
    if limits or requests:
        stated = (tuple(limits.items()), tuple(requests.items()))
        if stated not in _sound:
            before = len(report)
            _amounts(limits, requests, path, report)
            if len(report) == before:
                if len(_sound) >= _MOST_SOUND:
                    _sound.clear()
                _sound.add(stated)
    if tree.get("claims"):
        _claims(tree["claims"], path + ".claims", report)


def _amounts(limits: dict[str, str], requests: dict[str, str], path: str, report: Report) -> None:
    huge = compute = False
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            for problem in container_resource(name):
                report.invalid(f"{path}.{side}[{name}]", name, problem)
            value = amount(text)
            if value.nanos < 0 or name not in CONTAINER:
                quantity(name, text, f"{path}.{side}[{name}]", report)
            if side == "requests":
                _compare(name, value, limits, path, report)
            if name.startswith(HUGE):
                huge = True
                _page_size(name, value, f"{path}.{side}[{name}]", report)
            elif name in ("cpu", "memory"):
                compute = True
    if huge and not compute:
        report.forbidden(path, "HugePages require cpu or memory")


def _page_size(name: str, value: Quantity, path: str, report: Report) -> None:
    try:
        page = amount(name[len(HUGE) :])
    except ValueError:
        return
    if page.nanos > 0 and value.nanos % page.nanos:
        report.invalid(path, str(value), f"{value} is not positive integer multiple of {name}")


def _compare(name: str, request: Quantity, limits: dict[str, str], path: str, report: Report) -> None:
    strict = name not in CONTAINER and (name.startswith(HUGE) or not native(name))
    text = limits.get(name)
    if text is None:
        if strict:
            report.required(path + ".limits", "Limit must be set for non overcommitable resources")
        return
    limit = amount(text)
    if strict:
        if request != limit:
            report.invalid(path + ".requests", str(request), f"must be equal to {name} limit of {limit}")
    elif limit < request:
        report.invalid(path + ".requests", str(request), f"must be less than or equal to {name} limit of {limit}")


def _claims(claims: list[Tree], path: str, report: Report) -> None:
    known: set[str] | None = report.facts.get("claims")
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        at = f"{path}[{index}]"
        name, request = claim.get("name") or "", claim.get("request") or ""
        if not name:
            report.required(at)
            continue
        key = f"{name}/{request}" if request else name
        if key in seen or name in seen:
            report.duplicate(at, key)
        seen.add(key)
        if request:
            report.each_invalid(at + ".request", request, formats.label(request))
        if known is not None and name not in known:
            listed = ": " + ", ".join(sorted(known)) if known else " which is empty"
            report.not_found(at, name, "must be one of the names in pod.spec.resourceClaims" + listed)


def positive(text: Any, path: str, report: Report) -> None:
    """An amount of storage: more than nothing."""
    if amount(text).nanos <= 0:
        report.invalid(path, text, "must be greater than zero")
