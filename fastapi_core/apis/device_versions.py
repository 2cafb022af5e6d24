"""resource.k8s.io/v1beta1 and v1: requests and devices had one level less and one more in the older version."""

from __future__ import annotations

from collections.abc import Callable

from fastapi_core.registry.conversion import CONVERTERS
from fastapi_core.registry.definition import Tree

V1, OLD = "resource.k8s.io/v1", "resource.k8s.io/v1beta1"

_REQUEST_OWN = ("name", "firstAvailable")


def _request_to_v1(request: Tree) -> Tree:
    """What is asked for exactly moves into a member; alternatives stay where they are."""
    own = {name: request[name] for name in _REQUEST_OWN if name in request}
    exact = {name: value for name, value in request.items() if name not in _REQUEST_OWN}
    # An empty class is always printed; alone, beside alternatives, it asks for nothing.
    if any(exact.values()) or not own.get("firstAvailable"):
        own["exactly"] = exact
    return own


def _request_to_old(request: Tree) -> Tree:
    exact: Tree = request.get("exactly") or {}
    return {**{name: value for name, value in request.items() if name != "exactly"}, **exact}


def _device_to_v1(device: Tree) -> Tree:
    basic: Tree = device.get("basic") or {}
    return {**{name: value for name, value in device.items() if name != "basic"}, **basic}


def _device_to_old(device: Tree) -> Tree:
    basic = {name: value for name, value in device.items() if name != "name"}
    return {**({"name": device["name"]} if "name" in device else {}), "basic": basic}


def _each(change: Callable[[Tree], Tree], group_version: str, *path: str) -> Callable[[Tree], Tree]:
    """A conversion that applies `change` to every member of the list at `path`."""

    def inside(tree: Tree, names: tuple[str, ...]) -> Tree:
        name, *rest = names
        found = tree.get(name)
        if not found:
            return tree
        if rest:
            return {**tree, name: inside(found, tuple(rest))}
        return {**tree, name: [change(item) for item in found]}

    def convert(tree: Tree) -> Tree:
        return {**inside(tree, path), "apiVersion": group_version}

    return convert


def register() -> None:
    """Make the conversions known to the registry."""
    claim = ("spec", "devices", "requests")
    for kind, path in (("ResourceClaim", claim), ("ResourceClaimTemplate", ("spec", *claim))):
        CONVERTERS[kind, OLD, V1] = _each(_request_to_v1, V1, *path)
        CONVERTERS[kind, V1, OLD] = _each(_request_to_old, OLD, *path)
    CONVERTERS["ResourceSlice", OLD, V1] = _each(_device_to_v1, V1, "spec", "devices")
    CONVERTERS["ResourceSlice", V1, OLD] = _each(_device_to_old, OLD, "spec", "devices")
