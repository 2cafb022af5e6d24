"""What handlers are given and may give: the request, events of a watch, a list with its version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from fastapi_core.request.context import User

T = TypeVar("T")

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True, slots=True)
class Request:
    """Who asks for what.

    Selectors and paging are applied to what a handler answers in any case; a handler that can ask its source for less
    may read them here.
    """

    user: User
    """Name, uid, groups and extra attributes, after authentication and authorization."""
    verb: str
    """get, list, watch, create, update, patch, delete or deletecollection: what the client asked for."""
    namespace: str = ""
    """Empty for cluster-scoped kinds and for lists of all namespaces."""
    name: str = ""
    """Empty for collections and for a new object whose name is to be generated."""
    subresource: str = ""
    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    """Of a list or watch: the version to be at least as new as, or to start behind."""
    dry_run: bool = False
    """Nothing may be changed: the answer is what would be. Writing handlers are called with it only when they ask
    for it (`dry_run=True` where they are declared)."""
    field_manager: str = ""
    deadline: float = 0.0
    """`time.monotonic()` when the client is answered 504; 0 for none."""
    audit_id: str = ""
    warn: Callable[[str], None] = field(default=lambda text: None, repr=False, compare=False)
    """Tell the client something besides the answer (a Warning header)."""


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """One event of a watch: what has happened, and the object as it is now (as it was last, when DELETED).

    Its `metadata.resourceVersion` is where a client goes on after it. BOOKMARK tells only that, its object may be
    otherwise empty.
    """

    type: EventType
    object: T


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that says of which version it is, so that a watch can go on from there."""

    items: Sequence[T]
    resource_version: str = ""
