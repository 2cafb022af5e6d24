"""Bearer tokens: where they stand in a request, who is asked about them, and the static token file."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from fastapi_core.authn.base import (
    FOREVER,
    Audiences,
    Known,
    TokenAuthenticator,
    WrongCredential,
    first_of,
    with_authenticated,
)
from fastapi_core.meta.patterns import Pattern
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"
INVALID = "invalid bearer token"
WEBSOCKET_PREFIX = b"base64url.bearer.authorization.k8s.io."
PROTOCOL_HEADER = b"sec-websocket-protocol"
#: Header values remembered; a client that sends ever new garbage only clears the memory.
_MEMORY = 4096
_LONGEST = 16_384
_AROUND = len("Bearer ")
#: An answer that says nothing of its own life is remembered this long, as the reference does.
REMEMBER = 10.0

_UPGRADE = Pattern(rb"(^|.*,\s*)upgrade($|\s*,)", re.IGNORECASE)
_BASE64URL = Pattern(rb"[A-Za-z0-9_-]*")


def bearer_token(header: bytes) -> tuple[bytes, bool]:
    """The token of an Authorization value (empty: none) and whether extra space hides it.

    One space separates scheme and token; what follows the token is ignored, as the reference ignores it.
    """
    parts = header.strip().split(b" ", 2)
    if len(parts) < 2 or parts[0].lower() != b"bearer":
        return b"", False
    return parts[1], not parts[1] and len(parts) == 3 and bool(parts[2].strip())


class Tokens:
    """Every kind of token, asked one after the other.

    `implicit` are the audiences of the API itself: what a token without audiences is good for, and what requests ask.
    """

    def __init__(self, kinds: Sequence[TokenAuthenticator], implicit: Audiences = ()) -> None:
        self.kinds = tuple(kinds)
        self.implicit = implicit

    def check(self, token: str, audiences: Audiences | None, now: float) -> Known | Awaitable[Known | None] | None:
        """None when nobody knows the token; raises WrongCredential when somebody knows it is wrong."""
        kinds = self.kinds

        def ask(index: int) -> Known | Awaitable[Known | None] | None:
            kind = kinds[index]
            if kind.aware or audiences is None:
                return kind.check(token, audiences, now)
            common = tuple(audience for audience in self.implicit if audience in audiences)
            if self.implicit and not common:
                return None
            found = kind.check(token, audiences, now)
            if isinstance(found, Known):
                return replace(found, audiences=common)
            return found if found is None else _with_audiences(found, common)

        return first_of(ask, len(kinds))


async def _with_audiences(pending: Awaitable[Known | None], audiences: Audiences) -> Known | None:
    known = await pending
    return None if known is None else replace(known, audiences=audiences)


class Bearer:
    """Users by the token in the Authorization header; answers are remembered as long as they hold."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._memory: dict[bytes, Known] = {}

    def forget(self) -> None:
        """Ask anew about every token: who answers has changed."""
        self._memory.clear()

    def authenticate(self, ctx: RequestContext) -> User | Awaitable[User | None] | None:
        header = ctx.request.header(b"authorization")
        if header is None:
            return None
        now = ctx.request.received
        known = self._memory.get(header)
        if known is not None and known.holds(now):
            if known.notes or known.warning:
                _tell(ctx, known)
            return known.user
        token, hidden = bearer_token(header)
        if not token:
            if hidden:
                ctx.warn(EXTRA_SPACE)
            return None
        found = self._tokens.check(decoded(token), self._tokens.implicit or None, now)
        if found is None or isinstance(found, Known):
            return self._conclude(ctx, header, token, found)
        return self._later(ctx, header, token, found)

    async def _later(self, ctx: RequestContext, header: bytes, token: bytes, pending: Awaitable[Known | None]) -> User:
        return self._conclude(ctx, header, token, await pending)

    def _conclude(self, ctx: RequestContext, header: bytes, token: bytes, known: Known | None) -> User:
        user, now = accepted(ctx, known), ctx.request.received
        assert known is not None
        # Of one token a client could make any number of values by what it puts around it.
        if known.until > now and len(header) <= _LONGEST and len(header) == len(token) + _AROUND:
            if len(self._memory) >= _MEMORY:
                self._memory.clear()
            self._memory[header] = replace(known, user=user)
        return user


