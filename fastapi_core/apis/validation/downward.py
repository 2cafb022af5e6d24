"""What a pod may ask about itself: fields and resources, in environment variables and in volumes."""

from __future__ import annotations

from typing import Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.quantities import HUGE, amount
from fastapi_core.apis.validation.rules import Report, Tree

IN_ENVIRONMENT: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
IN_VOLUMES: Final = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN: Final = frozenset(
    {*IN_ENVIRONMENT, *IN_VOLUMES, "spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"}
)
_RESOURCES: Final = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
_BYTES: Final = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_BYTE_UNITS: Final = frozenset(_BYTES.split(", "))
_DIVISORS: Final = {
    "cpu": (frozenset({"1m", "1"}), "only divisor's values 1m and 1 are supported with the cpu resource"),
    "hugepages": (_BYTE_UNITS, f"only divisor's values {_BYTES} are supported with the hugepages resource"),
    "memory": (_BYTE_UNITS, f"only divisor's values {_BYTES} are supported with the memory resource"),
    "ephemeral-storage": (
        _BYTE_UNITS,
        f"only divisor's values {_BYTES} are supported with the local ephemeral storage resource",
    ),
}


def field_selector(tree: Tree, path: str, report: Report, supported: tuple[str, ...]) -> None:
    """`metadata.labels['key']` or a plain field; the field must be known, and known in this place."""
    version, field = tree.get("apiVersion") or "", tree.get("fieldPath") or ""
    if not version:
        report.required(path + ".apiVersion")
        return
    at = path + ".fieldPath"
    if not field:
        report.required(at)
        return
    if version != "v1":
        report.invalid(at, field, f"error converting fieldPath: unsupported pod version: {version}")
        return
    name, bracket, key = field.partition("['")
    if bracket and key.endswith("']"):
        _subscript(name, key[:-2], field, at, report)
    elif field not in _KNOWN:
        report.invalid(at, field, f"error converting fieldPath: field label not supported: {field}")
    elif field not in supported:
        report.unsupported(at, field, supported)


def _subscript(name: str, key: str, field: str, path: str, report: Report) -> None:
    if name == "metadata.annotations":
        report.each_invalid(path, key, formats.qualified(key.lower()))
    elif name == "metadata.labels":
        report.each_invalid(path, key, formats.qualified(key))
    else:
        report.invalid(path, field, f'error converting fieldPath: field label does not support subscript: "{name}"')


def resource_selector(tree: Tree, path: str, report: Report, *, in_volume: bool) -> None:
    """A request or limit of a container."""
    resource = tree.get("resource") or ""
    if in_volume and not tree.get("containerName"):
        report.required(path + ".containerName")
    elif not resource:
        report.required(path + ".resource")
    elif resource not in _RESOURCES and not resource.startswith(("limits." + HUGE, "requests." + HUGE)):
        report.unsupported(path + ".resource", resource, _RESOURCES)
        return
    divisor = tree.get("divisor")
    name = resource.partition(".")[2]
    rule = _DIVISORS.get("hugepages" if name.startswith(HUGE) else name)
    if divisor is not None and rule is not None and amount(divisor).nanos and str(amount(divisor)) not in rule[0]:
        report.invalid(path + ".divisor", resource, rule[1])
