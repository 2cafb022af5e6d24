"""`fastapi-core serve`: one server from start to a clean end."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from typing import TYPE_CHECKING

from fastapi_core.obs import logs
from fastapi_core.server.lifecycle import HookError

if TYPE_CHECKING:
    from fastapi_core.options.complete import Completed

log = logs.get("serve")


async def serve(completed: Completed) -> int:
    """Run until SIGTERM or SIGINT; a second signal ends the process at once."""
    from fastapi_core.controlplane.compose import compose

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, number, stop)
    server = None
    try:
        server = await compose(completed)
        await server.start()
        _say_ready(completed, server.port)
    except (OSError, HookError) as error:
        print(f"fastapi-core: {_explain(error, completed)}", file=sys.stderr)
        return 1
    await stop.wait()
    await server.stop()
    return 0


def _on_signal(number: signal.Signals, stop: asyncio.Event) -> None:
    if stop.is_set():
        # Somebody insists: no cleaning up. Acknowledged writes are on disk already.
        os._exit(1)
    log.info("Shutting down", signal=number.name)
    stop.set()


def _say_ready(completed: Completed, port: int) -> None:
    path = completed.write_kubeconfig(port)
    print(f"Serving on {completed.url(port)}\nexport KUBECONFIG={shlex.quote(path)}", flush=True)


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
    return str(error)
