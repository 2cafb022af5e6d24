"""Light data classes do what those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """Where."""

    x: int
    y: int = 2
    notes: list[str] = dataclasses.field(default_factory=list, compare=False)
    secret: str = dataclasses.field(default="s", repr=False)
    kinds: ClassVar[int] = 3

    def total(self) -> int:
        return self.x + self.y


@dataclass(slots=True)
class Open:
    value: Any
    other: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    first: int = 1
    second: int


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    value: int


@dataclass(frozen=True, slots=True)
class Own:
    value: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and abs(self.value) == abs(other.value)

    def __hash__(self) -> int:
        return abs(self.value)

    def __repr__(self) -> str:
        return "own"


def test_construction() -> None:
    found = Point(1)
    assert (found.x, found.y, found.notes, found.secret, found.total()) == (1, 2, [], "s", 3)
    assert Point(1).notes is not found.notes
    assert Point(y=5, x=1) == Point(1, 5)
    assert Named(second=2).first == 1
    assert Point.kinds == 3
    for wrong in (lambda: Point(), lambda: Point(1, z=2), lambda: Named(1, 2), lambda: Point(1, x=1)):
        with pytest.raises(TypeError):
            wrong()


def test_equality_hash_and_text() -> None:
    assert Point(1, notes=["a"]) == Point(1)
    assert hash(Point(1, notes=["a"])) == hash(Point(1))
    assert Point(1) != Point(2)
    assert Point(1) != (1, 2)
    assert repr(Point(1)) == "Point(x=1, y=2, notes=[])"
    with pytest.raises(TypeError):
        hash(Open(1))
    assert Identity(1) != Identity(1)
    assert (Own(1), hash(Own(-1)), repr(Own(1))) == (Own(-1), 1, "own")
    loop = Open(1)
    loop.value = loop
    assert repr(loop) == "Open(value=..., other=0)"


def test_frozen_objects_do_not_change() -> None:
    found = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del found.x
    with pytest.raises(AttributeError):
        Open(1).missing = 1  # type: ignore[attr-defined]


def test_copies_and_pickles() -> None:
    found = Point(1, notes=["a"])
    for made in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert made == found
        assert made.notes == ["a"]
        assert made is not found
    assert copy.copy(Open([1])).value == [1]


def test_functions_of_the_standard_library() -> None:
    assert dataclasses.replace(Point(1), y=7) == Point(1, 7)
    assert [f.name for f in dataclasses.fields(Point)] == ["x", "y", "notes", "secret"]
    assert dataclasses.asdict(Open(Open(1))) == {"value": {"value": 1, "other": 0}, "other": 0}
    assert dataclasses.is_dataclass(Point)
    assert Point.__match_args__ == ("x", "y", "notes", "secret")
    match Point(4, 5):
        case Point(x, y):
            assert (x, y) == (4, 5)


def test_derived_classes_construct_their_base() -> None:
    class Derived(Point):
        __slots__ = ("more",)

        def __init__(self) -> None:
            super().__init__(9)
            object.__setattr__(self, "more", 1)

    assert (Derived().x, Derived().y) == (9, 2)
    assert Point(3).x == 3
    assert list(inspect.signature(Point.__init__).parameters)[:3] == ["self", "x", "y"]


def test_what_is_not_supported_is_refused() -> None:
    with pytest.raises(TypeError, match="slots"):

        @dataclass
        class NoSlots:
            x: int

    with pytest.raises(TypeError, match="inherit"):

        @dataclass(slots=True)
        class Child(Open):
            x: int = 0

    with pytest.raises(TypeError, match="__post_init__"):

        @dataclass(slots=True)
        class Late:
            x: int

            def __post_init__(self) -> None: ...

    @dataclass(slots=True)
    class Mutable:
        x: list[int] = []  # noqa: RUF012

    with pytest.raises(ValueError, match="mutable default"):
        Mutable()


names = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)
values = st.one_of(st.integers(-2, 2), st.text("xy", max_size=2), st.none())


@settings(max_examples=100, deadline=None)
@given(names, st.data(), st.booleans(), st.booleans(), st.booleans())
def test_like_the_original(members: list[str], data: st.DataObject, frozen: bool, kw_only: bool, eq: bool) -> None:
    """The same declaration and the same calls, both ways."""
    body: dict[str, Any] = {"__annotations__": dict.fromkeys(members, "object"), "__module__": __name__}
    first_default = data.draw(st.integers(0, len(members)))
    for name in members[first_default:]:
        body[name] = data.draw(values)
    options = {"slots": True, "frozen": frozen, "kw_only": kw_only, "eq": eq}
    light = dataclass(**options)(type("X", (), dict(body)))
    original = dataclasses.dataclass(**options)(type("X", (), dict(body)))
    calls = []
    for _ in range(3):
        given_names = data.draw(st.lists(st.sampled_from(members), unique=True)) if members else []
        arguments = {name: data.draw(values) for name in {*members[:first_default], *given_names}}
        calls.append(arguments)
    ours, theirs = [light(**call) for call in calls], [original(**call) for call in calls]
    assert [repr(x) for x in ours] == [repr(x) for x in theirs]
    if eq:
        assert [[x == y for y in ours] for x in ours] == [[x == y for y in theirs] for x in theirs]
        assert (light.__hash__ is None) == (original.__hash__ is None)
    assert light.__match_args__ == original.__match_args__
    assert [dataclasses.asdict(x) for x in ours] == [dataclasses.asdict(x) for x in theirs]
    assert [(f.name, f.default, f.kw_only) for f in dataclasses.fields(light)] == [
        (f.name, f.default, f.kw_only) for f in dataclasses.fields(original)
    ]
    wrong: list[tuple[tuple[int, ...], dict[str, int]]] = [((), {"z": 1}), (tuple(range(len(members) + 1)), {})]
    wrong += [((1,), {members[0]: 1}), ((), {})] if first_default else []
    wrong += [((1,), {})] if kw_only else []
    for args, kwargs in wrong:
        for cls in (dataclass(**options)(type("X", (), dict(body))), light, original):
            with pytest.raises(TypeError):
                cls(*args, **kwargs)
    if members and not kw_only:
        positional = [data.draw(values) for _ in members]
        assert repr(light(*positional)) == repr(original(*positional))


def test_declaring_writes_no_source() -> None:
    """What the start is spared: nothing is compiled for a class with few objects."""
    code = (
        "import builtins, fastapi_core.records as r\n"
        "kept, calls = builtins.exec, []\n"
        "builtins.exec = lambda *a: (calls.append(a), kept(*a))[1]\n"
        "X = r.dataclass(frozen=True, slots=True)(type('X', (), {'__annotations__': {'a': int}}))\n"
        "before = len(calls); [X(1), X(2)]; some = len(calls); X(3); X(4); print(before, some, len(calls))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "0", "1"]
