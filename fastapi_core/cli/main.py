"""`fastapi-core`: the command line. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import gc
import os
import sys

# Importing `typing` costs more than everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastapi_core.options.complete import Completed

USAGE = """\
usage: fastapi-core serve [flags]     run the API server
       fastapi-core serve --help      show the flags
       fastapi-core backup --data-dir DIR FILE
                                      copy the store, beside a running server or without
       fastapi-core extension register|unregister|serve [MODULE:ATTRIBUTE] [flags]
                                      put an extension behind an API server, take it away, or run it
       fastapi-core conformance ...   test any server that speaks the Kubernetes API
       fastapi-core --version"""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; answers the exit code: 0, 1 for a failure, 2 for a wrong command line."""
    args = sys.argv[1:] if arguments is None else arguments
    command = args[0] if args else ""
    if command in ("--version", "-V", "version"):
        return _version()
    if command in ("--help", "-h", "help"):
        return _show(USAGE)
    if command == "serve":
        return _serve(args[1:])
    if command == "backup":
        from fastapi_core.cli.backup import backup

        return backup(args[1:])
    if command == "extension":
        from fastapi_core.cli.extension import extension

        return extension(args[1:])
    if command == "conformance":
        from fastapi_core.testing.conformance.cli import main as conformance

        return conformance(args[1:], "fastapi-core conformance")
    print(f"fastapi-core: unknown command {command!r}\n{USAGE}" if command else USAGE, file=sys.stderr)
    return 2


def _version() -> int:
    from fastapi_core import __version__

    return _show(f"fastapi-core {__version__}")


def _show(text: str) -> int:
    """Print for a reader who may go away when he has seen enough (`| head`)."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # What is still in the buffer is flushed once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _serve(args: list[str]) -> int:
    # Modules and the caches of a start are there to stay; looking at them again and again costs a tenth of the start.
    # `serve` turns the collector on when the server is ready.
    gc.disable()
    try:
        return _configured(args)
    finally:
        gc.enable()


def _configured(args: list[str]) -> int:
    from fastapi_core.options.flags import OptionsError
    from fastapi_core.options.options import Options, usage

    if any(arg in ("--help", "-h") for arg in args):
        return _show(f"usage: fastapi-core serve [flags]\n\n{usage()}")
    if any(arg in ("--version", "--version=true") for arg in args):
        return _version()
    try:
        options = Options.parse(args)
    except OptionsError as error:
        return _complain(error.errors, 2)

    from fastapi_core.obs.logs import SINK
    from fastapi_core.options.complete import complete

    SINK.configure(format=options.logging.logging_format, verbosity=options.logging.v)
    try:
        completed = complete(options)
    except OptionsError as error:
        return _complain(error.errors, 1)
    try:
        return _run(completed)
    finally:
        SINK.stop()
        completed.close()


def _run(completed: Completed) -> int:
    import uvloop

    from fastapi_core.cli.serve import serve
    from fastapi_core.obs.logs import SINK, capture

    capture()
    SINK.start()
    return uvloop.run(serve(completed))


def _complain(errors: list[str], code: int) -> int:
    for error in errors:
        print(f"fastapi-core: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
