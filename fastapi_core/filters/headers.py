"""Filters that put headers on answers: audit id, cache control, HSTS, warnings, CORS."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING
from uuid import UUID

from fastapi_core.http.exchange import Answer, Header, Response
from fastapi_core.meta.patterns import Pattern

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

#: Characters (not bytes) of all warnings of one answer before each is cut, and what a cut one keeps.
WARNINGS_TOTAL = 4096
WARNING_CUT = 256
_HALF = Pattern("[\ud800-\udfff]")
_CONTROL = Pattern("[\x00-\x1f\x7f-\x9f]")


class AuditIds:
    """Version 4 UUIDs: random but for the last group, which counts up from a random number.

    They correlate log lines and protect nothing; making each of them random would cost more than all of authentication.
    """

    __slots__ = ("_next", "_prefix")

    def __init__(self) -> None:
        text = str(UUID(bytes=os.urandom(16), version=4))
        self._prefix = text[:24]
        self._next = count(int.from_bytes(os.urandom(5), "big")).__next__

    def __call__(self) -> str:
        return f"{self._prefix}{self._next():012x}"


def audit_id() -> Callable[[RequestContext], None]:
    """Keep the caller's Audit-ID, so that one id follows a request through several servers; else make one."""
    new = AuditIds()

    def put(ctx: RequestContext) -> None:
        given = ctx.request.header(b"audit-id")
        ctx.audit_id = given.decode("latin-1") if given else new()

    return put


def put_audit_id(ctx: RequestContext, answer: Answer) -> None:
    answer.headers.append((b"Audit-Id", ctx.audit_id.encode("latin-1")))


UNCACHED: Header = (b"Cache-Control", b"no-cache, private")


def put_cache_control(ctx: RequestContext, answer: Answer) -> None:
    """Forbid caching of what has no Cache-Control of its own."""
    for name, _ in answer.headers:
        if len(name) == 13 and name.lower() == b"cache-control":
            return
    answer.headers.append(UNCACHED)


def put_warnings(ctx: RequestContext, answer: Answer) -> None:
    if ctx.warnings is not None:
        answer.headers.extend((b"Warning", value) for value in warning_values(ctx.warnings))


def warning_values(texts: Iterable[str]) -> list[bytes]:
    """Warning header values: each text once; over the total limit every text is cut and what still overflows dropped.

    Texts with control characters are left out, they could not be quoted; halves of characters are replaced.
    """
    whole = (_HALF.sub("\ufffd", text) for text in texts)
    kept = [t for t in dict.fromkeys(whole) if t and not _CONTROL.search(t)]
    if sum(map(len, kept)) > WARNINGS_TOTAL:
        written, short = 0, []
        for text in kept:
            if written >= WARNINGS_TOTAL:
                break
            short.append(text[:WARNING_CUT])
            written += len(short[-1])
        kept = short
    quoted = (t.replace("\\", "\\\\").replace('"', '\\"') for t in kept)
    return [f'299 - "{t}"'.encode() for t in quoted]


def hsts(directives: Sequence[str]) -> Callable[[RequestContext, Answer], None] | None:
    """Strict-Transport-Security on every answer when directives are configured."""
    if not directives:
        return None
    header: Header = (b"Strict-Transport-Security", "; ".join(directives).encode())

    def put_hsts(ctx: RequestContext, answer: Answer) -> None:
        # What a proxied server says of itself stands.
        if not any(name.lower() == b"strict-transport-security" for name, _ in answer.headers):
            answer.headers.append(header)

    return put_hsts


_CORS: tuple[Header, ...] = (
    (b"Access-Control-Allow-Methods", b"POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    (
        b"Access-Control-Allow-Headers",
        b"Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, "
        b"If-Modified-Since",
    ),
    (b"Access-Control-Expose-Headers", b"Date"),
    (b"Access-Control-Allow-Credentials", b"true"),
)


def cors(patterns: Sequence[str]) -> Callable[[RequestContext], Answer | None] | None:
    """Allow the origins that one of the regular expressions matches; answers their OPTIONS itself."""
    if not patterns:
        return None
    origins = [re.compile(pattern) for pattern in patterns]

    def allow_origin(ctx: RequestContext) -> Answer | None:
        origin = ctx.request.header(b"origin")
        if not origin or not any(o.search(origin.decode("latin-1")) for o in origins):
            return None
        ctx.headers.append((b"Access-Control-Allow-Origin", origin))
        ctx.headers.extend(_CORS)
        return Response(204, []) if ctx.request.method == "OPTIONS" else None

    return allow_origin
