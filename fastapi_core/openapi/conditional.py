"""Conditional requests (RFC 9110, section 13) for a body with an entity tag and a time of change."""

from __future__ import annotations

from email.utils import formatdate, parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Request


def evaluate(request: Request, tag: str, modified: int) -> int:
    """200 to send the body, 304 when the client has it, 412 when its precondition fails.

    `tag` is the quoted entity tag, `modified` in seconds since the epoch.
    """
    reading = request.method in ("GET", "HEAD")
    match = request.header(b"if-match")
    if match is not None:
        if not _matches(match.decode("latin-1"), tag, weak=False):
            return 412
    elif (since := _time(request.header(b"if-unmodified-since"))) is not None and modified > since:
        return 412
    none_match = request.header(b"if-none-match")
    if none_match is not None:
        if _matches(none_match.decode("latin-1"), tag, weak=True):
            return 304 if reading else 412
    elif reading and (since := _time(request.header(b"if-modified-since"))) is not None and modified <= since:
        return 304
    return 200


def _matches(header: str, tag: str, *, weak: bool) -> bool:
    for candidate in header.split(","):
        candidate = candidate.strip()
        if weak:
            candidate = candidate.removeprefix("W/")
        if candidate in ("*", tag):
            return True
    return False


def _time(header: bytes | None) -> float | None:
    if header is None:
        return None
    try:
        return parsedate_to_datetime(header.decode("latin-1")).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def http_date(seconds: float) -> bytes:
    """A time as HTTP headers write it."""
    return formatdate(seconds, usegmt=True).encode()
