"""Request info for the handler chain: a memo in front of the compiled parser, and the answer when parsing fails.

Clients repeat the same few GET targets (polling, probes, single objects), so their parse is kept; all else is
parsed each time. A RequestInfo is shared by all requests with the same target and must not be changed.
"""

from __future__ import annotations

from fastapi_core._ext.reqinfo import ParseError, RequestInfo, parse
from fastapi_core.errors import go_quote
from fastapi_core.http.exchange import Response
from fastapi_core.request.status import bad_request_line, text


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


def refusal(error: ParseError, target: str) -> Response:
    """Answer to a request that has no RequestInfo; `target` is the request target as sent."""
    if error.code == 400:
        return bad_request_line()
    return internal_error(target, f"failed to create RequestInfo: {error}, {target}", code=error.code)


def internal_error(target: str, reason: str, code: int = 500) -> Response:
    """Answer to a request that a filter failed on: plain text, as the reference answers those."""
    message = f"Internal Server Error: {go_quote(target)}: {reason}"
    # Nobody's browser may take this for a page.
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        message = message.replace(char, entity)
    return text(code, message)
