"""Request info for the handler chain: a memo in front of the compiled parser, and what the chain asks of the result.

Clients repeat the same few GET targets (polling, probes, single objects), so their parse is kept; all else is
parsed each time. A RequestInfo is shared by all requests with the same target and must not be changed.
"""

from __future__ import annotations

from fastapi_core._ext.reqinfo import ParseError, RequestInfo, parse
from fastapi_core.errors import go_quote
from fastapi_core.http.exchange import Response

_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_NOSNIFF = (b"x-content-type-options", b"nosniff")

_LONG_VERBS = frozenset({"watch", "proxy"})
_LONG_SUBRESOURCES = frozenset({"attach", "exec", "proxy", "log", "portforward"})


class InfoParser:
    """Parser with a bounded memory of GET targets.

    `entries` is how many targets are kept (the oldest goes first), `longest` the length in characters above which one
    is not worth keeping; together they bound the memory a client can make the server hold.
    """

    __slots__ = ("_entries", "_known", "_longest")

    def __init__(self, entries: int = 2048, longest: int = 512) -> None:
        self._entries = entries
        self._longest = longest
        self._known: dict[tuple[str, str], RequestInfo] = {}

    def __call__(self, method: str, path: str, query: str) -> RequestInfo:
        """Request info of a raw path and query; raises ParseError."""
        if method != "GET" or len(path) + len(query) > self._longest:
            return parse(method, path, query)
        key = (path, query)
        known = self._known
        info = known.get(key)
        if info is None:
            info = parse(method, path, query)
            if len(known) >= self._entries:
                del known[next(iter(known))]
            known[key] = info
        return info

    def __len__(self) -> int:
        return len(self._known)


def is_long_running(info: RequestInfo) -> bool:
    """Whether a request is exempt from the request timeout and from the count of requests in flight."""
    if info.verb in _LONG_VERBS:
        return True
    if info.is_resource_request:
        return info.subresource in _LONG_SUBRESOURCES
    return info.path.startswith("/debug/pprof/")


def refusal(error: ParseError, target: str) -> Response:
    """Answer to a request that has no RequestInfo; `target` is the request target as sent.

    A malformed target never reaches the handlers of the reference: its HTTP library answers and hangs up.
    """
    if error.code == 400:
        return Response(400, [_TEXT, (b"connection", b"close")], b"400 Bad Request")
    text = f"Internal Server Error: {go_quote(target)}: failed to create RequestInfo: {error}, {target}"
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(char, entity)
    return Response(error.code, [_TEXT, _NOSNIFF], text.encode("utf-8", "replace") + b"\n")
