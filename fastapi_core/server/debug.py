"""/debug/pprof and /debug/flags: what the process is doing, in terms of Python, and its verbosity.

The paths are the reference's; the profiles are texts, not protobuf: stacks of threads and tasks instead of goroutines,
folded stacks (what flame graph tools read) as CPU profile, objects by type as heap. There is no `cmdline`, `symbol` or
`trace`.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from fastapi_core.http.exchange import Answer, Response
from fastapi_core.obs import logs
from fastapi_core.request.routing import ANY, Route
from fastapi_core.request.status import text

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext
    from fastapi_core.server.stalls import Stalls

log = logs.get("debug")

_LONGEST = 600.0
"""Seconds a profile may take at most."""
_PERIOD = 0.005
_TOP = 100


def routes(stalls: Stalls | None) -> list[Route]:
    """Everything below /debug/. `stalls` is there with --contention-profiling."""
    profiler = Profiler()
    profiles: dict[str, tuple[str, Callable[[RequestContext], Answer]]] = {
        "goroutine": ("stacks of all threads and tasks", lambda ctx: _plain(stacks())),
        "heap": ("objects by type, as far as the garbage collector knows them", lambda ctx: _plain(heap())),
        "threadcreate": ("names of all threads", lambda ctx: _plain(threads())),
    }
    if stalls is not None:
        profiles["block"] = ("what held the event loop up", lambda ctx: _plain(stalls.report()))
    lines = [f"{name}: {what}" for name, (what, _) in sorted(profiles.items())]
    lines.append("profile: what the event loop spends its time on, folded stacks; ?seconds=30")
    listing = "/debug/pprof/\n\n" + "\n".join(lines) + "\n"
    found: list[Route] = [
        ("/debug/pprof", {ANY: _to_profiles}),
        ("/debug/pprof/", {ANY: lambda ctx: _plain(listing)}),
        ("/debug/pprof/profile", {ANY: profiler.endpoint}),
        ("/debug/pprof/{profile...}", {ANY: lambda ctx: text(404, "Unknown profile")}),
        ("/debug/flags", {ANY: _flags}),
        ("/debug/flags/", {ANY: _flags}),
        ("/debug/flags/v", {ANY: _not_acceptable, "PUT": set_verbosity}),
    ]
    found += [(f"/debug/pprof/{name}", {ANY: endpoint}) for name, (_, endpoint) in profiles.items()]
    return found


def _plain(body: str) -> Response:
    headers = [(b"Content-Type", b"text/plain; charset=utf-8"), (b"X-Content-Type-Options", b"nosniff")]
    return Response(200, headers, body.encode("utf-8", "replace"), compress=True)


def _to_profiles(ctx: RequestContext) -> Answer:
    body = b'<a href="/debug/pprof/">Found</a>.\n\n' if ctx.request.method in ("GET", "HEAD") else b""
    kind = [(b"Content-Type", b"text/html; charset=utf-8")] if body else []
    return Response(302, [(b"Location", b"/debug/pprof/"), *kind], body)


def _flags(ctx: RequestContext) -> Answer:
    body = b"<html>\n<head><title>/debug/flags/</title></head>\n<body>v: PUT sets the verbosity of the logs</body>\n</html>\n"
    return Response(200, [(b"Content-Type", b"text/html; charset=utf-8")], body)


def _not_acceptable(ctx: RequestContext) -> Answer:
    headers = [(b"Content-Type", b"text/plain"), (b"X-Content-Type-Options", b"nosniff")]
    return Response(406, headers, b"unsupported http method\n")


def set_verbosity(ctx: RequestContext) -> Answer:
    """The body is the new verbosity."""
    given = ctx.request.body.decode("utf-8", "replace").strip()
    try:
        value = int(given)
        if not 0 <= value <= 99:
            raise ValueError
    except ValueError:
        return text(400, f"failed set klog.logging.verbosity {given}: a number from 0 to 99 is expected")
    logs.SINK.verbosity = value
    log.info("Verbosity changed", v=value, user=ctx.user.name)
    return _plain(f"successfully set klog.logging.verbosity to {value}\n")


def stacks() -> str:
    """The stacks of every thread, then of every task that waits."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        parts.append(f"thread {names.get(ident, '?')} ({ident}):\n{''.join(traceback.format_stack(frame))}")
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        frames = task.get_stack()
        shown = "".join("".join(traceback.format_stack(frame, 1)) for frame in frames)
        parts.append(f"task {task.get_name()}:\n{shown or '  (not started)'}")
    return "\n".join(parts) + "\n"


def heap() -> str:
    """Types with the most objects. What the collector was told to overlook at the start is not among them."""
    import gc

    counts = Counter(type(found).__qualname__ for found in gc.get_objects())
    lines = [f"{count:10d} {name}" for name, count in counts.most_common(_TOP)]
    return f"{sum(counts.values())} objects, {gc.get_freeze_count()} frozen at the start\n" + "\n".join(lines) + "\n"


def threads() -> str:
    return "".join(f"{thread.name}\n" for thread in threading.enumerate())


class Profiler:
    """Samples the thread of the event loop; one profile at a time."""

    def __init__(self) -> None:
        self._busy = False

    async def endpoint(self, ctx: RequestContext) -> Answer:
        try:
            seconds = float(ctx.info.first("seconds") or 30)
        except ValueError:
            seconds = 30.0
        if not 0 < seconds <= _LONGEST:
            return text(400, f"seconds must be more than 0 and at most {_LONGEST:g}")
        if self._busy:
            return text(500, "Could not enable CPU profiling: cpu profiling already in use")
        self._busy = True
        stop = threading.Event()
        try:
            ident = threading.get_ident()
            folded = await asyncio.to_thread(sample, ident, seconds, stop)
        finally:
            stop.set()
            self._busy = False
        return _plain("".join(f"{stack} {count}\n" for stack, count in folded.most_common()))


def sample(ident: int, seconds: float, stop: threading.Event) -> Counter[str]:
    """Stacks of a thread (outermost first, joined by semicolons) and how often each was seen."""
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end and not stop.wait(_PERIOD):
        frame = sys._current_frames().get(ident)
        if frame is not None:
            counts[fold(frame)] += 1
    return counts


def fold(frame: FrameType | None) -> str:
    names = []
    while frame is not None:
        code = frame.f_code
        names.append(f"{code.co_filename.rpartition('/')[2]}:{code.co_qualname}")
        frame = frame.f_back
    return ";".join(reversed(names))
