"""Slices: the devices of a driver on a node, what they are like and what they share."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.devices import bound, bounded, driver, pool_name, qualified_name, repeated
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.quantities import amount
from fastapi_core.apis.validation.rules import IMMUTABLE, Report, Tree, choice
from fastapi_core.apis.validation.scheduling import node_selector

_MANY_SET: Final = ", but multiple fields are set"
_semver = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
    r"(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
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


def _text(value: str, path: str, report: Report) -> None:
    if len(value.encode()) > 64:
        report.too_long(path, 64)


def _version(value: str, path: str, report: Report) -> None:
    if not _semver.fullmatch(value):
        report.invalid(path, value, "must be a string compatible with semver.org spec 2.0.0")
    _text(value, path, report)


_VALUES: Final = (("bool", None), ("int", None), ("string", _text), ("version", _version))


def _attribute(tree: Tree, path: str, report: Report) -> None:
    count = 0
    for name, check in _VALUES:
        value = tree.get(name)
        if value is not None:
            count += 1
            if check is not None:
                check(value, f"{path}.{name}", report)
    if count != 1:
        told = shown("resource.k8s.io/v1.DeviceAttribute", tree) if count else ""
        report.invalid(path, told, "exactly one value must be specified")


def _step(value: str, tree: Tree, path: str, report: Report) -> None:
    step, low = amount(tree["step"]), amount(tree["min"])
    if step.nanos and (amount(value).nanos - low.nanos) % step.nanos:
        text = f"value is not a multiple of a given step ({tree['step']}) from ({tree['min']})"
        report.invalid(path, value, text)


def _valid_range(tree: Tree, default: str, most: str, path: str, report: Report) -> None:
    low, high = tree.get("min"), tree.get("max")
    if low is None:
        report.required(path + ".min", "required when validRange is defined")
        return
    if amount(most) < amount(low):
        report.invalid(path + ".min", low, f"min is larger than capacity value: {most}")
    if amount(default) < amount(low):
        report.invalid(path + ".min", default, f"default is less than min: {low}")
    if high is not None:
        if amount(high) < amount(low):
            report.invalid(path + ".max", low, f"min is larger than max: {high}")
        if amount(most) < amount(high):
            report.invalid(path + ".max", high, f"max is larger than capacity value: {most}")
        if amount(high) < amount(default):
            report.invalid(path + ".max", default, f"default is more than max: {high}")
    if tree.get("step") is not None:
        at = path + ".step"
        first = str(amount(low) + amount(tree["step"]))
        if amount(most) < amount(first):
            report.invalid(at, tree["step"], f"one step {first} is larger than capacity value: {most}")
        for value in (default, high):
            if value is not None:
                _step(value, tree, at, report)


def _valid_values(values: list[str], default: str, most: str, path: str, report: Report) -> None:
    for index, (value, following) in enumerate(pairwise(values), 1):
        if amount(following) < amount(value):
            report.invalid(f"{path}[{index}]", following, "values must be sorted in ascending order")
    items = bounded(values, 10, path, report)
    for index, value in enumerate(items):
        if amount(most) < amount(value):
            report.invalid(f"{path}[{index}]", value, f"option is larger than capacity value: {most}")
    repeated([str(-(-amount(value).nanos // 1_000_000_000)) for value in items], path, report)
    if not any(amount(value).nanos == amount(default).nanos for value in items):
        report.invalid(path, default, "default value is not valid according to the requestPolicy")


_ONE_POLICY: Final = (
    'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
)


def _policy(policy: Tree, most: str, path: str, report: Report) -> None:
    """What parts of a capacity may be asked for."""
    values, within, default = policy.get("validValues"), policy.get("validRange"), policy.get("default")
    if values and within is not None:
        report.forbidden(path, _ONE_POLICY)
    elif (values or within is not None) and default is None:
        name = "validValues" if values else "validRange"
        report.required(path + ".default", f"required when {name} is defined")
    elif values:
        _valid_values(values, default or "0", most, path + ".validValues", report)
    elif within is not None:
        _valid_range(within, default or "0", most, path + ".validRange", report)


def _taint(taint: Tree, path: str, report: Report) -> None:
    key, value = taint.get("key") or "", taint.get("value") or ""
    report.each_invalid(path + ".key", key, formats.label_key(key))
    if value:
        report.each_invalid(path + ".value", value, formats.label_value(value))
    _EFFECT(taint, path, report)


_EFFECT: Final = choice("effect", "NoExecute", "NoSchedule", "None", empty=1)


def _counters(tree: Tree, named: str, path: str, report: Report) -> None:
    """A set of counters, or what is used of one."""
    name, counters = tree.get(named) or "", tree.get("counters") or {}
    if not name:
        report.required(f"{path}.{named}")
    else:
        report.each_invalid(f"{path}.{named}", name, formats.label(name))
    if not counters:
        report.required(path + ".counters")
    for key in bounded(counters, 32, path + ".counters", report):
        report.each_invalid(path + ".counters", key, formats.label(key))


def _device_place(device: Tree, spec: Tree, path: str, report: Report) -> None:
    if not spec.get("perDeviceNodeSelection"):
        if any(device.get(member) is not None for member in _PLACES[:3]):
            report.invalid(path, None, _NO_DEVICE_PLACE)
        return
    placed = []
    name, chosen, everywhere = (device.get(member) for member in _PLACES[:3])
    if name:
        placed.append("`nodeName`")
        report.each_invalid(path + ".nodeName", name, formats.subdomain(name))
    elif name is not None:
        report.invalid(path + ".nodeName", name, "must not be empty")
    if chosen is not None:
        placed.append("`nodeSelector`")
        node_selector(chosen, path + ".nodeSelector", report)
    if everywhere:
        placed.append("`allNodes`")
    elif everywhere is not None:
        report.invalid(path + ".allNodes", everywhere, "must be either unset or set to true")
    if not placed:
        report.required(path, _DEVICE_PLACE)
    elif len(placed) > 1:
        report.invalid(path, "{" + ", ".join(placed) + "}", _DEVICE_PLACE)


def _contents(device: Tree, path: str, report: Report) -> None:
    """Attributes and capacities."""
    attributes, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    total = len(attributes) + len(capacities)
    if total > 32:
        report.invalid(path, total, "the total number of attributes and capacities must not exceed 32")
    if len(attributes) > 48:
        report.invalid(path, len(attributes), "the total number of attribute values must not exceed 48")
    for key, attribute in attributes.items():
        qualified_name(key, path + ".attributes", report)
        _attribute(attribute, f"{path}.attributes[{shortened(key)}]", report)
    for key, capacity in capacities.items():
        qualified_name(key, path + ".capacity", report)
        policy, at = capacity.get("requestPolicy"), f"{path}.capacity[{shortened(key)}].requestPolicy"
        if policy is None:
            continue
        if device.get("allowMultipleAllocations"):
            _policy(policy, capacity.get("value") or "0", at, report)
        else:
            report.forbidden(at, "allowMultipleAllocations must be true")


def shortened(key: str, most: int = 96) -> str:
    """A key as paths show it: without its middle when it is long."""
    if len(key) <= most:
        return key
    left = most - 3
    return key[: (left + 1) // 2] + "..." + key[-(left // 2) :]


def _device(device: Tree, before: Tree | None, spec: Tree, path: str, report: Report) -> None:
    name = device.get("name") or ""
    report.each_invalid(path + ".name", name, formats.label(name))
    _contents(device, path, report)
    if before is None or before.get("taints") != device.get("taints"):
        for index, taint in enumerate(bounded(device.get("taints"), 16, path + ".taints", report)):
            _taint(taint, f"{path}.taints[{index}]", report)
    at = path + ".consumesCounters"
    used = bounded(device.get("consumesCounters"), 2, at, report)
    for index, item in enumerate(used):
        _counters(item, "counterSet", f"{at}[{index}]", report)
    repeated([item.get("counterSet") or "" for item in used], at, report)
    _device_place(device, spec, path, report)
    bound(device, path, report)


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
            terms = shown("core/v1.NodeSelector", chosen)["NodeSelectorTerms"]
            report.invalid(".spec.nodeSelector.nodeSelectorTerms", terms, text)
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
    pool_name(pool.get("name") or "", ".spec.pool.name", report)
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        report.invalid(".spec.pool.resourceSliceCount", count, "must be greater than zero")
    if generation < 0:
        report.invalid(".spec.pool.generation", generation, "must be greater than or equal to zero")


def _elaborate(devices: Any) -> bool:
    """Whether devices use what a slice can hold fewer of."""
    return any(device.get("taints") or device.get("consumesCounters") for device in devices)


def resource_slice(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    before: Tree = (report.old or {}).get("spec") or {}
    driver(spec.get("driver") or "", ".spec.driver", report)
    _pool(spec.get("pool") or {}, report)
    if report.old is not None:
        _slice_kept(spec, before, report)
    _place(spec, report)
    devices, counters = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and counters is not None:
        report.invalid(".spec", "", "only one of `sharedCounters` or `devices` is allowed")
    earlier = {device.get("name") or "": device for device in before.get("devices") or ()}
    devices = bounded(devices, 64 if _elaborate(devices or ()) else 128, ".spec.devices", report)
    names = [device.get("name") or "" for device in devices]
    for index, (name, device) in enumerate(zip(names, devices, strict=True)):
        _device(device, earlier.get(name), spec, f".spec.devices[{index}]", report)
    repeated(names, ".spec.devices", report)
    counters = bounded(counters, 8, ".spec.sharedCounters", report)
    for index, counter in enumerate(counters):
        _counters(counter, "name", f".spec.sharedCounters[{index}]", report)
    repeated([counter.get("name") or "" for counter in counters], ".spec.sharedCounters", report)


def _slice_kept(spec: Tree, before: Tree, report: Report) -> None:
    name, earlier = (spec.get("pool") or {}).get("name"), (before.get("pool") or {}).get("name")
    if name != earlier:
        report.invalid(".spec.pool.name", name or "", IMMUTABLE)
    for member in ("driver", "nodeName"):
        if spec.get(member) != before.get(member):
            report.invalid(f".spec.{member}", spec.get(member), IMMUTABLE)
