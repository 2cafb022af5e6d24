"""Pydantic models as kinds: their validators guard writes, and our types and notes hold in them, too."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import pytest

from fastapi_core.extension import Extension, Field, IntOrString, ModelError, ObjectMeta, Quantity
from fastapi_core.extension.models import model_of
from fastapi_core.structural.definition import problems
from tests.fixtures.extension import serving

pydantic = pytest.importorskip("pydantic")
to_camel = pytest.importorskip("pydantic.alias_generators").to_camel

SPACE = "/apis/racks.example.com/v1/namespaces/d/rooms"


class Rack(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    name: str
    hold: timedelta = timedelta(seconds=3)


class Named(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    model_config = pydantic.ConfigDict(alias_generator=to_camel, populate_by_name=True, ser_json_timedelta="float")
    rack_name: str
    hold_on: timedelta | None = None


class Depth(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    model_config = pydantic.ConfigDict(alias_generator=to_camel, populate_by_name=True)
    my_racks: list[Rack] = pydantic.Field(default_factory=lambda: [Rack(name="a")])
    by_name: dict[str, Named] = {"a": Named(rack_name="q")}  # noqa: RUF012
    deep: Named = Named(rack_name="q", hold_on=timedelta(hours=1))


class Deep(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    metadata: ObjectMeta
    spec: Depth = pydantic.Field(default_factory=Depth)
    status: Rack = pydantic.Field(default_factory=lambda: Rack(name="s"))


class Room(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    metadata: ObjectMeta
    racks: Annotated[list[Rack], Field(list_keys=("name",))] = pydantic.Field(
        default_factory=lambda: [Rack(name="first")]
    )
    spare: Rack | None = None
    every: timedelta | None = timedelta(minutes=1)
    size: Quantity = Quantity("1Gi")
    port: IntOrString = 80
    number: Annotated[int, Field(minimum=2, rules=("self < 9",))] = 3

    @pydantic.field_validator("number")  # type: ignore[untyped-decorator]
    @classmethod
    def odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError("must be odd")
        return value


class Loop(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    metadata: ObjectMeta
    inner: list[Loop]


class Renamed(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    metadata: ObjectMeta
    size: Annotated[int, Field(name="howMany")] = 1


def room(**members: Any) -> dict[str, Any]:
    return {"apiVersion": "racks.example.com/v1", "kind": "Room", "metadata": {"generateName": "r"}, **members}


def test_the_schema() -> None:
    schema = model_of(Room).schema
    assert problems(schema, "") == []
    members = schema["properties"]
    assert members["racks"]["x-kubernetes-list-map-keys"] == ["name"]
    assert members["racks"]["default"] == [{"name": "first", "hold": "3s"}]
    assert members["every"]["default"] == "1m0s"
    assert members["size"]["default"] == "1Gi"
    assert members["size"]["x-kubernetes-int-or-string"] is True
    assert members["number"]["minimum"] == 2
    assert members["number"]["x-kubernetes-validations"] == [{"rule": "self < 9"}]
    assert "x-kubernetes-preserve-unknown-fields" not in members["spare"]


def test_defaults_inside_of_models() -> None:
    Extension("racks.example.com/v1").stored(Deep, "deeps", status=True)
    model = model_of(Deep)
    members = model.schema["properties"]
    deep = {"rackName": "q", "holdOn": "1h0m0s"}
    assert members["spec"]["properties"]["deep"]["default"] == deep
    whole = {"myRacks": [{"name": "a", "hold": "3s"}], "byName": {"a": {"rackName": "q"}}, "deep": deep}
    assert members["spec"]["default"] == whole
    # Whoever writes the object does not write its status.
    assert "default" not in members["status"]
    assert model.dump(model.load({"metadata": {}, "spec": whole}))["spec"] == whole


def test_there_and_back() -> None:
    model = model_of(Room)
    tree = {"metadata": {"name": "a"}, "racks": [{"name": "z", "hold": "90s"}], "every": "1h", "size": 5, "port": "50%"}
    obj = model.load(tree)
    assert (obj.racks[0].hold, obj.every, obj.size) == (timedelta(seconds=90), timedelta(hours=1), "5")
    assert isinstance(obj.size, Quantity)
    assert model.dump(obj) == {
        **tree,
        "racks": [{"name": "z", "hold": "1m30s"}],
        "every": "1h0m0s",
        "size": "5",
        "number": 3,
    }


@pytest.mark.parametrize("hook", [False, True])
async def test_validators_guard_writes(hook: bool) -> None:
    app = Extension("racks.example.com/v1")
    rooms = app.stored(Room, "rooms")
    if hook:
        rooms.validate(lambda new, old: [])
        rooms.prepare(lambda new, old: None)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"number": 4}, "number"),
        ({"number": 1}, "number"),
        ({"number": 11}, "number"),
        ({"every": "PT5M"}, "every"),
        ({"racks": [{"name": "a"}, {"name": "b", "hold": "99999999999h"}]}, "racks[1].hold"),
        ({"racks": [{"name": "a"}, {"name": "a"}]}, "racks[1]"),
        ({"size": "much"}, "size"),
    ]
    async with serving(app) as served:
        for members, path in wrong:
            status, answer = await served.call("POST", SPACE, room(**members))
            assert status == 422, members
            assert {cause["field"] for cause in answer["details"]["causes"]} == {path}
        status, made = await served.call("POST", SPACE, room(number=5, every="1h30m"))
        assert (status, made["every"], made["racks"][0]["name"]) == (201, "1h30m", "first")


@pytest.mark.parametrize(("wrong", "text"), [(Loop, "Loop contains itself"), (Renamed, "alias")])
def test_what_cannot_be_said(wrong: Any, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        model_of(wrong)
