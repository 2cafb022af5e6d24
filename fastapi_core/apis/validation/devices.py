"""Dynamic resource allocation: claims, their templates, classes and slices."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import orjson

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.conditions import conditions
from fastapi_core.apis.validation.expressions import device_selector
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.labelling import template_metadata
from fastapi_core.apis.validation.rules import IMMUTABLE, REQUIRED, Report, Tree, choice
from fastapi_core.apis.validation.scheduling import node_selector

_NAMED: Final = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_ONE_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_MATCH: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_FULL_NAME: Final = "a fully qualified name must be a domain and a name separated by a slash"
_MANY_SET: Final = ", but multiple fields are set"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)


def driver(name: str, path: str, report: Report) -> None:
    if not name:
        report.required(path)
        return
    if len(name) > 63:
        report.too_long(path, 63)
    report.each_invalid(path, name, formats.subdomain(name.lower()))


def _identifier(name: str, path: str, report: Report) -> None:
    if len(name) > 32:
        report.too_long(path, 32)
    report.each_invalid(path, name, formats.identifier(name))


def qualified_name(name: str, path: str, report: Report) -> None:
    """The name of an attribute, with the domain of a driver or without one; more parts are let through."""
    domain, slash, rest = name.partition("/")
    if not slash:
        _identifier(name, path, report)
    elif "/" not in rest:
        if not domain:
            report.invalid(path, "", "the domain must not be empty")
        else:
            driver(domain, path, report)
        if not rest:
            report.invalid(path, "", "the name must not be empty")
        else:
            _identifier(rest, path, report)


def _full_name(name: str, path: str, report: Report) -> None:
    qualified_name(name, path, report)
    if "/" not in name:
        report.invalid(path, name, _FULL_NAME)


def pool_name(name: str, path: str, report: Report) -> None:
    if not name:
        report.required(path)
        return
    if len(name) > 253:
        report.too_long(path, 253)
    for part in name.split("/"):
        report.each_invalid(path, part, formats.subdomain(part))


_BINDING: Final = ("bindingConditions", "bindingFailureConditions")


def bound(device: Tree, path: str, report: Report) -> None:
    """Conditions under which a device is bound, or is not."""
    for name in _BINDING:
        for index, value in enumerate(bounded(device.get(name), 4, f"{path}.{name}", report)):
            report.each_invalid(f"{path}.{name}[{index}]", value, formats.label_key(value))
    wanted, failing = (device.get(name) or () for name in _BINDING)
    repeated(wanted, f"{path}.bindingConditions", report)
    seen: set[str] = set()
    for index, value in enumerate(failing):
        at = f"{path}.bindingFailureConditions[{index}]"
        if value in seen:
            report.duplicate(at, value)
        seen.add(value)
        if value in wanted:
            report.invalid(at, value, "bindingFailureConditions must not overlap with bindingConditions")
    for name, other in (_BINDING[::-1], _BINDING):
        if device.get(name) and not device.get(other):
            report.invalid(f"{path}.{other}", device.get(other), f"{other} are required to use {name}")


def bounded(items: Any, most: int, path: str, report: Report) -> Any:
    """The items of a list; none of one that is too long, of which nothing else is told."""
    if items and len(items) > most:
        report.too_many(path, len(items), most)
        return ()
    return items or ()


def repeated(keys: Iterable[Any], path: str, report: Report) -> None:
    """Items that are there already."""
    seen: set[Any] = set()
    for index, key in enumerate(keys):
        if key in seen:
            report.duplicate(f"{path}[{index}]", key)
        seen.add(key)


def _selectors(items: Any, path: str, report: Report) -> None:
    for index, item in enumerate(bounded(items, 32, path, report)):
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
    for index, toleration in enumerate(tree.get("tolerations") or ()):
        _toleration(toleration, f"{path}.tolerations[{index}]", report)


_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")


def _toleration(tree: Tree, path: str, report: Report) -> None:
    key, operator = tree.get("key") or "", tree.get("operator") or ""
    value, effect = tree.get("value") or "", tree.get("effect") or ""
    if key:
        report.each_invalid(path + ".key", key, formats.label_key(key))
    if operator == "Exists":
        if value:
            report.invalid(path + ".value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        report.each_invalid(path + ".value", value, formats.label_value(value))
    elif not operator:
        report.required(path + ".operator")
    else:
        report.unsupported(path + ".operator", operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        report.unsupported(path + ".effect", effect, _EFFECTS)


def _request(request: Tree, path: str, report: Report) -> None:
    name = request.get("name") or ""
    report.each_invalid(path + ".name", name, formats.label(name))
    exact, several = request.get("exactly"), request.get("firstAvailable")
    if exact is not None and several:
        report.invalid(path, None, _ONE_REQUEST + _MANY_SET)
    elif exact is not None:
        _exact(exact, path + ".exactly", report)
    elif several:
        items = bounded(several, 8, path + ".firstAvailable", report)
        for index, item in enumerate(items):
            at = f"{path}.firstAvailable[{index}]"
            sub = item.get("name") or ""
            report.each_invalid(at + ".name", sub, formats.label(sub))
            _exact(item, at, report)
        repeated([item.get("name") or "" for item in items], path + ".firstAvailable", report)
    else:
        report.required(path, _ONE_REQUEST)


def _reference(name: str, known: set[str], path: str, report: Report) -> None:
    parts = name.split("/")
    if len(parts) <= 2:
        for part in parts:
            report.each_invalid(path, part, formats.label(part))
    if name not in known:
        report.invalid(path, name, _NAMED)


def _references(items: Any, known: set[str], path: str, report: Report) -> None:
    names = bounded(items, 32, path, report)
    for index, name in enumerate(names):
        _reference(name, known, f"{path}[{index}]", report)
    repeated(names, path, report)


def _raw_object(value: Any, path: str, report: Report) -> None:
    """Any object of somebody else's, up to 10 KiB."""
    if value is None:
        report.required(path)
    elif len(orjson.dumps(value)) > 10 * 1024:
        report.too_long(path, 10 * 1024)
    elif not isinstance(value, dict):
        report.invalid(path, "<value omitted>", "must be a valid JSON object")


