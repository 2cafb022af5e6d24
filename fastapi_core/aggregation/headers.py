"""The head of a request as a backend gets it: the client's fields without its credentials, and who it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fastapi_core.authn.tokens import PROTOCOL_HEADER, WEBSOCKET_PREFIX
from fastapi_core.filters.headers import UNCACHED
from fastapi_core.rest.upstream import HOP

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Request
    from fastapi_core.http.exchange import Header
    from fastapi_core.request.context import RequestContext, User

_DROPPED = HOP | {
    b"host", b"authorization", b"content-length", b"expect", b"audit-id",
    b"x-forwarded-for", b"x-forwarded-uri", b"x-forwarded-host", b"x-forwarded-proto",
}  # fmt: skip
_DROPPED_PREFIXES = (b"x-remote-", b"impersonate-")
#: Of answers: what is about one connection, what we say ourselves, and what is for browsers (decided at the front).
_NOT_RELAYED = (HOP - {b"trailer"}) | {
    b"date", b"audit-id", b"content-length", b"access-control-allow-credentials", b"access-control-allow-headers",
    b"access-control-allow-methods", b"access-control-allow-origin",
}  # fmt: skip
_TOKEN = frozenset(b"!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SLASHES = re.compile("/{2,}")
_REMEMBERED = 1024
#: Under which a connection knows the fields of its last request, of at most that many bytes.
_FORWARDED, _KEPT = "aggregation/forwarded", 4096


class UnsendableError(ValueError):
    """A user that no header can carry; the text is as clients of the reference know it."""


def _value(text: str, name: str) -> bytes:
    if any((ord(c) < 32 and c != "\t") or ord(c) == 127 for c in text):
        raise UnsendableError(f'net/http: invalid header field value for "{name}"')
    return text.encode("utf-8", "surrogateescape")


def escaped(key: str) -> bytes:
    """A key of a user's extra values as part of a header name."""
    data = key.encode("utf-8", "surrogateescape")
    return b"".join(bytes((byte,)) if byte in _TOKEN else b"%%%02X" % byte for byte in data)


class Identities:
    """Lines that tell a backend who asks; remembered by user."""

    def __init__(self) -> None:
        self._known: dict[User, bytes] = {}

    def lines(self, user: User) -> bytes:
        """Raises UnsendableError."""
        found = self._known.get(user)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[user] = _lines(user)
        return found


def _lines(user: User) -> bytes:
    parts = [b"x-remote-user: ", _value(user.name, "X-Remote-User"), b"\r\n"]
    if user.uid:
        parts += [b"x-remote-uid: ", _value(user.uid, "X-Remote-Uid"), b"\r\n"]
    for group in user.groups:
        parts += [b"x-remote-group: ", _value(group, "X-Remote-Group"), b"\r\n"]
    for key, values in user.extra.items():
        for value in values:
            parts += [b"x-remote-extra-", escaped(key), b": ", _value(value, "X-Remote-Extra-" + key), b"\r\n"]
    return b"".join(parts)


class Dropped:
    """Which fields of a client's request go no further. `own` are names this server takes identities from itself."""

    def __init__(self, own: tuple[bytes, ...] = ()) -> None:
        self._names = _DROPPED | {name for name in own if not name.endswith(b"*")}
        self._prefixes = (*_DROPPED_PREFIXES, *(name[:-1] for name in own if name.endswith(b"*")))

    def __call__(self, name: bytes) -> bool:
        return name in self._names or name.startswith(self._prefixes)


def forwarded(ctx: RequestContext, dropped: Dropped) -> list[Header]:
    """The client's own fields that go on, those about forwarding, and the id under which all servers note the request."""
    request = ctx.request
    connection = request.header_all(b"connection")
    named = {token.strip().lower() for value in connection for token in value.split(b",")} if connection else ()
    headers = [(name, value) for name, value in request.headers if not dropped(name) and name not in named]
    client = request.connection.peer.rpartition(":")[0].strip("[]").encode()
    before = request.header(b"x-forwarded-for")
    headers += [
        (b"x-forwarded-for", client if before is None else before + b", " + client),
        (b"x-forwarded-proto", b"https" if request.connection.tls else b"http"),
    ]
    return headers + _own(ctx)


def _own(ctx: RequestContext) -> list[Header]:
    """Fields that are another request's no more."""
    path = ctx.request.path
    if "//" in path:
        path = _SLASHES.sub("/", path)
    headers = [(b"x-forwarded-uri", path.encode("utf-8", "surrogateescape"))]
    if ctx.audit_id:
        headers.append((b"audit-id", ctx.audit_id.encode("latin-1", "replace")))
    return headers


def forwarded_lines(ctx: RequestContext, dropped: Dropped) -> bytes:
    """The same as they are sent. Clients say the same again and again: their fields are kept with their connection."""
    request = ctx.request
    memo = request.connection.memo
    known = memo.get(_FORWARDED)
    own = _own(ctx)
    if known is not None and known[0] == request.headers:
        lines: bytes = known[1]
    else:
        lines = _joined(forwarded(ctx, dropped)[: -len(own)])
        if len(lines) <= _KEPT:
            memo[_FORWARDED] = request.headers, lines
    return lines + _joined(own)


def _joined(headers: list[Header]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def asked(request: Request) -> str:
    """Path and query as the client sent them."""
    return f"{request.path}?{request.query}" if request.query else request.path


def without_token(headers: list[Header]) -> list[Header]:
    """The sub-protocols of a WebSocket without the one that carries a bearer token."""
    kept = []
    for name, value in headers:
        if name == PROTOCOL_HEADER:
            offered = [protocol.strip() for protocol in value.split(b",")]
            value = b", ".join(p for p in offered if not p.startswith(WEBSOCKET_PREFIX))
            if not value:
                continue
        kept.append((name, value))
    return kept


def relayed(headers: list[Header]) -> list[Header]:
    """The fields of a backend's answer that the client gets: what it says of caching stands beside what we say."""
    kept = [header for header in headers if header[0] not in _NOT_RELAYED]
    for name, value in headers:
        if name == b"connection":
            named = {token.strip().lower() for token in value.split(b",")} - {b"close", b"keep-alive"}
            kept = [header for header in kept if header[0] not in named]
        elif name == b"cache-control":
            kept.insert(0, UNCACHED)
    return kept
