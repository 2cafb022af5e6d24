"""Admission policies of a running server: in force with the next request, over scale and other versions, their status."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.fixtures.server import Api

V1 = "/apis/admissionregistration.k8s.io/v1"
Install = Callable[..., str]


def rule(group: str, version: str, *resources: str, operations: tuple[str, ...] = ("CREATE", "UPDATE")) -> Any:
    return {
        "apiGroups": [group], "apiVersions": [version], "operations": list(operations), "resources": list(resources),
    }  # fmt: skip


@pytest.fixture
def install(api: Api, namespace: str) -> Iterator[Install]:
    """Makes a policy for this namespace, with its binding; both go in the end."""
    made: list[str] = []

    def put(kind: str, rules: list[Any], *, bound: bool = True, **spec: Any) -> str:
        name = f"p-{uuid.uuid4().hex[:10]}"
        lower = f"{kind.lower()}admissionpolic"
        selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        constraints = {"resourceRules": rules, "namespaceSelector": selector}
        policy = {"metadata": {"name": name}, "spec": {"matchConstraints": constraints, **spec}}
        status, answer = api("POST", f"{V1}/{lower}ies", policy)
        assert status == 201, answer
        made.append(f"{V1}/{lower}ies/{name}")
        if bound:
            binding: Any = {"policyName": name}
            if kind == "Validating":
                binding["validationActions"] = ["Deny"]
            status, answer = api("POST", f"{V1}/{lower}ybindings", {"metadata": {"name": name}, "spec": binding})
            assert status == 201, answer
            made.append(f"{V1}/{lower}ybindings/{name}")
        return name

    yield put
    for path in reversed(made):
        api("DELETE", path)


def test_in_force_with_the_next_request(api: Api, namespace: str, install: Install) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(20):
        assert api("POST", maps, {"metadata": {"name": f"a{number}"}})[0] == 201
        name = install("Validating", [rule("", "v1", "configmaps")], validations=[{"expression": "false"}])
        status, answer = api("POST", maps, {"metadata": {"name": "no"}})
        assert (status, answer["reason"]) == (422, "Invalid"), answer
        assert api("DELETE", f"{V1}/validatingadmissionpolicybindings/{name}")[0] == 200


def test_a_dry_run_and_other_verbs_are_judged(api: Api, namespace: str, install: Install) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    assert api("POST", maps, {"metadata": {"name": "a"}, "data": {"keep": "yes"}})[0] == 201
    validations = [
        {"expression": "request.operation != 'CREATE' || request.dryRun", "message": "only for show"},
        {"expression": "request.operation != 'DELETE' || !has(oldObject.data)", "message": "kept"},
        {"expression": "!has(request.options.fieldManager) || request.options.fieldManager != 'bad'"},
    ]
    install("Validating", [rule("", "v1", "configmaps", operations=("*",))], validations=validations)
    assert api("POST", f"{maps}?dryRun=All", {"metadata": {"name": "b"}})[0] == 201
    assert "only for show" in api("POST", maps, {"metadata": {"name": "b"}})[1]["message"]
    assert "kept" in api("DELETE", f"{maps}/a")[1]["message"]
    patch = {"Content-Type": "application/merge-patch+json"}
    assert api("PATCH", f"{maps}/a?fieldManager=bad", {"data": {"x": "y"}}, patch)[0] == 422
    assert api("PATCH", f"{maps}/a", {"data": None}, patch)[0] == 200
    assert api("DELETE", f"{maps}/a")[0] == 200


def test_the_scale_of_a_workload(api: Api, namespace: str, install: Install) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 5, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert api("POST", path, {"metadata": {"name": "d"}, "spec": spec})[0] == 201
    install(
        "Validating",
        [rule("apps", "v1", "deployments/scale")],
        validations=[
            {"expression": "object.kind == 'Scale' && request.kind.kind == 'Scale' && object.spec.replicas < 7"},
            {"expression": "oldObject.kind == 'Scale' && request.subResource == 'scale'"},
        ],
    )
    patch = {"Content-Type": "application/merge-patch+json"}
    assert api("PATCH", f"{path}/d/scale", {"spec": {"replicas": 7}}, patch)[0] == 422
    assert api("PATCH", f"{path}/d/scale", {"spec": {"replicas": 6}}, patch)[1]["spec"] == {"replicas": 6}
    install(
        "Mutating",
        [rule("apps", "v1", "deployments/scale")],
        mutations=[
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": "Object{spec: Object.spec{replicas: 2}}"},
            }
        ],
        reinvocationPolicy="Never",
    )
    assert api("PATCH", f"{path}/d/scale", {"spec": {"replicas": 4}}, patch)[1]["spec"] == {"replicas": 2}
    assert api("GET", f"{path}/d")[1]["spec"]["replicas"] == 2


def test_what_a_policy_puts_in_has_no_owner(api: Api, namespace: str, install: Install) -> None:
    expression = "Object{metadata: Object.metadata{labels: {'team': 'a'}}, data: {'more': object.metadata.name}}"
    install(
        "Mutating",
        [rule("", "v1", "configmaps")],
        mutations=[{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
        reinvocationPolicy="IfNeeded",
    )
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    status, made = api("POST", maps, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert (status, made["data"], made["metadata"]["labels"]) == (201, {"k": "v", "more": "a"}, {"team": "a"})
    [entry] = made["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}


def test_a_policy_that_refuses_everything_can_be_taken_back(api: Api, namespace: str, install: Install) -> None:
    name = f"all-{uuid.uuid4().hex[:8]}"
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"matchConstraints": {"resourceRules": [everything], "namespaceSelector": selector}}
    policies, bindings = f"{V1}/validatingadmissionpolicies", f"{V1}/validatingadmissionpolicybindings"
    binding = {"policyName": name, "validationActions": ["Deny"]}
    policy = {"metadata": {"name": name}, "spec": {**spec, "validations": [{"expression": "false"}]}}
    assert api("POST", bindings, {"metadata": {"name": name}, "spec": binding})[0] == 201
    assert api("POST", policies, policy)[0] == 201
    assert api("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "a"}})[0] == 422
    assert api("DELETE", f"{bindings}/{name}")[0] == 200
    assert api("DELETE", f"{policies}/{name}")[0] == 200
    assert api("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "a"}})[0] == 201


def test_the_status_of_a_policy(api: Api, install: Install) -> None:
    name = install(
        "Validating",
        [rule("apps", "v1", "deployments")],
        bound=False,
        validations=[{"expression": "object.spec.replicas < 5"}, {"expression": "object.replicas < 5"}],
    )
    path = f"{V1}/validatingadmissionpolicies/{name}"

    def settled(generation: int) -> Any:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            policy = api("GET", path)[1]
            if (policy.get("status") or {}).get("observedGeneration") == generation:
                return policy
            time.sleep(0.05)
        raise AssertionError(f"no status for generation {generation}")

    policy = settled(1)
    [warning] = policy["status"]["typeChecking"]["expressionWarnings"]
    assert warning["fieldRef"] == "spec.validations[1].expression"
    assert warning["warning"].startswith("apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'")
    managers = {(e["manager"], e["operation"], e.get("subresource")) for e in policy["metadata"]["managedFields"]}
    assert ("validatingadmissionpolicy-status", "Apply", "status") in managers
    patch = {"Content-Type": "application/merge-patch+json"}
    fixed = {"spec": {"validations": [{"expression": "object.spec.replicas < 6"}]}}
    assert api("PATCH", path, fixed, patch)[0] == 200
    assert not settled(2)["status"].get("typeChecking")


@pytest.fixture
def limits(api: Api) -> Iterator[str]:
    """A definition of parameters, in a group of its own."""
    group = f"g{uuid.uuid4().hex[:8]}.example.com"
    schema = {
        "type": "object",
        "properties": {
            "most": {"type": "integer", "default": 2},
            "names": {"type": "array", "items": {"type": "string"}},
        },
    }
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v2")
    ]
    names = {"plural": "limits", "singular": "limit", "kind": "Limit", "listKind": "LimitList"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"limits.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }  # fmt: skip
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert api("POST", path, definition)[0] == 201
    deadline = time.monotonic() + 20
    while api("GET", f"/apis/{group}/v1/limits")[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield group
    api("DELETE", f"{path}/limits.{group}")


def test_parameters_of_a_custom_kind(api: Api, namespace: str, limits: str, install: Install) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    name = install(
        "Validating",
        [rule("", "v1", "configmaps")],
        bound=False,
        paramKind={"apiVersion": f"{limits}/v2", "kind": "Limit"},
        validations=[
            {
                "expression": "size(object.?data.orValue({})) <= params.most",
                "messageExpression": "'at most ' + string(params.most) + ' by ' + string(params.apiVersion)",
            }
        ],
    )
    spec = {
        "policyName": name,
        "validationActions": ["Deny"],
        "paramRef": {"name": "l", "parameterNotFoundAction": "Deny"},
    }
    path = f"{V1}/validatingadmissionpolicybindings"
    assert api("POST", path, {"metadata": {"name": name}, "spec": spec})[0] == 201
    try:
        wrong = api("POST", maps, {"metadata": {"name": "a"}})[1]["message"]
        assert "no params found for policy binding with `Deny` parameterNotFoundAction" in wrong
        custom = f"/apis/{limits}/v1/namespaces/{namespace}/limits"
        limit = {"apiVersion": f"{limits}/v1", "kind": "Limit", "metadata": {"name": "l"}}
        assert api("POST", custom, limit)[0] == 201
        # The default of the schema counts, and the object is shown in the version the policy names.
        three = {"a": "1", "b": "2", "c": "3"}
        told = api("POST", maps, {"metadata": {"name": "a"}, "data": three})[1]["message"]
        assert told.endswith(f"denied request: at most 2 by {limits}/v2")
        patch = {"Content-Type": "application/merge-patch+json"}
        assert api("PATCH", f"{custom}/l", {"most": 3}, patch)[0] == 200
        assert api("POST", maps, {"metadata": {"name": "a"}, "data": three})[0] == 201
    finally:
        api("DELETE", f"{path}/{name}")


def test_the_status_of_a_policy_about_custom_resources(api: Api, limits: str, install: Install) -> None:
    validations = [{"expression": "object.most < 5"}, {"expression": "object.least < 5"}]
    name = install("Validating", [rule(limits, "v2", "limits")], bound=False, validations=validations)
    deadline = time.monotonic() + 20
    while True:
        status = api("GET", f"{V1}/validatingadmissionpolicies/{name}")[1].get("status") or {}
        if status.get("observedGeneration"):
            break
        assert time.monotonic() < deadline
        time.sleep(0.05)
    [warning] = status["typeChecking"]["expressionWarnings"]
    assert warning["warning"].startswith(f"{limits}/v2, Kind=Limit: ERROR: <input>:1:7: undefined field 'least'")


def test_policies_about_custom_resources(api: Api, namespace: str, limits: str, install: Install) -> None:
    install(
        "Mutating",
        [rule(limits, "v2", "limits")],
        mutations=[
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'seen': 'yes'}}}"},
            },
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/most', value: object.most + 1}]"},
            },
        ],
        reinvocationPolicy="Never",
    )
    install(
        "Validating",
        [rule(limits, "v2", "limits")],
        validations=[{"expression": f"object.apiVersion == '{limits}/v2' && object.most < 10", "message": "too many"}],
    )
    for version in ("v1", "v2"):
        path = f"/apis/{limits}/{version}/namespaces/{namespace}/limits"
        limit = {"apiVersion": f"{limits}/{version}", "kind": "Limit", "metadata": {"name": f"l-{version}"}, "most": 5}
        status, made = api("POST", path, limit)
        assert (status, made.get("most"), made["metadata"].get("labels")) == (201, 6, {"seen": "yes"}), made
        assert made["apiVersion"] == f"{limits}/{version}"
        limit["metadata"], limit["most"] = {"name": "big"}, 9
        status, answer = api("POST", path, limit)
        assert (status, answer["reason"]) == (422, "Invalid")
        assert answer["message"].endswith("denied request: too many")
