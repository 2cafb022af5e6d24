"""The warnings of type checking."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.admission.policies.typecheck import TypeChecker, declared, of_schema
from fastapi_core.apis.resources import builtin
from fastapi_core.registry.definition import ResourceDefinition


def _named(group: str, version: str, plural: str) -> list[ResourceDefinition]:
    return [d for d in builtin() if (d.version, d.plural) == (version, plural) and group in ("", d.group)]


def _find(group: str, version: str, kind: str) -> ResourceDefinition | None:
    return next((d for d in builtin() if (d.group, d.version, d.kind) == (group, version, kind)), None)


def rule(group: str, version: str, *resources: str) -> Any:
    return {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": list(resources)}


def warnings(*rules: Any, **spec: Any) -> list[Any]:
    checker = TypeChecker(_named, _find, declared)
    found = list(checker.warnings({"matchConstraints": {"resourceRules": list(rules)}, **spec}))
    return [warning for warning in found if warning is not None]


DEPLOYMENTS = rule("apps", "v1", "deployments")


def test_a_member_that_no_deployment_has() -> None:
    validations = [
        {"expression": "object.spec.replicas > 1"},
        {"expression": "object.replicas > 1", "messageExpression": "'have ' + string(object.spec.replica)"},
    ]
    assert warnings(DEPLOYMENTS, validations=validations) == [
        {
            "fieldRef": "spec.validations[1].expression",
            "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n"
            " | object.replicas > 1\n"
            " | ......^\n",
        },
        {
            "fieldRef": "spec.validations[1].messageExpression",
            "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:29: undefined field 'replica'\n"
            " | 'have ' + string(object.spec.replica)\n"
            " | ............................^\n",
        },
    ]


def test_every_kind_is_told() -> None:
    rules = [rule("apps", "v1", "statefulsets", "deployments"), rule("", "v1", "pods", "pods/status", "nosuch")]
    [warning] = warnings(*rules, validations=[{"expression": "object.spec.nope == 1"}])
    kinds = [line.partition(": ")[0] for line in warning["warning"].splitlines() if "Kind=" in line]
    assert kinds == ["/v1, Kind=Pod", "apps/v1, Kind=Deployment", "apps/v1, Kind=StatefulSet"]


@pytest.mark.parametrize("wild", [rule("*", "v1", "pods"), rule("", "*", "pods"), rule("", "v1", "*")])
def test_wildcards_name_nothing(wild: Any) -> None:
    assert warnings(wild, validations=[{"expression": "object.nope"}]) == []


def test_ten_kinds_of_a_rule_are_enough() -> None:
    many = rule("", "v1", "configmaps", "endpoints", "limitranges", "namespaces", "nodes", "persistentvolumes", "pods",
                "replicationcontrollers", "resourcequotas", "secrets", "services", "serviceaccounts")  # fmt: skip
    [warning] = warnings(many, validations=[{"expression": "object.nope"}])
    assert warning["warning"].count("Kind=") == 10


def test_variables_and_parameters_are_typed() -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    variables = [{"name": "spec", "expression": "object.spec"}, {"name": "copy", "expression": "variables.spec"}]
    checks = {"variables": variables, "paramKind": kind}
    assert warnings(DEPLOYMENTS, validations=[{"expression": "variables.copy.replicas > 1"}], **checks) == []
    assert warnings(DEPLOYMENTS, validations=[{"expression": "params.data.x == 'a'"}], **checks) == []
    # Of an object in a variable no more is known than that it is something.
    assert warnings(DEPLOYMENTS, validations=[{"expression": "variables.copy.nope > 1"}], **checks) == []
    name = [{"name": "name", "expression": "object.metadata.name"}]
    [one] = warnings(DEPLOYMENTS, validations=[{"expression": "variables.name > 1"}], variables=name)
    assert "found no matching overload for '_>_' applied to '(string, int)'" in one["warning"]
    [one] = warnings(DEPLOYMENTS, validations=[{"expression": "params.datas.x == 'a'"}], **checks)
    assert "undefined field 'datas'" in one["warning"]
    unknown = {"paramKind": {"apiVersion": "x.io/v1", "kind": "Limit"}}
    assert warnings(DEPLOYMENTS, validations=[{"expression": "params.whatever == 1"}], **unknown) == []


def test_custom_kinds() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    decl = of_schema(schema, "Gear")
    assert decl is not None
    checker = TypeChecker(_named, _find, lambda definition: decl)
    spec = {"matchConstraints": {"resourceRules": [DEPLOYMENTS]}}
    good = "object.spec.size > 1 && object.metadata.labels.a == 'b' && object.kind == 'Gear'"
    validations = [{"expression": good}, {"expression": "object.spec.length > 1"}]
    found = list(checker.warnings({**spec, "validations": validations}))
    assert found[0] is None
    assert found[1] is not None
    assert "undefined field 'length'" in found[1]["warning"]
    assert of_schema(None, "Gear") is None


def test_any_result_will_do() -> None:
    assert warnings(DEPLOYMENTS, validations=[{"expression": "object.spec"}]) == []
