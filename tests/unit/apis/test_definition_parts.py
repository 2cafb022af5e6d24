"""What versions of a definition share is judged once, and outside of them."""

from __future__ import annotations

import copy
from typing import Any

from fastapi_core.apis.validation.definition_parts import divide
from fastapi_core.apis.validation.definitions import definition
from fastapi_core.apis.validation.rules import Report

Tree = dict[str, Any]
SCHEMA: Tree = {
    "openAPIV3Schema": {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}},
    }
}
OTHER: Tree = {"openAPIV3Schema": {"type": "object", "minProperties": 1}}


def told(*versions: Tree) -> list[str]:
    trees = [
        {"name": f"v{index + 1}", "served": True, "storage": index == 0, "schema": copy.deepcopy(SCHEMA), **version}
        for index, version in enumerate(versions)
    ]
    names = {"plural": "ws", "singular": "w", "kind": "W", "listKind": "WList"}
    report = Report()
    spec = {"group": "a.example.com", "scope": "Cluster", "names": names, "versions": trees}
    status = {"storedVersions": ["v1"]}
    definition({"metadata": {"name": "ws.a.example.com"}, "spec": spec, "status": status}, "", report)
    return [str(error) for error in report]


def fields(*names: str) -> Tree:
    return {"selectableFields": [{"jsonPath": f".spec.{name}"} for name in names]}


def test_what_is_common_leaves_the_versions() -> None:
    common, rest = divide(
        [{"name": "v1", "schema": SCHEMA, "additionalPrinterColumns": []}, {"name": "v2", "schema": SCHEMA}]
    )
    assert common == {
        "validation": SCHEMA,
        "subresources": None,
        "additionalPrinterColumns": [],
        "selectableFields": None,
    }
    assert rest == [{"name": "v1"}, {"name": "v2"}]


def test_fields_of_versions_that_share_a_schema_have_none() -> None:
    text = 'Invalid value: "": may only be set when `version.schema.openAPIV3Schema` is not included'
    assert told(fields("a"), fields("b")) == [f"spec.versions[{index}].selectableFields: {text}" for index in range(2)]
    assert told(fields("a"), fields("a")) == []


def test_common_fields_of_versions_with_schemas_of_their_own_have_none() -> None:
    text = 'spec.selectableFields: Invalid value: "": may only be set when validations.schema is included'
    assert told(fields("a"), {**fields("a"), "schema": {"openAPIV3Schema": {"type": "object"}}}) == [text]


def test_a_status_that_all_have_counts_for_a_schema_that_one_has() -> None:
    status: Tree = {"subresources": {"status": {}}}
    [found] = told(status, {**status, "schema": OTHER})
    assert found.startswith('spec.versions[1].schema.openAPIV3Schema: Invalid value: {"ID":"",')
    assert found.endswith("fields are allowed at the root of the schema if the status subresource is enabled")


def test_a_status_that_one_has_counts_for_the_schema_all_have() -> None:
    [found] = told({"subresources": {"status": {}}, "schema": OTHER}, {"schema": OTHER})
    assert found.startswith('spec.validation.openAPIV3Schema: Invalid value: {"ID":"",')


def test_versions_are_told_without_what_they_share() -> None:
    [found] = [text for text in told({"storage": True}, {"storage": True}) if text.startswith("spec.versions")]
    shown = (
        '{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":null,'
        '"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}'
    )
    assert found.startswith(f"spec.versions: Invalid value: [{shown},")
