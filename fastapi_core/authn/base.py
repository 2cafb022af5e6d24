"""Who is asking: the authenticator protocol, the union of several, and anonymous access to a few paths."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from fastapi_core.errors import APIError, unauthorized
from fastapi_core.request.context import ANONYMOUS, User

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"
#: Paths the reference opens to everybody through its `system:public-info-viewer` role.
PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})


class Authenticator(Protocol):
    """One way to prove an identity.

    Answers a User, or None when the request carries no credential of this kind (the next one is asked). Raises
    APIError 401 for a credential that is wrong. May answer an awaitable when it has to ask somebody.
    """

    def authenticate(self, ctx: RequestContext) -> User | Awaitable[User | None] | None: ...


def with_authenticated(user: User) -> User:
    """The user with the group every authenticated user has (`system:authenticated`, last)."""
    if AUTHENTICATED in user.groups or ANONYMOUS.name == user.name:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)


class Anonymous:
    """Requests without credentials, on the given paths only (None: on every path)."""

    def __init__(self, paths: Iterable[str] | None = PUBLIC_PATHS) -> None:
        self._paths = None if paths is None else frozenset(paths)

    def authenticate(self, ctx: RequestContext) -> User | None:
        if self._paths is None or (ctx.info.path in self._paths and not ctx.info.is_resource_request):
            return ANONYMOUS
        return None


class Union:
    """The first authenticator that knows the caller wins; None when there is no credential at all.

    A wrong credential does not end the search (the reference asks the rest too), but it does exclude `anonymous`:
    who shows a bad token is refused, not downgraded.
    """

    def __init__(self, authenticators: Sequence[Authenticator], anonymous: Authenticator | None = None) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous

    def authenticate(self, ctx: RequestContext) -> User | Awaitable[User | None] | None:
        return self._ask(ctx, 0, False)

    def _ask(self, ctx: RequestContext, index: int, failed: bool) -> User | Awaitable[User | None] | None:
        """Ask the authenticators from `index` on; `failed`: an earlier one refused a credential."""
        while index < len(self._authenticators):
            try:
                user = self._authenticators[index].authenticate(ctx)
            except APIError as error:
                if error.code != 401:
                    raise
                failed, user = True, None
            index += 1
            if isinstance(user, User):
                return user
            if user is not None:
                return self._wait(ctx, user, index, failed)
        if failed:
            raise unauthorized()
        return self._anonymous.authenticate(ctx) if self._anonymous is not None else None

    async def _wait(
        self, ctx: RequestContext, pending: Awaitable[User | None], index: int, failed: bool
    ) -> User | None:
        """Wait for one authenticator, then ask the rest."""
        try:
            user = await pending
        except APIError as error:
            if error.code != 401:
                raise
            failed, user = True, None
        if user is not None:
            return user
        rest = self._ask(ctx, index, failed)
        return rest if rest is None or isinstance(rest, User) else await rest