class WebSocketProtocol:
    """Browsers cannot set headers of a WebSocket: they pass the token as a sub-protocol, beside the real one.

    The token is taken out of the header, so that nobody behind sees it.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def authenticate(self, ctx: RequestContext) -> User | Awaitable[User | None] | None:
        request = ctx.request
        if not request.upgrade or (request.header(b"upgrade") or b"").lower() != b"websocket":
            return None
        if _UPGRADE.search(request.header(b"connection") or b"") is None:
            return None
        token, others = _protocols(request.header_all(PROTOCOL_HEADER))
        if not token:
            return None
        if not others:
            raise WrongCredential("missing additional subprotocol")
        found = self._tokens.check(token, self._tokens.implicit or None, request.received)
        if found is None or isinstance(found, Known):
            return self._conclude(ctx, found, others)
        return self._later(ctx, found, others)

    async def _later(self, ctx: RequestContext, pending: Awaitable[Known | None], others: list[bytes]) -> User:
        return self._conclude(ctx, await pending, others)

    def _conclude(self, ctx: RequestContext, known: Known | None, others: list[bytes]) -> User:
        user = accepted(ctx, known)
        headers = ctx.request.headers
        headers[:] = [header for header in headers if header[0] != PROTOCOL_HEADER]
        headers.append((PROTOCOL_HEADER, b",".join(others)))
        return user


def _protocols(values: list[bytes]) -> tuple[str, list[bytes]]:
    """The token (empty: none) and the real sub-protocols."""
    token, others = b"", []
    seen = False
    for protocol in (part.strip() for value in values for part in value.split(b",")):
        if not protocol.startswith(WEBSOCKET_PREFIX):
            others += [protocol] if protocol else []
            continue
        if seen:
            raise WrongCredential("multiple base64.bearer.authorization tokens specified")
        seen = True
        encoded = protocol[len(WEBSOCKET_PREFIX) :]
        try:
            if _BASE64URL.fullmatch(encoded) is None:
                raise binascii.Error("not base64url")
            token = base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
        except binascii.Error:
            raise WrongCredential("invalid base64.bearer.authorization token encoding") from None
    try:
        return token.decode(), others
    except UnicodeDecodeError:
        raise WrongCredential("invalid base64.bearer.authorization token") from None


def accepted(ctx: RequestContext, known: Known | None) -> User:
    """The user of a token somebody knows; WrongCredential for one that nobody does."""
    if known is None:
        raise WrongCredential(INVALID)
    _tell(ctx, known)
    return with_authenticated(known.user)


def _tell(ctx: RequestContext, known: Known) -> None:
    if known.warning:
        ctx.warn(known.warning)
    for key, value in known.notes:
        ctx.annotate(key, value)


def decoded(token: bytes) -> str:
    """A token as text; bytes that are not UTF-8 are kept as they are."""
    return token.decode("utf-8", "surrogateescape")


class StaticTokens:
    """Tokens that are known from the start (`--token-auth-file`, the generated admin token)."""

    aware = False

    def __init__(self, users: Mapping[str, User]) -> None:
        # Tokens are kept hashed: the look-up then tells nothing about how much of a guess was right.
        self._users = {
            sha256(token.encode()).digest(): Known(with_authenticated(user), until=FOREVER)
            for token, user in users.items()
        }
        self._alone = Bearer(Tokens([self]))

    def check(self, token: str, audiences: Audiences | None, now: float) -> Known | None:
        return self._users.get(sha256(token.encode("utf-8", "surrogateescape")).digest())

    def authenticate(self, ctx: RequestContext) -> User | Awaitable[User | None] | None:
        """As an authenticator of its own, for a server that knows no other tokens."""
        return self._alone.authenticate(ctx)


def load_token_file(text: str) -> dict[str, User]:
    """Users of a token file: `token,user,uid[,"group1,group2"]` a line; ValueError names the line.

    As in the reference a later line with the same token wins and an empty token is skipped.
    """
    import csv

    users: dict[str, User] = {}
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        for row in rows:
            if not row or row[0].startswith("#"):
                continue
            if len(row) < 3:
                raise ValueError(f"line {rows.line_num}: expected token,user,uid[,groups], found {len(row)} columns")
            token, name, uid = (cell.strip() for cell in row[:3])
            if not token:
                continue
            groups = tuple(g.strip() for g in row[3].split(",") if g.strip()) if len(row) > 3 else ()
            users[token] = User(name, uid, groups)
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from None
    return users
