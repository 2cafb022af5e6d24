"""Who is asking: the authenticator protocols, the union of several, and anonymous access."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from fastapi_core.errors import APIError
from fastapi_core.records import dataclass
from fastapi_core.request.context import ANONYMOUS, User

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.request.context import RequestContext

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
#: The extra attribute that names the credential itself.
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
#: Paths the reference opens to everybody through its `system:public-info-viewer` role.
PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})

Audiences = tuple[str, ...]
FOREVER = float("inf")


class WrongCredential(APIError):  # noqa: N818 - a refusal of the caller, not a failure of ours
    """401. `reasons` are for reviews and logs, never for the one who showed the credential."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("Unauthorized", "Unauthorized")
        self.reasons = reasons


class Authenticator(Protocol):
    """One way to prove an identity.

    Answers a User, or None when the request carries no credential of this kind (the next one is asked). Raises
    APIError 401 (WrongCredential tells why) for a credential that is wrong. May answer an awaitable when it has to ask
    somebody.
    """

    def authenticate(self, ctx: RequestContext) -> User | Awaitable[User | None] | None: ...


@dataclass(frozen=True, slots=True)
class Known:
    """What a token proves, and how long that may be remembered.

    `hangs_on` holds (get, key, object): the answer is good only as long as each `get(key)` is still that object.
    """

    user: User
    audiences: Audiences = ()
    """Those of the asked ones the token is for; empty from an authenticator that knows nothing of audiences."""
    until: float = 0.0
    """Wall clock second."""
    hangs_on: tuple[tuple[Callable[[str], CachedObject | None], str, CachedObject], ...] = ()
    warning: str = ""
    """Told to whoever uses the token, with every request."""
    notes: tuple[tuple[str, str], ...] = ()
    """Annotations of the audit events of its requests."""

    def holds(self, now: float) -> bool:
        if now >= self.until:
            return False
        for get, key, obj in self.hangs_on:  # noqa: SIM110 - on the path of every request
            if get(key) is not obj:
                return False
        return True


class TokenAuthenticator(Protocol):
    """One kind of bearer token.

    `aware` ones judge the audiences themselves; the others' tokens are for the API's own audiences. `audiences` None:
    nobody asked for any. Same answers as an Authenticator's; `now` is the wall clock.
    """

    @property
    def aware(self) -> bool: ...
    def check(self, token: str, audiences: Audiences | None, now: float) -> Known | Awaitable[Known | None] | None: ...


T = TypeVar("T")
Ask = Callable[[int], "T | Awaitable[T | None] | None"]


def first_of(
    ask: Ask[T], count: int, index: int = 0, reasons: tuple[str, ...] | None = None
) -> T | Awaitable[T | None] | None:
    """The first answer of `ask(0)`, `ask(1)`, ...; None when there is none at all.

    A wrong credential does not end the search (the reference asks the rest too), but without an answer the search ends
    in WrongCredential with all `reasons` then.
    """
    while index < count:
        try:
            answer = ask(index)
        except APIError as error:
            reasons = _reasons(error, reasons)
            answer = None
        index += 1
        if answer is not None:
            if isinstance(answer, User | Known):
                return cast(T, answer)
            return _wait(ask, count, cast("Awaitable[T | None]", answer), index, reasons)
    if reasons is not None:
        raise WrongCredential(*dict.fromkeys(reasons))
    return None


async def _wait(
    ask: Ask[T], count: int, pending: Awaitable[T | None], index: int, reasons: tuple[str, ...] | None
) -> T | None:
    """Wait for one, then ask the rest."""
    try:
        answer = await pending
    except APIError as error:
        reasons = _reasons(error, reasons)
        answer = None
    if answer is not None:
        return answer
    rest = first_of(ask, count, index, reasons)
    return await rest if isinstance(rest, Awaitable) else rest


def _reasons(error: APIError, before: tuple[str, ...] | None) -> tuple[str, ...]:
    """What has been wrong so far; anything but a 401 is not about the credential and goes on."""
    if error.code != 401:
        raise error
    return (*(before or ()), *getattr(error, "reasons", ()))


def with_authenticated(user: User) -> User:
    """The user with the group every authenticated user has (`system:authenticated`, last)."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups or ANONYMOUS.name == user.name:
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

    A wrong credential excludes `anonymous`: who shows a bad token is refused, not downgraded.
    """

    def __init__(self, authenticators: Sequence[Authenticator], anonymous: Authenticator | None = None) -> None:
        self._ways = tuple(authenticator.authenticate for authenticator in authenticators)
        self.anonymous = anonymous

    def authenticate(self, ctx: RequestContext) -> User | Awaitable[User | None] | None:
        # The way of nearly every request; whatever is more than that is `first_of`'s.
        index = 0
        for way in self._ways:
            index += 1
            try:
                user = way(ctx)
            except APIError as error:
                return self._rest(ctx, index, _reasons(error, None))
            if user is None:
                continue
            if isinstance(user, User):
                return user
            return self._later(ctx, _wait(self._asking(ctx), len(self._ways), user, index, None))
        return self.anonymous.authenticate(ctx) if self.anonymous is not None else None

    def _asking(self, ctx: RequestContext) -> Ask[User]:
        ways = self._ways
        return lambda index: ways[index](ctx)

    def _rest(self, ctx: RequestContext, index: int, reasons: tuple[str, ...]) -> User | Awaitable[User | None] | None:
        """Ask the others after one credential was wrong: nobody is anonymous any more."""
        return first_of(self._asking(ctx), len(self._ways), index, reasons)

    async def _later(self, ctx: RequestContext, pending: Awaitable[User | None]) -> User | None:
        user = await pending
        if user is not None or self.anonymous is None:
            return user
        unknown = self.anonymous.authenticate(ctx)
        return await unknown if isinstance(unknown, Awaitable) else unknown
