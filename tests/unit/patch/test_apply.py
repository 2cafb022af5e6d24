"""Server-side apply on objects, without a server."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.errors import APIError
from fastapi_core.patch import managers
from fastapi_core.patch.apply import LAST_APPLIED, Applied, Applier, sync_last_applied
from fastapi_core.patch.conflicts import ApplyConflictError
from fastapi_core.patch.tracking import Tracker, Version, Versions
from fastapi_core.schema.normalize import normalize
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
Tree = dict[str, Any]
NOW, LATER = "2024-01-01T00:00:00Z", "2024-01-01T00:00:09Z"
CONFIG_MAP = Tracker(type_of("core/v1.ConfigMap"), "v1")
DEPLOYMENT = Tracker(type_of("apps/v1.Deployment"), "apps/v1", reset=[("status",)])


class World:
    """An object somebody applies to."""

    def __init__(self, tracker: Tracker, kind: str, typed: bool = True) -> None:
        self.tracker = tracker
        self.kind = kind
        self.typed = typed
        self.tree: Tree = {}

    def apply(self, manager: str, now: str = NOW, *, force: bool = False, **config: Any) -> Applied:
        metadata = {"name": "n", **config.pop("metadata", {})}
        whole = {"apiVersion": self.tracker.version, "kind": self.kind, "metadata": metadata, **config}
        result = Applier(self.tracker).apply(self.tree, whole, manager, now, force=force)
        self.keep(result, whole, manager)
        return result

    def keep(self, result: Applied, config: Tree, manager: str) -> None:
        tree = result.tree if result.tree is not None else copy.deepcopy(self.tree)
        if self.typed:
            tree = normalize(type_of(f"{self.type_name}"), tree).tree
        tree["metadata"] = {**tree.get("metadata", {}), "uid": "u"}
        tree["metadata"].pop("managedFields", None)
        if result.managed:
            tree["metadata"]["managedFields"] = managers.write(result.managed)
        sync_last_applied(tree, config, manager)
        self.tree = tree

    @property
    def type_name(self) -> str:
        return {"ConfigMap": "core/v1.ConfigMap", "Deployment": "apps/v1.Deployment"}[self.kind]

    def update(self, manager: str, tree: Tree, now: str = LATER) -> None:
        self.tracker.update(self.tree, tree, manager, now)
        self.tree = tree

    def owned(self) -> dict[str, Tree]:
        return {e["manager"]: e["fieldsV1"] for e in self.tree["metadata"].get("managedFields", ())}


@pytest.fixture
def config_map() -> World:
    return World(CONFIG_MAP, "ConfigMap")


@pytest.fixture
def deployment() -> World:
    return World(DEPLOYMENT, "Deployment")


def template(*containers: Tree) -> Tree:
    return {"template": {"spec": {"containers": list(containers)}}}


def test_an_applier_owns_what_it_names(config_map: World) -> None:
    config_map.apply("one", data={"a": "1"}, metadata={"labels": {"l": "1"}, "namespace": "x", "uid": "u"})
    assert config_map.tree["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:l": {}}}},
        }
    ]


def test_the_same_again_changes_nothing(config_map: World) -> None:
    config_map.apply("one", data={"a": "1"})
    before = copy.deepcopy(config_map.tree)
    assert config_map.apply("one", LATER, data={"a": "1"}).tree is None
    assert config_map.tree == before


def test_what_is_not_named_any_more_goes(config_map: World) -> None:
    config_map.apply("one", data={"a": "1", "b": "1"}, metadata={"labels": {"l": "1"}})
    config_map.apply("one", LATER, data={"a": "1"})
    assert config_map.tree["data"] == {"a": "1"}
    assert "labels" not in config_map.tree["metadata"]
    assert config_map.tree["metadata"]["uid"] == "u"
    assert config_map.owned() == {"one": {"f:data": {"f:a": {}}}}


def test_what_others_own_too_stays(config_map: World) -> None:
    config_map.apply("one", data={"a": "1", "b": "1"})
    config_map.apply("two", data={"b": "1"})
    config_map.apply("one", data={"a": "1"})
    assert config_map.tree["data"] == {"a": "1", "b": "1"}
    assert config_map.owned() == {"one": {"f:data": {"f:a": {}}}, "two": {"f:data": {"f:b": {}}}}


def test_an_applier_without_fields_has_no_entry(config_map: World) -> None:
    config_map.apply("one", data={"a": "1"})
    config_map.apply("two", data={"b": "1"})
    config_map.apply("two")
    assert config_map.owned() == {"one": {"f:data": {"f:a": {}}}}
    assert config_map.tree["data"] == {"a": "1"}


def test_a_share_in_an_unchanged_object_has_no_time(config_map: World) -> None:
    config_map.apply("one", data={"a": "1"})
    assert config_map.apply("two", LATER, data={"a": "1"}).tree is None
    assert [(e["manager"], e.get("time")) for e in config_map.tree["metadata"]["managedFields"]] == [
        ("two", None),
        ("one", NOW),
    ]


def test_conflicts_name_the_owner_and_the_field(config_map: World) -> None:
    config_map.apply("one", data={"a": "1"})
    with pytest.raises(ApplyConflictError) as caught:
        config_map.apply("two", data={"a": "2", "z": "9"})
    assert caught.value.code == 409
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert caught.value.details == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}]
    }
    assert config_map.tree["data"] == {"a": "1"}


def test_several_conflicts_are_listed_by_owner(config_map: World) -> None:
    config_map.apply("one", data={"a": "1", "b": "1"})
    config_map.update("writer", {**config_map.tree, "data": {"a": "1", "b": "2", "c": "1"}, "metadata": {"uid": "u"}})
    with pytest.raises(ApplyConflictError) as caught:
        config_map.apply("two", data={"a": "2", "b": "3", "c": "4"})
    assert caught.value.message == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .data.a\n'
        'conflicts with "writer" using v1:\n- .data.b\n- .data.c'
    )


def test_force_takes_the_field(config_map: World) -> None:
    config_map.apply("one", data={"a": "1", "b": "1"})
    config_map.apply("two", force=True, data={"a": "2"})
    assert config_map.tree["data"] == {"a": "2", "b": "1"}
    assert config_map.owned() == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_the_first_apply_gives_what_is_there_to_nobody_in_particular(config_map: World) -> None:
    config_map.tree = {"metadata": {"name": "n", "uid": "u"}, "data": {"a": "1", "b": "1"}}
    with pytest.raises(ApplyConflictError) as caught:
        config_map.apply("one", data={"a": "2"})
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a'
    config_map.apply("one", data={"a": "1", "c": "1"})
    assert config_map.owned() == {
        "one": {"f:data": {"f:a": {}, "f:c": {}}},
        "before-first-apply": {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
    }


def test_null_owns_the_key_and_says_nothing(config_map: World) -> None:
    config_map.apply("one", data={"a": "1"}, metadata={"labels": None})
    assert config_map.owned() == {"one": {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {}}}}
    config_map.apply("one", data=None)
    assert config_map.owned() == {"one": {"f:data": {}}}
    assert "data" not in config_map.tree


def test_items_of_sets_have_owners(config_map: World) -> None:
    config_map.apply("one", metadata={"finalizers": ["x/a", "x/s"]})
    config_map.apply("two", metadata={"finalizers": ["x/b", "x/s"]})
    assert config_map.tree["metadata"]["finalizers"] == ["x/a", "x/b", "x/s"]
    config_map.apply("one")
    assert config_map.tree["metadata"]["finalizers"] == ["x/b", "x/s"]


def test_items_of_keyed_lists_have_owners(deployment: World) -> None:
    env = [{"name": "A", "value": "1"}]
    deployment.apply("one", spec=template({"name": "m", "image": "i", "env": env}))
    deployment.apply("two", spec=template({"name": "m", "env": [{"name": "B", "value": "2"}]}))
    container = deployment.tree["spec"]["template"]["spec"]["containers"][0]
    assert [e["name"] for e in container["env"]] == ["A", "B"]
    with pytest.raises(ApplyConflictError) as caught:
        deployment.apply("two", spec=template({"name": "m", "env": [{"name": "A", "value": "2"}]}))
    assert caught.value.conflicts[0].field == '.spec.template.spec.containers[name="m"].env[name="A"].value'
    deployment.apply("two")
    container = deployment.tree["spec"]["template"]["spec"]["containers"][0]
    assert [e["name"] for e in container["env"]] == ["A"]


def test_the_key_of_an_item_may_come_from_a_default(deployment: World) -> None:
    def ports(*numbers: int) -> Tree:
        return template({"name": "m", "ports": [{"containerPort": number} for number in numbers]})

    deployment.apply("one", spec=ports(80))
    deployment.apply("one", spec=ports(8080))
    container = deployment.tree["spec"]["template"]["spec"]["containers"][0]
    assert [port["containerPort"] for port in container["ports"]] == [8080]


def test_fields_that_cannot_be_changed_are_not_owned(deployment: World) -> None:
    deployment.apply("one", spec={"replicas": 1}, status={"replicas": 3})
    assert deployment.owned() == {"one": {"f:spec": {"f:replicas": {}}}}


@pytest.mark.parametrize(
    ("config", "code", "message"),
    [
        ({"metadata": {"managedFields": []}}, 400, "metadata.managedFields must be nil"),
        (
            {"spec": {"x": 1}},
            500,
            "failed to create typed patch object (/n; apps/v1, Kind=Deployment): .spec.x: field not declared in schema",
        ),
        (
            {"metadata": {"namespace": "ns"}, "spec": template({"name": "a"}, {"name": "a"})},
            500,
            "failed to create typed patch object (ns/n; apps/v1, Kind=Deployment): .spec.template.spec.containers: "
            'duplicate entries for key [name="a"]',
        ),
    ],
)
def test_configurations_that_cannot_be_applied(deployment: World, config: Tree, code: int, message: str) -> None:
    with pytest.raises(APIError) as caught:
        deployment.apply("one", **config)
    assert (caught.value.code, caught.value.message) == (code, message)


# kubectl


def test_kubectl_takes_over_from_its_client_side_apply(config_map: World) -> None:
    last = json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}, "data": {"a": "1", "b": "1"}}
    )
    tree: Tree = {"metadata": {"uid": "u", "annotations": {LAST_APPLIED: last}}, "data": {"a": "1", "b": "other"}}
    CONFIG_MAP.update(None, tree, "kubectl-client-side-apply", NOW)
    config_map.tree = tree
    with pytest.raises(ApplyConflictError) as caught:
        config_map.apply("kubectl", data={"a": "2", "b": "2"})
    assert [c.field for c in caught.value.conflicts] == [".data.b"]
    with pytest.raises(ApplyConflictError):
        config_map.apply("other", data={"a": "2"})
    config_map.apply("kubectl", data={"a": "2"})
    assert config_map.tree["data"] == {"a": "2", "b": "other"}
    annotation = config_map.tree["metadata"]["annotations"][LAST_APPLIED]
    assert annotation == '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"n"}}\n'


@pytest.mark.parametrize("last", ["", "{", "[]", '{"apiVersion":"v2"}', '{"apiVersion":"v1","data":{"a":1}}'])
def test_a_broken_annotation_takes_over_nothing(config_map: World, last: str) -> None:
    tree: Tree = {"metadata": {"uid": "u", "annotations": {LAST_APPLIED: last}}, "data": {"a": "1"}}
    CONFIG_MAP.update(None, tree, "kubectl-client-side-apply", NOW)
    config_map.tree = tree
    with pytest.raises(ApplyConflictError):
        config_map.apply("kubectl", data={"a": "2"})


def test_the_annotation_is_dropped_when_it_grows_too_large(config_map: World) -> None:
    tree: Tree = {"metadata": {"annotations": {LAST_APPLIED: "{}", "x": "y"}}}
    sync_last_applied(tree, {"metadata": {"annotations": {LAST_APPLIED: "z"}}, "data": {"a": "x" * 300_000}}, "kubectl")
    assert tree["metadata"]["annotations"] == {"x": "y"}
    sync_last_applied(tree, {}, "kubectl")
    assert tree["metadata"]["annotations"] == {"x": "y"}


# Versions


def renamed(old: str, new: str) -> Any:
    def convert(tree: Tree) -> Tree:
        out = {name: value for name, value in tree.items() if name != old}
        return {**out, new: tree[old]} if old in tree else out

    return convert


def test_pruning_works_across_versions() -> None:
    versions = Versions(
        lambda name: (
            Version(type_of("core/v1.ConfigMap"), renamed("data", "binaryData"), renamed("binaryData", "data"))
            if name == "v2"
            else None
        )
    )
    tracker = Tracker(type_of("core/v1.ConfigMap"), "v1", versions=versions)

    def entry(manager: str, operation: str, version: str, fields: Tree) -> Tree:
        kind = {"fieldsType": "FieldsV1", "fieldsV1": fields}
        return {"manager": manager, "operation": operation, "apiVersion": version, **kind}

    world = World(tracker, "ConfigMap")
    world.tree = {
        "metadata": {
            "uid": "u",
            "managedFields": [
                entry("one", "Apply", "v2", {"f:binaryData": {"f:a": {}, "f:b": {}, "f:c": {}}}),
                entry("two", "Update", "v1", {"f:data": {"f:b": {}}}),
            ],
        },
        "data": {"a": "1", "b": "1", "c": "1", "d": "1"},
    }
    world.apply("one", data={"a": "1"})
    assert world.tree["data"] == {"a": "1", "b": "1", "d": "1"}
    assert world.owned() == {"one": {"f:data": {"f:a": {}}}, "two": {"f:data": {"f:b": {}}}}


@pytest.mark.parametrize("spec", [{"map": "x"}, {"set": [None]}, {"items": [{}]}, "x"])
def test_a_live_object_that_does_not_fit_its_schema_is_a_failure_not_a_crash(spec: Any) -> None:
    world = custom_world()
    fields: Tree = {"f:spec": {"f:map": {"f:a": {}}, "f:set": {'v:"a"': {}}, "f:text": {}}}
    entry = {"manager": "one", "operation": "Apply", "apiVersion": "x.example/v1", "fieldsV1": fields}
    world.tree = {"metadata": {"uid": "u", "managedFields": [entry]}, "spec": spec}
    failures: list[str] = []
    try:
        world.apply("one", spec={"map": {"a": "b"}, "set": ["a"], "items": [{"port": 1}]})
    except APIError as error:
        failures = [f"{error.code} {error.message}"]
    assert all(text.startswith("500 failed to create typed live object") for text in failures)


# Properties


def custom_world() -> World:
    type_ = Type("x.example/v1.X", lambda: ())
    type_.shape = support.custom_shape()
    return World(Tracker(type_, "x.example/v1", changing=True), "X", typed=False)


def members(tree: Tree) -> Tree:
    return {name: value for name, value in tree.items() if name not in ("apiVersion", "kind")}


_steps = st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), support.solid_objects), min_size=1, max_size=5)


@given(_steps)
@settings(max_examples=120)
def test_apply_is_idempotent_and_says_what_is_there(steps: list[tuple[str, Tree]]) -> None:
    world = custom_world()
    for manager, config in steps:
        world.apply(manager, force=True, **members(config))
        before = copy.deepcopy(world.tree)
        again = world.apply(manager, LATER, force=True, **members(config))
        assert world.tree == before
        assert again.tree is None
        shape = world.tracker.tracked
        there = oracle.nodes(shape, world.tree)
        owned = {name: oracle.paths_of(fields) for name, fields in world.owned().items()}
        named = oracle.named(shape, config)
        assert owned.get(manager, frozenset()) == named
        for paths in owned.values():
            assert paths <= there.keys()
        for path, value in oracle.nodes(shape, config).items():
            if value is not ... and value not in ({}, ()):
                assert oracle._same(there[path], value)


@given(support.solid_objects, support.solid_objects)
@settings(max_examples=120)
def test_applying_nothing_takes_back_what_nobody_else_wants(first: Tree, second: Tree) -> None:
    world = custom_world()
    world.apply("one", **members(first))
    alone = oracle.named(world.tracker.tracked, world.tree)
    world.apply("two", force=True, **members(second))
    world.apply("two")
    left = oracle.named(world.tracker.tracked, world.tree)
    assert left <= alone
    assert "two" not in world.owned()


@given(support.solid_objects, support.solid_objects)
@settings(max_examples=120)
def test_a_conflict_changes_nothing_and_force_resolves_it(first: Tree, second: Tree) -> None:
    world = custom_world()
    world.apply("one", **members(first))
    before = copy.deepcopy(world.tree)
    taken: set[tuple[str, ...]] = set()
    try:
        world.apply("two", **members(second))
    except ApplyConflictError as conflict:
        taken = {c.path for c in conflict.conflicts}
    if taken:
        assert world.tree == before
        assert taken <= oracle.paths_of(world.owned()["one"])
        world.apply("two", force=True, **members(second))
        assert not oracle.paths_of(world.owned().get("one", {})) & taken
    world.apply("two", **members(second))
