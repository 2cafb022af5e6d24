"""Front proxies: a client certificate of the right authority may say by headers for whom it asks.

Without that certificate the headers mean nothing. Either way they are taken out of the request, under their usual names
and under those of the flags, so that nobody behind can mistake a client's words for a proxy's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from fastapi_core.authn import x509
from fastapi_core.authn.base import WrongCredential, with_authenticated
from fastapi_core.obs import logs
from fastapi_core.records import dataclass
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.authn.base import Authenticator
    from fastapi_core.authn.trust import Trust
    from fastapi_core.http.exchange import Header
    from fastapi_core.request.context import RequestContext

log = logs.get("authn")

STANDARD_PREFIX = b"x-remote-"
_STANDARD = (b"x-remote-user", b"x-remote-uid", b"x-remote-group")
_STANDARD_EXTRA = b"x-remote-extra-"


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """Names of header fields, lower-case; `extra` are prefixes."""

    user: tuple[bytes, ...] = ()
    uid: tuple[bytes, ...] = ()
    group: tuple[bytes, ...] = ()
    extra: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, user: Iterable[str], uid: Iterable[str], group: Iterable[str], extra: Iterable[str]) -> HeaderNames:
        given = (tuple(name.strip().lower().encode() for name in names) for names in (user, uid, group, extra))
        return cls(*given)


class FrontProxy:
    """Users as a trusted proxy names them. `allowed` are the CNs of proxies; empty: every certificate of `trust`."""

    def __init__(self, trust: Trust, names: HeaderNames, allowed: Sequence[str] = ()) -> None:
        self._trust = trust
        self._names = names
        self._allowed = frozenset(allowed)

    def authenticate(self, ctx: RequestContext) -> User | None:
        connection = ctx.request.connection
        certificate = connection.peer_certificate
        if certificate is None:
            return None
        self._trust.check(connection, ctx.request.received)
        if self._allowed:
            name = connection.memo.get(FrontProxy)
            if name is None:
                name = connection.memo[FrontProxy] = x509.common_name(certificate)
            if name not in self._allowed:
                raise WrongCredential(f"x509: subject with cn={name} is not in the allowed list")
        return self._user(ctx.request.headers)

    def _user(self, headers: Sequence[Header]) -> User | None:
        names = self._names
        name = _first(headers, names.user)
        if not name:
            return None
        groups = tuple(_text(v) for wanted in names.group for key, v in headers if key == wanted and v)
        extra: dict[str, list[str]] = {}
        for prefix in names.extra:
            for key, value in headers:
                if key.startswith(prefix):
                    extra.setdefault(_unescaped(key[len(prefix) :]), []).append(_text(value))
        found = {key: tuple(values) for key, values in extra.items()}
        return with_authenticated(User(name, _first(headers, names.uid), groups, found))


def _first(headers: Sequence[Header], names: Sequence[bytes]) -> str:
    """The first value that is not empty, of the first name that has one."""
    for wanted in names:
        value = next((v for key, v in headers if key == wanted), b"")
        if value:
            return _text(value)
    return ""


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _unescaped(key: bytes) -> str:
    """The name of an extra attribute; one with a broken escape stays as it is."""
    for place in range(len(key)):
        if key[place] == 0x25 and not (len(key) >= place + 3 and _is_hex(key[place + 1 : place + 3])):
            return _text(key)
    return _text(unquote_to_bytes(key))


def _is_hex(digits: bytes) -> bool:
    return all(digit in b"0123456789abcdefABCDEF" for digit in digits)


class Outermost:
    """Around all authenticators: whatever they say, the headers of front proxies go no further, and refusals are logged."""

    def __init__(self, inner: Authenticator, names: HeaderNames | None = None) -> None:
        self._inner = inner
        self._refusals = Refusals()
        given = names or HeaderNames()
        self._exact = frozenset((*_STANDARD, *given.user, *given.uid, *given.group))
        self._prefixes = tuple(dict.fromkeys((_STANDARD_EXTRA, *given.extra)))
        # Nearly no request has any: one look at each name settles it.
        self._suspect = tuple(dict.fromkeys((STANDARD_PREFIX, *given.user, *given.uid, *given.group, *given.extra)))

    def authenticate(self, ctx: RequestContext) -> User | Awaitable[User | None] | None:
        try:
            answer = self._inner.authenticate(ctx)
        except WrongCredential as error:
            self._refusals.tell(error)
            raise
        for name, _ in ctx.request.headers:
            if name.startswith(self._suspect):
                break
        else:
            return answer if answer is None or isinstance(answer, User) else self._later(ctx, answer)
        if answer is None or isinstance(answer, User):
            self._strip(ctx)
            return answer
        return self._later(ctx, answer)

    async def _later(self, ctx: RequestContext, pending: Awaitable[User | None]) -> User | None:
        try:
            user = await pending
        except WrongCredential as error:
            self._refusals.tell(error)
            raise
        self._strip(ctx)
        return user

    def _strip(self, ctx: RequestContext) -> None:
        headers = ctx.request.headers
        headers[:] = [
            header for header in headers if header[0] not in self._exact and not header[0].startswith(self._prefixes)
        ]


class Refusals:
    """Why callers were refused, for the operator; a flood of them is counted instead of written."""

    #: Lines a second.
    MOST = 5

    def __init__(self) -> None:
        self._second = 0
        self._told = 0
        self._left_out = 0

    def tell(self, error: WrongCredential) -> None:
        second = int(monotonic())
        if second != self._second:
            self._second, self._told = second, 0
        if self._told >= self.MOST:
            self._left_out += 1
            return
        self._told += 1
        reasons = ", ".join(error.reasons)
        more = {"leftOut": self._left_out} if self._left_out else {}
        self._left_out = 0
        log.warning("Unable to authenticate the request", err=reasons[:1024], **more)
