"""Expressions in objects are compiled when the objects are written."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core import structural
from fastapi_core.apis.validation import admission_policies as admission
from fastapi_core.apis.validation.expressions import device_selector, match_condition
from fastapi_core.apis.validation.rules import Report
from fastapi_core.cel.rules import over_limit


def told(report: Report) -> list[str]:
    return [str(error) for error in report]


def policy(**spec: Any) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*"}]
    return {
        "metadata": {"name": "p"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": rules,
                "matchPolicy": "Equivalent",
                "namespaceSelector": {},
                "objectSelector": {},
            },
            **spec,
        },
    }


def validating(**spec: Any) -> list[str]:
    report = Report()
    admission.validating_policy(policy(**spec), "", report)
    return told(report)


def undeclared(name: str, text: str, column: int = 1) -> str:
    return (
        f"compilation failed: ERROR: <input>:1:{column}: undeclared reference to '{name}' (in container '')"
        f"\n | {text}\n | {'.' * (column - 1)}^"
    )


def test_a_sound_policy() -> None:
    assert (
        validating(
            paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
            variables=[
                {"name": "limit", "expression": "int(params.data.limit)"},
                {"name": "broken", "expression": "variables.limit > 3 ? 'a' : 'b'"},
            ],
            matchConditions=[{"name": "m", "expression": "request.operation == 'CREATE' && params.x == 1"}],
            validations=[
                {
                    "expression": "object.spec.replicas <= variables.limit && authorizer.path('/x').check('get').allowed()",
                    "messageExpression": "'at most ' + string(variables.limit)",
                },
                {"expression": "namespaceObject.metadata.labels['a'] == 'b' && variables.broken == 'a'"},
                {
                    "expression": "authorizer.requestResource.check('x').allowed() || request.userInfo.groups.exists(g, g == 'x')"
                },
            ],
            auditAnnotations=[{"key": "k", "valueExpression": "has(object.a) ? 'x' : ''"}],
        )
        == []
    )


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (
            {"validations": [{"expression": "zz"}]},
            ['spec.validations[0].expression: Invalid value: "zz": ' + undeclared("zz", "zz")],
        ),
        (
            {"validations": [{"expression": " 1 "}]},
            ['spec.validations[0].expression: Invalid value: "1": must evaluate to bool but got int'],
        ),
        (
            {"validations": [{"expression": "params.a == 1"}]},
            [
                'spec.validations[0].expression: Invalid value: "params.a == 1": '
                + undeclared("params", "params.a == 1")
            ],
        ),
        (
            {"validations": [{"expression": "true", "messageExpression": "1"}]},
            ['spec.validations[0].messageExpression: Invalid value: "1": must evaluate to string but got int'],
        ),
        (
            {
                "validations": [
                    {"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"}
                ]
            },
            [
                "spec.validations[0].messageExpression: Invalid value: \"authorizer.path('/').check('get').reason()\": "
                + undeclared("authorizer", "authorizer.path('/').check('get').reason()")
            ],
        ),
        (
            {"validations": [{"expression": "true"}], "auditAnnotations": [{"key": "k", "valueExpression": "1"}]},
            [
                'spec.auditAnnotations[0].valueExpression: Invalid value: "1": '
                "must evaluate to one of [string null_type] but got int"
            ],
        ),
        (
            {"validations": [{"expression": "variables.b"}], "variables": [{"name": "b", "expression": "zz"}]},
            [
                'spec.variables[0].expression: Invalid value: "zz": ' + undeclared("zz", "zz"),
                'spec.validations[0].expression: Invalid value: "variables.b": must evaluate to bool but got dyn',
            ],
        ),
        (
            {"validations": [{"expression": "true"}], "matchConditions": [{"name": "m", "expression": "variables.b"}]},
            [
                'spec.matchConditions[0].expression: Invalid value: "variables.b": '
                + undeclared("variables", "variables.b")
            ],
        ),
    ],
)
def test_what_is_wrong_with_policies(spec: dict[str, Any], wanted: list[str]) -> None:
    assert [line.replace("\\n", "\n") for line in validating(**spec)] == wanted


def mutating(expression: str, kind: str) -> list[str]:
    member = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}[kind]
    report = Report()
    tree = policy(reinvocationPolicy="Never", mutations=[{"patchType": kind, member: {"expression": expression}}])
    admission.mutating_policy(tree, "", report)
    return told(report)


def test_mutations() -> None:
    assert mutating("Object{spec: Object.spec{replicas: 1}}", "ApplyConfiguration") == []
    assert mutating("[JSONPatch{op: 'add', path: '/a', value: object.b}]", "JSONPatch") == []
    assert mutating("[] + [JSONPatch{op: 'remove', path: '/a'}]", "JSONPatch") == []
    assert mutating("1", "JSONPatch") == [
        'spec.mutations[0].jsonPatch.expression: Invalid value: "1": must evaluate to list(JSONPatch) but got int'
    ]
    assert mutating("{'a': 1}", "ApplyConfiguration") == [
        "spec.mutations[0].applyConfiguration.expression: Invalid value: \"{'a': 1}\": "
        "must evaluate to Object but got map(string, int)"
    ]


def test_conditions_of_webhooks() -> None:
    report = Report()
    match_condition("object.a == 1 && authorizer.path('/').check('get').allowed()", ".x", report, params=False)
    assert told(report) == []
    match_condition("params.a == 1", ".x", report, params=False)
    assert "undeclared reference to 'params'" in told(report)[0]


def devices(text: str) -> list[str]:
    report = Report()
    device_selector(text, ".x", report)
    return told(report)


def test_selectors_of_devices() -> None:
    assert devices("device.driver == 'd' && device.attributes['d'].model == 'm'") == []
    assert devices("cel.bind(a, device.attributes['d'], a.x && a.y)") == []
    assert devices("device.capacity['d'].memory.compareTo(quantity('1Gi')) >= 0") == []
    assert devices("1") == ['x: Invalid value: "1": must evaluate to bool or the unknown type, not int']
    assert devices("device.nope")[0].startswith('x: Invalid value: "device.nope": compilation failed: ERROR')
    assert (
        "exceeds cost limit"
        in devices(
            "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a != d))))"
        )[0]
    )


def schema_of(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties, **more}}}


def definition(schema: dict[str, Any]) -> list[str]:
    return [str(error) for error in structural.problems(schema, "s")]


def ruled(*rules: dict[str, Any]) -> list[dict[str, Any]]:
    return list(rules)


NUMBER = {"a": {"type": "integer"}}
AT = "s.properties[spec].x-kubernetes-validations[0]"


def test_rules_that_do_not_compile() -> None:
    found = definition(schema_of(NUMBER, **{"x-kubernetes-validations": ruled({"rule": "self.zz", "message": "m"})}))
    value = (
        '{"Rule":"self.zz","Message":"m","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}'
    )
    text = "compilation failed: ERROR: <input>:1:5: undefined field 'zz'\n | self.zz\n | ....^"
    assert found == [f"{AT}.rule: Invalid value: {value}: {text}"]


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ({"rule": "self.a > 1"}, None),
        ({"rule": "self.a"}, "cel expression must evaluate to a bool"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression must evaluate to a string"),
        ({"rule": "true", "messageExpression": "zz"}, "messageExpression compilation failed: ERROR"),
        ({"rule": "self.a >= oldSelf.a"}, None),
        ({"rule": "self.a >= oldSelf.orValue(self).a", "optionalOldSelf": True}, None),
        ({"rule": "true", "optionalOldSelf": True}, "may not be set if oldSelf is not used in rule"),
        ({"rule": " "}, "rule is not specified"),
        ({"rule": "true", "message": " "}, "must be non-empty if specified"),
        ({"rule": "true", "message": "a\nb"}, "must not contain line breaks"),
        ({"rule": "true\n&& true"}, "message must be specified if rule contains line breaks"),
        ({"rule": "true", "reason": "Teapot"}, "supported values"),
        ({"rule": "true", "fieldPath": ".a"}, None),
        ({"rule": "true", "fieldPath": ".b"}, "must be a valid path"),
        ({"rule": "true", "fieldPath": "a"}, "must be a valid path"),
    ],
)
def test_rules(rule: dict[str, Any], wanted: str | None) -> None:
    found = definition(schema_of(NUMBER, **{"x-kubernetes-validations": [rule]}))
    assert (found == []) if wanted is None else (len(found) == 1 and wanted in found[0])


def test_rules_that_cost_too_much() -> None:
    items = {"type": "array", "items": {"type": "string"}}
    rules = {"x-kubernetes-validations": ruled({"rule": "self.l.all(x, self.l.all(y, x != y))"})}
    found = definition(schema_of({"l": items}, **rules))
    assert found[0] == f"{AT}.rule: Forbidden: {over_limit('estimated rule cost', 2**64, 10**7)}"
    assert found[1].endswith(
        "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    )
    assert found[2].startswith("s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3")
    bounded = {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 10}}
    assert definition(schema_of({"l": bounded}, **rules)) == []


def test_rules_inside_lists_count_as_often_as_the_list_has_items() -> None:
    rule = {"x-kubernetes-validations": [{"rule": "self.contains('x')"}]}
    item = {"type": "string", "maxLength": 1000, **rule}
    assert "estimated rule cost exceeds budget" in definition(schema_of({"l": {"type": "array", "items": item}}))[0]
    assert definition(schema_of({"l": {"type": "array", "maxItems": 10, "items": item}})) == []


def test_transition_rules_need_items_that_can_be_found_again() -> None:
    item = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    atomic = {"type": "array", "maxItems": 5, "items": item}
    assert definition(schema_of({"l": atomic})) == [
        's.properties[spec].properties[l].items.x-kubernetes-validations[0].rule: Invalid value: "self >= oldSelf": '
        "oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[spec].properties[l]"
    ]
    entry = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": item}}
    keyed = {
        "type": "array",
        "maxItems": 5,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": entry,
    }
    assert definition(schema_of({"l": keyed})) == []
