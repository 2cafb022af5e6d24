"""Metadata validation: texts, order, and how often an error is counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.errors import invalid
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.registry.metadata import (
    ANNOTATIONS_LIMIT,
    dedup_owner_references,
    validate_metadata,
    version_required,
)

BUILTIN = {d.kind: d for d in builtin()}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}


def errors_of(kind: str, metadata: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    definition = BUILTIN[kind]
    base = {"name": "x", "namespace": "ns"} if definition.namespaced else {"name": "x"}
    before = None if old is None else {"metadata": base | old}
    return [str(e) for e in validate_metadata({"metadata": base | metadata}, before, definition=definition)]


def test_a_plain_object_has_no_errors() -> None:
    metadata = {"labels": {"a/b": "c"}, "annotations": {"Example.COM/X": "✓"}, "finalizers": ["x.example/y"]}
    assert errors_of("ConfigMap", metadata) == []
    assert errors_of("ConfigMap", metadata, metadata) == []


@pytest.mark.parametrize(
    ("kind", "name", "problem"),
    [
        ("ConfigMap", "Bad", "a lowercase RFC 1123 subdomain"),
        ("ConfigMap", "a.b", ""),
        ("Namespace", "a.b", "must not contain dots"),
        ("Namespace", "Bad_", "a lowercase RFC 1123 label"),
        ("Service", "1a", ""),
        ("Role", "Team:Read x", ""),
        ("Role", "a/b", "may not contain '/'"),
        ("ClusterRole", "..", "may not be '..'"),
        ("CertificateSigningRequest", "Any Thing", ""),
    ],
)
def test_names_by_kind(kind: str, name: str, problem: str) -> None:
    found = errors_of(kind, {"name": name})
    assert len(found) == bool(problem)
    assert not problem or found[0].startswith(f'metadata.name: Invalid value: "{name}": {problem}')


def test_a_name_is_required() -> None:
    assert errors_of("ConfigMap", {"name": ""}) == ["metadata.name: Required value: name or generateName is required"]


def test_generate_name_may_end_in_a_dash() -> None:
    assert errors_of("ConfigMap", {"generateName": "abc-", "name": "abc-x"}) == []
    assert [e.split(":")[0] for e in errors_of("ConfigMap", {"generateName": "Bad_", "name": "Bad_x"})] == [
        "metadata.generateName",
        "metadata.name",
    ]
    assert errors_of("Role", {"generateName": ".", "name": ".x"}) == []


def test_namespaces_are_for_namespaced_kinds() -> None:
    assert errors_of("Node", {"namespace": "n"}) == ["metadata.namespace: Forbidden: not allowed on this type"]
    assert errors_of("Pod", {"namespace": ""}) == ["metadata.namespace: Required value"]


def test_annotations_have_a_total_size() -> None:
    fits = {"a": "x" * (ANNOTATIONS_LIMIT - 1)}
    assert errors_of("ConfigMap", {"annotations": fits}) == []
    assert errors_of("ConfigMap", {"annotations": {**fits, "b": ""}}) == [
        "metadata.annotations: Too long: may not be more than 262144 bytes"
    ]


def test_owners() -> None:
    bad = {"apiVersion": "a/b/c", "kind": "", "name": "", "uid": ""}
    assert [e.split(":")[0] for e in errors_of("ConfigMap", {"ownerReferences": [bad]})] == [
        f"metadata.ownerReferences.{member}" for member in ("apiVersion", "kind", "name", "uid")
    ]
    event = {**OWNER, "kind": "Event"}
    assert errors_of("Secret", {"ownerReferences": [event]}) == [
        'metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"o","uid":"u"}: '
        "/v1, Kind=Event is disallowed from being an owner"
    ]
    two = [{**OWNER, "controller": True}, {**OWNER, "name": "p", "controller": True}]
    assert errors_of("Secret", {"ownerReferences": two})[0].endswith("references for ConfigMap/o and ConfigMap/p")


def test_finalizers_are_qualified_or_standard() -> None:
    assert errors_of("Secret", {"finalizers": ["kubernetes"]}) == []
    assert errors_of("Secret", {"finalizers": ["plain"]}) == [
        'metadata.finalizers[0]: Invalid value: "plain": '
        "name is neither a standard finalizer name nor is it fully qualified"
    ]
    both = errors_of("Secret", {"finalizers": ["orphan", "foregroundDeletion"]})
    assert both[0].endswith("finalizer orphan and foregroundDeletion cannot be both set")


def test_no_finalizers_are_added_to_what_is_being_deleted() -> None:
    old = {"deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["x.example/a"]}
    found = errors_of("Secret", old | {"finalizers": ["x.example/b", "x.example/a"]}, old)
    text = (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"x.example/b"}'
    )
    assert found == [text, text]
    assert errors_of("Secret", old | {"finalizers": []}, old) == []


@pytest.mark.parametrize(
    ("member", "value"),
    [("uid", "other"), ("creationTimestamp", "2021-01-01T00:00:00Z"), ("deletionGracePeriodSeconds", 3)],
)
def test_system_metadata_is_immutable(member: str, value: Any) -> None:
    old = {"uid": "u", "creationTimestamp": "2020-01-01T00:00:00Z"}
    found = errors_of("ConfigMap", {**old, member: value}, old)
    assert len(found) == 2
    assert set(found) == {f"metadata.{member}: Invalid value: {json.dumps(value)}: field is immutable"}


def test_generation_never_goes_back() -> None:
    found = errors_of("Pod", {"generation": 1}, {"generation": 2})
    assert found[0] == "metadata.generation: Invalid value: 1: must not be decremented"
    assert errors_of("Pod", {"generation": -1})[0].startswith("metadata.generation: Invalid value: -1")


def test_managers_have_short_names() -> None:
    found = errors_of("Pod", {"managedFields": [{"manager": "m" * 128}, {"manager": "m" * 129}]})
    assert found == ["metadata.managedFields[1].manager: Too long: may not be more than 128 bytes"]


def test_custom_resources_may_have_plain_finalizers() -> None:
    definition = ResourceDefinition(
        group="x.example",
        version="v1",
        kind="Widget",
        plural="widgets",
        singular="widget",
        namespaced=True,
        verbs=(),
        type=BUILTIN["Pod"].type,
        storage_group="x.example",
        storage_version="v1",
        key_prefix="/registry/x.example/widgets/",
        custom=True,
    )
    tree = {"metadata": {"name": "w", "namespace": "n", "finalizers": ["plain"]}}
    assert validate_metadata(tree, None, definition=definition) == []


def test_update_without_version_names_the_resource() -> None:
    error = version_required(BUILTIN["Lease"], "l1")
    assert error.code == 422
    assert error.message == (
        'leases.coordination.k8s.io "l1" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )


def test_equal_owners_are_kept_once_with_a_warning() -> None:
    tree = {"metadata": {"ownerReferences": [OWNER, dict(OWNER), {**OWNER, "uid": "v"}]}}
    warnings = dedup_owner_references(tree)
    assert tree["metadata"]["ownerReferences"] == [OWNER, {**OWNER, "uid": "v"}]
    assert len(warnings) == 1
    assert warnings[0].endswith("duplicate UID(s) observed: u")
    assert dedup_owner_references(tree) == []


GOLDEN = Path(__file__).parents[4] / "shared" / "golden"
CASES = (
    "builtins/metadata-finalizers-ownerrefs-invalid",
    "builtins/metadata-labels-annotations-invalid",
    "core/owner-reference-validation",
    "core/role-names-are-path-segments",
    "listwatch/finalizer-names-validated",
    "listwatch/owner-references-any-scope",
    "listwatch/owner-references-controllers",
)


def recorded() -> list[Any]:
    found = []
    for case in CASES:
        path = GOLDEN / f"{case}.json"
        for index, step in enumerate(json.loads(path.read_text())["steps"] if path.exists() else []):
            if step["method"] == "POST" and step["expect"]["status"] in (201, 422):
                found.append(pytest.param(step, id=f"{path.stem}-{index}"))
    return found


@pytest.mark.parametrize("step", recorded())
def test_recorded_answers(step: dict[str, Any]) -> None:
    tree = step["body"]
    definition = BUILTIN[tree["kind"]]
    tree["metadata"].setdefault("namespace", "ns")
    dedup_owner_references(tree)
    problems = validate_metadata(tree, None, definition=definition)
    want = step["expect"]["body"]
    if step["expect"]["status"] == 201:
        assert problems == []
    else:
        got = invalid(definition.kind, definition.group, tree["metadata"]["name"], problems).to_status()
        assert got["message"] == want["message"]
        assert got["details"] == want["details"]


def test_a_role_is_judged_as_an_object_before_its_change() -> None:
    role = BUILTIN["Role"]
    secret = BUILTIN["Secret"]
    new = {"metadata": {"name": "a", "namespace": "n", "finalizers": ["*"]}}
    old = {"metadata": {"name": "a", "namespace": "n"}}
    qualified = "metadata.finalizers[0]"
    plain = "metadata.finalizers"
    assert [e.field for e in validate_metadata(new, old, definition=role)] == [plain, plain, qualified, qualified]
    assert [e.field for e in validate_metadata(new, old, definition=secret)] == [plain, qualified, plain, qualified]


def test_prefixes_of_names_have_the_format_of_the_kind() -> None:
    new = {"metadata": {"name": "a", "namespace": "n", "generateName": "A_"}}
    old = {"metadata": {"name": "a", "namespace": "n"}}
    secret = BUILTIN["Secret"]
    assert [e.field for e in validate_metadata(new, old, definition=secret)] == ["metadata.generateName"]
