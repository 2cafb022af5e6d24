"""MutatingAdmissionPolicy: what becomes of objects, in which order, and how it fails."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable
from typing import Any

import pytest

from fastapi_core.admission.chain import AdmissionChain, Plugin
from fastapi_core.admission.chain import Attributes as Request
from fastapi_core.admission.policies.mutating import MutatingAdmissionPolicy
from fastapi_core.authz.base import AlwaysAllow, Attributes, Decision, Verdict
from fastapi_core.errors import APIError
from tests.fixtures.admission import World, handled, pod, request, settled, world
from tests.fixtures.admission_policies import add_mutation, configmap, constraints, mutating

__all__ = ["world"]

PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*"}


@pytest.fixture(autouse=True)
async def space(world: World) -> None:
    await world.add("namespaces", "ns", labels={"team": "a"})


async def admitted(plugin: MutatingAdmissionPolicy, tree: Any = None, **more: Any) -> Any:
    """The attributes after the plugin."""
    attributes = request("configmaps", configmap() if tree is None else tree, **more)
    if handled(plugin, attributes):
        await settled(plugin.admit(attributes))
    return attributes


async def refused(plugin: MutatingAdmissionPolicy, tree: Any = None) -> APIError:
    with pytest.raises(APIError) as caught:
        await admitted(plugin, tree)
    return caught.value


async def patched(world: World, *mutations: str, tree: Any = None, **spec: Any) -> Any:
    await add_mutation(world, *mutations, **spec)
    return (await admitted(mutating(world), tree)).object


async def test_a_configuration_is_applied(world: World) -> None:
    tree = configmap(labels={"a": "b"}, k="v")
    before = copy.deepcopy(tree)
    made = await patched(
        world,
        "Object{metadata: Object.metadata{labels: {'team': namespaceObject.metadata.labels.team}}, "
        "data: {'k': 'w', 'n': string(size(object.data))}}",
        tree=tree,
    )
    assert made["metadata"]["labels"] == {"a": "b", "team": "a"}
    assert made["data"] == {"k": "w", "n": "1"}
    assert tree == before


async def test_list_items_are_matched(world: World) -> None:
    await add_mutation(
        world,
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, "
        "env: [Object.spec.containers.env{name: 'A', value: 'b'}]}), tolerations: []}}",
        matchConstraints=constraints(PODS),
    )
    attributes = request("pods", {"kind": "Pod", "apiVersion": "v1", **pod()})
    with pytest.raises(APIError, match=r"may not mutate atomic arrays, maps or structs: \.spec\.tolerations"):
        await settled(mutating(world).admit(attributes))
    await add_mutation(
        world,
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, "
        "env: [Object.spec.containers.env{name: 'A', value: 'b'}]})}}",
        name="n",
        matchConstraints=constraints(PODS),
    )
    store = world.store("mutatingadmissionpolicies", "admissionregistration.k8s.io")
    await store.delete(store.get("", "m"))
    await settled(mutating(world).admit(attributes))
    assert attributes.object is not None
    [container] = attributes.object["spec"]["containers"]
    assert (container["name"], container["image"], container["env"]) == ("c", "i", [{"name": "A", "value": "b"}])
    # Defaults of what was put in are filled in as well.
    assert container["imagePullPolicy"] == "Always"


async def test_json_patches(world: World) -> None:
    made = await patched(
        world,
        "[JSONPatch{op: 'test', path: '/data/k', value: 'v'}, "
        "JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a.b'), value: variables.made}, "
        "JSONPatch{op: 'move', from: '/data/k', path: '/data/l'}]",
        variables=[{"name": "made", "expression": "object.metadata.name + '!'"}],
        tree=configmap(k="v"),
    )
    assert made["data"] == {"a.b": "x!", "l": "v"}


async def test_a_test_that_fails_skips_the_patch(world: World) -> None:
    tree = configmap(k="v")
    made = await patched(
        world,
        "[JSONPatch{op: 'add', path: '/data/x', value: 'y'}, JSONPatch{op: 'test', path: '/data/k', value: 'w'}]",
        tree=tree,
    )
    assert made is tree


async def test_an_empty_patch_changes_nothing(world: World) -> None:
    await add_mutation(world, "[JSONPatch{op: 'remove', path: '/x'}].filter(p, false)")
    attributes = await admitted(mutating(world))
    assert not attributes.reinvoke


async def test_mutations_see_what_those_before_them_did(world: World) -> None:
    await add_mutation(world, "Object{data: {'one': '1'}}", "Object{data: {'two': object.data.one + '2'}}", name="a")
    await add_mutation(world, "Object{data: {'three': object.data.two + '3'}}", name="b")
    attributes = await admitted(mutating(world))
    assert attributes.object["data"] == {"one": "1", "two": "12", "three": "123"}
    assert attributes.reinvoke


FAILURES = [
    ("Object{data: object.nope}", "expression 'Object{data: object.nope}' resulted in error: no such key: nope"),
    (
        "Object{data: {'a': 1}}",
        "error applying patch: failed to convert patch object to typed object: "
        ".data.a: expected string, got &value.valueUnstructured{Value:1}",
    ),
    (
        "Object{nope: 'a'}",
        "error applying patch: failed to convert patch object to typed object: .nope: field not declared in schema",
    ),
    (
        "Object{metadata: Object.wrong{name: 'a'}}",
        'type mismatch: unexpected type name "Object.wrong", expected "Object.metadata", which matches field name path '
        "from root Object type",
    ),
    ("[JSONPatch{op: 'remove', path: '/data/k'}]", "JSON Patch: "),
]


@pytest.mark.parametrize(("expression", "text"), FAILURES)
async def test_failures(world: World, expression: str, text: str) -> None:
    await add_mutation(world, expression)
    error = await refused(mutating(world))
    told = f"policy 'm' with binding 'm' denied request: {text}"
    assert error.message.startswith(told)
    assert (error.reason, error.code) == ("Invalid", 403)
    assert error.details == {"name": "x", "kind": "configmaps", "causes": [{"message": error.message}]}


async def test_failures_are_ignored_when_the_policy_says_so(world: World) -> None:
    made = await patched(world, "Object{data: object.nope}", "Object{data: {'a': 'b'}}", failurePolicy="Ignore")
    assert made["data"] == {"a": "b"}


async def test_a_result_that_cannot_be_decoded_is_an_internal_error(world: World) -> None:
    await add_mutation(world, "[JSONPatch{op: 'add', path: '/nope', value: 1}]")
    error = await refused(mutating(world))
    assert (error.code, error.reason) == (500, "InternalError")
    assert error.message == 'Internal error occurred: strict decoding error: unknown field "nope"'


async def test_every_failure_is_told(world: World) -> None:
    await add_mutation(world, "Object{data: object.one}", "Object{data: object.two}")
    error = await refused(mutating(world))
    assert len((error.details or {})["causes"]) == 2
    assert "no such key: one" in error.message


async def test_parameters_that_cannot_be_found(world: World) -> None:
    await add_mutation(world, "Object{}", paramKind={"apiVersion": "x.io/v1", "kind": "Limit"})
    error = await refused(mutating(world))
    assert error.message == (
        'policy "m" denied request: failed to configure policy: failed to find resource referenced by paramKind: '
        "'x.io/v1, Kind=Limit'"
    )
    assert (error.reason, error.code) == ("Forbidden", 403)


async def test_parameters(world: World) -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    await add_mutation(world, "Object{data: {params.data.key: 'x'}}", bound=False, paramKind=kind)
    reference = {"selector": {"matchLabels": {"p": "y"}}, "parameterNotFoundAction": "Deny"}
    await world.add(
        "mutatingadmissionpolicybindings", "b", group="admissionregistration.k8s.io",
        spec={"policyName": "m", "paramRef": reference},
    )  # fmt: skip
    plugin = mutating(world)
    assert (await refused(plugin)).message == (
        "policy 'm' with binding 'b' denied request: failed to configure binding: no params found for policy binding "
        "with `Deny` parameterNotFoundAction"
    )
    for key in ("a", "b"):
        await world.add("configmaps", key, "ns", labels={"p": "y"}, data={"key": key})
    assert (await admitted(plugin)).object["data"] == {"a": "x", "b": "x"}


async def test_conditions_and_operations(world: World) -> None:
    await add_mutation(
        world,
        "Object{data: {'a': 'b'}}",
        matchConditions=[{"name": "n", "expression": "object.metadata.name == 'x'"}],
    )
    plugin = mutating(world)
    assert "data" in (await admitted(plugin)).object
    assert "data" not in (await admitted(plugin, configmap("y"))).object
    deletion = request("configmaps", None, old=configmap(), operation="DELETE")
    assert not handled(plugin, deletion)


# Running again


class Labeller(Plugin):
    """Puts a label on objects that have data, behind everybody's back."""

    name = "Labeller"

    def admit(self, attributes: Request) -> None:
        tree = attributes.object or {}
        if "one" in (tree.get("data") or {}):
            tree["metadata"].setdefault("labels", {})["seen"] = "yes"


