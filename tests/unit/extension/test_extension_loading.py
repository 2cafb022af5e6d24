"""What a client sends and the author's class does not take: 422 with the path, never a 500."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest

from fastapi_core.extension import Connection, Extension, FieldError, ObjectMeta, Request
from fastapi_core.extension.models import model_of
from fastapi_core.extension.rules import sound
from tests.fixtures.extension import APPLY, MERGE, serving

ROOT = "/apis/clocks.example.com/v1"
SPACE = f"{ROOT}/namespaces/d/clocks"


@dataclass
class Hand:
    pause: timedelta = timedelta(seconds=1)


@dataclass
class Odd:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2 == 0:
            raise ValueError("must be odd")


@dataclass
class Clock:
    metadata: ObjectMeta
    every: timedelta = timedelta(minutes=5)
    hands: list[Hand] = field(default_factory=list)
    odd: dict[str, Odd] = field(default_factory=dict)
    words: list[str] = field(default_factory=lambda: ["tick"])
    made: datetime = field(default_factory=lambda: datetime.now(UTC))
    label: str = "plain"


def clock(name: str = "a", **members: Any) -> dict[str, Any]:
    return {"apiVersion": "clocks.example.com/v1", "kind": "Clock", "metadata": {"name": name}, **members}


def causes(answer: dict[str, Any]) -> list[str]:
    return [cause["field"] for cause in answer["details"]["causes"]]


def nothing(new: Clock, old: Clock | None) -> Iterable[FieldError]:
    return ()


def unchanged(new: Clock, old: Clock | None) -> None:
    return None


@pytest.mark.parametrize("hooks", [False, True])
async def test_durations_have_one_form(hooks: bool) -> None:
    app = Extension("clocks.example.com/v1")
    clocks = app.stored(Clock, "clocks")
    if hooks:
        clocks.validate(nothing)
        clocks.prepare(unchanged)
    async with serving(app) as served:
        for wrong in ("abc", "", "PT5M", "5 minutes", "3", "1h30"):
            status, answer = await served.call("POST", SPACE, clock(every=wrong))
            assert (status, set(causes(answer))) == (422, {"every"}), wrong
        # The pattern lets it pass, but no timedelta is so long.
        status, answer = await served.call("POST", SPACE, clock(hands=[{}, {"pause": "99999999999999h"}]))
        assert (status, causes(answer)) == (422, ["hands[1].pause"])
        for right in ("1h30m", "0", "-1.5s", "100ms", "2us", "2µs"):
            status, answer = await served.call("POST", SPACE, {**clock(every=right), "metadata": {"generateName": "a"}})
            assert (status, answer.get("every")) == (201, right)


def test_durations_are_written_as_go_does() -> None:
    model = model_of(Clock)
    assert model.schema["properties"]["every"]["default"] == "5m0s"
    tree = model.dump(model.load({"metadata": {}, "every": "90s", "hands": [{"pause": "1h"}]}))
    assert (tree["every"], tree["hands"]) == ("1m30s", [{"pause": "1h0m0s"}])


@pytest.mark.parametrize("hooks", [False, True])
async def test_what_a_class_refuses_is_the_clients_error(hooks: bool) -> None:
    app = Extension("clocks.example.com/v1")
    clocks = app.stored(Clock, "clocks")
    if hooks:
        clocks.validate(nothing)
        clocks.prepare(unchanged)
    async with serving(app) as served:
        status, answer = await served.call("POST", SPACE, clock(odd={"x": {"number": 2}}))
        assert (status, causes(answer)) == (422, ["odd.x"])
        assert "must be odd" in answer["message"]


async def test_a_default_that_a_factory_makes_is_filled_in() -> None:
    app = Extension("clocks.example.com/v1")
    app.stored(Clock, "clocks")
    async with serving(app) as served:
        status, made = await served.call("POST", SPACE, clock())
        assert (status, made["words"]) == (201, ["tick"])
        # What is another value each time is no default.
        assert "made" not in made
        apply = f"{SPACE}/b?fieldManager=x"
        _, first = await served.call("PATCH", apply, clock("b", label="b"), APPLY)
        _, again = await served.call("PATCH", apply, clock("b", label="b"), APPLY)
        assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        _, empty = await served.call("PUT", f"{SPACE}/b", {**again, "words": []})
        assert (empty["words"], empty["metadata"]["generation"]) == ([], again["metadata"]["generation"] + 1)


def test_an_empty_value_is_told_from_the_default() -> None:
    model = model_of(Clock)
    kept = model.load({"metadata": {}, "words": [], "label": ""})
    assert (kept.words, kept.label) == ([], "")
    tree = model.dump(kept)
    assert (tree["words"], tree["label"]) == ([], "")


def test_structures_keep_what_their_factory_says() -> None:
    @dataclass
    class Inner:
        size: int = 1
        name: str = "x"

    @dataclass
    class Outer:
        metadata: ObjectMeta
        plain: Inner = field(default_factory=Inner)
        special: Inner = field(default_factory=lambda: Inner(size=5))

    Outer.__annotations__ = {"metadata": ObjectMeta, "plain": Inner, "special": Inner}
    members = model_of(Outer).schema["properties"]
    assert members["plain"]["default"] == {}
    assert members["special"]["default"] == {"size": 5, "name": "x"}


@pytest.mark.parametrize("answer", ["must be odd", FieldError("Invalid", "label", "no", "x")])
def test_what_validate_answers_must_be_field_errors(answer: Any) -> None:
    with pytest.raises(TypeError, match="validate hook nothing answered"):
        sound(nothing, answer)


@dataclass
class ClockV2:
    metadata: ObjectMeta
    label: str = ""


def show(kept: Clock) -> ClockV2:
    if kept.label == "hidden":
        raise RuntimeError("no word for it")
    return ClockV2(kept.metadata, kept.label)


def keep(shown: ClockV2) -> Clock:
    if shown.label == "lost":
        raise RuntimeError("nothing to keep")
    return Clock(shown.metadata, label=shown.label)


async def test_what_another_version_cannot_show_is_refused() -> None:
    app = Extension("clocks.example.com/v1")
    app.stored(Clock, "clocks").version("v2", ClockV2, show=show, keep=keep)
    other = "/apis/clocks.example.com/v2/namespaces/d/clocks"
    async with serving(app) as served:
        status, answer = await served.call("POST", SPACE, clock(label="hidden"))
        assert status == 422
        assert "cannot be shown in version v2: no word for it" in answer["message"]
        lost = {**clock(label="lost"), "apiVersion": "clocks.example.com/v2"}
        status, answer = await served.call("POST", other, lost)
        assert status == 422
        assert "nothing to keep" in answer["message"]


async def test_what_a_hook_makes_must_be_shown_in_the_version_of_the_request() -> None:
    app = Extension("clocks.example.com/v1")
    clocks = app.stored(Clock, "clocks")
    clocks.version("v2", ClockV2, show=show, keep=keep)

    def hide(new: Clock, old: Clock | None) -> None:
        new.label = "hidden"

    clocks.prepare(hide)
    async with serving(app) as served:
        tree = {**clock(label="x"), "apiVersion": "clocks.example.com/v2"}
        status, answer = await served.call("POST", "/apis/clocks.example.com/v2/namespaces/d/clocks", tree)
        assert (status, "cannot be shown in version v2: no word for it" in answer["message"]) == (422, True)


async def test_a_failed_conversion_names_the_object() -> None:
    app = Extension("clocks.example.com/v1")
    bad: list[str] = []

    def turning(kept: Clock) -> ClockV2:
        if kept.metadata.name in bad:
            raise RuntimeError("no word for it")
        return ClockV2(kept.metadata, kept.label)

    app.stored(Clock, "clocks").version("v2", ClockV2, show=turning, keep=keep)
    other = "/apis/clocks.example.com/v2/namespaces/d/clocks"
    async with serving(app) as served:
        assert (await served.call("POST", SPACE, clock()))[0] == 201
        bad.append("a")
        for path in (other, f"{other}/a"):
            status, answer = await served.call("GET", path)
            assert (status, answer["kind"]) == (500, "Status")
            text = "conversion of Clock d/a from clocks.example.com/v1 to clocks.example.com/v2 failed: no word for it"
            assert text in answer["message"]
        # Who only changes something else is not kept from it.
        status, _ = await served.call("PATCH", f"{SPACE}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
        assert status == 200


@pytest.mark.parametrize("hook", [False, True])
async def test_what_the_class_no_longer_takes(hook: bool) -> None:
    app = Extension("clocks.example.com/v1")
    clocks = app.stored(Strict, "clocks")
    if hook:
        clocks.validate(lambda new, old: [])
    labels = {"metadata": {"labels": {"x": "y"}}}
    async with serving(app) as served:
        Strict.least = 0
        assert (await served.call("POST", SPACE, {**clock(), "kind": "Strict", "size": 1}))[0] == 201
        Strict.least = 5
        status, answer = await served.call("PATCH", f"{SPACE}/a", {**labels, "size": 2}, MERGE)
        assert (status, causes(answer)) == (422, ["<nil>"])
        # What is no worse than it was may be written, unless a hook is to see it.
        status, answer = await served.call("PATCH", f"{SPACE}/a", labels, MERGE)
        assert status == (422 if hook else 200)
        status, answer = await served.call("PATCH", f"{SPACE}/a", {"size": 7}, MERGE)
        assert status == (500 if hook else 200)
        if hook:
            assert "Strict d/a as it is kept cannot be read: " in answer["message"]
        assert (await served.call("DELETE", f"{SPACE}/a"))[0] == 200


@dataclass
class Strict:
    metadata: ObjectMeta
    size: int = 0
    least: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.size < self.least:
            raise ValueError(f"{self.size} is below {self.least}")


@dataclass
class Log:
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    pause: timedelta = timedelta(0)


@pytest.mark.parametrize("stored", [True, False])
async def test_subresources_of_what_is_not_there(stored: bool) -> None:
    app = Extension("clocks.example.com/v1")
    called: list[str] = []
    clocks: Any
    if stored:
        clocks = app.stored(Clock, "clocks")
    else:
        clocks = app.kind(Clock, "clocks")

        @clocks.get
        async def one(request: Request, name: str) -> Clock | None:
            return Clock(ObjectMeta(name=name, namespace=request.namespace)) if name == "a" else None

    logs, acts = clocks.subresource("stream", Log), clocks.subresource("act", Log)

    @logs.connect
    async def stream(request: Request, connection: Connection) -> None:
        called.append(request.name)
        await connection.respond(b"x", "text/plain")

    @acts.create
    async def act(request: Request, body: Log) -> None:
        called.append(request.name)

    body = {"apiVersion": "clocks.example.com/v1", "kind": "Log"}
    async with serving(app) as served:
        for method, sub in (("GET", "stream"), ("POST", "stream"), ("POST", "act")):
            status, answer = await served.call(method, f"{SPACE}/none/{sub}", body)
            assert (status, answer["reason"], called) == (404, "NotFound", [])
        if stored:
            await served.call("POST", SPACE, clock())
        assert (await served.call("POST", f"{SPACE}/a/act", body))[0] == 201
        assert called == ["a"]
        status, answer = await served.call("POST", f"{SPACE}/a/act", {**body, "pause": "9999999999999h"})
        assert (status, causes(answer)) == (422, ["pause"])
