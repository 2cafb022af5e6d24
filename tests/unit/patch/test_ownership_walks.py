"""Shapes of types, and the walks along them: paths, differences, merging, removing."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext.fieldset import (
    ItemError,
    compare,
    field_set,
    merge,
    reconciled,
    remove,
    same,
    with_named,
)
from fastapi_core.patch import conform, fieldset
from fastapi_core.patch.shapes import DEDUCED, Kind, Shape, from_schema, identify_keyed, shape_of, without
from fastapi_core.schema.tables import type_of


def _support() -> Any:
    spec = importlib.util.spec_from_file_location("ownership_support", Path(__file__).parent / "ownership_support.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


support = _support()
oracle = support.oracle
CUSTOM = support.custom_shape()
POD = shape_of(type_of("core/v1.Pod"))
DEPLOYMENT = shape_of(type_of("apps/v1.Deployment"))


def member(shape: Any, *names: str) -> Any:
    for name in names:
        shape = shape.item if name == "*" else shape.members[name].shape
    return shape


def pod(**spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {}, "spec": spec}


# Shapes


def test_shapes_follow_the_type_tables() -> None:
    containers = member(POD, "spec", "containers")
    assert containers.kind is Kind.KEYED
    assert containers.keys == ("name",)
    ports = member(containers.item, "ports")
    assert ports.keys == ("containerPort", "protocol")
    assert ports.defaults == {"containerPort": 0, "protocol": "TCP"}
    assert member(POD, "spec", "tolerations").kind is Kind.LEAF
    assert member(POD, "spec", "nodeSelector").kind is Kind.LEAF
    assert member(POD, "metadata", "finalizers").kind is Kind.SET
    assert member(POD, "metadata", "labels").kind is Kind.OBJECT
    assert member(POD, "metadata", "ownerReferences").keys == ("uid",)
    assert member(DEPLOYMENT, "spec", "selector").kind is Kind.LEAF
    assert member(shape_of(type_of("apps/v1.ControllerRevision")), "data").kind is Kind.LEAF


def test_only_structs_that_are_always_printed_are_implied() -> None:
    spec = member(DEPLOYMENT, "spec")
    assert DEPLOYMENT.members["spec"].implied == {}
    assert spec.members["strategy"].implied == {}
    assert spec.members["selector"].implied is None
    assert not spec.members["replicas"].implied
    assert not member(DEPLOYMENT, "spec", "template", "spec").members["securityContext"].implied


def test_a_member_taken_out_is_not_looked_at() -> None:
    shape = without(POD, [("status",), ("metadata", "name")])
    touched, _ = compare(shape, {}, {"metadata": {"name": "x", "labels": {"a": "b"}}, "status": {"phase": "Running"}})
    assert touched == {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}
    assert compare(without(DEDUCED, [("a", "b")]), {}, {"a": {"b": 1, "c": 2}, "d": 3})[0] == {
        "f:a": {".": {}, "f:c": {}},
        "f:d": {},
    }


def test_schemas_without_types_are_deduced() -> None:
    shape = from_schema(None, member(POD, "metadata"))
    tree = {"metadata": {"labels": {"a": "b"}}, "spec": {"list": [{"x": 1}], "map": {"y": {}}}}
    assert field_set(shape, tree) == {
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {".": {}, "f:list": {}, "f:map": {".": {}, "f:y": {}}},
    }


def test_embedded_resources_have_metadata() -> None:
    schema = {
        "type": "object",
        "properties": {"pod": {"type": "object", "x-kubernetes-embedded-resource": True}},
    }
    shape = from_schema(schema, member(POD, "metadata"))
    tree = {"pod": {"kind": "Pod", "metadata": {"labels": {"a": "b"}}}}
    assert field_set(shape, tree) == {"f:pod": {"f:kind": {}, "f:metadata": {"f:labels": {"f:a": {}}}}}
    assert conform.problems(shape, {"pod": {"other": 1}}) == [(".pod.other", "field not declared in schema")]


# Paths and differences


@given(support.objects())
@settings(max_examples=150)
def test_named_paths_match_the_oracle(tree: dict[str, Any]) -> None:
    assert oracle.paths_of(field_set(CUSTOM, tree)) == oracle.named(CUSTOM, tree)


@given(support.objects(), support.objects())
@settings(max_examples=200)
def test_differences_match_the_oracle(old: dict[str, Any], new: dict[str, Any]) -> None:
    touched, removed = compare(CUSTOM, old, new)
    wanted = oracle.changes(CUSTOM, old, new)
    assert oracle.paths_of(removed) == wanted[1]
    assert oracle.paths_of(touched) == wanted[0]


@given(support.objects())
@settings(max_examples=50)
def test_nothing_changes_between_equal_objects(tree: dict[str, Any]) -> None:
    assert compare(CUSTOM, tree, copy.deepcopy(tree)) == ({}, {})


def test_creating_an_object_touches_what_is_not_implied() -> None:
    touched, removed = compare(
        DEPLOYMENT,
        {},
        {
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {}, "spec": {"containers": [{"name": "x", "resources": {}}]}},
                "strategy": {},
            },
            "status": {},
        },
    )
    assert removed == {}
    assert touched == {
        "f:spec": {
            "f:selector": {},
            "f:template": {"f:spec": {"f:containers": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:resources": {}}}}},
        }
    }


def test_repeated_items_are_one_value() -> None:
    one = pod(containers=[{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]}])
    other = copy.deepcopy(one)
    other["spec"]["containers"][0]["ports"][1]["hostPort"] = 1
    key = 'k:{"containerPort":80,"protocol":"TCP"}'
    ports: Any = {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:ports": {key: {}}}}}}
    assert compare(POD, one, other) == (ports, {})
    single = pod(containers=[{"name": "a", "ports": [{"containerPort": 80}]}])
    touched, removed = compare(POD, one, single)
    assert removed == ports
    assert touched == {
        "f:spec": {"f:containers": {'k:{"name":"a"}': {"f:ports": {key: {".": {}, "f:containerPort": {}}}}}}
    }
    touched, removed = compare(POD, single, one)
    assert touched == ports
    assert removed["f:spec"]["f:containers"]['k:{"name":"a"}']["f:ports"][key] == {".": {}, "f:containerPort": {}}


def test_a_deduced_value_that_changes_kind() -> None:
    assert compare(DEDUCED, {"a": {"b": 1}}, {"a": 2}) == ({"f:a": {}}, {"f:a": {"f:b": {}}})
    assert compare(DEDUCED, {"a": 2}, {"a": {"b": 1}}) == ({"f:a": {".": {}, "f:b": {}}}, {})
    assert compare(DEDUCED, {"a": 1}, {"a": True}) == ({"f:a": {}}, {})
    assert compare(DEDUCED, {"a": [1, {"x": True}]}, {"a": [1, {"x": 1}]}) == ({"f:a": {}}, {})
    assert compare(DEDUCED, {"a": {}}, {"a": []}) == ({"f:a": {}}, {})


@given(
    st.recursive(st.one_of(st.none(), st.booleans(), st.integers(0, 1), st.text(max_size=1)), st.lists, max_leaves=4)
)
@settings(max_examples=50)
def test_same_is_reflexive(value: Any) -> None:
    assert same(value, copy.deepcopy(value))


def test_numbers_are_the_same_by_value() -> None:
    assert same(1, 1.0)
    assert not same(True, 1)


@pytest.mark.parametrize("item", [None, "x", [], {}, {"value": "v"}])
def test_items_without_identity(item: Any) -> None:
    keyed = Shape(Kind.KEYED, keys=("name",), identify=identify_keyed)
    with pytest.raises(ItemError):
        keyed.element(item)


@pytest.mark.parametrize("item", [None, {}, []])
def test_set_items_are_scalars(item: Any) -> None:
    with pytest.raises(ItemError):
        member(POD, "metadata", "finalizers").element(item)


# Merging and removing


@given(support.objects(), support.objects())
@settings(max_examples=150)
def test_a_merge_says_all_of_the_configuration_and_keeps_the_rest(old: dict[str, Any], config: dict[str, Any]) -> None:
    before = copy.deepcopy((old, config))
    merged = merge(CUSTOM, old, config)
    assert (old, config) == before
    whole, said, kept = (oracle.nodes(CUSTOM, tree) for tree in (merged, config, old))
    for path, value in said.items():
        assert path in whole
        if value is not ... and value not in ({}, [], ()):
            assert oracle._same(whole[path], value)
    covered = {path for path, value in said.items() if value is not ... and value not in ({}, ())}
    for path in kept:
        if not any(path[:size] in covered for size in range(1, len(path) + 1)):
            assert path in whole
    assert merge(CUSTOM, merged, config) == merged
    assert not compare(CUSTOM, merge(CUSTOM, config, config), config)[0]


@given(support.objects(), support.path_sets)
@settings(max_examples=100)
def test_removing_what_is_not_there_changes_nothing_but_empties(tree: dict[str, Any], paths: Any) -> None:
    gone = fieldset.difference(fieldset.of(*paths), field_set(CUSTOM, tree))
    assert oracle.nodes(CUSTOM, remove(CUSTOM, tree, gone)).keys() <= oracle.nodes(CUSTOM, tree).keys()


@given(support.objects())
@settings(max_examples=100)
def test_removing_all_paths_leaves_no_values(tree: dict[str, Any]) -> None:
    fields = with_named(CUSTOM, field_set(CUSTOM, tree))
    left = remove(CUSTOM, tree, fields)
    assert oracle.named(CUSTOM, {k: v for k, v in left.items() if v}) == frozenset()


@pytest.mark.parametrize(
    ("current", "config", "merged"),
    [
        ("abc", "b", "abc"),
        ("abc", "cb", "acb"),
        ("abc", "xb", "axbc"),
        ("abc", "bx", "abcx"),
        ("ab", "xy", "abxy"),
        ("", "ab", "ab"),
        ("abcd", "da", "bcda"),
        ("axb", "ba", "xba"),
    ],
)
def test_order_of_merged_lists(current: str, config: str, merged: str) -> None:
    def tree(names: str) -> dict[str, Any]:
        return pod(containers=[{"name": name} for name in names])

    out = merge(POD, tree(current), tree(config))
    assert "".join(item["name"] for item in out["spec"]["containers"]) == merged


def test_named_members_are_added_on_the_way() -> None:
    fields = fieldset.of(("f:spec", "f:containers", 'k:{"name":"a"}', "f:env", 'k:{"name":"E"}', "f:value"))
    assert with_named(POD, fields) == {
        "f:spec": {
            ".": {},
            "f:containers": {
                ".": {},
                'k:{"name":"a"}': {"f:env": {".": {}, 'k:{"name":"E"}': {"f:value": {}}}},
            },
        }
    }


def test_owners_of_parts_come_to_own_the_whole() -> None:
    fields = fieldset.of(("f:spec", "f:tolerations", "i:0"), ("f:spec", "f:nodeSelector", "f:a"), ("f:spec", "f:x"))
    assert reconciled(POD, fields) == {"f:spec": {"f:nodeSelector": {}, "f:tolerations": {}, "f:x": {}}}
    kept = fieldset.of(("f:spec", "f:nodeSelector"), ("f:metadata", "f:labels", "f:a"))
    assert reconciled(POD, kept) is kept


# Conformity


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({"nope": 1}, [(".spec.nope", "field not declared in schema")]),
        ({"containers": "x"}, [(".spec.containers", "expected list, got &{x}")]),
        ({"containers": [{"name": 1}]}, None),
        ({"hostNetwork": "yes"}, [(".spec.hostNetwork", "expected boolean, got &{yes}")]),
        (
            {"containers": [{"name": "a"}, {"name": "a"}]},
            [(".spec.containers", 'duplicate entries for key [name="a"]')],
        ),
        ({"nodeSelector": []}, [(".spec.nodeSelector", "expected map, got &{[]}")]),
        ({"containers": None, "volumes": [], "priority": 1.5}, []),
        ({"overhead": {"cpu": 1}}, []),
    ],
)
def test_what_does_not_fit_is_named(spec: dict[str, Any], problems: list[tuple[str, str]] | None) -> None:
    found = conform.problems(POD, pod(**spec))
    if problems is None:
        assert [path for path, _ in found] == [".spec.containers[name=1].name"]
    else:
        assert found == problems


def test_several_problems_are_listed() -> None:
    found = conform.problems(POD, pod(hostPID=1, hostIPC=2))
    assert conform.text(found) == (
        "errors:\n  .spec.hostIPC: expected boolean, got &{2}\n  .spec.hostPID: expected boolean, got &{1}"
    )
    assert conform.text(found[:1]) == ".spec.hostIPC: expected boolean, got &{2}"


@given(support.objects())
@settings(max_examples=50)
def test_objects_of_the_schema_fit(tree: dict[str, Any]) -> None:
    assert conform.problems(CUSTOM, tree) == []
