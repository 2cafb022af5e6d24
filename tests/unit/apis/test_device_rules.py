"""Claims for devices and the slices that offer them."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.apis.strategies.table import strategy_for
from fastapi_core.apis.validation.index import validator

Tree = dict[str, Any]


def problems(kind: str, new: Tree, old: Tree | None = None) -> list[tuple[str, str]]:
    check = validator("resource.k8s.io", kind)
    assert check is not None
    return [(error.field, error.detail) for error in check(new, old)]


def fields(kind: str, new: Tree, old: Tree | None = None) -> list[str]:
    return [field for field, _ in problems(kind, new, old)]


def claim(**more: Any) -> Tree:
    exact = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
    return {"spec": {"devices": {"requests": [{"name": "r", "exactly": exact}], **more}}}


def test_a_list_that_is_too_long_says_nothing_else() -> None:
    names = ["", "r"] * 20
    found = problems("ResourceClaim", claim(constraints=[{"requests": names, "matchAttribute": "d.x/a"}]))
    assert found == [("spec.devices.constraints[0].requests", "must have at most 32 items")]


@pytest.mark.parametrize(
    ("toleration", "member"),
    [
        ({"operator": "Odd"}, "operator"),
        ({}, "operator"),
        ({"operator": "Exists", "value": "v"}, "value"),
        ({"operator": "Equal", "key": "-"}, "key"),
        ({"operator": "Equal", "effect": "Odd"}, "effect"),
    ],
)
def test_tolerations(toleration: Tree, member: str) -> None:
    tree = claim()
    tree["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] = [toleration]
    assert fields("ResourceClaim", tree) == [f"spec.devices.requests[0].exactly.tolerations[0].{member}"]


def test_parameters_are_objects() -> None:
    tree = claim(config=[{"opaque": {"driver": "d.x", "parameters": [1]}}])
    assert problems("ResourceClaim", tree) == [
        ("spec.devices.config[0].opaque.parameters", "must be a valid JSON object")
    ]


ALLOCATION: Tree = {"devices": {"results": [{"request": "r", "driver": "d.x", "pool": "p", "device": "a"}]}}


def test_status_of_a_claim() -> None:
    old = {**claim(), "status": {}}
    given = {**claim(), "status": {"allocation": ALLOCATION}}
    assert fields("ResourceClaim", given, old) == []
    assert fields("ResourceClaim", {**claim(), "status": {"reservedFor": [{"name": "p"}]}}, old) == [
        "status.reservedFor[0].resource",
        "status.reservedFor[0].uid",
        "status.reservedFor",
    ]
    condition = {"type": "T", "status": "Maybe", "reason": "!", "lastTransitionTime": "2024-01-01T00:00:00Z"}
    device = {"driver": "d.x", "pool": "p", "device": "b", "conditions": [condition]}
    told = {**claim(), "status": {"allocation": ALLOCATION, "devices": [device]}}
    at = "status.devices[0]"
    assert fields("ResourceClaim", told, given) == [at, f"{at}.conditions[0].status", f"{at}.conditions[0].reason"]
    other = {**claim(), "status": {"allocation": {"devices": {"results": []}}}}
    assert fields("ResourceClaim", other, given) == ["status.allocation"]


def test_the_state_of_a_device_goes_with_it() -> None:
    strategy = strategy_for("resource.k8s.io", "ResourceClaim", status=True, generation=0, bump=False)
    device = {"driver": "d.x", "pool": "p", "device": "a"}
    old = {"metadata": {}, **claim(), "status": {"allocation": ALLOCATION, "devices": [device]}}
    new = {"metadata": {}, **claim(), "status": {"devices": [device]}}
    strategy.prepare_status(new, old)
    assert new["status"] == {}


def offered(**device: Any) -> Tree:
    pool = {"name": "p", "resourceSliceCount": 1}
    return {"spec": {"driver": "d.x", "allNodes": True, "pool": pool, "devices": [{"name": "a", **device}]}}


@pytest.mark.parametrize(
    ("device", "found"),
    [
        ({"attributes": {"a": {"string": "s", "int": 1}}}, ["attributes[a]"]),
        ({"attributes": {"x/": {"int": 1}}}, ["attributes"]),
        ({"capacity": {"m": {"value": "1", "requestPolicy": {}}}}, ["capacity[m].requestPolicy"]),
        ({"bindingConditions": ["B"]}, ["bindingFailureConditions"]),
        ({"bindingConditions": ["B"], "bindingFailureConditions": ["B"]}, ["bindingFailureConditions[0]"]),
        ({"taints": [{"key": "k"}]}, ["taints[0].effect"]),
        (
            {"consumesCounters": [{"counterSet": "S"}]},
            ["consumesCounters[0].counterSet", "consumesCounters[0].counters"],
        ),
    ],
)
def test_devices(device: Tree, found: list[str]) -> None:
    assert fields("ResourceSlice", offered(**device)) == [f"spec.devices[0].{field}" for field in found]


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ({"validValues": ["1"]}, "required when validValues is defined"),
        ({"default": "3", "validValues": ["1", "2"]}, "default value is not valid according to the requestPolicy"),
        ({"default": "2", "validValues": ["2", "1"]}, "values must be sorted in ascending order"),
        ({"default": "1", "validRange": {}}, "required when validRange is defined"),
        ({"default": "1", "validRange": {"min": "2"}}, "default is less than min: 2"),
        ({"default": "3", "validRange": {"min": "1", "max": "2"}}, "default is more than max: 2"),
        (
            {"default": "4", "validRange": {"min": "1", "step": "2"}},
            "value is not a multiple of a given step (2) from (1)",
        ),
        ({"default": "1", "validRange": {"min": "1", "step": "8"}}, "one step 9 is larger than capacity value: 8"),
    ],
)
def test_policies_of_capacities(policy: Tree, text: str) -> None:
    tree = offered(allowMultipleAllocations=True, capacity={"m": {"value": "8", "requestPolicy": policy}})
    assert [detail for _, detail in problems("ResourceSlice", tree)] == [text]


def test_drivers_are_lowercase() -> None:
    strategy = strategy_for("resource.k8s.io", "ResourceSlice", status=False, generation=0, bump=False)
    assert len(strategy.warnings({"spec": {"driver": "D.x"}}, None)) == 1
