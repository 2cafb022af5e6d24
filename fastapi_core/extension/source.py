"""A kind whose objects come from the author's functions, as the store of one request.

The verb handlers work on a store of committed objects that answers at once. Here the endpoint first gets what the
request is about (`fetch`, `fetch_all`), and the handlers then find just that; what they write goes to the author's functions.
A lost race is the author's Conflict: the object is fetched again and the change tried anew, as with any other store.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.extension.declaration import Declaration
from fastapi_core.extension.failures import Answered, Turns, check_numbers
from fastapi_core.extension.request import Listing, Request
from fastapi_core.extension.sync import Runner
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.store import Page, ResourceStore, decode_token, encode_stored, encode_token
from fastapi_core.request.context import User
from fastapi_core.storage.interface import Code, Storage, StorageError

if TYPE_CHECKING:
    from fastapi_core._ext.selector import Matcher
    from fastapi_core.extension.kinds import Handlers
    from fastapi_core.storage.cacher.resource import ResourceCache

Objects = list[CachedObject]

#: Lists kept for clients that read them in pages, states for clients that go on with a watch, and attempts at a write
#: that keeps losing races.
SNAPSHOTS = 8
STATES = 64
ATTEMPTS = 5
_SEGMENT = re.compile(r"[^/%\x00-\x1f\x7f]+")
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class View:
    """All that a handler may answer by: only requests that are equal in it may share what one of them was answered."""

    user: User
    verb: str
    namespace: str
    label_selector: str
    field_selector: str


@dataclass(slots=True)
class Origin:
    """What all requests for a kind have in common."""

    declaration: Declaration[Any]
    definition: ResourceDefinition
    handlers: Handlers[Any]
    runner: Runner
    snapshots: OrderedDict[tuple[View, int], Objects] = field(default_factory=OrderedDict)
    """(view, version) -> a list that somebody has read the first page of."""
    states: OrderedDict[View, tuple[int, Objects]] = field(default_factory=OrderedDict)
    """Version and objects that the client of a view with selectors has: where it may want to go on with a watch."""

    def keep(self, view: View, revision: int, objects: Objects) -> None:
        _put(self.snapshots, (view, revision), objects, SNAPSHOTS)

    def remember(self, view: View, revision: int, objects: Objects) -> None:
        _put(self.states, view, (revision, objects), STATES)

    def make(self, value: Any, namespace: str = "") -> CachedObject:
        """The author's object as one that can be shown. Raises TypeError for one that has no name or a wrong version."""
        tree = self.declaration.model.dump(value)
        tree["apiVersion"], tree["kind"] = self.declaration.group_version, self.declaration.kind
        metadata = tree["metadata"] = dict(tree.get("metadata") or {})
        return self.cached(tree, metadata, namespace)

    def cached(self, tree: Tree, metadata: Tree, namespace: str) -> CachedObject:
        kind, name = self.declaration.kind, metadata.get("name") or ""
        if not name:
            raise TypeError(f"a {kind} without metadata.name was answered")
        _segment(name, f"a {kind} with the name")
        if not self.declaration.namespaced:
            metadata.pop("namespace", None)
            where = ""
        else:
            where = metadata.setdefault("namespace", namespace) or namespace
            if not where:
                raise TypeError(f"{kind} {name!r} was answered without metadata.namespace")
            _segment(where, f"{kind} {name!r} in the namespace")
        revision = revision_of(metadata.pop("resourceVersion", ""), f"{kind} {name!r}")
        key = f"{self.declaration.key_prefix}{where}/{name}" if where else self.declaration.key_prefix + name
        body = encode_stored(self.definition, tree)
        if b"null" in body:
            check_numbers(tree)
        return CachedObject(key, where, name, body, revision, 0)


def _put(kept: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)


def _segment(text: Any, what: str) -> str:
    """A name that can stand in a path."""
    if not isinstance(text, str) or text in (".", "..") or len(text) > 253 or _SEGMENT.fullmatch(text) is None:
        raise TypeError(f"{what} {text!r} was answered, which is not one")
    return text


