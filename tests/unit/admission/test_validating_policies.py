"""ValidatingAdmissionPolicy: what is refused, warned about and noted, and in which words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

import pytest

from fastapi_core.admission.chain import AdmissionChain
from fastapi_core.admission.policies.params import ConfigurationError
from fastapi_core.admission.policies.source import Policy
from fastapi_core.admission.policies.validating import FAILURES, ValidatingAdmissionPolicy
from fastapi_core.authz.base import AlwaysAllow, Attributes, Decision, Verdict
from fastapi_core.errors import APIError
from fastapi_core.obs.catalog import Metrics
from fastapi_core.registry.store import ResourceStore
from fastapi_core.rest.scope import Scope
from fastapi_core.schema.types import Type
from tests.fixtures.admission import Rights, World, definition, handled, request, settled, world
from tests.fixtures.admission_policies import GROUP, Directory, add_policy, bind, configmap, constraints, validating

__all__ = ["world"]


@pytest.fixture(autouse=True)
async def space(world: World) -> None:
    await world.add("namespaces", "ns", labels={"team": "a"})


async def judged(plugin: ValidatingAdmissionPolicy, tree: Any = None, **more: Any) -> Any:
    """The attributes after the plugin had its say."""
    attributes = request("configmaps", configmap() if tree is None else tree, **more)
    if handled(plugin, attributes):
        await settled(plugin.validate(attributes))
    return attributes


async def refused(plugin: ValidatingAdmissionPolicy, tree: Any = None, **more: Any) -> APIError:
    with pytest.raises(APIError) as caught:
        await judged(plugin, tree, **more)
    return caught.value


def told(error: APIError) -> str:
    """The message without what precedes it in all of them."""
    before = "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
    assert error.message.startswith(before)
    return error.message.removeprefix(before)


async def test_a_refusal(world: World) -> None:
    await add_policy(world, {"expression": "has(object.data)", "message": " none ", "reason": "Forbidden"})
    await bind(world)
    error = await refused(validating(world))
    assert (error.reason, error.code, told(error)) == ("Forbidden", 403, "none")
    assert error.details == {
        "name": "x",
        "kind": "configmaps",
        "causes": [{"message": "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: none"}],
    }
    await judged(validating(world), configmap(a="b"))


@pytest.mark.parametrize(
    ("reason", "code"),
    [(None, 422), ("Invalid", 422), ("Forbidden", 403), ("RequestEntityTooLarge", 413), ("Unauthorized", 401)],
)
async def test_reasons(world: World, reason: str | None, code: int) -> None:
    await add_policy(world, {"expression": "false", "reason": reason})
    await bind(world)
    error = await refused(validating(world))
    assert (error.code, error.reason) == (code, reason or "Invalid")
    assert told(error) == "failed expression: false"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("'no ' + object.metadata.name", "no x"),
        ("''", "static"),
        ("'a\\nb'", "static"),
        ("object.nope", "static"),
        ("'x'.split('')[7]", "static"),
    ],
)
async def test_message_expressions(world: World, message: str, expected: str) -> None:
    await add_policy(world, {"expression": "false", "message": "static", "messageExpression": message})
    await bind(world)
    assert told(await refused(validating(world))) == expected


async def test_a_policy_without_binding_and_a_binding_without_policy_do_nothing(world: World) -> None:
    plugin = validating(world)
    await add_policy(world, "false")
    await bind(world, policy="other")
    attributes = request("configmaps", configmap())
    assert not handled(plugin, attributes)
    await bind(world, name="b2")
    assert handled(plugin, attributes)


async def test_a_change_counts_from_the_next_request_on(world: World) -> None:
    plugin = validating(world)
    chain = AdmissionChain([plugin])
    plugin.follow(chain.refresh)
    policy = await add_policy(world, "object.metadata.name != 'x'")

    async def passes() -> bool:
        attributes = request("configmaps", configmap())
        try:
            await chain.validate(attributes)
        except APIError:
            return False
        return True

    assert await passes()
    binding = await bind(world)
    assert not await passes()
    policy["spec"]["validations"] = [{"expression": "object.metadata.name == 'x'"}]
    policy = await world.change("validatingadmissionpolicies", policy, GROUP)
    assert await passes()
    policy["spec"]["validations"] = [{"expression": "false"}]
    await world.change("validatingadmissionpolicies", policy, GROUP)
    assert not await passes()
    store = world.store("validatingadmissionpolicybindings", GROUP)
    await store.delete(store.get("", binding["metadata"]["name"]))
    assert await passes()


async def test_what_expressions_see(world: World) -> None:
    await add_policy(
        world,
        "request.operation == 'UPDATE' && request.name == 'x' && request.namespace == 'ns' && !request.dryRun",
        "request.resource.group == '' && request.resource.version == 'v1' && request.resource.resource == 'configmaps'",
        "request.kind.kind == 'ConfigMap' && request.requestKind == request.kind && !has(request.subResource)",
        "request.userInfo.username == 'alice' && 'devs' in request.userInfo.groups && !has(request.userInfo.uid)",
        "oldObject.data.a == 'old' && object.data.a == 'new'",
        "namespaceObject.metadata.labels.team == 'a' && namespaceObject.metadata.name == 'ns'",
    )
    await bind(world)
    plugin = validating(world)
    await judged(plugin, configmap(a="new"), old=configmap(a="old"), operation="UPDATE")
    error = await refused(plugin, configmap(a="new"), old=configmap(a="new"), operation="UPDATE")
    assert told(error) == "failed expression: oldObject.data.a == 'old' && object.data.a == 'new'"


async def test_deletes_have_no_object(world: World) -> None:
    await add_policy(world, {"expression": "object != null || oldObject.data.keep != 'yes'", "message": "kept"})
    await bind(world)
    plugin = validating(world)
    attributes = request("configmaps", None, old=configmap(keep="yes"), operation="DELETE")
    with pytest.raises(APIError, match="kept"):
        await settled(plugin.validate(attributes))


async def test_variables_are_evaluated_when_they_are_used(world: World) -> None:
    await add_policy(
        world,
        "variables.named || variables.broken == 1",
        {"expression": "variables.twice == 'xx'", "messageExpression": "'not ' + variables.twice"},
        variables=[
            {"name": "named", "expression": "object.metadata.name.startsWith('x')"},
            {"name": "broken", "expression": "object.nope"},
            {"name": "twice", "expression": "object.metadata.name + object.metadata.name"},
        ],
    )
    await bind(world)
    plugin = validating(world)
    await judged(plugin)
    error = await refused(plugin, configmap("y"))
    assert error.message.endswith(
        "expression 'variables.named || variables.broken == 1' resulted in error: "
        'composited variable "broken" fails to evaluate: no such key: nope'
    )
    error = await refused(plugin, configmap("xy"))
    assert error.message.endswith("denied request: not xyxy")


async def test_objects_in_variables(world: World) -> None:
    await add_policy(
        world,
        "variables.space.labels.team == 'a' && variables.who[0].username == 'alice' && variables.maybe.hasValue()",
        variables=[
            {"name": "space", "expression": "namespaceObject.metadata"},
            {"name": "who", "expression": "[request.userInfo]"},
            {"name": "maybe", "expression": "object.?metadata"},
        ],
    )
    await bind(world)
    await judged(validating(world))


async def test_match_conditions(world: World) -> None:
    conditions = [
        {"name": "named", "expression": "object.metadata.name != 'free'"},
        {"name": "labelled", "expression": "object.metadata.labels.a == 'b'"},
        {"name": "user", "expression": "request.userInfo.username != 'robot'"},
    ]
    await add_policy(world, "false", matchConditions=conditions)
    await bind(world)
    plugin = validating(world)
    # One that does not hold decides, whatever becomes of the others.
    await judged(plugin, configmap("free"))
    assert told(await refused(plugin)) == (
        "expression 'object.metadata.labels.a == 'b'' resulted in error: no such key: labels"
    )
    assert (await refused(plugin, configmap(labels={"a": "b"}))).message.endswith("failed expression: false")


async def test_failure_policy(world: World) -> None:
    await add_policy(world, "object.data.k == 'v'", failurePolicy="Ignore")
    await bind(world)
    plugin = validating(world)
    await judged(plugin)
    error = await refused(plugin, configmap(k="w"))
    assert told(error) == "failed expression: object.data.k == 'v'"


async def test_an_expression_that_costs_too_much(world: World) -> None:
    long = "object.data.a.split('').all(a, object.data.a.split('').all(b, object.data.a.split('').all(c, a != '!')))"
    await add_policy(world, long)
    await bind(world)
    error = await refused(validating(world), configmap(a="x" * 300))
    assert told(error) == f"expression '{long}' resulted in error: operation cancelled: actual cost limit exceeded"


async def test_the_expressions_of_a_policy_share_a_budget(world: World) -> None:
    costly = "object.data.a.split('').all(a, object.data.a.split('').all(b, a != '!'))"
    await add_policy(world, *[costly] * 60)
    await bind(world)
    error = await refused(validating(world), configmap(a="x" * 350))
    assert told(error) == (
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )


async def test_a_selector_that_no_validation_has_seen(world: World) -> None:
    """A policy that makes no sense is not in force; the others are."""
    bogus = {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}
    await add_policy(world, "false", name="a", matchConstraints=constraints(objectSelector=bogus))
    await bind(world, name="a", policy="a")
    plugin = validating(world)
    await judged(plugin)
    await add_policy(world, {"message": "no expression"})
    await bind(world)
    assert told(await refused(plugin)).startswith(
        "compilation error: compilation failed: ERROR: <input>:1:0: Syntax error"
    )


async def test_a_spec_that_cannot_be_compiled(world: World) -> None:
    def compile_(policy: Policy[int]) -> int:
        raise KeyError("expression")

    await add_policy(world, "true")
    [obj] = world.see("validatingadmissionpolicies", GROUP).list()
    with pytest.raises(ConfigurationError, match="its spec cannot be understood"):
        Policy(obj, Directory(world), compile_).compile()


async def test_findings_are_counted(world: World) -> None:
    metrics = Metrics()
    await add_policy(world, "has(object.data)", "object.nope == 1")
    await bind(world, "Deny", "Audit")
    see = world.see
    plugin = ValidatingAdmissionPolicy(
        see("validatingadmissionpolicies", GROUP),
        see("validatingadmissionpolicybindings", GROUP),
        see("namespaces"),
        Directory(world),
        AlwaysAllow(),
        metrics=metrics,
    )
    await refused(plugin)
    counted = metrics.policy_checks
    assert counted.labels("p", "b", "invalid_error", "deny").value == 2
    assert counted.labels("p", "b", "invalid_error", "audit").value == 2


async def test_warnings_and_audit(world: World) -> None:
    await add_policy(world, "has(object.data)", {"expression": "has(object.binaryData)", "message": "<none>"})
    await bind(world, "Warn", "Audit")
    attributes = await judged(validating(world))
    assert attributes.context.warnings == [
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: has(object.data)",
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': <none>",
    ]
    text = attributes.context.annotations[FAILURES]
    assert "\\u003cnone\\u003e" in text
    assert json.loads(text)[1] == {
        "message": "<none>",
        "policy": "p",
        "binding": "b",
        "expressionIndex": 1,
        "validationActions": ["Warn", "Audit"],
    }


async def test_audit_annotations(world: World) -> None:
    await add_policy(
        world,
        auditAnnotations=[
            {"key": "name", "valueExpression": "' ' + object.metadata.name + ' '"},
            {"key": "nothing", "valueExpression": "null"},
            {"key": "empty", "valueExpression": "''"},
            {"key": "data", "valueExpression": "object.metadata.name == 'z' ? string(object.nope) : ''"},
        ],
    )
    await bind(world, "Audit")
    plugin = validating(world)
    attributes = await judged(plugin)
    assert attributes.context.annotations == {"p/name": "x"}
    error = await refused(plugin, configmap("z"))
    assert "resulted in error: no such key: nope" in error.message


async def test_the_first_refusal_is_heard_and_all_failures_are_noted(world: World) -> None:
    for name in ("p2", "p1"):
        await add_policy(world, {"expression": "false", "message": f"by {name}"}, name=name)
        await bind(world, "Audit", "Deny", name=name, policy=name)
    attributes = request("configmaps", configmap())
    with pytest.raises(APIError, match="by p1"):
        await settled(validating(world).validate(attributes))
    assert len(json.loads((attributes.context.annotations or {})[FAILURES])) == 2


# Bindings


async def test_bindings_narrow_their_policy(world: World) -> None:
    await add_policy(world, "false")
    await bind(world, matchResources=constraints(resourceRules=[], objectSelector={"matchLabels": {"strict": "yes"}}))
    plugin = validating(world)
    await judged(plugin)
    await refused(plugin, configmap(labels={"strict": "yes"}))


async def test_excluded_resources_and_names(world: World) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"], "scope": "*"}
    excluded = {**rule, "resourceNames": ["free"]}
    await add_policy(world, "false", matchConstraints=constraints(rule, excludeResourceRules=[excluded]))
    await bind(world)
    plugin = validating(world)
    await judged(plugin, configmap("free"), name="free")
    await refused(plugin, configmap("other"), name="other")
    # What policies consist of stays within reach.
    for plural in ("validatingadmissionpolicies", "mutatingadmissionpolicybindings", "validatingwebhookconfigurations"):
        assert not handled(plugin, request(plural, {"metadata": {"name": "x"}}, group=GROUP))
    assert not handled(plugin, request("tokenreviews", {}, group="authentication.k8s.io"))


async def test_a_namespace_that_does_not_exist(world: World) -> None:
    await add_policy(world, "false", matchConstraints=constraints(namespaceSelector={"matchLabels": {"a": "b"}}))
    await bind(world)
    plugin = validating(world)
    error = await refused(plugin, namespace="gone")
    assert error.message.endswith(
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: namespaces \"gone\" not found"
    )
    await judged(plugin)


# Parameters


async def test_parameters_by_name(world: World) -> None:
    await add_policy(
        world,
        {
            "expression": "size(object.?data.orValue({})) <= int(params.data.max)",
            "messageExpression": "string(params.kind)",
        },
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    await bind(world, paramRef={"name": "limits", "namespace": "ns", "parameterNotFoundAction": "Deny"})
    plugin = validating(world)
    missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert told(await refused(plugin)) == missing
    limits = await world.add("configmaps", "limits", "ns", data={"max": "1"})
    await judged(plugin, configmap(a="1"))
    assert told(await refused(plugin, configmap(a="1", b="2"))) == "ConfigMap"
    limits["data"] = {"max": "2"}
    await world.change("configmaps", limits)
    await judged(plugin, configmap(a="1", b="2"))


async def test_parameters_by_selector(world: World) -> None:
    await add_policy(world, "!(params.data.key in object.data)", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    await bind(world, paramRef={"selector": {"matchLabels": {"p": "y"}}, "parameterNotFoundAction": "Allow"})
    plugin = validating(world)
    await judged(plugin, configmap(a="1"))
    for name, key in (("p1", "a"), ("p2", "b")):
        await world.add("configmaps", name, "ns", labels={"p": "y"}, data={"key": key})
    await world.add("configmaps", "p3", "ns", data={"key": "c"})
    await world.add("configmaps", "p4", "elsewhere", labels={"p": "y"}, data={"key": "c"})
    await refused(plugin, configmap(a="1"))
    await refused(plugin, configmap(b="1"))
    await judged(plugin, configmap(c="1"))


@pytest.mark.parametrize(
    ("kind", "reference", "text"),
    [
        (
            {"apiVersion": "x.io/v1", "kind": "Limit"},
            {"name": "a"},
            "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource "
            "referenced by paramKind: 'x.io/v1, Kind=Limit'",
        ),
        (
            {"apiVersion": "v1", "kind": "Nothing"},
            {"name": "a"},
            "failed to find resource referenced by paramKind: '/v1, Kind=Nothing'",
        ),
        (
            {"apiVersion": "v1", "kind": "Node"},
            {"name": "a", "namespace": "b"},
            "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
        ),
    ],
)
async def test_parameters_that_cannot_be(world: World, kind: Any, reference: Any, text: str) -> None:
    await add_policy(world, "true", paramKind=kind)
    await bind(world, paramRef={**reference, "parameterNotFoundAction": "Allow"})
    assert (await refused(validating(world))).message.endswith(text)


async def test_objects_of_the_cluster_have_no_namespace_for_parameters(world: World) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["nodes"], "scope": "*"}
    await add_policy(
        world, "true", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, matchConstraints=constraints(rule)
    )
    await bind(world, paramRef={"name": "a", "parameterNotFoundAction": "Allow"})
    with pytest.raises(APIError, match="cannot use namespaced paramRef in policy binding that matches cluster-scoped"):
        await settled(validating(world).validate(request("nodes", {"metadata": {"name": "x"}})))


async def test_a_binding_without_reference_gives_null(world: World) -> None:
    await add_policy(world, "params == null", paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    await bind(world)
    await judged(validating(world))


async def test_parameters_of_a_custom_kind(world: World) -> None:
    plain = definition("configmaps")
    custom = replace(
        plain, group="x.io", kind="Limit", plural="limits", custom=True, key_prefix="/registry/x.io/limits/",
        storage_group="x.io", type=Type("x.io/v1.Limit", tuple),
    )  # fmt: skip
    cache = world.cacher.resource(custom.key_prefix)
    store = ResourceStore(custom, world.storage, cache)
    directory = Directory(world)
    plugin = validating(world, directory=directory)
    await add_policy(world, "object.data.a == params.allowed", paramKind={"apiVersion": "x.io/v1", "kind": "Limit"})
    await bind(world, paramRef={"name": "l", "parameterNotFoundAction": "Deny"})
    assert "failed to find resource" in (await refused(plugin)).message
    directory.custom["x.io", "v1", "Limit"] = Scope(custom, store, AdmissionChain(()))
    metadata = {"name": "l", "namespace": "ns"}
    await store.create({"apiVersion": "x.io/v1", "kind": "Limit", "metadata": metadata, "allowed": "yes"})
    await judged(plugin, configmap(a="yes"))
    await refused(plugin, configmap(a="no"))


# The authorizer


async def test_the_authorizer(world: World) -> None:
    await add_policy(
        world,
        "authorizer.group('apps').resource('deployments').namespace('ns').check('create').allowed()",
        "authorizer.requestResource.check('bless').reason() == 'not listed'",
        "!authorizer.serviceAccount('ns', 'sa').path('/x').check('get').allowed()",
    )
    await bind(world)
    rights = Rights(("create", "deployments", ""))
    await judged(validating(world, rights))
    asked = [(a.user.name, a.verb, a.resource, a.namespace, a.name, a.path) for a in rights.asked]
    assert asked == [
        ("alice", "create", "deployments", "ns", "", ""),
        ("alice", "bless", "configmaps", "ns", "x", ""),
        ("system:serviceaccount:ns:sa", "get", "", "", "", "/x"),
    ]
    with pytest.raises(APIError, match=r"failed expression: authorizer\.group"):
        await judged(validating(world, Rights()))


class Slow(AlwaysAllow):
    """Answers later, and only `yes`."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    def authorize(self, attributes: Attributes) -> Awaitable[Verdict]:  # type: ignore[override]
        self.questions.append(attributes.verb)
        return self._answer(attributes.verb)

    async def _answer(self, verb: str) -> Verdict:
        await asyncio.sleep(0)
        return Verdict(Decision.ALLOW if verb == "yes" else Decision.NO_OPINION)


