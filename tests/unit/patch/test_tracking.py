"""Owners of fields after creates, updates and patches."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.patch import fieldset, managers
from fastapi_core.patch.managers import Identity, Record
from fastapi_core.patch.tracking import Tracker, Version, Versions
from fastapi_core.schema.tables import type_of
from fastapi_core.schema.types import Type


def _support() -> Any:
    spec = importlib.util.spec_from_file_location("ownership_support", Path(__file__).parent / "ownership_support.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


support = _support()
oracle = support.oracle
NOW, LATER = "2024-01-01T00:00:00Z", "2024-01-01T00:00:09Z"
CONFIG_MAP = Tracker(type_of("core/v1.ConfigMap"), "v1")
DEPLOYMENT = Tracker(type_of("apps/v1.Deployment"), "apps/v1", reset=[("status",)])
DEPLOYMENT_STATUS = Tracker(
    type_of("apps/v1.Deployment"), "apps/v1", subresource="status", reset=[("spec",), ("metadata", "labels")]
)

Tree = dict[str, Any]


def config_map(data: Tree | None = None, **metadata: Any) -> Tree:
    tree: Tree = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "n", **metadata}}
    if data:
        tree["data"] = data
    return tree


def created(tree: Tree, manager: str = "creator", tracker: Tracker = CONFIG_MAP) -> Tree:
    tracker.update(None, tree, manager, NOW)
    return tree


def updated(
    current: Tree, tree: Tree, manager: str = "updater", now: str = LATER, tracker: Tracker = CONFIG_MAP
) -> Tree:
    tracker.update(current, tree, manager, now)
    return tree


def entries(tree: Tree) -> list[tuple[str, str, str | None, Tree]]:
    return [
        (e.get("manager", ""), e["operation"], e.get("time"), e["fieldsV1"])
        for e in tree["metadata"].get("managedFields", [])
    ]


def test_the_creator_owns_what_it_sent() -> None:
    tree = created(config_map({"b": "1", "a": "1"}, labels={"l": "1"}, generateName="n-", uid="u", resourceVersion="3"))
    assert tree["metadata"]["managedFields"] == [
        {
            "manager": "creator",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:data": {".": {}, "f:a": {}, "f:b": {}},
                "f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:l": {}}},
            },
        }
    ]
    assert list(tree["metadata"]["managedFields"][0]["fieldsV1"]["f:data"]) == [".", "f:a", "f:b"]


def test_nothing_to_own_is_no_entry() -> None:
    assert "managedFields" not in created(config_map())["metadata"]


def test_a_change_moves_ownership() -> None:
    one = created(config_map({"a": "1", "b": "1"}))
    two = updated(one, config_map({"a": "2", "c": "1"}))
    assert entries(two) == [
        ("creator", "Update", NOW, {"f:data": {}}),
        ("updater", "Update", LATER, {"f:data": {"f:a": {}, "f:c": {}}}),
    ]


def test_an_entry_without_fields_goes() -> None:
    one = created(config_map({"a": "1"}))
    assert entries(updated(one, config_map())) == []


def test_the_same_manager_keeps_one_entry_with_a_new_time() -> None:
    one = created(config_map({"a": "1", "b": "1"}))
    two = updated(one, config_map({"a": "2", "b": "1"}), "creator")
    assert entries(two) == [("creator", "Update", LATER, {"f:data": {".": {}, "f:a": {}, "f:b": {}}})]


def test_a_write_that_changes_nothing_changes_no_entry() -> None:
    one = created(config_map({"a": "1"}))
    two = updated(one, config_map({"a": "1"}, resourceVersion="9", generation=4))
    assert two["metadata"]["managedFields"] == one["metadata"]["managedFields"]


@pytest.mark.parametrize("cleared", [[], [{}]])
def test_clearing_stops_the_accounts_until_the_next_apply(cleared: list[Any]) -> None:
    one = created(config_map({"a": "1"}))
    two = updated(one, config_map({"a": "2"}, managedFields=cleared))
    assert entries(two) == []
    assert entries(updated(two, config_map({"a": "3"}))) == []


def test_null_keeps_the_entries() -> None:
    one = created(config_map({"a": "1"}))
    two = updated(one, config_map({"a": "1"}, managedFields=None))
    assert two["metadata"]["managedFields"] == one["metadata"]["managedFields"]


GOOD = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}


@pytest.mark.parametrize(
    "bad",
    [
        {"operation": ""},
        {"operation": "Bogus"},
        {"apiVersion": ""},
        {"fieldsType": ""},
        {"fieldsType": "FieldsV9"},
        {"fieldsV1": {"nonsense": {}}},
    ],
)
def test_entries_that_make_no_sense_are_ignored(bad: Tree) -> None:
    one = created(config_map({"a": "1"}))
    two = updated(one, config_map({"a": "1"}, managedFields=[GOOD, {**GOOD, **bad}]))
    assert two["metadata"]["managedFields"] == one["metadata"]["managedFields"]


def test_a_client_may_write_entries() -> None:
    one = created(config_map({"a": "1"}))
    given_ = {**GOOD, "time": NOW, "fieldsV1": {"f:data": {"f:b": {".": {}}, "f:a": {}}}}
    two = updated(one, config_map({"a": "1"}, managedFields=[given_]))
    assert entries(two) == [("x", "Update", NOW, {"f:data": {"f:a": {}, "f:b": {}}})]


def test_subresources_have_entries_of_their_own_and_ignore_the_clients() -> None:
    one = created({"metadata": {}, "spec": {"replicas": 1}, "status": {"replicas": 1}}, tracker=DEPLOYMENT)
    assert entries(one) == [("creator", "Update", NOW, {"f:spec": {"f:replicas": {}}})]
    new = copy.deepcopy(one)
    new["metadata"] |= {"managedFields": [], "labels": {"l": "1"}, "annotations": {"a": "1"}}
    new["spec"]["replicas"] = 2
    new["status"]["replicas"] = 2
    two = updated(one, new, tracker=DEPLOYMENT_STATUS)
    assert two["metadata"]["managedFields"][1] == {
        "manager": "updater",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "time": LATER,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, "f:a": {}}}, "f:status": {"f:replicas": {}}},
        "subresource": "status",
    }


def test_lists_that_cannot_be_told_apart_leave_the_entries_alone() -> None:
    one = created({"metadata": {}, "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}, tracker=DEPLOYMENT)
    two = {"metadata": {}, "spec": {"template": {"spec": {"containers": [None]}}}}
    DEPLOYMENT.update(one, two, "updater", LATER)
    assert two["metadata"]["managedFields"] == one["metadata"]["managedFields"]


def test_many_updaters_become_one() -> None:
    tree = created(config_map({"k00": "0"}), "m00")
    for index in range(1, 14):
        now = f"2024-01-01T00:00:{index:02}Z"
        data = {**tree["data"], f"k{index:02}": "0"}
        tree = updated(tree, config_map(data), f"m{index:02}", now)
    listed = entries(tree)
    assert len(listed) == managers.MAX_UPDATERS
    assert listed[0] == (
        managers.ANCIENT,
        "Update",
        "2024-01-01T00:00:04Z",
        {"f:data": {".": {}, **{f"f:k{index:02}": {} for index in range(5)}}},
    )
    assert [name for name, *_ in listed[1:]] == [f"m{index:02}" for index in range(5, 14)]


def test_order_of_entries() -> None:
    fields: Tree = {"f:data": {}}
    managed = {
        Identity("b", "Update", "v1"): Record(fields, "v1", NOW),
        Identity("a", "Update", "v1", "status"): Record(fields, "v1", NOW),
        Identity("a", "Update", "v1"): Record(fields, "v1", NOW),
        Identity("z", "Update", "v1"): Record(fields, "v1", None),
        Identity("c", "Apply", ""): Record(fields, "v1", LATER),
        Identity("d", "Apply", ""): Record(fields, "v1", NOW),
    }
    assert [(e["manager"], e.get("subresource")) for e in managers.write(managed)] == [
        ("d", None),
        ("c", None),
        ("z", None),
        ("a", None),
        ("a", "status"),
        ("b", None),
    ]
    assert managers.read(managers.write(managed)) == managed


@pytest.mark.parametrize(
    ("field_manager", "agent", "name"),
    [
        ("explicit", "agent/1", "explicit"),
        ("", "kubectl/v1.31 (linux)", "kubectl"),
        ("", "plain", "plain"),
        ("", "with space (x)/2", "with space (x)"),
        ("", "", ""),
        ("", "r" * 200 + "/1", "r" * 128),
        ("", "be\x07ll/1", "bell"),
        ("", "ü" * 100, "ü" * 64),
    ],
)
def test_names_of_managers(field_manager: str, agent: str, name: str) -> None:
    assert managers.manager_name(field_manager, agent) == name


def test_nobody_is_called_unknown() -> None:
    assert entries(created(config_map({"a": "1"}), ""))[0][0] == "unknown"


# Other versions


def renamed(old: str, new: str) -> Any:
    def convert(tree: Tree) -> Tree:
        out = {name: value for name, value in tree.items() if name != old}
        return {**out, new: tree[old]} if old in tree else out

    return convert


def test_entries_of_other_versions_follow_through_conversion() -> None:
    versions = Versions(
        lambda name: (
            Version(type_of("core/v1.ConfigMap"), renamed("data", "binaryData"), renamed("binaryData", "data"))
            if name == "v2"
            else None
        )
    )
    tracker = Tracker(type_of("core/v1.ConfigMap"), "v1", versions=versions)
    old = config_map({"a": "1", "b": "1"}, uid="u")
    old["metadata"]["managedFields"] = [
        {**GOOD, "apiVersion": "v2", "fieldsV1": {"f:binaryData": {".": {}, "f:a": {}, "f:b": {}}}},
        {**GOOD, "apiVersion": "v0", "manager": "gone"},
    ]
    new = config_map({"a": "2", "b": "1"})
    tracker.update(old, new, "me", LATER)
    assert [(e["manager"], e["apiVersion"], e["fieldsV1"]) for e in new["metadata"]["managedFields"]] == [
        ("x", "v2", {"f:binaryData": {".": {}, "f:b": {}}}),
        ("me", "v1", {"f:data": {"f:a": {}}}),
    ]


# Consistency


def custom_tracker() -> Tracker:
    type_ = Type("x.example/v1.X", lambda: ())
    type_.shape = support.custom_shape()
    return Tracker(type_, "x.example/v1", changing=True)


CUSTOM = custom_tracker()


@given(st.lists(st.tuples(st.sampled_from("mno"), support.objects()), min_size=1, max_size=5))
@settings(max_examples=100)
def test_owned_fields_exist_and_belong_to_the_last_writer(writes: list[tuple[str, Tree]]) -> None:
    current: Tree | None = None
    for step, (manager, tree) in enumerate(writes):
        tree = copy.deepcopy(tree)
        CUSTOM.update(current, tree, manager, f"2024-01-01T00:00:{step:02}Z")
        if current is not None and not current["metadata"].get("managedFields"):
            # Nobody was accounted for: it stays so until an apply.
            assert "managedFields" not in tree["metadata"]
            current = tree
            continue
        there = oracle.nodes(CUSTOM.tracked, tree).keys()
        touched, removed = oracle.changes(CUSTOM.tracked, current or {}, tree)
        owned = {e["manager"]: oracle.paths_of(e["fieldsV1"]) for e in tree["metadata"].get("managedFields", ())}
        for name, paths in owned.items():
            assert paths <= there
            if name != manager:
                assert not paths & touched
        assert touched <= owned.get(manager, frozenset()) | {("f:metadata",)}
        assert not any(paths & removed for paths in owned.values())
        assert tree["metadata"].get("managedFields", []) == managers.write(
            managers.read_checked(tree["metadata"].get("managedFields")) or {}
        )
        current = tree


def test_sets_are_shared_and_never_changed() -> None:
    one = created(config_map({"a": "1", "b": "1"}))
    before = copy.deepcopy(one)
    updated(one, config_map({"a": "2", "b": "1"}))
    assert one == before
    assert fieldset.LEAF == {}


@pytest.mark.parametrize("given_", ["x", {}, {"a": 1}, ["x"], [None], [[]], [{"operation": "Update", "fieldsV1": 3}]])
def test_anything_may_stand_where_the_entries_of_a_client_belong(given_: Any) -> None:
    assert not managers.read_checked(given_)


@pytest.mark.parametrize("spec", ["x", 1, ["x"], {"map": "x"}, {"items": ["x"]}, {"set": [{}]}, {"set": "x"}])
def test_values_of_the_wrong_kind_leave_the_entries_alone(spec: Any) -> None:
    whole = {"text": "a", "map": {"a": "b"}, "set": ["a"], "items": [{"port": 1}]}
    old: Tree = {"metadata": {"uid": "u"}, "spec": whole}
    CUSTOM.update(None, old, "creator", NOW)
    for current in (None, old):
        new: Tree = {"metadata": {}, "spec": copy.deepcopy(spec)}
        CUSTOM.update(current, new, "updater", LATER)
        assert new["metadata"].get("managedFields") == (current and current["metadata"]["managedFields"])
