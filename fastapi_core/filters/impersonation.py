"""Impersonation: a request under somebody else's name (`kubectl --as`), for who has the right to it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from fastapi_core.authz.base import Attributes, AttributesKey, Authorizer, attributes_key
from fastapi_core.errors import APIError, bad_request, go_quote
from fastapi_core.later import later
from fastapi_core.meta.patterns import Pattern
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.filters import modes
    from fastapi_core.filters.modes import Impersonated
    from fastapi_core.request.context import RequestContext
else:
    modes = later("fastapi_core.filters.modes")

PREFIX = b"impersonate-"
_USER, _UID, _GROUP, _EXTRA = b"impersonate-user", b"impersonate-uid", b"impersonate-group", b"impersonate-extra-"
_FIRST = PREFIX[0]
#: Answers remembered; the whole memory is dropped when it is full or the policy objects changed.
_MEMORY = 1024
_LONGEST = 512
_BROKEN = Pattern("%(?![0-9A-Fa-f]{2})")
#: Requestors whose mode is remembered.
_REQUESTORS = 10_000


class Impersonation:
    """Replaces `ctx.user` by the user the headers ask for; the requestor stays in `ctx.impersonator`."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._generation = authorizer.generation
        self._memory: dict[tuple[User, AttributesKey], Impersonated] = {}
        self._last: dict[str, int] = {}

    def before(self, ctx: RequestContext) -> Awaitable[None] | None:
        for name, _ in ctx.request.headers:
            if name[0] == _FIRST and name.startswith(PREFIX):
                return self._begin(ctx)
        return None

    def _begin(self, ctx: RequestContext) -> Awaitable[None] | None:
        wanted = asked_for(ctx)
        if wanted is None:
            return None
        # Nobody further in, and no server behind this one, is to see that there were such headers.
        headers = ctx.request.headers
        headers[:] = [header for header in headers if not _is_ours(header[0])]
        if self._generation != self._authorizer.generation or len(self._memory) >= _MEMORY:
            self._memory = {}
            self._generation = self._authorizer.generation
        key = wanted, attributes_key(ctx)
        known = self._memory.get(key)
        if known is None:
            return self._find(ctx, key)
        self._become(ctx, known)
        return None

    async def _find(self, ctx: RequestContext, key: tuple[User, AttributesKey]) -> None:
        generation = self._generation
        found = await self._try(key[0], Attributes(*key[1]))
        if found.lasting and generation == self._generation and len(ctx.request.target) <= _LONGEST:
            self._memory[key] = found
        self._become(ctx, found)

    async def _try(self, wanted: User, request: Attributes) -> Impersonated:
        """The first mode that allows it, beginning with the one that did so last time; else the first refusal."""
        last = self._last.get(request.user.name)
        order = range(len(modes.MODES)) if last is None else (last, *(i for i in range(len(modes.MODES)) if i != last))
        refusal: APIError | None = None
        for index in order:
            mode = modes.MODES[index]
            if not mode.applies(wanted, request.user):
                continue
            try:
                found = await mode.check(self._authorizer, wanted, request)
            except APIError as error:
                refusal = refusal or error
                continue
            if len(self._last) >= _REQUESTORS:
                self._last.clear()
            self._last[request.user.name] = index
            return found
        assert refusal is not None, "the plain verb is for everybody"
        raise refusal

    @staticmethod
    def _become(ctx: RequestContext, found: Impersonated) -> None:
        ctx.impersonator = ctx.user
        ctx.constraint = found.constraint
        ctx.user = found.user


def _is_ours(name: bytes) -> bool:
    return name in (_USER, _UID, _GROUP) or name.startswith(_EXTRA)


def asked_for(ctx: RequestContext) -> User | None:
    """The user the headers ask for, as raw as they are; None when they ask for none. 400 for a user without a name."""
    name: str | None = None
    uid: str | None = None
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    for header, raw in ctx.request.headers:
        if not header.startswith(PREFIX):
            continue
        value = raw.decode("utf-8", "replace")
        if header == _USER:
            name = value if name is None else name
        elif header == _UID:
            uid = value if uid is None else uid
        elif header == _GROUP:
            groups.append(value)
        elif header.startswith(_EXTRA):
            key = _unescaped(header[len(_EXTRA) :].decode("utf-8", "replace"))
            extra.setdefault(key, []).append(value)
    if name:
        return User(name, uid or "", tuple(groups), {key: tuple(values) for key, values in extra.items()})
    if uid or groups or extra:
        given = [f"uid {go_quote(uid)}"] if uid else []
        given += [f"group {go_quote(group)}" for group in groups]
        given += [f"extra {go_quote(key)}" for key in extra]
        raise bad_request(f"requested {', '.join(given)} without impersonating a user name")
    return None


def _unescaped(key: str) -> str:
    """A percent-encoded key; one that is broken stays as it is."""
    return key if _BROKEN.search(key) else unquote(key, errors="replace")
