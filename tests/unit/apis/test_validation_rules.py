"""The words of validation, and the parts of it that are logic."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.apis.validation import cron, formats, rules
from fastapi_core.apis.validation.index import RULES
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.quantities import container_resource
from fastapi_core.apis.validation.rules import Report, Rule, Tree
from fastapi_core.apis.validation.warnings import WARNINGS
from fastapi_core.meta import names


def told(rule: Rule, tree: Tree, old: Tree | None = None) -> list[str]:
    report = Report(old)
    rule(tree, ".spec", report)
    return [str(error) for error in report]


@pytest.mark.parametrize(
    ("rule", "tree", "expected"),
    [
        (rules.required("a"), {"a": "x"}, []),
        (rules.required("a", "why"), {}, ["spec.a: Required value: why"]),
        (rules.text("a", names.dns1123_label), {}, []),
        (rules.text("a", names.dns1123_label, empty=rules.REQUIRED), {"a": ""}, ["spec.a: Required value"]),
        (
            rules.text("a", formats.port_name),
            {"a": "1"},
            ['spec.a: Invalid value: "1": must contain at least one letter (a-z)'],
        ),
        (rules.choice("a", "x", "y"), {"a": "z"}, ['spec.a: Unsupported value: "z": supported values: "x", "y"']),
        (
            rules.choice("a", "x", empty=rules.CHECK),
            {"a": ""},
            ['spec.a: Unsupported value: "": supported values: "x"'],
        ),
        (rules.choice("a", "x", empty=rules.CHECK), {}, []),
        (rules.number("a", 1, 5), {"a": 6}, ["spec.a: Invalid value: 6: must be between 1 and 5, inclusive"]),
        (rules.number("a", 1, 5, zero=rules.REQUIRED, absent=rules.CHECK), {}, ["spec.a: Required value"]),
        (rules.natural("a", "b"), {"a": -1, "b": 0}, ["spec.a: Invalid value: -1: must be greater than or equal to 0"]),
        (rules.member("a", rules.required("b")), {"a": {}}, ["spec.a.b: Required value"]),
        (rules.member("a", rules.required("b"), missing="m"), {}, ["spec.a: Required value: m"]),
        (rules.member("a", rules.required("b"), always=True), {}, ["spec.a.b: Required value"]),
        (rules.each("a", rules.required("b")), {"a": [{"b": 1}, {}]}, ["spec.a[1].b: Required value"]),
        (rules.each("a", rules.nothing, most=1), {"a": [{}, {}]}, ["spec.a: Too many: 2: must have at most 1 item"]),
        (rules.unique("a", "n"), {"a": [{"n": "x"}, {}, {"n": "x"}]}, ['spec.a[2].n: Duplicate value: "x"']),
        (rules.when(lambda t: t.get("b"), rules.required("a")), {"b": 1}, ["spec.a: Required value"]),
    ],
)
def test_words(rule: Rule, tree: Tree, expected: list[str]) -> None:
    assert told(rule, tree) == expected


def test_unions_tell_the_second_member() -> None:
    union = rules.one_member([("a", "", None), ("b", "bee", rules.required("x"))], none="one of", many="too many")
    assert told(union, {}) == ["spec: Required value: one of"]
    assert told(union, {"b": {}}) == ["spec.bee.x: Required value"]
    assert told(union, {"a": {}, "b": {}}) == ["spec.bee: Forbidden: too many"]


def test_fixed_members() -> None:
    fixed = rules.immutable("a.b")
    assert told(fixed, {"a": {"b": 1}}, {"a": {"b": 1}}) == []
    assert told(fixed, {"a": {"b": 2}}, {}) == ["spec.a.b: Invalid value: 2: field is immutable"]


def test_strings_of_a_list() -> None:
    rule = rules.each_text("a", formats.label, unique=True)
    assert told(rule, {"a": ["x", "x"]}) == ['spec.a[1]: Duplicate value: "x"']


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("*/5 0-3,7 * jan-mar MON", ""),
        ("@daily", ""),
        ("@every 1h30m", ""),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
    ],
)
def test_schedules(schedule: str, expected: str) -> None:
    assert cron.problem(schedule) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1", []),
        ("10.0.0.01", [formats.LEADING_ZEROS]),
        ("::1", []),
        ("::ffff:1.2.3.4", [formats.MAPPED]),
        ("x", [formats.IP]),
    ],
)
def test_addresses(text: str, expected: list[str]) -> None:
    assert formats.ip(text) == expected


def test_networks() -> None:
    assert formats.cidr("10.0.0.0/8") == []
    assert formats.cidr("10.0.0.1/8") == ["must not have bits set beyond the prefix length"]
    assert formats.loose_cidr("10.0.0.1/8") == ["must not have bits set beyond the prefix length"]
    assert formats.loose_cidr("10.0.0.0/08") == ["must not have leading 0s in IP or prefix length"]
    assert formats.loose_cidr("::ffff:1.2.3.0/120") == ["must not have an IPv4-mapped IPv6 address"]
    assert formats.loose_cidr("FD00::/64") == []
    assert formats.cidr("FD00::/64") == ['must be in canonical form ("fd00::/64")']
    assert formats.cidr("10.0.0.0/33") == formats.loose_cidr("10.0.0.0") == [formats.CIDR]


def test_resource_names() -> None:
    assert container_resource("cpu") == container_resource("hugepages-2Mi") == container_resource("x.y/z") == ()
    assert container_resource("pods") == ("must be a standard resource for containers",)
    assert len(container_resource("zzz")) == 2


def test_values_are_shown_as_the_reference_has_them() -> None:
    assert shown("core/v1.SeccompProfile", {"type": "x"}) == {"Type": "x", "LocalhostProfile": None}
    assert shown("core/v1.Capabilities", None) is None


def test_rules_are_of_served_kinds() -> None:
    served = {(d.group, d.kind) for d in builtin()}
    assert set(RULES) <= served
    assert set(WARNINGS) <= served


def warned(kind: str, new: Tree, old: Tree | None = None) -> list[str]:
    definition = next(d for d in builtin() if d.kind == kind)
    return definition.strategy.warnings(new, old)


def test_warnings_about_templates_come_when_they_change() -> None:
    spec = {"template": {"spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}}}
    tree: Tree = {"metadata": {"name": "x"}, "spec": spec}
    expected = [
        'spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
    assert warned("Deployment", tree) == expected
    assert warned("Deployment", tree, tree) == []
    changed = {**tree, "metadata": {"name": "x", "generation": 2}}
    assert warned("Deployment", changed, {"metadata": {"generation": 1}, "spec": {}}) == expected
    assert warned("ReplicationController", changed, {"metadata": {"generation": 1}, "spec": {}}) == []


def test_warnings_about_names() -> None:
    tree: Tree = {"metadata": {"name": "a.b"}, "spec": {}}
    assert "the Pod's hostname" in warned("Pod", tree)[0]
    assert warned("Pod", tree, tree) == []
    assert "Pod names and hostnames" in warned("Job", tree)[0]


@pytest.mark.parametrize("member", ["rbd", "gitRepo", "scaleIO", "flocker"])
def test_warnings_about_volumes(member: str) -> None:
    pod: Tree = {"metadata": {"name": "a"}, "spec": {"volumes": [{"name": "v", member: {}}]}}
    volume: Tree = {"metadata": {}, "spec": {member: {}}}
    assert warned("Pod", pod)[0].startswith(f"spec.volumes[0].{member}: deprecated in ")
    told = [text.partition(": deprecated in ")[0] for text in warned("PersistentVolume", volume)]
    assert told == [f"spec.{member}"] * (member in ("rbd", "scaleIO"))


def definition(*versions: dict[str, Any]) -> Tree:
    names_ = {"plural": "bars", "singular": "bar", "kind": "Bar", "listKind": "BarList"}
    spec = {"group": "ex.io", "scope": "Cluster", "names": names_, "versions": list(versions)}
    stored = [version["name"] for version in versions if version.get("storage")][:1]
    return {"metadata": {"name": "bars.ex.io"}, "spec": spec, "status": {"storedVersions": stored}}


def test_errors_of_differing_versions_stand_at_the_version() -> None:
    good = {"openAPIV3Schema": {"type": "object"}}
    bad = {"openAPIV3Schema": {"type": "string"}}
    check = RULES["apiextensions.k8s.io", "CustomResourceDefinition"]().create
    report = Report()
    check(definition({"name": "v1", "storage": True, "schema": good}, {"name": "v2", "schema": bad}), "", report)
    assert [error.field for error in report] == ["spec.versions[1].schema.openAPIV3Schema.type"]
    report = Report()
    check(definition({"name": "v1", "storage": True, "schema": bad}), "", report)
    assert [error.field for error in report] == ["spec.validation.openAPIV3Schema.type"]


def test_warnings_about_formats() -> None:
    def tree(*names: str) -> Tree:
        members = {name: {"type": "string", "format": name} for name in names}
        schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"properties": members}}}}
        return definition({"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}})

    # Formats of numbers are none of strings.
    assert warned("CustomResourceDefinition", tree("date-time", "int64", "made-up")) == [
        'unrecognized format "int64"',
        'unrecognized format "made-up"',
    ]
    assert warned("CustomResourceDefinition", tree("a", "b"), tree("a")) == ['unrecognized format "b"']


def test_warnings_about_service_accounts() -> None:
    tree: Tree = {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}}
    assert len(warned("ServiceAccount", tree)) == 1
    assert warned("ServiceAccount", tree, tree) == []
