"""Handlers that fail, answer nonsense, or take too long."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from fastapi_core import errors
from fastapi_core.extension import Connection, Event, Extension, ObjectMeta, Request
from fastapi_core.extension.sync import Runner
from fastapi_core.obs import logs
from tests.fixtures.extension import serving, told

ROOT = "/apis/files.example.com/v1"


@dataclass
class File:
    metadata: ObjectMeta
    content: str = ""


def tree(name: str) -> dict[str, object]:
    return {"apiVersion": "files.example.com/v1", "kind": "File", "metadata": {"name": name}}


async def test_failures_are_told_to_nobody_but_the_log() -> None:
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files", namespaced=False)

    @files.get
    async def one(request: Request, name: str) -> File:
        if name == "teapot":
            raise errors.APIError("", "short and stout", code=418)
        if name == "unnamed":
            return File(ObjectMeta())
        if name == "other":
            return File(ObjectMeta(name="else"))
        if name == "versioned":
            return File(ObjectMeta(name=name, resource_version="v7"))
        raise RuntimeError("the password is 1234")

    @files.create
    async def create(request: Request, obj: File) -> None:
        request.warn("this is only a test")

    async with serving(app) as served:
        assert await served.call("GET", f"{ROOT}/files/teapot") == (
            418,
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "short and stout",
                "code": 418,
            },
        )
        for name in ("broken", "unnamed", "other", "versioned"):
            status, answer = await served.call("GET", f"{ROOT}/files/{name}")
            assert status == 500
            assert "1234" not in str(answer)
        answer = await served.ask("POST", f"{ROOT}/files", tree("teapot"))
        assert answer.status == 418
        assert any(b"only a test" in value for name, value in answer.headers if name.lower() == b"warning")


async def test_hooks_that_leave_end_their_request_only() -> None:
    app = Extension("files.example.com/v1")
    files = app.stored(File, "files", namespaced=False)

    @files.prepare
    def prepare(new: File, old: File | None) -> None:
        if new.content == "prepare":
            sys.exit(3)

    @files.validate
    def validate(new: File, old: File | None) -> Iterator[Any]:
        if new.content == "validate":
            raise KeyboardInterrupt
        if new.content == "refuse":
            raise errors.forbidden("files", "files.example.com", "a", "no")
        yield from ()

    async with serving(app) as served:
        for content, code in (("prepare", 500), ("validate", 500), ("refuse", 403), ("fine", 201)):
            status, answer = await served.call("POST", f"{ROOT}/files", {**tree("a"), "content": content})
            assert (status, answer["kind"]) == (code, "File" if code == 201 else "Status")


async def test_warnings_are_told_by_their_words() -> None:
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files", namespaced=False)

    @files.get
    async def one(request: Request, name: str) -> File:
        request.warn(ValueError("odd value"))  # type: ignore[arg-type]
        return File(ObjectMeta(name=name))

    async with serving(app) as served:
        answer = await served.ask("GET", f"{ROOT}/files/a")
        assert answer.status == 200
        assert [value for name, value in answer.headers if name.lower() == b"warning"] == [b'299 - "odd value"']


async def test_a_slow_handler_holds_up_nobody_and_is_given_up_in_time() -> None:
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files", namespaced=False)
    hold = threading.Event()

    @files.list
    def slow(request: Request) -> list[File]:
        hold.wait(20)
        return []

    @files.get
    async def one(request: Request, name: str) -> File:
        return File(ObjectMeta(name=name))

    try:
        async with serving(app) as served:
            pending = asyncio.create_task(served.call("GET", f"{ROOT}/files?timeout=300ms"))
            assert (await served.good("GET", f"{ROOT}/files/a"))["kind"] == "File"
            status, _ = await pending
            assert status == 504
    finally:
        hold.set()


def test_errors_of_a_kind() -> None:
    files = Extension("files.example.com/v1").kind(File, "files")
    assert str(files.not_found("a")) == 'files.files.example.com "a" not found'
    assert files.already_exists("a").reason == "AlreadyExists"
    assert "the object has been modified" in str(files.conflict("a"))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The log."""
    stream = io.StringIO()
    monkeypatch.setattr(logs.SINK, "stream", stream)
    return stream


class WordlessError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


async def cancelled_elsewhere() -> None:
    task = asyncio.ensure_future(asyncio.sleep(60))
    task.cancel()
    await task


async def leave() -> None:
    sys.exit(3)


def untellable() -> list[errors.APIError]:
    return [
        errors.APIError("Fine", "text", code=200),
        errors.APIError("Odd", "text", code=700),
        errors.APIError("BadRequest", "text", details={"a": object()}),
        errors.APIError("BadRequest", "text", details={"retryAfterSeconds": "soon"}),
    ]


