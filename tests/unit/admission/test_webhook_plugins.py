"""Webhooks: which are asked about what, in which order, and what becomes of their answers."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fastapi_core.admission.chain import AdmissionChain, Attributes, Plugin
from fastapi_core.admission.webhooks.caller import CallError
from fastapi_core.errors import APIError
from fastapi_core.registry.definition import ResourceDefinition
from tests.fixtures.admission import World, admit, handled, pod, request, validate
from tests.fixtures.webhooks import Webhooks, hook, patch

Tree = dict[str, Any]


@pytest.fixture
async def webhooks(world: World) -> Webhooks:
    await world.add("namespaces", "ns", labels={"team": "a"})
    return Webhooks(world)


def configmap(**more: Any) -> Tree:
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "x", "namespace": "ns", **more},
        "data": {"k": "v"},
    }


def add(path: str, value: Any) -> Tree:
    return {"op": "add", "path": path, "value": value}


# Who is asked


async def test_rules_choose_requests(webhooks: Webhooks) -> None:
    await webhooks.configure(
        "validating",
        "c",
        hook("/plain", "configmaps"),
        hook("/any", "*"),
        hook("/all", "*/*"),
        hook("/sub", "pods/*"),
        hook("/exec", "pods/exec", operations=("CONNECT",)),
        hook("/create", "configmaps", operations=("CREATE",)),
        hook("/group", "configmaps", group="apps"),
        hook("/none", rules=None),
    )

    async def asked(attributes: Attributes) -> list[str]:
        webhooks.caller.asked.clear()
        if handled(webhooks.validating, attributes):
            await validate(webhooks.validating, attributes)
        return sorted(webhooks.caller.paths)

    assert await asked(request("configmaps", configmap())) == ["/all", "/any", "/create", "/plain"]
    update = request("configmaps", configmap(), operation="UPDATE", old=configmap())
    assert await asked(update) == ["/all", "/any", "/plain"]
    assert await asked(request("pods", pod(), operation="UPDATE", subresource="status", old=pod())) == ["/all", "/sub"]
    options = {"kind": "PodExecOptions", "apiVersion": "v1", "command": ["ls"]}
    connect = request("pods", options, operation="CONNECT", subresource="exec")
    assert await asked(connect) == ["/all", "/exec", "/sub"]
    assert await asked(request("pods", pod(), operation="CREATE", subresource="eviction")) == ["/all", "/sub"]


async def test_configurations_never_meet_webhooks(webhooks: Webhooks) -> None:
    every = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
    await webhooks.configure("validating", "c", hook("/a", rules=every))
    group = "admissionregistration.k8s.io"
    for kind in ("mutating", "validating"):
        for plural in ("webhookconfigurations", "admissionpolicies", "admissionpolicybindings"):
            assert not handled(webhooks.validating, request(f"{kind}{plural}", {"metadata": {}}, group=group))
    assert handled(webhooks.validating, request("secrets", {"metadata": {}}))


async def test_selectors_see_both_objects_and_the_namespace(webhooks: Webhooks) -> None:
    await webhooks.configure(
        "validating",
        "c",
        hook("/object", objectSelector={"matchLabels": {"l": "1"}}),
        hook("/team", namespaceSelector={"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]}),
        hook("/other", namespaceSelector={"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}),
    )
    await validate(webhooks.validating, request("configmaps", configmap()))
    assert webhooks.caller.paths == ["/team"]
    webhooks.caller.asked.clear()
    old = configmap(labels={"l": "1"})
    await validate(webhooks.validating, request("configmaps", configmap(), operation="UPDATE", old=old))
    assert sorted(webhooks.caller.paths) == ["/object", "/team"]
    with pytest.raises(APIError, match='namespaces "gone" not found'):
        await validate(webhooks.validating, request("configmaps", configmap(), namespace="gone"))


async def test_conditions(webhooks: Webhooks) -> None:
    def given(**conditions: str) -> list[Tree]:
        return [{"name": name, "expression": text} for name, text in conditions.items()]

    await webhooks.configure(
        "validating",
        "c",
        hook("/yes", matchConditions=given(a="object.data.k == 'v'", b="request.userInfo.username == 'alice'")),
        hook("/no", matchConditions=given(a="object.data.none == 'v'", b="oldObject != null")),
        hook("/open", matchConditions=given(a="object.data.none == 'v'"), failurePolicy="Ignore"),
        hook("/may", matchConditions=given(a="authorizer.group('').resource('pods').check('get').allowed()")),
    )
    await validate(webhooks.validating, request("configmaps", configmap()))
    assert sorted(webhooks.caller.paths) == ["/may", "/yes"]
    excluded = webhooks.counted("apiserver_admission_match_condition_exclusions_total")
    names = ("no", "open")
    assert excluded == [
        f'{{kind="webhook",name="{name}.example.test",operation="CREATE",type="validating"}} 1' for name in names
    ]
    await webhooks.configure("validating", "d", hook("/shut", matchConditions=given(a="object.data.none == 'v'")))
    with pytest.raises(APIError) as raised:
        await validate(webhooks.validating, request("configmaps", configmap()))
    assert (raised.value.code, raised.value.message) == (
        403,
        "configmaps \"x\" is forbidden: expression 'object.data.none == 'v'' resulted in error: no such key: none",
    )


async def test_the_next_request_sees_a_change(webhooks: Webhooks) -> None:
    assert not handled(webhooks.validating, request("configmaps", configmap()))
    tree = await webhooks.configure("validating", "c", hook("/a"), hook("/b"))
    await validate(webhooks.validating, request("configmaps", configmap()))
    assert sorted(webhooks.caller.paths) == ["/a", "/b"]
    tree["webhooks"] = [hook("/c")]
    await webhooks.world.change("validatingwebhookconfigurations", tree, "admissionregistration.k8s.io")
    await validate(webhooks.validating, request("configmaps", configmap()))
    assert webhooks.caller.paths[2:] == ["/c"]


# What they are told


async def test_equivalent_versions_are_converted_both_ways(webhooks: Webhooks) -> None:
    rule = {"operations": ["*"], "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["*"]}
    await webhooks.configure(
        "mutating", "c", hook("/v1", rules=[rule]), hook("/exact", rules=[rule], matchPolicy="Exact")
    )
    webhooks.caller.scripts["/v1"] = lambda r: patch(add("/spec/targetCPUUtilizationPercentage", 61))
    target = {"type": "Utilization", "averageUtilization": 50}
    tree = {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "x", "namespace": "ns"},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "d"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }
    out = await admit(webhooks.mutating, request("horizontalpodautoscalers", tree, group="autoscaling"))
    ((path, asked, _),) = webhooks.caller.asked
    assert path == "/v1"
    assert (asked["kind"]["version"], asked["requestKind"]["version"]) == ("v1", "v2")
    assert asked["object"]["spec"]["targetCPUUtilizationPercentage"] == 50
    assert out["apiVersion"] == "autoscaling/v2"
    assert out["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 61


async def test_a_deletion_of_many_names_nobody(webhooks: Webhooks) -> None:
    await webhooks.configure("validating", "c", hook("/a"))
    attributes = request("configmaps", None, operation="DELETE", old=configmap())
    await validate(webhooks.validating, attributes)
    attributes.context.info = cast(Any, SimpleNamespace(verb="deletecollection"))
    await validate(webhooks.validating, attributes)
    first, second = (asked for _, asked, _ in webhooks.caller.asked)
    assert first["name"] == "x"
    assert "name" not in second
    assert first["object"] is None
    assert first["options"] is None
    assert first["oldObject"]["data"] == {"k": "v"}


async def test_the_time_that_is_left_is_told(webhooks: Webhooks) -> None:
    await webhooks.configure("validating", "c", hook("/a"))
    attributes = request("configmaps", configmap())
    attributes.context.deadline = asyncio.get_running_loop().time() + 3
    await validate(webhooks.validating, attributes)
    left = webhooks.caller.asked[0][2]
    assert left is not None
    assert 2 < left <= 3
    attributes.context.deadline = asyncio.get_running_loop().time() - 1
    with pytest.raises(APIError, match="request did not complete within the allotted timeout"):
        await validate(webhooks.validating, attributes)


# What becomes of the answers


async def test_order_and_reinvocation(webhooks: Webhooks) -> None:
    await webhooks.configure("mutating", "b", hook("/3"), hook("/2", reinvocationPolicy="IfNeeded"))
    await webhooks.configure("mutating", "a", hook("/1", reinvocationPolicy="IfNeeded"), hook("/0"))
    webhooks.caller.scripts["/3"] = lambda r: patch(add("/data/three", "3"))
    attributes = request("configmaps", configmap())
    await AdmissionChain([webhooks.mutating]).mutate(attributes)
    assert webhooks.caller.paths == ["/1", "/0", "/3", "/2", "/1"]
    assert attributes.object is not None
    assert attributes.object["data"] == {"k": "v", "three": "3"}


async def test_what_plugins_change_in_the_second_round_calls_webhooks_again(webhooks: Webhooks) -> None:
    class Stamp(Plugin):
        name = "Stamp"

        def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
            return True

        def admit(self, attributes: Attributes) -> None:
            data = (attributes.object or {})["data"]
            if "wanted" in data:
                data["stamp"] = "1"

    await webhooks.configure("mutating", "a", hook("/0"), hook("/1", reinvocationPolicy="IfNeeded"))
    webhooks.caller.scripts["/0"] = lambda r: patch(add("/data/wanted", "1"))
    attributes = request("configmaps", configmap())
    await AdmissionChain([Stamp(), webhooks.mutating]).mutate(attributes)
    assert webhooks.caller.paths == ["/0", "/1", "/1"]
    assert webhooks.caller.asked[2][1]["object"]["data"] == {"k": "v", "wanted": "1", "stamp": "1"}


async def test_audit_annotations(webhooks: Webhooks) -> None:
    await webhooks.configure("mutating", "c", hook("/a"), hook("/b", failurePolicy="Ignore"))
    webhooks.caller.scripts["/a"] = lambda r: {
        **patch(add("/data/n", "<")),
        "auditAnnotations": {"why": "so", "no key": "x"},
    }
    webhooks.caller.scripts["/b"] = lambda r: CallError("failed to call webhook: x")
    attributes = request("configmaps", configmap())
    attributes.context.audit = cast(Any, SimpleNamespace(bodies=True))
    await admit(webhooks.mutating, attributes)
    notes = attributes.context.annotations or {}
    prefix = "mutation.webhook.admission.k8s.io/round_0_index_"
    told = {"configuration": "c", "webhook": "a.example.test"}
    assert json.loads(notes[prefix + "0"]) == {**told, "mutated": True}
    assert json.loads(notes[prefix + "1"]) == {"configuration": "c", "webhook": "b.example.test", "mutated": False}
    assert json.loads(notes["patch.webhook.admission.k8s.io/round_0_index_0"]) == {
        **told,
        "patch": [{"op": "add", "path": "/data/n", "value": "<"}],
        "patchType": "JSONPatch",
    }
    assert notes["failed-open." + prefix + "1"] == "b.example.test"
    assert notes["a.example.test/why"] == "so"
    assert len(notes) == 5
    assert webhooks.counted("apiserver_admission_webhook_fail_open_count") == ['{name="b.example.test",type="admit"} 1']


async def test_a_dry_run_needs_a_webhook_without_side_effects(webhooks: Webhooks) -> None:
    await webhooks.configure("validating", "c", hook("/a", sideEffects="NoneOnDryRun"), hook("/b", sideEffects="Some"))
    with pytest.raises(APIError) as raised:
        await validate(webhooks.validating, request("configmaps", configmap(), dry_run=True))
    assert (raised.value.code, raised.value.message) == (
        400,
        'admission webhook "b.example.test" does not support dry run',
    )
    assert webhooks.caller.paths == ["/a"]


async def test_a_failure_is_counted_and_told(webhooks: Webhooks) -> None:
    await webhooks.configure("validating", "c", hook("/a"))
    webhooks.caller.scripts["/a"] = lambda r: CallError("failed to call webhook: no", 503)
    with pytest.raises(APIError) as raised:
        await validate(webhooks.validating, request("configmaps", configmap()))
    text = 'failed calling webhook "a.example.test": failed to call webhook: no'
    assert (raised.value.reason, raised.value.message) == ("InternalError", f"Internal error occurred: {text}")
    assert webhooks.counted("apiserver_admission_webhook_rejection_count") == [
        '{error_type="calling_webhook_error",name="a.example.test",operation="CREATE",rejection_code="503",type="validating"} 1'
    ]
    assert webhooks.counted("apiserver_admission_webhook_request_total") == [
        '{code="503",name="a.example.test",operation="CREATE",rejected="true",type="validating"} 1'
    ]


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (
            [{"op": "remove", "path": "/data/z"}],
            "error in remove for path: '/data/z': Unable to remove nonexistent key: z",
        ),
        ([add("/nope/z", 1)], 'add operation does not apply: doc is missing path: "/nope/z": missing value'),
        ([add("/data/y", "1"), {"op": "test", "path": "/data/y", "value": "2"}], "testing value /data/y failed"),
        (
            [{"op": "move", "from": "/a/b", "path": "/c"}],
            "move operation does not apply: doc is missing from path: /a/b",
        ),
        ([add("/data/y", 1)], "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        ([{"op": "replace", "path": "/kind", "value": "Secret"}], 'no kind "Secret"'),
    ],
)
async def test_a_patch_that_does_not_apply_is_our_error(steps: list[Tree], text: str, webhooks: Webhooks) -> None:
    await webhooks.configure("mutating", "c", hook("/a", failurePolicy="Ignore"))
    webhooks.caller.scripts["/a"] = lambda r: patch(*steps)
    with pytest.raises(APIError) as raised:
        await admit(webhooks.mutating, request("configmaps", configmap()))
    assert raised.value.code == 500
    assert text in raised.value.message


async def test_broken_owners_are_put_back(webhooks: Webhooks) -> None:
    await webhooks.configure("mutating", "c", hook("/a"))
    owners = [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]
    for broken, text in (
        ([{"operation": "No"}], "operation must be `Apply` or `Update`"),
        ([{"operation": "Apply"}], "apiVersion must not be empty"),
        ([{"operation": "Apply", "apiVersion": "v1"}], "missing fieldsType in managed fields entry 0"),
        (
            [{"operation": "Apply", "apiVersion": "v1", "fieldsType": "x"}],
            'invalid fieldsType "x" in managed fields entry 0',
        ),
    ):
        webhooks.caller.scripts["/a"] = lambda r, broken=broken: patch(add("/metadata/managedFields", broken))  # type: ignore[misc]
        attributes = request("configmaps", configmap(managedFields=owners))
        out = await admit(webhooks.mutating, attributes)
        assert out["metadata"]["managedFields"] == owners
        (warning,) = attributes.context.warnings or ()
        assert warning.endswith(f"please fix your requests: {text}")


async def test_a_cancelled_request_ends_its_calls(webhooks: Webhooks) -> None:
    await webhooks.configure("validating", "c", hook("/a"), hook("/b"))
    ended: list[str] = []

    async def ask(server: str, body: bytes, patience: float, left: float | None) -> Tree:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(server)
        raise AssertionError("never")

    webhooks.caller.ask = ask  # type: ignore[method-assign]
    task = asyncio.ensure_future(validate(webhooks.validating, request("configmaps", configmap())))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(3):
        await asyncio.sleep(0)
    assert sorted(ended) == ["/a", "/b"]
