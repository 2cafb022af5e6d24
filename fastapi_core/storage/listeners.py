"""The listeners of a back end: who hears of commits, on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from fastapi_core.storage.interface import Event, Listener


class Listeners:
    """A set of listeners; one that raises is reported and does not keep the others from their events."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._losers: tuple[Callable[[], None], ...] = ()

    def add(self, listener: Listener, lost: Callable[[], None] | None = None) -> Callable[[], None]:
        """Register; returns the function that removes it again (calling that twice is harmless)."""

        # Wrapped so that registering one function twice gives two registrations.
        def entry(events: Sequence[Event]) -> None:
            listener(events)

        def gap() -> None:
            if lost is not None:
                lost()

        self._listeners = (*self._listeners, entry)
        self._losers = (*self._losers, gap)

        def remove() -> None:
            self._listeners = tuple(e for e in self._listeners if e is not entry)
            self._losers = tuple(e for e in self._losers if e is not gap)

        return remove

    def deliver(self, events: Sequence[Event]) -> None:
        """Give `events` to everyone registered when the call begins."""
        for listener in self._listeners:
            try:
                listener(events)
            except Exception as error:
                _report(error)

    def lose(self) -> None:
        """Tell everyone that events are missing for good."""
        for lost in self._losers:
            try:
                lost()
            except Exception as error:
                _report(error)


def _report(error: Exception) -> None:
    asyncio.get_running_loop().call_exception_handler({"message": "a storage listener failed", "exception": error})
