"""A process that is a server: its signals, and its memory once it has started."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from typing import TYPE_CHECKING

from fastapi_core.obs import logs

if TYPE_CHECKING:
    from fastapi_core.server.generic import GenericServer

log = logs.get("serve")


def stop_on_signals() -> asyncio.Event:
    """Set by SIGTERM or SIGINT; a second signal ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, number, stop)
    return stop


def _on_signal(number: signal.Signals, stop: asyncio.Event) -> None:
    if stop.is_set():
        # Somebody insists: no cleaning up. Acknowledged writes are on disk already.
        os._exit(1)
    log.info("Shutting down", signal=number.name)
    stop.set()


async def finish(server: GenericServer) -> None:
    """Load what the start has put off, while requests are served."""
    try:
        await server.finish()
    except Exception as error:
        log.error("Not everything could be loaded ahead of its use", error)
    gc.freeze()


def calm_collector() -> None:
    """What exists at the start stays: the garbage collector need not look at it again and again.

    Requests free their memory by reference counts; cycles are rare, so it may also come less often.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