async def broken(error: BaseException | Callable[[], Awaitable[None]]) -> None:
    if isinstance(error, BaseException):
        raise error
    await error()


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        StopIteration(), GeneratorExit(), SystemExit(3), asyncio.CancelledError(), WordlessError(), *untellable(),
        cancelled_elsewhere, leave,
    ],
    ids=lambda error: getattr(error, "__name__", repr(error)),
)  # fmt: skip
async def test_whatever_is_raised_ends_the_request_only(error: Any, threaded: bool) -> None:
    if threaded and not isinstance(error, BaseException):
        pytest.skip("a plain function does not wait")
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files", namespaced=False)
    if threaded:

        @files.list
        def fail(request: Request) -> list[File]:
            raise error

        @files.watch
        def fail_later(request: Request) -> Iterator[Event[File]]:
            yield Event("ADDED", File(ObjectMeta(name="a")))
            raise error

    else:

        @files.list
        async def list_(request: Request) -> list[File]:
            await broken(error)
            return []

        @files.watch
        async def watch(request: Request) -> AsyncIterator[Event[File]]:
            yield Event("ADDED", File(ObjectMeta(name="a")))
            await broken(error)

    async with serving(app) as served:
        status, answer = await asyncio.wait_for(served.call("GET", f"{ROOT}/files"), 10)
        assert (status, answer["kind"], answer["reason"]) == (500, "Status", "InternalError")
        found = await told(served, f"{ROOT}/files?watch=1&resourceVersion=1&timeoutSeconds=30")
        kinds = [kind for kind, _, _ in found]
        assert kinds == ["ADDED", "ERROR"]
        assert found[1][2]["code"] == 500


async def test_a_request_that_is_cancelled_is_cancelled() -> None:
    runner = Runner()
    began = asyncio.Event()

    async def wait() -> None:
        began.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(runner.call(wait))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "objects",
    [
        [File(ObjectMeta(name="a", namespace="x")), File(ObjectMeta(name="a", namespace="x"))],
        [File(ObjectMeta(name="a/b", namespace="x"))],
        [File(ObjectMeta(name="..", namespace="x"))],
        [File(ObjectMeta(name="a", namespace="x/y"))],
        [File(ObjectMeta(name=7, namespace="x"))],  # type: ignore[arg-type]
        [File(ObjectMeta(name="a\n", namespace="x"))],
        [File(ObjectMeta(name="a", namespace="x"), {"deep": [1.5, float("nan")]})],  # type: ignore[arg-type]
        [File(ObjectMeta(name="a", namespace="x"), float("inf"))],  # type: ignore[arg-type]
    ],
    ids=["doubled", "slash", "dots", "namespace", "number", "control", "nan", "inf"],
)
async def test_lists_that_cannot_be_shown_name_their_handler_in_the_log(
    objects: list[File], written: io.StringIO
) -> None:
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files")

    @files.list
    async def all_files(request: Request) -> list[File]:
        return objects

    async with serving(app) as served:
        assert (await served.call("GET", f"{ROOT}/files"))[0] == 500
    assert "all_files" in written.getvalue()


async def test_writes_that_answer_another_object(written: io.StringIO) -> None:
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files")

    @files.get
    async def get(request: Request, name: str) -> File:
        return File(ObjectMeta(name=name, namespace=request.namespace))

    @files.create
    async def create_wrong(request: Request, new: File) -> File:
        return File(ObjectMeta(name="else", namespace=request.namespace))

    @files.update
    async def update_wrong(request: Request, new: File, old: File) -> File:
        return File(ObjectMeta(name=request.name, namespace="elsewhere"))

    async with serving(app) as served:
        where = f"{ROOT}/namespaces/x/files"
        assert (await served.call("POST", where, tree("a")))[0] == 500
        assert (await served.call("PUT", f"{where}/a", {**tree("a"), "content": "b"}))[0] == 500
    said = written.getvalue()
    assert "create_wrong" in said
    assert "update_wrong" in said


@pytest.mark.parametrize("error", [SystemExit(1), GeneratorExit(), asyncio.CancelledError()], ids=repr)
async def test_connect_handlers_end_their_request_only(error: BaseException) -> None:
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files", namespaced=False)

    @files.get
    async def get(request: Request, name: str) -> File:
        return File(ObjectMeta(name=name))

    @files.subresource("line", File).connect
    async def connect(request: Request, connection: Connection) -> None:
        raise error

    async with serving(app) as served:
        assert (await asyncio.wait_for(served.call("GET", f"{ROOT}/files/a/line"), 10))[0] == 500
        assert (await served.call("GET", f"{ROOT}/files/a"))[0] == 200


async def test_numbers_of_subresources() -> None:
    app = Extension("files.example.com/v1")
    files = app.kind(File, "files", namespaced=False)

    @files.get
    async def get(request: Request, name: str) -> File:
        return File(ObjectMeta(name=name))

    @dataclass
    class Size:
        metadata: ObjectMeta
        bytes: float = 0.0

    @files.subresource("size", Size).get
    async def size(request: Request, name: str) -> Size:
        return Size(ObjectMeta(name=name), float(name))

    async with serving(app) as served:
        assert (await served.call("GET", f"{ROOT}/files/nan/size"))[0] == 500
        assert (await served.good("GET", f"{ROOT}/files/1.5/size"))["bytes"] == 1.5
