"""Dynamic resource allocation: claims, their templates, classes and slices."""

from __future__ import annotations

import re
from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.expressions import device_selector
from fastapi_core.apis.validation.labelling import template_metadata
from fastapi_core.apis.validation.rules import IMMUTABLE, Report, Tree
from fastapi_core.apis.validation.scheduling import node_selector

_NAMED: Final = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_ONE_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_MATCH: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_FULL_NAME: Final = "a fully qualified name must be a domain and a name separated by a slash"
_MANY_SET: Final = ", but multiple fields are set"
_semver = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def _driver(name: str, path: str, report: Report) -> None:
    if not name:
        report.required(path)
        return
    if len(name) > 63:
        report.too_long(path, 63)
    report.each_invalid(path, name, formats.subdomain(name.lower()))


def _full_name(name: str, path: str, report: Report) -> None:
    domain, slash, rest = name.partition("/")
    own = rest if slash else name
    if len(own) > 32:
        report.too_long(path, 32)
    report.each_invalid(path, own, formats.identifier(own))
    if not slash:
        report.invalid(path, name, _FULL_NAME)
    else:
        report.each_invalid(path, domain, formats.subdomain(domain))


def _selectors(items: Any, path: str, report: Report) -> None:
    if items and len(items) > 32:
        report.too_many(path, len(items), 32)
    for index, item in enumerate(items or ()):
        if item.get("cel") is None:
            report.required(f"{path}[{index}].cel")
        else:
            device_selector(item["cel"].get("expression") or "", f"{path}[{index}].cel.expression", report)


_MODES: Final = ("All", "ExactCount")


