"""Structured logs: klog's text form or JSON lines, written by a thread so that a stalled pipe never stops the loop.

`log = logs.get("component")`, then `log.info("Serving", address=...)`. Nothing is logged per request at the default
verbosity; `log.v(4)` asks whether a level is on before anything is formatted.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import logging

FORMATS = ("text", "json")
#: Lines waiting for a stalled writer beyond this number are dropped and counted.
QUEUE_LIMIT = 10_000


class Sink:
    """Where lines go. Writes directly until `start` gives it a thread."""

    def __init__(self) -> None:
        self.format = "text"
        self.verbosity = 0
        self.stream: TextIO = sys.stderr
        self.dropped = 0
        self.flushed = time.monotonic()
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def configure(self, *, format: str = "text", verbosity: int = 0, stream: TextIO | None = None) -> None:
        self.format = format
        self.verbosity = verbosity
        self.stream = stream or sys.stderr

    def start(self) -> None:
        """From now on lines are written by a thread of their own."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Write what is queued (for at most `timeout` seconds) and go back to direct writing."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join(timeout)

    def write(self, line: str) -> None:
        if self._thread is None:
            self._emit(line)
        elif self._queue.qsize() < QUEUE_LIMIT:
            self._queue.put(line)
        else:
            self.dropped += 1

    def check(self, limit: float = 120.0) -> None:
        """Health check `log`: raises when lines have waited for longer than `limit` seconds."""
        if self._queue.empty():
            self.flushed = time.monotonic()
        elif time.monotonic() - self.flushed > limit:
            raise RuntimeError(f"no log line could be written for {limit:.0f} s")

    def _run(self) -> None:
        while (line := self._queue.get()) is not None:
            self._emit(line)
            self.flushed = time.monotonic()

    def _emit(self, line: str) -> None:
        try:
            self.stream.write(line)
            self.stream.flush()
        except (OSError, ValueError):
            # Nobody reads the log any more; there is no better place to say so.
            self.dropped += 1


SINK = Sink()


class Logger:
    """A named source of log lines; keyword arguments become `key="value"` pairs."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def v(self, level: int) -> bool:
        """True when lines of verbosity `level` are wanted."""
        return SINK.verbosity >= level

    def debug(self, message: str, *, level: int = 4, **pairs: Any) -> None:
        if SINK.verbosity >= level:
            self._log("I", message, pairs, level)

    def info(self, message: str, **pairs: Any) -> None:
        self._log("I", message, pairs)

    def warning(self, message: str, **pairs: Any) -> None:
        self._log("W", message, pairs)

    def error(self, message: str, error: BaseException | None = None, **pairs: Any) -> None:
        """`error` adds its text, and its traceback below the line."""
        if error is not None:
            try:
                pairs["err"] = str(error) or type(error).__name__
            except Exception:
                pairs["err"] = f"{type(error).__name__} (without words: its str() fails)"
        self._log("E", message, pairs, trace=error)

    def _log(
        self, letter: str, message: str, pairs: dict[str, Any], level: int = 0, trace: BaseException | None = None
    ) -> None:
        _write(letter, _caller(sys._getframe(2)), self.name, message, pairs, level, trace)


def get(name: str) -> Logger:
    return Logger(name)


def capture() -> logging.Handler:
    """Let what libraries say through `logging` (warnings and worse, our own also below) come out here too."""
    import logging

    class Bridge(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            letter = "I" if record.levelno < logging.WARNING else "W" if record.levelno < logging.ERROR else "E"
            trace = record.exc_info[1] if record.exc_info else None
            caller = f"{record.filename}:{record.lineno}"
            _write(letter, caller, record.name, record.getMessage(), {"logger": record.name}, 0, trace)

    handler = Bridge()
    logging.getLogger().addHandler(handler)
    logging.getLogger("fastapi_core").setLevel(logging.INFO)
    return handler


def _write(
    letter: str,
    caller: str,
    name: str,
    message: str,
    pairs: dict[str, Any],
    level: int,
    trace: BaseException | None,
) -> None:
    stack = "".join(traceback.format_exception(trace)) if trace is not None else ""
    if SINK.format == "json":
        SINK.write(_json_line(letter, caller, name, message, pairs, level, stack))
    else:
        SINK.write(_text_line(letter, caller, message, pairs, stack))


def _caller(frame: FrameType) -> str:
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _text_line(letter: str, caller: str, message: str, pairs: dict[str, Any], stack: str) -> str:
    now = time.time()
    stamp = time.strftime("%m%d %H:%M:%S", time.localtime(now)) + f".{int(now * 1e6) % 1_000_000:06d}"
    fields = "".join(f" {key}={_value(value)}" for key, value in pairs.items())
    return f"{letter}{stamp} {os.getpid():7d} {caller}] {_quote(message)}{fields}\n{stack}"


def _json_line(letter: str, caller: str, name: str, message: str, pairs: dict[str, Any], level: int, stack: str) -> str:
    import json

    line: dict[str, Any] = {"ts": round(time.time() * 1000, 3), "logger": name, "caller": caller, "msg": message}
    if letter == "I":
        line["v"] = level
    elif letter == "W":
        line["severity"] = "warning"
    else:
        line["severity"] = "error"
    line.update(pairs)
    if stack:
        line["stacktrace"] = stack
    return json.dumps(line, default=str) + "\n"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else _quote(str(value))
