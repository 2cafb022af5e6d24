"""Long work in a thread beside the event loop: YAML both ways and indented JSON of large documents, checks of large
objects, expressions that take their time.

Two threads, so that one long piece of work does not hold up all others: they hold the interpreter while they work, so
more would only take more of it from the loop, which waits some milliseconds for its turn as it is.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fastapi_core.http.exchange import Header, Response
from fastapi_core.later import later

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from fastapi_core.codec import decode
    from fastapi_core.codec.json import DecodeError, Parsed
    from fastapi_core.request.context import RequestContext
else:
    decode = later("fastapi_core.codec.decode")

T = TypeVar("T")
LARGE = 1 << 16
"""Bytes of a document from which on it is worth the way to the thread."""
THREADS = 2
PATIENCE = 0.02
"""Seconds that work of unknown length may take on the loop."""


@functools.cache
def _thread() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    def begin() -> None:
        CLOCK.beside = True

    return ThreadPoolExecutor(THREADS, "beside", begin)


async def aside(work: Callable[[], T]) -> T:
    """What `work` returns or raises, in its turn."""
    return await asyncio.get_running_loop().run_in_executor(_thread(), work)


class HeavyError(Exception):
    """Work that takes too long for the loop: to be started over beside it."""


class _Clock(threading.local):
    until = 0.0
    """When work on this thread must be done (`time.perf_counter`); 0 when it may take as long as it likes."""
    beside = False
    """This is the thread beside the loop: what belongs to the loop must not be asked."""


CLOCK: Final = _Clock()


def check_time() -> None:
    """Called by long work from time to time: HeavyError when it has taken too long for the loop."""
    until = CLOCK.until
    if until and time.perf_counter() > until:
        raise HeavyError


def patiently(work: Callable[[], T], *, large: bool = False) -> T | Awaitable[T]:
    """What `work` returns: at once, or when it takes longer than `PATIENCE`, later, from a new start beside the loop.

    `large`: do not even try here. What it changes must bear being changed twice.
    """
    if large:
        return aside(work)
    CLOCK.until = time.perf_counter() + PATIENCE
    try:
        return work()
    except HeavyError:
        return aside(work)
    finally:
        CLOCK.until = 0.0


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


def large_body(ctx: RequestContext) -> bool:
    """Whether the object of a request is so large that checking it takes long."""
    return len(ctx.request.body) > 2 * LARGE


def large_yaml(ctx: RequestContext) -> bool:
    """Whether the body is a large one that endpoints read as YAML."""
    header = ctx.request.header(b"content-type")
    return header is not None and b"yaml" in header.lower() and ctx.info.subresource != "proxy"


async def read_ahead(ctx: RequestContext) -> None:
    """Parse the body beside the loop, for `parse` to find."""
    body = ctx.request.body
    ctx.parsed = await aside(lambda: _read(body))


def _read(body: bytes) -> dict[str, Parsed | DecodeError]:
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
    found = ctx.parsed.pop(form, None) if ctx.parsed is not None else None
    if found is None:
        return decode.parse(ctx.request.body, form)
    if isinstance(found, Exception):
        raise found
    return found
