"""What happens to a custom resource around a write."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fastapi_core._ext.objects import CachedObject
from fastapi_core.crd.definitions import VERBS, Scale
from fastapi_core.crd.form import CustomType, LazyForm
from fastapi_core.crd.scaling import CustomScaling
from fastapi_core.crd.strategy import Rules, at, steps
from fastapi_core.errors import APIError
from fastapi_core.registry.definition import ResourceDefinition

Tree = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCALE = Scale(".spec.deep.replicas", ".status.replicas", ".status.selector")


def form(schema: Tree | None = None) -> LazyForm:
    versions = [{"name": "v1", "schema": {"openAPIV3Schema": schema or SCHEMA}}]
    source = {"metadata": {"name": "foos.x.io"}, "spec": {"versions": versions}}
    return LazyForm(CachedObject("/k", "", "foos.x.io", orjson.dumps(source), 1, 1), "v1", preserve=False)


def rules(*, status: bool = True, scale: Scale | None = None, schema: Tree | None = None) -> Rules:
    made = form(schema)
    found = Rules(made, status=status, scale=scale)
    found.definition = ResourceDefinition(
        group="x.io", version="v1", kind="Foo", plural="foos", singular="foo", namespaced=False, verbs=VERBS,
        type=CustomType("x.io/v1.Foo", made), storage_group="x.io", storage_version="v1", key_prefix="/k/", custom=True,
        form=made,
    )  # fmt: skip
    return found


def thing(generation: int = 3, **members: Any) -> Tree:
    return {"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "a", "generation": generation}, **members}


def test_a_new_object_has_no_status_of_its_own() -> None:
    new = thing(0, spec={}, status={"x": 1})
    rules().prepare(new, None)
    assert (new["metadata"]["generation"], "status" in new) == (1, False)
    kept = thing(0, status={"x": 1})
    rules(status=False).prepare(kept, None)
    assert kept["status"] == {"x": 1}


@pytest.mark.parametrize(
    ("status", "new", "generation"),
    [
        (True, {"spec": {"a": 1}, "status": {"x": 9}}, 3),
        (True, {"spec": {"a": 2}, "status": {"x": 1}}, 4),
        (True, {"spec": {"a": 1}, "other": 1}, 4),
        (False, {"spec": {"a": 1}, "status": {"x": 9}}, 4),
        (False, {"spec": {"a": 1}, "status": {"x": 1}}, 3),
        (False, {"spec": {"a": 1}, "status": {"x": True}}, 4),
        (True, {"spec": {"a": 1.0}, "status": {"x": 1}}, 4),
    ],
)
def test_everything_but_metadata_and_foreign_status_is_a_generation(status: bool, new: Tree, generation: int) -> None:
    old = thing(spec={"a": 1}, status={"x": 1})
    tree = thing(**new)
    tree["metadata"]["labels"] = {"l": "1"}
    rules(status=status).prepare(tree, old)
    assert tree["metadata"]["generation"] == generation
    if status:
        assert tree["status"] == {"x": 1}


def test_the_status_writer_changes_status_and_owners_only() -> None:
    old = thing(spec={"a": 1}, status={"x": 1})
    new = thing(7, spec={"a": 2}, status={"x": 2})
    new["metadata"] |= {"labels": {"l": "1"}, "managedFields": [{"manager": "m"}]}
    rules().prepare_status(new, old)
    assert new["spec"] == {"a": 1}
    assert new["status"] == {"x": 2}
    assert new["metadata"] == {"name": "a", "generation": 3, "managedFields": [{"manager": "m"}]}
    rules().prepare_status(gone := thing(spec={}), old)
    assert "status" not in gone


@pytest.mark.parametrize(
    ("replicas", "detail"),
    [
        (0, ""),
        (-1, "should be a non-negative integer"),
        (2**31, "should be less than or equal to 2147483647"),
        ("x", ".spec.deep.replicas accessor error: x is of the type string, expected int64"),
        (1.5, ".spec.deep.replicas accessor error: 1.5 is of the type float64, expected int64"),
        (
            {"a": [1]},
            ".spec.deep.replicas accessor error: map[a:[1]] is of the type map[string]interface {}, expected int64",
        ),
        (None, ".spec.deep.replicas accessor error: <nil> is of the type <nil>, expected int64"),
    ],
)
def test_replicas_are_counts(replicas: Any, detail: str) -> None:
    scaled = rules(scale=SCALE, schema=OPEN)
    errors = scaled.validate(thing(spec={"deep": {"replicas": replicas}}), None)
    assert [(error.field, error.detail) for error in errors] == ([(SCALE.spec, detail)] if detail else [])


def test_scale_errors_of_other_members() -> None:
    scaled = rules(scale=SCALE, schema=OPEN)
    tree = thing(spec={"deep": 1}, status={"replicas": "2", "selector": 3})
    told = {
        ".spec.deep.replicas": ".spec.deep.replicas accessor error: 1 is of the type int64, expected map[string]interface{}",
        ".status.replicas": ".status.replicas accessor error: 2 is of the type string, expected int64",
        ".status.selector": ".status.selector accessor error: 3 is of the type int64, expected string",
    }
    assert {error.field: error.detail for error in scaled.validate(tree, None)} == told
    assert [error.value for error in scaled.validate(tree, None)] == [0, 0, ""]
    # A write of the status is not about the rest.
    assert [error.field for error in scaled.validate_status(tree, None)] == [".status.replicas", ".status.selector"]


def test_errors_stand_in_the_order_of_the_reference() -> None:
    """Of the schema, of the scale, of lists; and expressions are not tried when anything before keeps them from it."""
    lists = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    rule = {"rule": "false", "message": "never"}
    schema = {
        "type": "object",
        "x-kubernetes-validations": [rule],
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"l": lists, "n": {"type": "integer", "minimum": 1}},
                "x-kubernetes-preserve-unknown-fields": True,
            }
        },
    }
    scaled = rules(scale=SCALE, schema=schema)
    tree = thing(spec={"deep": {"replicas": -1}, "l": ["a", "a"], "n": 0})
    fields = [error.field for error in scaled.validate(tree, None)]
    assert fields == ["spec.n", ".spec.deep.replicas", "spec.l[1]", "<nil>"]
    fine = thing(spec={})
    assert [error.detail for error in scaled.validate(fine, None)] == ["never"]
    fine["metadata"]["annotations"] = {"a": "x" * 300_000}
    assert "some validation rules were not checked" in scaled.validate(fine, None)[0].detail


def test_finalizers_without_a_domain_are_warned_of() -> None:
    new = thing(spec={})
    new["metadata"]["finalizers"] = ["plain", "with.dots", "a.test/good", "orphan", "old"]
    old = thing(spec={})
    old["metadata"]["finalizers"] = ["old"]
    end = "to avoid accidental conflicts with other finalizer writers"
    assert rules().warnings(new, old) == [
        f'metadata.finalizers: "plain": prefer a domain-qualified finalizer name {end}',
        f'metadata.finalizers: "with.dots": prefer a domain-qualified finalizer name including a path (/) {end}',
    ]
    assert len(rules().warnings(new, None)) == 3
    assert rules().status_warnings(new, None) == []


def test_the_scale_of_an_object() -> None:
    scaling = CustomScaling(SCALE, {})
    parent = thing(spec={"deep": {"replicas": 4, "b": 1}}, status={"replicas": 2, "selector": "a=b"})
    shown = scaling.read(parent)
    assert (shown["spec"], shown["status"]) == ({"replicas": 4}, {"replicas": 2, "selector": "a=b"})
    changed = scaling.write(parent, 6)
    assert changed["spec"] == {"deep": {"replicas": 6, "b": 1}}
    assert parent["spec"]["deep"]["replicas"] == 4
    assert scaling.write(thing(), 1)["spec"] == {"deep": {"replicas": 1}}
    with pytest.raises(APIError, match=r'the spec replicas field ".spec.deep.replicas" does not exist'):
        scaling.check(thing(spec={}))


def test_schemas_are_compiled_when_they_are_needed_and_equal_ones_are_shared() -> None:
    one, other = form(), form()
    assert one.schema is other.schema
    assert CustomType("x.io/v1.Foo", one).shape is one.schema.shape
    tree = thing(spec={"a": 1, "b": 2})
    assert one.prune(tree) == ["spec.b"]
    assert tree["spec"] == {"a": 1}


def test_paths() -> None:
    assert steps(".spec.a") == ("spec", "a")
    assert at({"spec": {"a": 0}}, ".spec.a") == 0
    assert at({"spec": []}, ".spec.a") is None
