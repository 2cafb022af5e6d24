"""What handlers are given and may give: the request, events of a watch, a list with its version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from fastapi_core.records import dataclass
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

T = TypeVar("T")

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


def _unheard(text: str) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Who asks for what.

    Selectors and paging are applied to whatever a handler answers; one that can ask its source for less may read them
    here.
    """

    user: User
    """Name, uid, groups and extra attributes, after authentication and authorization."""
    verb: str
    """get, list, watch, create, update, patch, delete or deletecollection: what the client asked for."""
    namespace: str = ""
    """Empty for cluster-scoped kinds and for lists of all namespaces."""
    name: str = ""
    """Empty for collections."""
    subresource: str = ""
    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    """Of a list: the version to be at least as new as. Of a watch: the version to go on behind; empty: from now on."""
    dry_run: bool = False
    """Nothing may be changed. Only handlers of subresources see it: dry runs of objects never get as far as a handler."""
    field_manager: str = ""
    deadline: float = 0.0
    """`time.monotonic()` at which the client is answered 504; 0 for none."""
    audit_id: str = ""
    warn: Callable[[str], None] = field(default=_unheard, repr=False, compare=False)
    """Tell the client something besides the answer (a Warning header)."""


def _warn(ctx: RequestContext, text: object) -> None:
    """Whatever it is: an exception, say, is told by its words."""
    ctx.warn(text if isinstance(text, str) else str(text))


def request_of(ctx: RequestContext) -> Request:
    """The request that a handler is called for."""
    info = ctx.info
    query = info.query
    return Request(
        user=ctx.user,
        verb=info.verb,
        namespace=info.namespace,
        name=info.name,
        subresource=info.subresource,
        label_selector=info.label_selector,
        field_selector=info.field_selector,
        resource_version=info.first("resourceVersion") if query else "",
        dry_run=bool(query and info.first("dryRun")),
        field_manager=info.first("fieldManager") if query else "",
        deadline=ctx.deadline,
        audit_id=ctx.audit_id,
        warn=partial(_warn, ctx),
    )


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """One event of a watch: what has happened, and the object as it is now (as it was last, when DELETED).

    Its `metadata.resourceVersion` is where a client goes on after it. A BOOKMARK tells only that: how far the source
    is. `previous` is the state before, where the source knows it: it makes selectors exact for clients that go on from
    a version they got long ago.
    """

    type: EventType
    object: T
    previous: T | None = None


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that says of which version it is, so that a watch can go on from there."""

    items: Sequence[T]
    resource_version: str = ""
