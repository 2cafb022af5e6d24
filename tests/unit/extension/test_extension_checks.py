"""Wrong declarations are refused where they are made, with the place named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from fastapi_core.extension import (
    Column,
    Extension,
    Field,
    ModelError,
    ObjectMeta,
    Request,
    Scale,
    Storage,
)
from fastapi_core.schema.tables import type_of


@dataclass
class Inner:
    size: int = 1
    names: list[str] = field(default_factory=list)
    ratio: float = 0.5


@dataclass
class Good:
    metadata: ObjectMeta
    spec: Inner = field(default_factory=Inner)
    labels: dict[str, int] = field(default_factory=dict)
    free: Any = None


@dataclass
class BadRule:
    metadata: ObjectMeta
    x: Annotated[int, Field(rules=("self >",))] = 0


@dataclass
class UnknownInRule:
    metadata: ObjectMeta
    x: Annotated[Inner, Field(rules=("self.zz > 1",))] = field(default_factory=Inner)


@dataclass
class BadPattern:
    metadata: ObjectMeta
    x: Annotated[str, Field(pattern="(")] = ""


@dataclass
class OutOfEnum:
    metadata: ObjectMeta
    x: Literal["a"] = "b"  # type: ignore[assignment]


@dataclass
class BelowMinimum:
    metadata: ObjectMeta
    x: Annotated[int, Field(minimum=1)] = 0


@dataclass
class OffPattern:
    metadata: ObjectMeta
    x: Annotated[str, Field(pattern="^a$")] = "zz"


@dataclass
class MinimumOfText:
    metadata: ObjectMeta
    x: Annotated[str, Field(minimum=1)] = ""


@dataclass
class DeepDefault:
    metadata: ObjectMeta
    x: Annotated[list[int], Field(max_items=1)] = field(default_factory=lambda: [1, 2])


@dataclass
class Costly:
    """Any number of texts of any length, all compared: clients' definitions could not say that."""

    metadata: ObjectMeta
    x: Annotated[list[str], Field(rules=("self.all(a, self.exists_one(b, a.contains(b)))",))] = field(
        default_factory=list
    )


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (BadRule, r"BadRule\.x\.rules.*compilation failed"),
        (UnknownInRule, r"UnknownInRule\.x\.rules.*undefined field 'zz'"),
        (BadPattern, r"BadPattern\.x\.pattern.*regular expression"),
        (OutOfEnum, r"OutOfEnum\.x\.default"),
        (BelowMinimum, r"BelowMinimum\.x\.default"),
        (OffPattern, r"OffPattern\.x\.default"),
        (MinimumOfText, r"MinimumOfText\.x: minimum is for integer and number"),
        (DeepDefault, r"DeepDefault\.x\.default"),
    ],
)
def test_schemas(model: Any, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        Extension("a.example.org/v1").stored(model, "things")
    owner = Extension("a.example.org/v1").stored(Good, "goods")
    with pytest.raises(ModelError, match=text):
        owner.subresource("part", model)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"columns": [Column("X", "spec[")]}, "no JSONPath"),
        ({"columns": [Column("X", "spec.size")]}, "no path"),
        ({"columns": [Column("X", ".spec.nope")]}, "leads nowhere, spec has no member 'nope' but size, names, ratio"),
        ({"columns": [Column("X", ".nope[0].a")]}, "leads nowhere"),
        ({"columns": [Column("X", ".spec.size.more")]}, "spec.size is a integer"),
        ({"columns": [Column("X", ".spec.size", "int")]}, "not 'int'"),  # type: ignore[arg-type]
        ({"columns": [Column("X", 3)]}, "a JSONPath or a function"),  # type: ignore[arg-type]
        ({"selectable": ["spec.size"]}, "paths like"),
        ({"selectable": [".spec.nope"]}, "leads nowhere"),
        ({"selectable": [".spec.names"]}, "of type array"),
        ({"scale": Scale(".spec.replicas", ".status.replicas")}, "scale: '.spec.replicas' leads nowhere"),
        ({"scale": Scale(".spec.ratio", ".spec.size")}, "of type number, not integer"),
        ({"short_names": ["goods"]}, "short name"),
        ({"short_names": ["g", "g"]}, "short name"),
        ({"short_names": ["G"]}, "short name"),
        ({"group_version": "a.example.org/version1"}, "no version"),
        ({"shortnames": ["g"]}, "no option 'shortnames'"),
    ],
)
def test_options(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ModelError, match=text):
        Extension("a.example.org/v1").stored(Good, "goods", **options)


