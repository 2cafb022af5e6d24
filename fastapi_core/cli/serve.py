"""`fastapi-core serve`: one server from start to a clean end."""

from __future__ import annotations

import asyncio
import gc
import os
import shlex
import signal
import sys
from typing import TYPE_CHECKING

from fastapi_core.cli.notify import notify
from fastapi_core.obs import logs
from fastapi_core.options.flags import OptionsError
from fastapi_core.server.lifecycle import HookError
from fastapi_core.storage.interface import StorageError

if TYPE_CHECKING:
    from fastapi_core.options.complete import Completed
    from fastapi_core.server.generic import GenericServer

log = logs.get("serve")


async def serve(completed: Completed) -> int:
    """Run until SIGTERM or SIGINT; a second signal ends the process at once. SIGHUP looks at all files now."""
    from fastapi_core.controlplane.compose import compose

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, number, stop)
    try:
        server = await compose(completed)
        loop.add_signal_handler(signal.SIGHUP, server.config.files.check)
        try:
            await server.start()
            _calm_collector()
            _say_ready(completed, server.port)
            notify("READY=1\nSTATUS=Serving")
            tasks = [
                asyncio.create_task(_finish(server), name="finishing"),
                asyncio.create_task(_renew(completed, server.port), name="certificate-renewal"),
            ]
            await stop.wait()
            for task in tasks:
                task.cancel()
        finally:
            notify("STOPPING=1\nSTATUS=Shutting down")
            await server.stop()
    except (OSError, HookError, StorageError, OptionsError) as error:
        print(f"fastapi-core: {_explain(error, completed)}", file=sys.stderr)
        return 1
    return 0


async def _finish(server: GenericServer) -> None:
    try:
        await server.finish()
    except Exception as error:
        log.error("Not everything could be loaded ahead of its use", error)
    gc.freeze()


async def _renew(completed: Completed, port: int) -> None:
    """Once a day see to the generated certificates; the TLS side notices new files by itself."""
    while True:
        await asyncio.sleep(86400)
        try:
            await asyncio.to_thread(completed.renew, port)
        except (OSError, OptionsError) as error:
            log.error("Certificates cannot be renewed", error)


def _on_signal(number: signal.Signals, stop: asyncio.Event) -> None:
    if stop.is_set():
        # Somebody insists: no cleaning up. Acknowledged writes are on disk already.
        os._exit(1)
    log.info("Shutting down", signal=number.name)
    stop.set()


def _say_ready(completed: Completed, port: int) -> None:
    path = completed.write_kubeconfig(port)
    print(f"Serving on {completed.url(port)}\nexport KUBECONFIG={shlex.quote(path)}", flush=True)


def _calm_collector() -> None:
    """What exists at the start stays: the garbage collector need not look at it again and again.

    Requests free their memory by reference counts; cycles are rare, so it may also come less often.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def _explain(error: Exception, completed: Completed) -> str:
    """A failed start in terms of flags, where it was one of them."""
    import errno

    serving = completed.options.serving
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"--secure-port: {serving.secure_port} is taken, choose another, or 0 for any free port"
    if isinstance(error, OSError) and error.errno == errno.EACCES:
        return f"--secure-port: {serving.secure_port} may not be used by this user, choose one above 1023"
    if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
        return f"--bind-address: {serving.bind_address} is no address of this machine, use 0.0.0.0 or 127.0.0.1"
    if isinstance(error, StorageError):
        return f"--data-dir: {error}"
    return str(error)
