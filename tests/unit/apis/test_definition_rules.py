"""What is wrong with definitions besides their schemas."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.apis.validation.definitions import definition, definition_update
from fastapi_core.apis.validation.rules import Report

Tree = dict[str, Any]
OPEN = {"openAPIV3Schema": {"type": "object"}}
APPROVAL = "api-approved.kubernetes.io"


def crd(*, note: str = "", established: bool = False, version: Tree | None = None, **spec: Any) -> Tree:
    group = spec.get("group", "x.example.com")
    names = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList", **spec.pop("names", {})}
    conditions = [{"type": "Established", "status": "True"}] if established else []
    made: Tree = {
        "metadata": {"name": f"foos.{group}", "annotations": {APPROVAL: note} if note else {}},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": OPEN, **(version or {})}],
            "conversion": {"strategy": "None"},
            **spec,
        },
        "status": {"storedVersions": ["v1"], "conditions": conditions},
    }
    return made


def told(tree: Tree, old: Tree | None = None) -> list[tuple[str, str]]:
    report = Report(old)
    (definition if old is None else definition_update)(tree, "", report)
    return [(error.field, error.detail) for error in report]


def test_a_plain_one_is_fine() -> None:
    assert told(crd()) == []
    assert told(crd(established=True), crd(established=True)) == []


@pytest.mark.parametrize(
    ("warning", "details"),
    [
        ("old", []),
        ("", ["must not be an empty string"]),
        ("x" * 257, ["must be <= 256 characters long"]),
        ("é" * 129, ["must be <= 256 characters long"]),
        ("é\n", ["must only contain printable UTF-8 characters; non-printable character found at index 2"]),
    ],
)
def test_warnings_of_deprecated_versions(warning: str, details: list[str]) -> None:
    found = told(crd(version={"deprecated": True, "deprecationWarning": warning}))
    assert found == [("spec.versions[0].deprecationWarning", detail) for detail in details]
    undeprecated = told(crd(version={"deprecationWarning": warning}))
    assert [detail for _, detail in undeprecated] == ["can only be set for deprecated versions"]


@pytest.mark.parametrize(
    ("member", "path", "detail"),
    [
        ("specReplicasPath", ".spec", "should be a json path under .spec"),
        ("specReplicasPath", ".spec[0].a", "should be a json path under .spec"),
        ("specReplicasPath", ".specs.a", "should be a json path under .spec"),
        ("specReplicasPath", "spec.a", "must be a simple json path starting with ."),
        ("statusReplicasPath", ".spec.a", "should be a json path under .status"),
        ("labelSelectorPath", ".a", "should be a json path under either .spec or .status"),
        ("labelSelectorPath", ".spec.a", ""),
    ],
)
def test_paths_of_the_scale(member: str, path: str, detail: str) -> None:
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", member: path}
    found = told(crd(version={"subresources": {"scale": scale}}))
    assert found == ([(f"spec.subresources.scale.{member}", detail)] if detail else [])


@pytest.mark.parametrize(
    ("note", "before", "wrong"),
    [
        ("", None, "must have approval annotation"),
        ("nonsense", None, "with either a URL or a reason"),
        ("unapproved, a test", None, ""),
        ("https://github.com/kubernetes/kubernetes/pull/1", None, ""),
        ("", "", ""),
        ("nonsense", "other nonsense", ""),
        ("nonsense", "unapproved", "with either a URL or a reason"),
        ("", "https://a.test/1", "must have approval annotation"),
    ],
)
def test_approval_of_protected_groups(note: str, before: str | None, wrong: str) -> None:
    old = None if before is None else crd(group="x.k8s.io", note=before, established=True)
    found = told(crd(group="x.k8s.io", note=note, established=old is not None), old)
    assert [field for field, _ in found] == ([f"metadata.annotations[{APPROVAL}]"] if wrong else [])
    assert all(wrong in detail for _, detail in found)


def test_unknown_fields_may_go_on_being_preserved() -> None:
    at = "spec.preserveUnknownFields"
    assert [field for field, _ in told(crd(preserveUnknownFields=True))] == [at]
    assert told(crd(preserveUnknownFields=True), crd(preserveUnknownFields=True)) == []
    assert [field for field, _ in told(crd(preserveUnknownFields=True), crd())] == [at]


def test_bundles_of_conversion_webhooks() -> None:
    def hook(bundle: str) -> Tree:
        client = {"url": "https://a.test", "caBundle": bundle}
        return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}

    bad = crd(conversion=hook("YQ=="))
    assert told(bad) == []
    assert told(bad, crd()) == []
    assert told(bad, crd(established=True, conversion=hook("Yg=="))) == []
    at = "spec.conversion.webhookClientConfig.caBundle"
    assert [field for field, _ in told(bad, crd(established=True))] == [at]


def test_all_that_is_wrong_with_a_name_is_one_error() -> None:
    found = told(crd(names={"kind": "F_" * 40, "listKind": "F_" * 40, "shortNames": ["A"]}))
    at = ["spec.names.kind", "spec.names.listKind", "spec.names.shortNames[0]", "spec.names.listKind"]
    assert [field for field, _ in found] == at
    start = "may have mixed case, but should otherwise match: must be no more than 63 characters,a DNS-1035 label"
    assert found[0][1].startswith(start)
    assert found[3][1] == "kind and listKind may not be the same"


def test_selectable_fields_without_a_schema() -> None:
    fields = {"selectableFields": [{"jsonPath": ".spec.a"}]}
    version = {"name": "v2", "served": True, "storage": False, "schema": OPEN}
    tree = crd(version={"schema": None, **fields})
    tree["spec"]["versions"].append(version)
    assert told(tree)[:2] == [
        ("spec.versions[0].schema.openAPIV3Schema", ""),
        ("spec.versions[0].selectableFields", "may only be set when `version.schema.openAPIV3Schema` is not included"),
    ]


def test_the_status_may_say_what_it_likes_but_for_names() -> None:
    old = crd(established=True)

    def written(**status: Any) -> list[tuple[str, str]]:
        return told({**old, "status": {**old["status"], **status}}, old)

    assert written(storedVersions=[]) == []
    assert written(storedVersions=["v0"]) == []
    found = written(acceptedNames={"plural": "A", "kind": "Foo", "listKind": "Foo"})
    assert [field for field, _ in found] == ["status.acceptedNames.plural", "status.acceptedNames.listKind"]


def test_stored_versions_stay_in_the_definition() -> None:
    old = crd(established=True)
    old["status"]["storedVersions"] = ["v0", "v1"]
    changed = {**crd(scope="Namespaced", names={"shortNames": ["f"]}), "status": old["status"]}
    assert [field for field, _ in told(changed, old)] == ["status.storedVersions[0]"]
    two = crd(version={"storage": False})
    two["spec"]["versions"].append({"name": "v2", "served": True, "storage": True, "schema": OPEN})
    assert ("status.storedVersions", "must have the storage version v2") in told(two)
