"""Lists may have as many members as a body holds: what looks for repeated ones is not quadratic."""

from __future__ import annotations

import time

from fastapi_core.apis.validation import warnings
from fastapi_core.apis.validation.rules import Report, Tree
from fastapi_core.apis.validation.scheduling import spread
from fastapi_core.registry.metadata import dedup_owner_references

MANY = 20_000
#: Far above what one pass takes anywhere, far below what comparing all pairs takes.
PATIENCE = 5.0


def constraint(index: int) -> Tree:
    return {"maxSkew": 1, "topologyKey": f"zone{index}", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}


def test_spread_constraints_are_compared_in_one_pass() -> None:
    report = Report()
    start = time.process_time()
    spread([constraint(index) for index in range(MANY)] + [constraint(7)], ".spec", report)
    assert time.process_time() - start < PATIENCE
    assert [(error.field, error.type) for error in report] == [
        ("spec[7].{topologyKey, whenUnsatisfiable}", "Duplicate value")
    ]


def test_the_earlier_of_two_equal_constraints_is_told() -> None:
    report = Report()
    spread([constraint(1), constraint(1), constraint(1)], ".spec", report)
    assert [error.field.partition(".")[0] for error in report] == ["spec[0]", "spec[1]"]


def test_container_ports_are_compared_in_one_pass() -> None:
    ports = [{"containerPort": index + 1, "protocol": "TCP"} for index in range(MANY)]
    container = {"name": "c", "ports": [*ports, ports[3], {"containerPort": 5, "protocol": "UDP"}, ports[3]]}
    start = time.process_time()
    said = warnings.pod_spec({"containers": [container]}, {}, "")
    assert time.process_time() - start < PATIENCE
    at = "spec.containers[0].ports"
    assert said == [
        f"{at}[{MANY}]: duplicate port definition with {at}[3]",
        f"{at}[{MANY + 2}]: duplicate port definition with {at}[3]",
        f"{at}[{MANY + 2}]: duplicate port definition with {at}[{MANY}]",
    ]


def test_the_same_port_over_and_over_ends() -> None:
    container = {"name": "c", "ports": [{"containerPort": 1, "protocol": "TCP"}] * MANY}
    start = time.process_time()
    assert len(warnings.pod_spec({"containers": [container]}, {}, "")) < MANY * 64
    assert time.process_time() - start < PATIENCE


def test_owner_references_are_compared_in_one_pass() -> None:
    owners = [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": str(index)} for index in range(MANY)]
    tree = {"metadata": {"ownerReferences": [*owners, dict(owners[3])]}}
    start = time.process_time()
    (warning,) = dedup_owner_references(tree)
    assert time.process_time() - start < PATIENCE
    assert warning.endswith("duplicate UID(s) observed: 3")
    assert tree["metadata"]["ownerReferences"] == owners
