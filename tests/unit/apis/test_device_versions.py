"""resource.k8s.io/v1beta1 and v1 hold the same in two forms."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.apis.resources import builtin, optional
from fastapi_core.registry.conversion import CONVERTERS

V1, OLD = "resource.k8s.io/v1", "resource.k8s.io/v1beta1"
builtin()

names = st.sampled_from(["a", "b", "gpu"])
exact = st.fixed_dictionaries(
    {"deviceClassName": names}, optional={"count": st.integers(1, 9), "allocationMode": st.just("ExactCount")}
)
requests = st.one_of(
    st.fixed_dictionaries({"name": names, "exactly": exact}),
    st.fixed_dictionaries({"name": names, "firstAvailable": st.lists(st.just({"name": "x"}), min_size=1, max_size=2)}),
)
claims = st.fixed_dictionaries({"devices": st.fixed_dictionaries({"requests": st.lists(requests, max_size=3)})})
devices = st.fixed_dictionaries(
    {"name": names}, optional={"attributes": st.just({"a": {"string": "b"}}), "allNodes": st.booleans()}
)


@given(claims)
def test_a_claim_survives_the_way_there_and_back(spec: dict[str, Any]) -> None:
    for kind, body in (("ResourceClaim", spec), ("ResourceClaimTemplate", {"spec": spec})):
        new = {"kind": kind, "apiVersion": V1, "metadata": {"name": "c"}, "spec": body}
        old = CONVERTERS[kind, V1, OLD](new)
        assert old["apiVersion"] == OLD
        assert "exactly" not in str(old)
        assert CONVERTERS[kind, OLD, V1](old) == new


@given(st.lists(devices, max_size=3))
def test_a_slice_survives_the_way_there_and_back(found: list[dict[str, Any]]) -> None:
    new = {"kind": "ResourceSlice", "apiVersion": V1, "metadata": {"name": "s"}, "spec": {"devices": found}}
    old = CONVERTERS["ResourceSlice", V1, OLD](new)
    assert all(set(device) == {"name", "basic"} for device in old["spec"]["devices"])
    assert CONVERTERS["ResourceSlice", OLD, V1](old) == new


@pytest.mark.parametrize("tree", [{}, {"spec": {}}, {"spec": {"devices": None}}, {"spec": {"devices": {}}}])
def test_what_is_not_there_is_left_alone(tree: dict[str, Any]) -> None:
    assert CONVERTERS["ResourceClaim", OLD, V1]({"kind": "ResourceClaim", **tree})["apiVersion"] == V1


def test_the_older_version_is_judged_by_the_rules_of_the_newer() -> None:
    (definition,) = (d for d, _ in optional() if (d.plural, d.version) == ("resourceclaims", "v1beta1"))
    request = {"name": "r", "deviceClassName": "Not A Name", "allocationMode": "ExactCount", "count": 1}
    tree = {"kind": "ResourceClaim", "apiVersion": OLD, "metadata": {"name": "c", "namespace": "n"},
            "spec": {"devices": {"requests": [request]}}}  # fmt: skip
    fields = [error.field for error in definition.strategy.validate(tree, None)]
    assert fields == ["spec.devices.requests[0].exactly.deviceClassName"]
