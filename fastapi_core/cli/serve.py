"""`fastapi-core serve`: one server from start to a clean end."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from typing import TYPE_CHECKING

from fastapi_core.obs import logs
from fastapi_core.options.flags import OptionsError
from fastapi_core.options.serving import explain
from fastapi_core.server.lifecycle import HookError
from fastapi_core.server.notify import notify
from fastapi_core.server.running import calm_collector, finish, stop_on_signals
from fastapi_core.storage.interface import StorageError

if TYPE_CHECKING:
    from fastapi_core.options.complete import Completed

log = logs.get("serve")


async def serve(completed: Completed) -> int:
    """Run until SIGTERM or SIGINT; a second signal ends the process at once. SIGHUP looks at all files now."""
    from fastapi_core.controlplane.compose import compose

    loop = asyncio.get_running_loop()
    stop = stop_on_signals()
    try:
        server = await compose(completed)
        loop.add_signal_handler(signal.SIGHUP, server.config.files.check)
        try:
            await server.start()
            calm_collector()
            _say_ready(completed, server.port)
            notify("READY=1\nSTATUS=Serving")
            tasks = [
                asyncio.create_task(finish(server), name="finishing"),
                asyncio.create_task(_renew(completed, server.port), name="certificate-renewal"),
            ]
            await stop.wait()
            for task in tasks:
                task.cancel()
        finally:
            notify("STOPPING=1\nSTATUS=Shutting down")
            await server.stop()
    except (OSError, HookError, StorageError, OptionsError) as error:
        store = "etcd-servers" if completed.options.etcd.etcd_servers else "data-dir"
        print(f"fastapi-core: {explain(error, completed.options.serving, store)}", file=sys.stderr)
        return 1
    return 0


async def _renew(completed: Completed, port: int) -> None:
    """Once a day see to the generated certificates; the TLS side notices new files by itself."""
    while True:
        await asyncio.sleep(86400)
        try:
            await asyncio.to_thread(completed.renew, port)
        except (OSError, OptionsError) as error:
            log.error("Certificates cannot be renewed", error)


def _say_ready(completed: Completed, port: int) -> None:
    path = completed.write_kubeconfig(port)
    print(f"Serving on {completed.url(port)}\nexport KUBECONFIG={shlex.quote(path)}", flush=True)