def _exact(tree: Tree, path: str, report: Report) -> None:
    """A request for devices of one class."""
    name = tree.get("deviceClassName") or ""
    if not name:
        report.required(path + ".deviceClassName")
    else:
        report.each_invalid(path + ".deviceClassName", name, formats.subdomain(name))
    _selectors(tree.get("selectors"), path + ".selectors", report)
    mode, count = tree.get("allocationMode") or "", tree.get("count") or 0
    if mode == "All":
        if count:
            report.invalid(path + ".count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount":
        if count <= 0:
            report.invalid(path + ".count", count, "must be greater than zero")
    else:
        report.unsupported(path + ".allocationMode", mode, _MODES)


def _request(request: Tree, path: str, report: Report) -> None:
    name = request.get("name") or ""
    report.each_invalid(path + ".name", name, formats.label(name))
    exact, several = request.get("exactly"), request.get("firstAvailable")
    if exact is not None and several:
        report.invalid(path, "", _ONE_REQUEST + _MANY_SET)
    elif exact is not None:
        _exact(exact, path + ".exactly", report)
    elif several:
        if len(several) > 8:
            report.too_many(path + ".firstAvailable", len(several), 8)
        seen: set[str] = set()
        for index, item in enumerate(several):
            at = f"{path}.firstAvailable[{index}]"
            sub = item.get("name") or ""
            report.each_invalid(at + ".name", sub, formats.label(sub))
            _exact(item, at, report)
            if sub in seen and sub:
                report.duplicate(at, sub)
            seen.add(sub)
    else:
        report.required(path, _ONE_REQUEST)


def _references(items: Any, known: set[str], path: str, report: Report) -> None:
    seen: set[str] = set()
    for index, name in enumerate(items or ()):
        at = f"{path}[{index}]"
        for part in name.split("/"):
            report.each_invalid(at, part, formats.label(part))
        if name not in known:
            report.invalid(at, name, _NAMED)
        if name in seen:
            report.duplicate(at, name)
        seen.add(name)


def _opaque(config: Tree, path: str, report: Report) -> None:
    opaque = config.get("opaque")
    if opaque is None:
        report.required(path + ".opaque")
        return
    _driver(opaque.get("driver") or "", path + ".opaque.driver", report)
    if opaque.get("parameters") is None:
        report.required(path + ".opaque.parameters")


def _device_claim(devices: Tree, path: str, report: Report) -> None:
    requests = devices.get("requests") or ()
    known: set[str] = set()
    seen: set[str] = set()
    for request in requests:
        name = request.get("name") or ""
        if name:
            known.add(name)
        known |= {f"{name}/{item.get('name')}" for item in request.get("firstAvailable") or ()}
    if len(requests) > 32:
        report.too_many(path + ".requests", len(requests), 32)
    for index, request in enumerate(requests):
        at = f"{path}.requests[{index}]"
        _request(request, at, report)
        name = request.get("name") or ""
        if name in seen and name:
            report.duplicate(at, name)
        seen.add(name)
    for index, constraint in enumerate(devices.get("constraints") or ()):
        at = f"{path}.constraints[{index}]"
        _references(constraint.get("requests"), known, at + ".requests", report)
        attribute = constraint.get("matchAttribute")
        if attribute is not None:
            _full_name(attribute, at + ".matchAttribute", report)
        else:
            report.required(at, _MATCH)
    for index, config in enumerate(devices.get("config") or ()):
        at = f"{path}.config[{index}]"
        _references(config.get("requests"), known, at + ".requests", report)
        _opaque(config, at, report)


def claim(tree: Tree, path: str, report: Report) -> None:
    _device_claim((tree.get("spec") or {}).get("devices") or {}, ".spec.devices", report)


def claim_update(tree: Tree, path: str, report: Report) -> None:
    if tree.get("spec") != (report.old or {}).get("spec"):
        report.invalid(".spec", tree.get("spec"), IMMUTABLE)


def claim_template(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    template_metadata(spec.get("metadata") or {}, ".spec.metadata", report)
    _device_claim((spec.get("spec") or {}).get("devices") or {}, ".spec.spec.devices", report)


def device_class(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    _selectors(spec.get("selectors"), ".spec.selectors", report)
    for index, config in enumerate(spec.get("config") or ()):
        _opaque(config, f".spec.config[{index}]", report)
    name = spec.get("extendedResourceName")
    if name is not None:
        domain, slash, _ = name.partition("/")
        if not slash or formats.qualified(name) or "kubernetes.io" in domain:
            report.invalid(".spec.extendedResourceName", name, "must be a valid extended resource name")


# Slices

_PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_PLACE: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_DEVICE_PLACE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_NO_DEVICE_PLACE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)


def _attribute(tree: Tree, path: str, report: Report) -> None:
    text, version = tree.get("string"), tree.get("version")
    if text is not None and len(text) > 64:
        report.too_long(path + ".string", 64)
    if version is not None:
        if not _semver.fullmatch(version):
            report.invalid(path + ".version", version, "must be a string compatible with semver.org spec 2.0.0")
        if len(version) > 64:
            report.too_long(path + ".version", 64)
    if sum(tree.get(name) is not None for name in ("string", "version", "int", "bool")) != 1:
        report.invalid(path, "", "exactly one value must be specified")


def _taints(items: Any, path: str, report: Report) -> None:
    for index, taint in enumerate(items or ()):
        at = f"{path}[{index}]"
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        report.each_invalid(at + ".key", key, formats.label_key(key))
        if not effect:
            report.required(at + ".effect")
        elif effect not in ("NoExecute", "NoSchedule", "None"):
            report.unsupported(at + ".effect", effect, ("NoExecute", "NoSchedule", "None"))


def _bound(device: Tree, path: str, report: Report) -> None:
    """Conditions under which a device is bound, or is not."""
    sides = ("bindingConditions", "bindingFailureConditions")
    for name in sides:
        for index, value in enumerate(device.get(name) or ()):
            report.each_invalid(f"{path}.{name}[{index}]", value, formats.qualified(value))
    for name, other in (sides, sides[::-1]):
        if device.get(name) and not device.get(other):
            report.invalid(f"{path}.{other}", [], f"{other} are required to use {name}")


def _device(device: Tree, spec: Tree, path: str, report: Report) -> None:
    name = device.get("name") or ""
    report.each_invalid(path + ".name", name, formats.label(name))
    for key, attribute in (device.get("attributes") or {}).items():
        _attribute(attribute, f"{path}.attributes[{key}]", report)
    for key, capacity in (device.get("capacity") or {}).items():
        if capacity.get("requestPolicy") is not None and not device.get("allowMultipleAllocations"):
            text = "allowMultipleAllocations must be true"
            report.forbidden(f"{path}.capacity[{key}].requestPolicy", text)
    _taints(device.get("taints"), path + ".taints", report)
    for index, item in enumerate(device.get("consumesCounters") or ()):
        for member in ("counterSet", "counters"):
            if not item.get(member):
                report.required(f"{path}.consumesCounters[{index}].{member}")
    placed = [member for member in _PLACES[:3] if device.get(member) is not None]
    if spec.get("perDeviceNodeSelection"):
        if len(placed) != 1:
            report.required(path, _DEVICE_PLACE)
    elif placed:
        report.invalid(path, None, _NO_DEVICE_PLACE)
    _bound(device, path, report)


def _place(spec: Tree, report: Report) -> None:
    set_ = []
    name = spec.get("nodeName")
    if name is not None:
        if name:
            set_.append("`nodeName`")
            report.each_invalid(".spec.nodeName", name, formats.subdomain(name))
        else:
            report.invalid(".spec.nodeName", name, "must be either unset or set to a non-empty string")
    chosen = spec.get("nodeSelector")
    if chosen is not None:
        set_.append("`nodeSelector`")
        node_selector(chosen, ".spec.nodeSelector", report)
        if len(chosen.get("nodeSelectorTerms") or ()) != 1:
            text = "must have exactly one node selector term"
            report.invalid(".spec.nodeSelector.nodeSelectorTerms", chosen.get("nodeSelectorTerms") or [], text)
    for member in ("allNodes", "perDeviceNodeSelection"):
        value = spec.get(member)
        if value:
            set_.append(f"`{member}`")
        elif value is not None:
            report.invalid(f".spec.{member}", value, "must be either unset or set to true")
    if not set_:
        report.required(".spec", _PLACE)
    elif len(set_) > 1:
        report.invalid(".spec", "{" + ", ".join(set_) + "}", _PLACE + _MANY_SET)


def _pool(pool: Tree, report: Report) -> None:
    name = pool.get("name") or ""
    at = ".spec.pool.name"
    if not name:
        report.required(at)
    else:
        if len(name) > 253:
            report.too_long(at, 253)
        for part in name.split("/"):
            report.each_invalid(at, part, formats.subdomain(part))
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        report.invalid(".spec.pool.resourceSliceCount", count, "must be greater than zero")
    if generation < 0:
        report.invalid(".spec.pool.generation", generation, "must be greater than or equal to zero")


def resource_slice(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    _driver(spec.get("driver") or "", ".spec.driver", report)
    _pool(spec.get("pool") or {}, report)
    if report.old is not None:
        _slice_kept(spec, (report.old or {}).get("spec") or {}, report)
    _place(spec, report)
    devices, counters = spec.get("devices") or (), spec.get("sharedCounters") or ()
    if devices and counters:
        report.invalid(".spec", "", "only one of `sharedCounters` or `devices` is allowed")
    if len(devices) > 128:
        report.too_many(".spec.devices", len(devices), 128)
    seen: set[str] = set()
    for index, device in enumerate(devices):
        at = f".spec.devices[{index}]"
        _device(device, spec, at, report)
        name = device.get("name") or ""
        if name in seen and name:
            report.duplicate(at, name)
        seen.add(name)
    for index, counter in enumerate(counters):
        for member in ("name", "counters"):
            if not counter.get(member):
                report.required(f".spec.sharedCounters[{index}].{member}")


def _slice_kept(spec: Tree, before: Tree, report: Report) -> None:
    name, earlier = (spec.get("pool") or {}).get("name"), (before.get("pool") or {}).get("name")
    if name != earlier:
        report.invalid(".spec.pool.name", name or "", IMMUTABLE)
    for member in ("driver", "nodeName"):
        if spec.get(member) != before.get(member):
            report.invalid(f".spec.{member}", spec.get(member), IMMUTABLE)