@pytest.mark.parametrize(("policy", "count"), [("IfNeeded", 2), ("Never", 1)])
async def test_reinvocation(world: World, policy: str, count: int) -> None:
    counting = "Object{data: {'one': string(int(object.?data.one.orValue('0')) + 1)}}"
    await add_mutation(world, counting, reinvocationPolicy=policy)
    plugin = mutating(world)
    attributes = request("configmaps", configmap())
    await AdmissionChain([Labeller(), plugin]).mutate(attributes)
    assert attributes.object is not None
    assert attributes.object["metadata"]["labels"] == {"seen": "yes"}
    assert attributes.object["data"] == {"one": str(count)}


async def test_a_policy_runs_again_after_a_later_one_changed_the_object(world: World) -> None:
    await add_mutation(
        world, "Object{data: {'first': object.?data.second.orValue('-')}}", name="a", reinvocationPolicy="IfNeeded"
    )
    await add_mutation(world, "Object{data: {'second': '2'}}", name="b")
    attributes = request("configmaps", configmap())
    await AdmissionChain([mutating(world)]).mutate(attributes)
    assert attributes.object is not None
    assert attributes.object["data"] == {"first": "2", "second": "2"}


async def test_without_a_change_nothing_runs_again(world: World) -> None:
    await add_mutation(world, "Object{data: {'k': 'v'}}", reinvocationPolicy="IfNeeded")
    attributes = await admitted(mutating(world), configmap(k="v"))
    assert not attributes.reinvoke