def test_what_is_right_stays_right() -> None:
    app = Extension("a.example.org/v1")
    columns = [
        Column("A", ".spec.names[0]"),
        Column("B", "{.spec.size}"),
        Column("C", ".metadata.labels.app"),
        Column("D", ".labels.any", "integer"),
        Column("E", ".free.whatever.there.is"),
        Column("F", lambda good: good.spec.size),
        Column("G", r".metadata.annotations['a\\.b/c']"),
        Column("H", '.spec.names[?(@=="x")]'),
    ]
    scale = Scale(".spec.size", ".spec.size")
    app.stored(Good, "goods", columns=columns, selectable=[".spec.size", ".free.name"], scale=scale, short_names=["go"])
    app.stored(Costly, "costlies")
    app.stored(
        type_of("apps/v1.Deployment"),
        "deployments",
        columns=[Column("Image", ".spec.template.spec.containers[0].image")],
    )
    # The same kind in another version has the same names.
    app.kind(Good, "goods", group_version="a.example.org/v2", short_names=["go"])


def test_names_are_taken_once() -> None:
    app = Extension("a.example.org/v1")
    app.stored(Good, "goods", short_names=["go"])
    for plural, short in (("costlies", "go"), ("costlies", "goods"), ("costlies", "good"), ("go", "co")):
        with pytest.raises(ModelError, match="would both be called"):
            app.stored(Costly, plural, short_names=[short])


@pytest.mark.parametrize("version", ["version1", "v", "v0", "1", "v1alpha", "v1gamma1"])
def test_versions(version: str) -> None:
    with pytest.raises(ValueError, match="is no version"):
        Extension(f"a.example.org/{version}")


def test_handlers() -> None:
    goods = Extension("a.example.org/v1").kind(Good, "goods")
    with pytest.raises(ModelError, match=r"Good\.get: .* is called with \(request, name\)"):
        goods.get(lambda request: None)  # type: ignore[arg-type,misc]
    with pytest.raises(ModelError, match=r"Good\.list: .* is called with \(request\)"):
        goods.list(lambda request, more: [])  # type: ignore[arg-type,misc]
    with pytest.raises(ModelError, match=r"Good\.validate"):
        goods.validate(lambda new: [])  # type: ignore[arg-type,misc]
    with pytest.raises(ModelError, match="no function"):
        goods.list([])  # type: ignore[arg-type]
    goods.list(lambda request: [])
    with pytest.raises(ModelError, match=r"Good\.list has a handler already"):
        goods.list(lambda request: [])
    goods.prepare(lambda new, old: None)
    with pytest.raises(ModelError, match="already"):
        goods.prepare(lambda new, old: None)
    part = goods.subresource("part", Good)
    with pytest.raises(ModelError, match=r"goods/part\.create"):
        part.create(lambda body: None)  # type: ignore[arg-type,misc]
    part.create(lambda request, body: None)
    with pytest.raises(ModelError, match="already"):
        part.create(lambda request, body: None)
    goods.get(lambda *arguments: None)


def test_methods_of_a_storage() -> None:
    class Wrong(Storage[Good]):
        def get(self, request: Request) -> Good | None:  # type: ignore[override]
            return None

    with pytest.raises(ModelError, match=r"Good\.get: .*Wrong\.get is called with"):
        Extension("a.example.org/v1").kind(Good, "goods", storage=Wrong())
