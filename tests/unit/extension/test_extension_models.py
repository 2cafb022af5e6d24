"""Models: what becomes of dataclasses, pydantic models, schemas and type tables."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NewType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastapi_core.extension import Field, IntOrString, ModelError, ObjectMeta, OwnerReference, Quantity
from fastapi_core.extension.models import model_of
from fastapi_core.extension.models.base import changed
from fastapi_core.extension.models.dataclasses import camel, dump_metadata, load_metadata
from fastapi_core.schema.tables import type_of
from fastapi_core.structural.schema import compiled
from fastapi_core.structural.structure import problems

Name = NewType("Name", str)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Port:
    """A port."""

    name: Name
    number: IntOrString
    protocol: Literal["TCP", "UDP"] = "TCP"


@dataclass
class Spec:
    """What is wanted."""

    color: Color
    ports: Annotated[list[Port], Field(list_keys=("name",), max_items=5)] = field(default_factory=list)
    max_size: Annotated[int, Field(minimum=1, description="In GiB.")] = 3
    ratio: float | None = None
    limits: dict[str, Quantity] = field(default_factory=dict)
    data: bytes = b""
    tags: frozenset[str] = frozenset()
    path: tuple[str, ...] = ()
    anything: Any = None
    cluster_ip: Annotated[str, Field(name="clusterIP", pattern=r"^\d")] = ""
    starts: datetime | None = None
    pause: timedelta | None = None


@dataclass
class Status:
    phase: str = "New"


@dataclass
class Thing:
    metadata: ObjectMeta
    spec: Spec
    status: Status = field(default_factory=Status)


def test_a_dataclass_as_a_schema() -> None:
    model = model_of(Thing)
    assert model.kind == "Thing"
    schema = model.schema
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert schema["required"] == ["spec"]
    # A default would put a status into every object that is written.
    assert "default" not in schema["properties"]["status"]
    spec = schema["properties"]["spec"]
    assert spec["description"] == "What is wanted."
    assert spec["required"] == ["color"]
    members = spec["properties"]
    assert members["color"] == {"type": "string", "enum": ["red", "blue"]}
    assert members["maxSize"] == {
        "type": "integer", "format": "int64", "description": "In GiB.", "minimum": 1, "default": 3
    }  # fmt: skip
    assert members["ports"]["x-kubernetes-list-map-keys"] == ["name"]
    assert members["ports"]["items"]["required"] == ["name", "number"]
    assert members["ports"]["items"]["properties"]["protocol"]["default"] == "TCP"
    assert members["ports"]["items"]["properties"]["number"]["x-kubernetes-int-or-string"] is True
    assert members["limits"]["additionalProperties"]["x-kubernetes-int-or-string"] is True
    assert members["tags"]["x-kubernetes-list-type"] == "set"
    assert members["data"]["format"] == "byte"
    assert members["clusterIP"]["pattern"] == r"^\d"
    assert members["starts"]["format"] == "date-time"
    assert members["anything"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert problems(schema, "") == []


FULL = {
    "metadata": {
        "name": "a",
        "labels": {"x": "y"},
        "resourceVersion": "5",
        "creationTimestamp": "2024-01-02T03:04:05Z",
    },
    "spec": {
        "color": "blue",
        "ports": [{"name": "web", "number": 80, "protocol": "TCP"}, {"name": "x", "number": "http", "protocol": "UDP"}],
        "maxSize": 4,
        "ratio": 0.5,
        "limits": {"cpu": "250m"},
        "data": "aGk=",
        "tags": ["a", "b"],
        "path": ["p", "q"],
        "anything": {"deep": [1, None]},
        "clusterIP": "10.0.0.1",
        "starts": "2024-01-02T03:04:05.250000Z",
        "pause": "1m30s",
    },
    "status": {"phase": "Ready"},
}


def test_trees_become_objects_and_trees_again() -> None:
    model = model_of(Thing)
    assert compiled(model.schema, preserve=False).validate(FULL) == []
    thing = model.load(FULL)
    assert thing.spec.color is Color.BLUE
    assert thing.spec.ports[1] == Port(Name("x"), "http", "UDP")
    assert thing.spec.limits["cpu"].nanos == 250_000_000
    assert thing.spec.data == b"hi"
    assert thing.spec.pause == timedelta(seconds=90)
    assert thing.spec.starts == datetime(2024, 1, 2, 3, 4, 5, 250_000, UTC)
    assert model.dump(thing) == FULL


def test_what_is_left_out_takes_its_default_and_is_left_out_again() -> None:
    model = model_of(Thing)
    small = {"metadata": {"name": "a"}, "spec": {"color": "red", "maxSize": 3}, "status": {"phase": "New"}}
    thing = model.load({"metadata": {"name": "a"}, "spec": {"color": "red"}})
    assert thing.spec.tags == frozenset()
    assert model.dump(thing) == small


def test_metadata() -> None:
    tree = {
        "name": "a",
        "generateName": "a-",
        "generation": 2,
        "finalizers": ["f"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u", "controller": True}],
        "managedFields": [{"manager": "m", "fieldsV1": {"f:x": {}}}],
        "deletionTimestamp": "2024-01-02T03:04:05Z",
    }
    metadata = load_metadata(tree)
    assert metadata.owner_references == [OwnerReference("v1", "K", "o", "u", controller=True)]
    assert dump_metadata(metadata) == tree
    assert dump_metadata(ObjectMeta()) == {}


@pytest.mark.parametrize(
    ("name", "shown"),
    [("size", "size"), ("max_size", "maxSize"), ("class_", "class"), ("a_b_c", "aBC"), ("pod_ip", "podIp")],
)
def test_names(name: str, shown: str) -> None:
    assert camel(name) == shown


def test_what_no_schema_can_say_is_refused_with_its_place() -> None:
    @dataclass
    class NoMetadata:
        name: str

    @dataclass
    class Kinded:
        metadata: ObjectMeta
        kind: str

    @dataclass
    class Mixed:
        metadata: ObjectMeta
        value: int | bytes

    @dataclass
    class Fixed:
        metadata: ObjectMeta
        pair: tuple[int, str]

    @dataclass
    class Foreign:
        metadata: ObjectMeta
        value: complex

    @dataclass
    class Hidden:
        metadata: ObjectMeta
        value: Inside

    @dataclass
    class Inside:
        pass

    @dataclass
    class Keyed:
        metadata: ObjectMeta
        ports: Annotated[list[Port], Field(list_keys=("nope",))]

    for cls, text in (
        (NoMetadata, "metadata: ObjectMeta"),
        (Kinded, "kind and apiVersion"),
        (Mixed, "Mixed.value"),
        (Fixed, "Fixed.pair"),
        (Foreign, "Foreign.value"),
        (Hidden, "name 'Inside' is not defined; classes that annotations name stand"),
        (Keyed, "Keyed.ports"),
        (int, "neither a dataclass"),
    ):
        with pytest.raises(ModelError, match=text):
            model_of(cls)


@dataclass
class Branch:
    children: list[Branch] = field(default_factory=list)


@dataclass
class Tree:
    metadata: ObjectMeta
    root: Branch


def test_a_type_inside_of_itself() -> None:
    with pytest.raises(ModelError, match="contains itself"):
        model_of(Tree)


def test_schemas_and_type_tables_keep_plain_trees() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    model = model_of(schema, "Gadget")
    assert model.kind == "Gadget"
    tree = {"metadata": {"name": "x"}, "spec": {"a": "b"}}
    loaded = model.load(tree)
    assert loaded == tree
    assert loaded is not tree
    with pytest.raises(ModelError, match="no name"):
        model_of(schema)
    with pytest.raises(ModelError, match="not supported"):
        model_of({"type": "object", "$ref": "#/x"}, "Gadget")
    table = model_of(type_of("apps/v1.Deployment"))
    assert table.kind == "Deployment"
    assert problems(table.schema, "") == []
    checked = compiled(table.schema, preserve=False)
    good = {
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 1}}}]}},
        },
    }
    checked.default(good)
    assert checked.validate(good) == []
    good["spec"]["replicas"] = "two"
    assert checked.validate(good) != []


def test_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic")
    from pydantic.alias_generators import to_camel

    class Inner(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(alias_generator=to_camel, populate_by_name=True)
        max_size: int = pydantic.Field(1, ge=1, lt=10)
        note: str | None = None
        mode: Literal["a", "b"] = "a"
        extra: dict[str, Any] = pydantic.Field(default_factory=dict)
        port: int | str = 80

    class Gadget(pydantic.BaseModel):
        metadata: ObjectMeta
        spec: Inner

    model = model_of(Gadget)
    assert problems(model.schema, "") == []
    members = model.schema["properties"]["spec"]["properties"]
    assert members["maxSize"] == {
        "type": "integer", "default": 1, "minimum": 1, "maximum": 10, "exclusiveMaximum": True
    }  # fmt: skip
    assert members["note"] == {"type": "string"}
    assert members["port"]["x-kubernetes-int-or-string"] is True
    gadget = model.load({"metadata": {"name": "a", "resourceVersion": "3"}, "spec": {"maxSize": 4}})
    assert gadget.metadata.resource_version == "3"
    assert gadget.spec.max_size == 4
    dumped = model.dump(gadget)
    assert dumped["metadata"] == {"name": "a", "resourceVersion": "3"}
    assert dumped["spec"]["maxSize"] == 4

    class Union(pydantic.BaseModel):
        metadata: ObjectMeta
        value: int | Inner

    class Nameless(pydantic.BaseModel):
        spec: Inner

    for cls, text in ((Union, "Union.value"), (Nameless, "metadata")):
        with pytest.raises(ModelError, match=text):
            model_of(cls)


NUMBERS = st.integers(0, 3)
INNER = st.dictionaries(st.sampled_from("abc"), NUMBERS, max_size=3)
TREES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from("abc"), st.one_of(NUMBERS, INNER), max_size=3
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=100)
@given(TREES, TREES, TREES)
def test_changes_leave_alone_what_they_do_not_touch(tree: Any, before: Any, after: Any) -> None:
    made = changed(tree, before, before)
    assert made == tree
    made = changed(before, before, after)
    assert made == after
    made = changed(tree, before, after)
    for name in tree.keys() - before.keys() - after.keys():
        assert made[name] == tree[name]
