"""Handlers that fail, answer nonsense, or take too long."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass

from fastapi_core import errors
from fastapi_core.extension import Extension, ObjectMeta, Request
from tests.fixtures.extension import serving

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