class Slow(AlwaysAllow):
    """Answers later."""

    def authorize(self, attributes: Attributes) -> Awaitable[Verdict]:  # type: ignore[override]
        return self._answer()

    async def _answer(self) -> Verdict:
        await asyncio.sleep(0)
        return Verdict(Decision.ALLOW)


async def test_an_authorizer_that_takes_its_time(world: World) -> None:
    await add_mutation(
        world,
        "Object{data: {'one': '1'}}",
        "Object{data: {'may': string(authorizer.requestResource.check('bless').allowed()), 'n': string(object.data.one)}}",
    )
    attributes = request("configmaps", configmap())
    pending = mutating(world, Slow()).admit(attributes)
    assert pending is not None
    await pending
    assert attributes.object is not None
    assert attributes.object["data"] == {"one": "1", "may": "true", "n": "1"}


# Versions and other kinds


async def test_an_object_is_changed_in_the_version_of_the_rule(world: World) -> None:
    rule = {
        "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["horizontalpodautoscalers"], "scope": "*",
    }  # fmt: skip
    await add_mutation(
        world, "Object{spec: Object.spec{targetCPUUtilizationPercentage: 70}}", matchConstraints=constraints(rule)
    )
    tree = {
        "kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "metadata": {"name": "x", "namespace": "ns"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}},
    }  # fmt: skip
    attributes = request("horizontalpodautoscalers", tree, group="autoscaling")
    await settled(mutating(world).admit(attributes))
    assert attributes.object is not None
    assert attributes.object["apiVersion"] == "autoscaling/v2"
    target = {"type": "Utilization", "averageUtilization": 70}
    assert attributes.object["spec"]["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


async def test_a_scale_is_a_scale(world: World) -> None:
    rule = {
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments/scale"],
        "scope": "*",
    }  # fmt: skip
    await add_mutation(world, "Object{spec: Object.spec{replicas: 3}}", matchConstraints=constraints(rule))
    scale = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "x"}, "spec": {"replicas": 9}}
    attributes = request("deployments", scale, group="apps", subresource="scale", operation="UPDATE", old=scale)
    await settled(mutating(world).admit(attributes))
    assert attributes.object is not None
    assert attributes.object["spec"] == {"replicas": 3}