def revision_of(text: Any, whose: str) -> int:
    """A version an author has given; none is 0. TypeError for one that clients could not compare."""
    if text in ("", None):
        return 0
    if isinstance(text, str) and text.isascii() and text.isdigit():
        return int(text)
    raise TypeError(f"the resourceVersion of {whose} is {text!r}: versions are texts of whole numbers that grow")


class RequestCache:
    """Stands where a `ResourceCache` stands: what has been fetched for the request."""

    extract = None

    def __init__(self) -> None:
        self.objects: dict[str, CachedObject] = {}
        self.revision = 0

    def get(self, key: str) -> CachedObject | None:
        return self.objects.get(key)


class RequestStore(ResourceStore):
    """The objects of a kind, as far as one request has asked for them."""

    def __init__(self, origin: Origin, request: Request) -> None:
        self.found = RequestCache()
        # The handlers use of both what is defined here.
        super().__init__(origin.definition, cast("Storage", None), cast("ResourceCache", self.found))
        self.origin = origin
        self.request = request
        self.view = View(request.user, request.verb, request.namespace, request.label_selector, request.field_selector)
        self._floor = 0
        self._lost = 0

    @property
    def watched_view(self) -> View:
        """The view in which a list and the watches that go on from it are the same."""
        return replace(self.view, verb="watch")

    # Getting

    async def fetch(self, name: str) -> CachedObject | None:
        """Ask for one object, by `get` or else by `list`."""
        request, handlers = self.request, self.origin.handlers
        key = self.key(request.namespace, name)
        self.found.objects.pop(key, None)
        if handlers.get is None:
            await self.fetch_all()
            return self.found.get(key)
        try:
            value = await self.origin.runner.call(handlers.get, request, name)
        except errors.APIError as error:
            if error.reason != "NotFound":
                raise
            value = None
        if value is None:
            return None
        obj = self._made(handlers.get, value, key)
        self.found.objects[key] = obj
        return obj

    async def reached(self, revision: int, obj: CachedObject | None) -> None:
        """504 unless the source is as new as a client wants it, which an object or else the list shows."""
        if revision == 0 or (obj is not None and (obj.revision >= revision or not obj.revision)):
            return
        _, newest = await self.fetch_all()
        if 0 < newest < revision:
            raise errors.too_large_resource_version(revision, newest)

    async def fetch_all(self) -> tuple[Objects, int]:
        """Ask for all objects of the namespace, in the order of their keys, and their version."""
        handlers, request, origin = self.origin.handlers, self.request, self.origin
        if handlers.list is None:
            return [], 0
        answer = await origin.runner.call(handlers.list, request)
        with Answered(handlers.list):
            # A list of its own: the author's may change while others have their turns.
            items: Sequence[Any] = list(answer.items if isinstance(answer, Listing) else answer)
            objects, turns = [], Turns()
            for item in items:
                objects.append(origin.make(item, request.namespace))
                if turns.due:
                    await turns.over()
            objects.sort(key=lambda obj: obj.key)
            for one, other in pairwise(objects):
                if one.key == other.key:
                    raise TypeError(f"{self.definition.kind} {one.key} was answered twice")
            if isinstance(answer, Listing):
                revision = revision_of(answer.resource_version, f"the list of {self.definition.plural}")
            else:
                revision = max((obj.revision for obj in objects), default=0)
        if request.namespace and self.definition.namespaced:
            objects = [obj for obj in objects if obj.namespace == request.namespace]
        self.found.objects = {obj.key: obj for obj in objects}
        self.found.revision = revision
        return objects, revision

    def _made(self, handler: Callable[..., Any], value: Any, key: str) -> CachedObject:
        """The one object that the handler should have answered."""
        with Answered(handler):
            obj = self.origin.make(value, self.request.namespace)
            if obj.key != key:
                raise TypeError(f"asked for {key} the handler answered {obj.key}")
        return obj

    # Reading

    def wait(self, revision: int) -> Awaitable[None] | None:
        self._floor = revision
        return None

    def fresh(self) -> Awaitable[None] | None:
        return None

    def list(
        self, namespace: str, matcher: Matcher | None, *, limit: int = 0, token: str = "", exact: int = 0
    ) -> Awaitable[Page]:
        start = ""
        if token:
            exact, start = decode_token(token, self.definition.key_prefix)
        return self._paged(namespace, matcher, limit, exact, start)

    async def _paged(self, namespace: str, matcher: Matcher | None, limit: int, exact: int, start: str) -> Page:
        kept = self.origin.snapshots.get((self.view, exact)) if exact > 0 else None
        if kept is not None:
            objects, revision = kept, exact
        else:
            objects, revision = await self.fetch_all()
            if 0 < exact != revision:
                raise self._too_old(StorageError(Code.COMPACTED), start, self.definition.key_prefix, exact)
            if revision and self._floor > revision:
                raise errors.too_large_resource_version(self._floor, revision)
            if matcher is not None and revision and self.origin.handlers.watch is not None:
                self.origin.remember(self.watched_view, revision, matcher.select(objects))
        begin = bisect_left(objects, start, key=lambda obj: obj.key) if start else 0
        if matcher is not None:
            chosen, looked = matcher.select_page(objects[begin:], limit)
            end = begin + looked
        else:
            end = min(len(objects), begin + limit) if limit > 0 else len(objects)
            chosen = objects[begin:end]
        if end >= len(objects):
            return Page(chosen, revision, "", 0)
        if revision:
            self.origin.keep(self.view, revision, objects)
        # Without a version the next page is one of whatever there is by then.
        more = encode_token(revision or -1, objects[end - 1].key + "\0", self.definition.key_prefix)
        return Page(chosen, revision, more, len(objects) - end if matcher is None else -1)

    # Writing

    async def create(self, tree: Tree) -> CachedObject:
        handler = self.origin.handlers.create
        if handler is None:
            raise self.not_found(tree["metadata"]["name"])
        request = replace(self.request, name=tree["metadata"]["name"])
        value = await self.origin.runner.call(handler, request, self.origin.declaration.model.load(tree))
        return await self._written(handler, tree, value)

    async def update(self, current: CachedObject, tree: Tree, known: Tree | None = None) -> CachedObject:
        if self.encode(tree, known) == current.stored():
            return current
        handlers, model = self.origin.handlers, self.origin.declaration.model
        handler = handlers.update
        if handlers.patch is not None and self.request.verb == "patch":
            handler = handlers.patch
        if handler is None:
            raise errors.method_not_allowed()
        try:
            value = await self.origin.runner.call(handler, self.request, model.load(tree), model.load(current.tree()))
        except errors.APIError as error:
            raise self._lost_race(error, current) from error
        return await self._written(handler, tree, value)

    async def delete(self, current: CachedObject) -> int:
        handler = self.origin.handlers.delete
        if handler is None:
            raise errors.method_not_allowed()
        request = replace(self.request, name=current.name, namespace=current.namespace)
        try:
            await self.origin.runner.call(handler, request, self.origin.declaration.model.load(current.tree()))
        except errors.APIError as error:
            raise self._lost_race(error, current) from error
        return current.revision

    def _lost_race(self, error: errors.APIError, current: CachedObject) -> Exception:
        """A Conflict makes the handlers look again, a few times."""
        if error.reason != "Conflict" or self._lost >= ATTEMPTS:
            return error
        self._lost += 1
        return StorageError(Code.CONFLICT, current.key, current.revision)

    async def _written(self, handler: Callable[..., Any], tree: Tree, value: Any) -> CachedObject:
        """The object as the author has kept it; without an answer as it can be read now, or as it was given."""
        metadata = tree["metadata"]
        if value is not None:
            return self._made(handler, value, self.key(metadata.get("namespace", ""), metadata["name"]))
        if self.origin.handlers.get is not None:
            obj = await self.fetch(metadata["name"])
            if obj is not None:
                return obj
        return self.origin.cached(tree, dict(metadata), metadata.get("namespace", ""))

    async def settle(self, error: StorageError) -> None:
        await self.fetch(error.key.rpartition("/")[2])
