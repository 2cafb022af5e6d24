"""Long work of the codecs in a thread beside the event loop: YAML both ways and indented JSON of large documents.

One thread: they all hold the interpreter while they work, so more would only take more of it from the loop, which has
to wait a few milliseconds for its turn as it is.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi_core.http.exchange import Header, Response

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from fastapi_core.codec.json import DecodeError, Parsed
    from fastapi_core.request.context import RequestContext

T = TypeVar("T")
LARGE = 1 << 16
"""Bytes of a document from which on it is worth the way to the thread."""


@functools.cache
def _thread() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, "codec")


async def aside(work: Callable[[], T]) -> T:
    """What `work` returns or raises, in its turn."""
    return await asyncio.get_running_loop().run_in_executor(_thread(), work)


class Deferred(Response):
    """An answer whose body is made beside the loop; await it for the finished one."""

    __slots__ = ("_make",)

    def __init__(self, status: int, headers: list[Header], make: Callable[[], bytes]) -> None:
        super().__init__(status, headers, b"", compress=True)
        self._make = make

    def __await__(self) -> Generator[Any, None, Response]:
        return self._made().__await__()

    async def _made(self) -> Response:
        return Response(self.status, self.headers, await aside(self._make), compress=True)


def large_yaml(ctx: RequestContext) -> bool:
    """Whether the body is a large one that endpoints read as YAML."""
    header = ctx.request.header(b"content-type")
    return header is not None and b"yaml" in header.lower() and ctx.info.subresource != "proxy"


async def read_ahead(ctx: RequestContext) -> None:
    """Parse the body beside the loop, for `parse` to find."""
    body = ctx.request.body
    ctx.parsed = await aside(lambda: _read(body))


def _read(body: bytes) -> dict[str, Parsed | DecodeError]:
    from fastapi_core.codec import decode

    read: dict[str, Parsed | DecodeError] = {}
    # What begins like JSON is tried as that first by those who apply.
    for form in ("json", "yaml") if body[:1] == b"{" else ("yaml",):
        try:
            read[form] = decode.parse(body, form)
        except decode.DecodeError as error:
            read[form] = error
    return read


def parse(ctx: RequestContext, form: str) -> Parsed:
    """The body decoded as `json` or `yaml` (`codec.decode.parse`); a large YAML has been read by now."""
    from fastapi_core.codec import decode

    found = ctx.parsed.pop(form, None) if ctx.parsed is not None else None
    if found is None:
        return decode.parse(ctx.request.body, form)
    if isinstance(found, Exception):
        raise found
    return found
