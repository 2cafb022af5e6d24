"""The command line of an extension: `python my_api.py [serve] [flags]`, `... register`, `... unregister`."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi_core.extension.app import Extension
    from fastapi_core.extension.options import Options
    from fastapi_core.server.generic import GenericServer

_DAY = 86400.0


def main(app: Extension, arguments: Sequence[str] | None = None) -> int:
    """Run one command; answers the exit code: 0, 1 for a failure, 2 for a wrong command line."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    command = args.pop(0) if args and not args[0].startswith("-") else "serve"
    if command == "serve":
        return _serve(app, args)
    if command in ("register", "unregister"):
        from fastapi_core.extension import register
        from fastapi_core.extension.models import ModelError

        try:
            description = app.description
        except ModelError as error:
            _say(app, str(error))
            return 1
        return (register.register if command == "register" else register.unregister)(description, args)
    _say(app, f"unknown command {command!r}, it is one of serve, register, unregister")
    return 2


def _serve(app: Extension, args: list[str]) -> int:
    from fastapi_core.extension.options import Options, usage
    from fastapi_core.obs.logs import SINK, capture
    from fastapi_core.options.flags import OptionsError

    if any(arg in ("--help", "-h") for arg in args):
        own = program()
        print(f"{app.name}, an extension API server of fastapi-core\n\n"
              f"usage: {own} [serve] [flags]         run the server\n"
              f"       {own} register [flags]        put it behind an API server (register --help)\n"
              f"       {own} unregister [flags]      take that back\n\n{usage()}")  # fmt: skip
        return 0
    try:
        options = Options.parse(args)
    except OptionsError as error:
        _say(app, *error.errors)
        return 2

    import uvloop

    SINK.configure(format=options.logging.logging_format, verbosity=options.logging.v)
    capture()
    SINK.start()
    # What is made at the start stays; `calm_collector` turns the collector on when the server is ready.
    gc.disable()
    try:
        return uvloop.run(_run(app, options))
    finally:
        gc.enable()
        SINK.stop()


async def _run(app: Extension, options: Options) -> int:
    """From the composition to a clean end."""
    from fastapi_core.extension.models import ModelError
    from fastapi_core.options.flags import OptionsError
    from fastapi_core.options.kubeconfig import server_url
    from fastapi_core.options.serving import explain
    from fastapi_core.server.lifecycle import HookError
    from fastapi_core.server.notify import notify
    from fastapi_core.server.running import calm_collector, finish, stop_on_signals
    from fastapi_core.storage.interface import StorageError

    stop = stop_on_signals()
    try:
        server = await _composed(app, options, stop)
        if server is None:
            return 0
        try:
            await server.start()
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, server.config.files.check)
            calm_collector()
            print(f"Serving {', '.join(map(str, app.description.versions))} "
                  f"on {server_url(options.serving.bind_address, server.port)}", flush=True)  # fmt: skip
            notify("READY=1\nSTATUS=Serving")
            tasks = [
                asyncio.create_task(finish(server), name="finishing"),
                asyncio.create_task(_renew(app, options), name="certificate-renewal"),
            ]
            await stop.wait()
            for task in tasks:
                task.cancel()
        finally:
            notify("STOPPING=1\nSTATUS=Shutting down")
            await server.stop()
    except OptionsError as error:
        _say(app, *error.errors)
        return 1
    except (OSError, HookError, StorageError, ModelError) as error:
        _say(app, explain(error, options.serving, "etcd-servers" if options.etcd.etcd_servers else "data-dir"))
        return 1
    return 0


async def _composed(app: Extension, options: Options, stop: asyncio.Event) -> GenericServer | None:
    """The server; None when it was told to stop while it waited for the API server in front."""
    composing, stopping = asyncio.ensure_future(app.compose(options)), asyncio.create_task(stop.wait())
    await asyncio.wait({composing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if composing.done():
        return composing.result()
    composing.cancel()
    await asyncio.wait({composing})
    return None


async def _renew(app: Extension, options: Options) -> None:
    """Once a day see to a certificate that is made here; the TLS side notices new files by itself."""
    from fastapi_core.extension.certificates import serving_files
    from fastapi_core.obs import logs
    from fastapi_core.options.flags import OptionsError

    while options.storage.data_dir:
        await asyncio.sleep(_DAY)
        try:
            await asyncio.to_thread(
                serving_files, options.serving, app.description.service_names(), options.storage.data_dir
            )
        except (OSError, OptionsError) as error:
            logs.get("extension").error("The certificate cannot be renewed", error)


def program() -> str:
    """How this program was called, for usage lines."""
    name = os.path.basename(sys.argv[0])
    if name.endswith(".py"):
        return f"python {name}"
    return f"{name} extension" if sys.argv[1:2] == ["extension"] else name


def _say(app: Extension, *texts: str) -> None:
    for text in texts:
        print(f"{app.name}: {text}", file=sys.stderr)


def load(target: str) -> Extension:
    """The Extension a command line names as `MODULE:ATTRIBUTE` or `FILE.py:ATTRIBUTE` (attribute `app` by default).

    Raises ValueError with what is wrong.
    """
    import importlib
    import importlib.util

    from fastapi_core.extension.app import Extension

    where, _, attribute = target.rpartition(":") if ":" in target else (target, "", "app")
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location("__extension__", where)
            if spec is None or spec.loader is None:
                raise ValueError(f"{where!r} is no Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
    except (ImportError, OSError) as error:
        raise ValueError(f"{where!r} cannot be imported: {error}") from error
    found = getattr(module, attribute or "app", None)
    if not isinstance(found, Extension):
        raise ValueError(f"{target!r} is no Extension, use MODULE:ATTRIBUTE, for example examples.db_api:app")
    return found
