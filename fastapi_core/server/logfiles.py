"""/logs: the files of one directory (`--enable-logs-handler`), listed and sent as they are."""

from __future__ import annotations

import asyncio
import html
import os
import stat
from collections.abc import Awaitable
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi_core.http.exchange import Answer, Response, Stream, StreamWriter
from fastapi_core.request.routing import ANY, Route
from fastapi_core.request.status import page_not_found, text

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

_PIECE = 1 << 18
_BUFFERED = 1 << 20
_PAUSE = 0.05


def routes(directory: str) -> list[Route]:
    """`/logs` and everything below."""
    files = LogFiles(directory)
    return [
        ("/logs", {ANY: lambda ctx: Response(301, [(b"Location", b"/logs/")])}),
        ("/logs/{path...}", {ANY: files.endpoint}),
    ]


class LogFiles:
    def __init__(self, directory: str) -> None:
        self._root = os.path.realpath(directory)

    def endpoint(self, ctx: RequestContext) -> Awaitable[Answer]:
        return self._answer(ctx.info.path.removeprefix("/logs/"))

    async def _answer(self, path: str) -> Answer:
        found = await asyncio.to_thread(self._find, path)
        if isinstance(found, Response):
            return found

        def start(writer: StreamWriter) -> None:
            task = asyncio.create_task(_send(found, writer), name="logs")
            writer.on_close(lambda: _cancel(task))

        return Stream(200, [(b"Content-Type", b"text/plain; charset=utf-8")], start)

    def _find(self, path: str) -> Response | str:
        """The real path of a file, or the answer: a listing, 404, 403. Links lead nowhere outside the directory."""
        if "\0" in path:
            return page_not_found()
        real = os.path.realpath(os.path.join(self._root, path.lstrip("/")))
        if os.path.commonpath([self._root, real]) != self._root:
            return page_not_found()
        try:
            mode = os.stat(real).st_mode
            if stat.S_ISDIR(mode):
                return _listing(real)
            if not stat.S_ISREG(mode):
                return page_not_found()
            with open(real, "rb"):
                return real
        except PermissionError:
            return text(403, "403 Forbidden")
        except OSError:
            return page_not_found()


def _listing(directory: str) -> Response:
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in os.scandir(directory))
    lines = "".join(f'<a href="{quote(name)}">{html.escape(name)}</a>\n' for name in names)
    return Response(200, [(b"Content-Type", b"text/html; charset=utf-8")], f"<pre>\n{lines}</pre>\n".encode())


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


async def _send(path: str, writer: StreamWriter) -> None:
    """The file piece by piece, no faster than the client takes it."""
    try:
        with open(path, "rb") as file:
            while piece := await asyncio.to_thread(file.read, _PIECE):
                while writer.buffered > _BUFFERED and not writer.closed:
                    await asyncio.sleep(_PAUSE)
                writer.write(piece)
    except OSError:
        writer.abort()
    else:
        writer.finish()