async def test_an_authorizer_that_takes_its_time(world: World) -> None:
    check = "authorizer.requestResource.check('{}').allowed()"
    await add_policy(world, "has(object.data)", check.format("yes"), {"expression": check.format("no"), "message": "m"})
    await bind(world, "Warn")
    slow = Slow()
    plugin = validating(world, slow)
    attributes = request("configmaps", configmap(a="b"))
    pending = plugin.validate(attributes)
    assert pending is not None
    await pending
    # Each question once, each finding once.
    assert slow.questions == ["yes", "no"]
    assert attributes.context.warnings == ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': m"]


# Versions


async def test_an_object_is_shown_in_the_version_of_the_rule(world: World) -> None:
    group = "autoscaling"
    rule = {
        "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["horizontalpodautoscalers"], "scope": "*",
    }  # fmt: skip
    await add_policy(
        world,
        "object.apiVersion == 'autoscaling/v1' && object.spec.targetCPUUtilizationPercentage == 50",
        "request.kind.version == 'v1' && request.requestKind.version == 'v2' && request.resource.version == 'v1'",
        matchConstraints=constraints(rule),
        matchConditions=[{"name": "a", "expression": "request.resource.version == 'v2'"}],
    )
    await bind(world)
    target = {"type": "Utilization", "averageUtilization": 50}
    tree = {
        "kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "metadata": {"name": "x", "namespace": "ns"},
        "spec": {"maxReplicas": 3, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]},
    }  # fmt: skip
    attributes = request("horizontalpodautoscalers", tree, group=group)
    assert attributes.definition.version == "v2"
    await settled(validating(world).validate(attributes))
    target["averageUtilization"] = 60
    with pytest.raises(APIError, match=r"failed expression: object\.apiVersion"):
        await settled(validating(world).validate(attributes))