def _opaque(config: Tree, path: str, report: Report) -> None:
    opaque = config.get("opaque")
    if opaque is None:
        report.required(path + ".opaque")
        return
    driver(opaque.get("driver") or "", path + ".opaque.driver", report)
    _raw_object(opaque.get("parameters"), path + ".opaque.parameters", report)


def _request_names(requests: Any) -> set[str]:
    """What constraints and configurations may refer to."""
    known: set[str] = set()
    for request in requests or ():
        name = request.get("name") or ""
        known |= {name, *(f"{name}/{item.get('name') or ''}" for item in request.get("firstAvailable") or ())}
    return known


def _device_claim(devices: Tree, path: str, report: Report) -> None:
    known = _request_names(devices.get("requests"))
    requests = bounded(devices.get("requests"), 32, path + ".requests", report)
    for index, request in enumerate(requests):
        _request(request, f"{path}.requests[{index}]", report)
    repeated([request.get("name") or "" for request in requests], path + ".requests", report)
    for index, constraint in enumerate(bounded(devices.get("constraints"), 32, path + ".constraints", report)):
        at = f"{path}.constraints[{index}]"
        _references(constraint.get("requests"), known, at + ".requests", report)
        for member in ("matchAttribute", "distinctAttribute"):
            if constraint.get(member) is not None:
                _full_name(constraint[member], f"{at}.{member}", report)
                break
        else:
            report.required(at, _MATCH)
    for index, config in enumerate(bounded(devices.get("config"), 32, path + ".config", report)):
        at = f"{path}.config[{index}]"
        _references(config.get("requests"), known, at + ".requests", report)
        _opaque(config, at, report)


def claim(tree: Tree, path: str, report: Report) -> None:
    _device_claim((tree.get("spec") or {}).get("devices") or {}, ".spec.devices", report)


def claim_update(tree: Tree, path: str, report: Report) -> None:
    if tree.get("spec") != (report.old or {}).get("spec"):
        report.invalid(".spec", shown("resource.k8s.io/v1.ResourceClaimSpec", tree.get("spec") or {}), IMMUTABLE)


def claim_template_update(tree: Tree, path: str, report: Report) -> None:
    claim_template(tree, path, report)
    if tree.get("spec") != (report.old or {}).get("spec"):
        spec = shown("resource.k8s.io/v1.ResourceClaimTemplateSpec", tree.get("spec") or {})
        report.invalid(".spec", spec, IMMUTABLE)


def _device_id(device: Tree) -> tuple[str, str, str, str]:
    """Driver, pool, device and share."""
    return tuple(device.get(name) or "" for name in ("driver", "pool", "device", "shareID"))  # type: ignore[return-value]


def _named(identity: tuple[str, str, str, str]) -> Tree:
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), identity, strict=True))


def _share(share: str | None, path: str, report: Report) -> None:
    if share is None:
        return
    if len(share) not in (32, 36, 38, 45):
        report.invalid(path, share, f"error validating uid: invalid UUID length: {len(share)}")
    elif not _UUID.fullmatch(share):
        text = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
        report.invalid(path, share, text + "hexadecimal characters")


