"""Names that definitions are given, and the conditions that say so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from fastapi_core._ext.objects import CachedObject
from fastapi_core.crd import conditions
from fastapi_core.crd.definitions import FINALIZER, Definition, Names, read

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
FOO = Names("foos", "foo", "Foo", "FooList")


def definition(status: dict[str, Any] | None = None, group: str = "x.example.com", **metadata: Any) -> Definition:
    tree = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"foos.{group}", "uid": "u", **metadata},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": FOO.tree(),
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
        "status": status or {},
    }
    return read(CachedObject("/k", "", f"foos.{group}", orjson.dumps(tree), 5, 5))


def settle(made: Definition, *others: Names, sound: bool = True, now: str = NOW) -> dict[str, Any] | None:
    return conditions.settled(made, lambda: others, now, sound_bundle=lambda: sound)


def told(tree: dict[str, Any] | None) -> list[tuple[str, str, str]]:
    assert tree is not None
    return [(entry["type"], entry["status"], entry["reason"]) for entry in tree["status"]["conditions"]]


def test_names_nobody_has_are_accepted_and_the_definition_is_established() -> None:
    found = settle(definition())
    assert told(found) == [("NamesAccepted", "True", "NoConflicts"), ("Established", "True", "InitialNamesAccepted")]
    assert found is not None
    assert found["status"]["acceptedNames"] == FOO.tree()
    assert settle(definition(found["status"])) is None, "nothing is left to be said"


@pytest.mark.parametrize(
    ("other", "reason", "text"),
    [
        (Names("foos", "other", "Other", "OtherList"), "PluralConflict", '"foos" is already in use'),
        (Names("others", "foo", "Other", "OtherList"), "SingularConflict", '"foo" is already in use'),
        (Names("others", "other", "Foo", "OtherList"), "KindConflict", '"Foo" is already in use'),
        (Names("others", "other", "Other", "FooList"), "ListKindConflict", '"FooList" is already in use'),
        (Names("others", "other", "FooList", "Foo"), "ListKindConflict", '"FooList" is already in use'),
        (Names("o", "o", "O", "OList", ("foos",)), "PluralConflict", '"foos" is already in use'),
    ],
)
def test_a_name_that_is_taken_is_not_given(other: Names, reason: str, text: str) -> None:
    found = settle(definition(), other)
    assert told(found) == [("NamesAccepted", "False", reason), ("Established", "False", "NotAccepted")]
    assert found is not None
    assert found["status"]["conditions"][0]["message"] == text


def test_short_names_are_taken_together_and_own_ones_stay() -> None:
    wanted = replace(FOO, short_names=("f", "fo", "mine"))
    other = Names("others", "other", "Other", "OtherList", ("f", "fo", "mine"))
    names, condition = conditions.accept(wanted, replace(FOO, short_names=("mine",)), lambda: [other])
    assert condition[2:] == ("ShortNamesConflict", '["f" is already in use, "fo" is already in use]')
    assert names.short_names == ("mine",)


def test_an_established_definition_stays_so_when_a_new_name_conflicts() -> None:
    found = settle(definition())
    assert found is not None
    status = {**found["status"], "acceptedNames": replace(FOO, kind="Before").tree()}
    again = settle(definition(status), Names("others", "other", "Foo", "OtherList"), now=LATER)
    assert told(again) == [("NamesAccepted", "False", "KindConflict"), ("Established", "True", "InitialNamesAccepted")]
    assert again is not None
    assert [entry["lastTransitionTime"] for entry in again["status"]["conditions"]] == [LATER, NOW]
    assert again["status"]["acceptedNames"]["kind"] == "Before"


def test_a_broken_bundle_keeps_it_from_being_established() -> None:
    assert told(settle(definition(), sound=False))[1] == ("Established", "False", "InvalidCABundle")


@pytest.mark.parametrize(
    ("note", "status", "reason"),
    [
        ("https://github.com/kubernetes/kubernetes/pull/1", "True", "ApprovedAnnotation"),
        ("unapproved, for a test", "False", "UnapprovedAnnotation"),
        ("", "False", "MissingAnnotation"),
        ("maybe", "False", "InvalidAnnotation"),
        ("http://[", "False", "InvalidAnnotation"),
    ],
)
def test_protected_groups_say_whether_they_are_approved(note: str, status: str, reason: str) -> None:
    for group in ("k8s.io", "a.kubernetes.io"):
        found = conditions.approval(group, note)
        assert found is not None
        assert found[:3] == ("KubernetesAPIApprovalPolicyConformant", status, reason)
    assert conditions.approval("example.com", note) is None


def test_reading_a_definition() -> None:
    made = definition(deletionTimestamp=NOW, finalizers=[FINALIZER])
    assert (made.deleting, made.finalizing, made.namespaced, made.storage_version) == (True, True, True, "v1")
    assert made.key_prefix == "/registry/x.example.com/foos/"
    assert not made.serving
    assert made.same_serving(definition())
    assert not made.same_serving(replace(definition(), uid="other"))


def preserving(schema: dict[str, Any] | None) -> Definition:
    """As an older store may have it; nobody can write it here."""
    tree = orjson.loads(definition().source.json())
    tree["spec"] |= {"preserveUnknownFields": True}
    tree["spec"]["versions"][0]["schema"] = None if schema is None else {"openAPIV3Schema": schema}
    del tree["metadata"]["resourceVersion"]
    return read(CachedObject("/k", "", "foos.x.example.com", orjson.dumps(tree), 5, 5))


@pytest.mark.parametrize(
    ("schema", "condition"),
    [
        (None, ("True", "Violations", "spec.preserveUnknownFields: Invalid value: true: must be false")),
        ({"type": "object"}, ("True", "Violations", "spec.preserveUnknownFields: Invalid value: true: must be false")),
        (
            {"type": "object", "properties": {"a": {}}},
            (
                "True",
                "Violations",
                "[spec.preserveUnknownFields: Invalid value: true: must be false, "
                "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for "
                "specified object fields]",
            ),
        ),
        (
            {"type": "object", "$ref": "x"},
            (
                "Unknown",
                "StructuralError",
                "failed to check validation schema for version v1: OpenAPIV3Schema '$ref' is not supported",
            ),
        ),
    ],
)
def test_schemas_that_are_not_structural(schema: dict[str, Any] | None, condition: tuple[str, ...]) -> None:
    made = preserving(schema)
    found = settle(made)
    assert found is not None
    first = found["status"]["conditions"][0]
    assert (first["status"], first["reason"], first["message"]) == condition
    assert first["type"] == "NonStructuralSchema"
