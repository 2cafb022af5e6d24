"""What handlers raise and answer, as far as clients may hear of it.

An `APIError` is told as it is, if it can be; everything else is logged with the name of the handler and told as a 500
without its words. What would end more than the request (an exit, a cancellation that nobody asked for) is such a
failure, too.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fastapi_core import errors
from fastapi_core.codec import json as json_codec
from fastapi_core.obs import logs

if TYPE_CHECKING:
    from types import TracebackType

log = logs.get("extension")
Handler = Callable[..., Any]
R = TypeVar("R")


SLICE: Final = 0.005
"""Seconds of work on answers after which others may run."""


class Turns:
    """`if turns.due: await turns.over()` between the steps of long work lets others run."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun = monotonic()

    @property
    def due(self) -> bool:
        return monotonic() - self._begun > SLICE

    async def over(self) -> None:
        await asyncio.sleep(0)
        self._begun = monotonic()


class HandlerError(Exception):
    """A handler raised what no handler may raise."""


def called(handler: Callable[..., R], *arguments: Any) -> R:
    """What the handler answers. Raises only what may pass through coroutines and threads."""
    try:
        return handler(*arguments)
    except StopIteration as error:
        raise HandlerError("StopIteration was raised") from error
    except Exception:
        raise
    except BaseException as error:
        raise HandlerError(f"{type(error).__name__} was raised") from error


def hooked(hook: Handler, work: Callable[[], R]) -> R:
    """What `work` makes of a hook. Raises APIError: the hook's own, or a 500."""
    try:
        made: R = called(work)
    except Exception as error:
        raise heard(error, hook, "the hook failed") from error
    return made


def being_cancelled() -> bool:
    """Whether it is the request itself that was cancelled, and not something a handler has waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def heard(error: BaseException, handler: Handler, told: str = "the handler failed") -> errors.APIError:
    """The error as the client hears it; logged when that is not what was raised."""
    if isinstance(error, errors.APIError):
        if _tellable(error):
            return error
        told = "the handler raised an error that cannot be told"
    log.error("A handler failed", error, handler=name_of(handler))
    return errors.internal(told)


class Answered:
    """`with Answered(handler):` around what is made of its answer: an error in there is the handler's."""

    __slots__ = ("_handler",)

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            raise heard(error, self._handler, "the handler answered what cannot be shown") from error


def name_of(handler: Handler) -> str:
    function = handler.func if isinstance(handler, partial) else handler
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    return f"{module}.{name}" if name else type(function).__qualname__


def _tellable(error: errors.APIError) -> bool:
    code: Any = error.code
    if not isinstance(code, int) or not 400 <= code <= 599:
        return False
    if not isinstance(error.message, str) or not isinstance(error.reason, str):
        return False
    try:
        json_codec.encode(error.to_status())
        return error.retry_after >= 0
    except Exception:
        return False


def check_numbers(value: Any, path: str = "") -> None:
    """TypeError for a number that JSON cannot say: it would be shown as null."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{path.lstrip('.')} is {value}, which JSON cannot say")
    elif isinstance(value, dict):
        for key, item in value.items():
            check_numbers(item, f"{path}.{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            check_numbers(item, f"{path}[{number}]")