def _device_status(device: Tree, allocated: set[tuple[str, str, str, str]], path: str, report: Report) -> None:
    driver(device.get("driver") or "", path + ".driver", report)
    pool_name(device.get("pool") or "", path + ".pool", report)
    name = device.get("device") or ""
    report.each_invalid(path + ".device", name, formats.label(name))
    _share(device.get("shareID"), path + ".shareID", report)
    if _device_id(device) not in allocated:
        report.invalid(path, _named(_device_id(device)), "must be an allocated device in the claim")
    found = device.get("conditions") or ()
    if len(found) > 8:
        report.too_many(path + ".conditions", len(found), 8)
    conditions(found, path + ".conditions", report)
    if device.get("data") is not None:
        _raw_object(device["data"], path + ".data", report)
    network: Tree = device.get("networkData") or {}
    for member, most in (("interfaceName", 256), ("hardwareAddress", 128)):
        if len((network.get(member) or "").encode()) > most:
            report.too_long(f"{path}.networkData.{member}", most)
    addresses = bounded(network.get("ips"), 16, path + ".networkData.ips", report)
    for index, address in enumerate(addresses):
        report.each_invalid(f"{path}.networkData.ips[{index}]", address, formats.interface(address))
    repeated(addresses, path + ".networkData.ips", report)


def _result(result: Tree, known: set[str], path: str, report: Report) -> None:
    _reference(result.get("request") or "", known, path + ".request", report)
    driver(result.get("driver") or "", path + ".driver", report)
    pool_name(result.get("pool") or "", path + ".pool", report)
    name = result.get("device") or ""
    report.each_invalid(path + ".device", name, formats.label(name))
    bound(result, path, report)
    _share(result.get("shareID"), path + ".shareID", report)


def _allocation(allocation: Tree, known: set[str], path: str, report: Report) -> None:
    devices: Tree = allocation.get("devices") or {}
    at = path + ".devices.results"
    for index, result in enumerate(bounded(devices.get("results"), 32, at, report)):
        _result(result, known, f"{at}[{index}]", report)
    at = path + ".devices.config"
    for index, config in enumerate(bounded(devices.get("config"), 64, at, report)):
        _SOURCE(config, f"{at}[{index}]", report)
        _references(config.get("requests"), known, f"{at}[{index}].requests", report)
        _opaque(config, f"{at}[{index}]", report)
    if allocation.get("nodeSelector") is not None:
        node_selector(allocation["nodeSelector"], path + ".nodeSelector", report)


_SOURCE: Final = choice("source", "FromClaim", "FromClass", empty=REQUIRED)


def _users(users: Any, report: Report) -> None:
    path = ".status.reservedFor"
    items = bounded(users, 256, path, report)
    for index, user in enumerate(items):
        for member in ("resource", "name", "uid"):
            if not user.get(member):
                report.required(f"{path}[{index}].{member}")
    repeated([user.get("uid") or "" for user in items], path, report)


def claim_status(tree: Tree, path: str, report: Report) -> None:
    """Who uses a claim, and what it was given."""
    status: Tree = tree.get("status") or {}
    before: Tree = (report.old or {}).get("status") or {}
    allocation = status.get("allocation")
    _users(status.get("reservedFor"), report)
    allocated = {_device_id(result) for result in ((allocation or {}).get("devices") or {}).get("results") or ()}
    devices = status.get("devices") or ()
    for index, device in enumerate(devices):
        _device_status(device, allocated, f".status.devices[{index}]", report)
    seen: set[Any] = set()
    for index, device in enumerate(devices):
        identity = _device_id(device)
        if identity in seen:
            report.duplicate(f".status.devices[{index}]", _named(identity))
        seen.add(identity)
    if status.get("reservedFor") and allocation is None:
        report.forbidden(".status.reservedFor", "may not be specified when `allocated` is not set")
    if allocation is None:
        return
    if before.get("allocation") is None:
        known = _request_names(((tree.get("spec") or {}).get("devices") or {}).get("requests"))
        _allocation(allocation, known, ".status.allocation", report)
    elif allocation != before["allocation"]:
        told = shown("resource.k8s.io/v1.AllocationResult", allocation)
        report.invalid(".status.allocation", told, IMMUTABLE)


def claim_template(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    template_metadata(spec.get("metadata") or {}, ".spec.metadata", report)
    _device_claim((spec.get("spec") or {}).get("devices") or {}, ".spec.spec.devices", report)


def device_class(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    _selectors(spec.get("selectors"), ".spec.selectors", report)
    for index, config in enumerate(bounded(spec.get("config"), 32, ".spec.config", report)):
        _opaque(config, f".spec.config[{index}]", report)
    name = spec.get("extendedResourceName")
    if name is not None:
        domain, slash, _ = name.partition("/")
        if not slash or formats.qualified(name) or "kubernetes.io" in domain:
            report.invalid(".spec.extendedResourceName", name, "must be a valid extended resource name")
