"""Handlers as coroutine functions or as plain ones.

A coroutine function runs on the event loop. A plain function may block, so it runs in a thread of a small pool; one
that answers at once from memory is marked `@quick` and runs on the loop, which saves the way to a thread and back.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from fastapi_core.extension.failures import HandlerError, being_cancelled, called, heard

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")

_QUICK: Final = "__fastapi_core_quick__"
THREADS: Final = 16
"""Plain handlers that run at once; further ones wait."""


def quick(function: F) -> F:
    """Mark a plain function that never blocks: it is called on the event loop."""
    target = function.__func__ if inspect.ismethod(function) else function
    setattr(target, _QUICK, True)
    return function


class Runner:
    """Calls handlers, each where it belongs. The threads are made with the first function that needs one."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    async def call(self, handler: Callable[..., Any], *arguments: Any) -> Any:
        """What the handler answers, waited for. Raises APIError, whatever the handler raised."""
        function = handler.func if isinstance(handler, partial) else handler
        try:
            if inspect.iscoroutinefunction(function) or getattr(function, _QUICK, False):
                answer = called(handler, *arguments)
            else:
                context = contextvars.copy_context()
                loop = asyncio.get_running_loop()
                answer = await loop.run_in_executor(self._threads(), partial(context.run, called, handler, *arguments))
            return await answer if isinstance(answer, Awaitable) else answer
        except asyncio.CancelledError as error:
            if being_cancelled():
                raise
            raise heard(error, handler) from error
        except (Exception, SystemExit, GeneratorExit) as error:
            told = heard(error, handler)
            if told is error:
                raise
            raise told from error

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="handler")
        return self._pool

    async def close(self) -> None:
        """Begin no more; what runs comes to its own end."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def events_of(source: AsyncIterable[T] | Iterable[T]) -> AsyncIterator[T]:
    """A source of events as an asynchronous iterator; a plain one is drawn from in a thread of its own."""
    return aiter(source) if isinstance(source, AsyncIterable) else _threaded(iter(source))


async def _threaded(source: Iterator[T]) -> AsyncIterator[T]:
    """The items of a blocking iterator, one at a time: the next is asked for when the last has been taken."""
    loop = asyncio.get_running_loop()
    wanted = threading.Semaphore(0)
    items: asyncio.Queue[tuple[bool, Any]] = asyncio.Queue()
    over = False

    def tell(good: bool, value: Any) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(items.put_nowait, (good, value))

    def draw() -> None:
        try:
            while True:
                wanted.acquire()
                if over:
                    break
                tell(True, next(source))
        except StopIteration:
            tell(False, None)
        except Exception as error:
            tell(False, error)
        except BaseException as error:
            failure = HandlerError(f"{type(error).__name__} was raised")
            failure.__cause__ = error
            tell(False, failure)
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()

    threading.Thread(target=draw, name="watch", daemon=True).start()
    try:
        while True:
            wanted.release()
            good, value = await items.get()
            if good:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        over = True
        wanted.release()
