"""A kind whose objects come from the author's functions, as the store of one request.

The verb handlers work on a store of committed objects that answers at once. Here the endpoint first gets what the
request is about (`fetch`, `fetch_all`), and the handlers then find just that; what they write goes to the author's functions.
A lost race is the author's Conflict: the object is fetched again and the change tried anew, as with any other store.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, cast

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.extension.declaration import Declaration
from fastapi_core.extension.request import Listing, Request
from fastapi_core.extension.sync import Runner
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.store import Page, ResourceStore, decode_token, encode_stored, encode_token
from fastapi_core.storage.interface import Code, Storage, StorageError

if TYPE_CHECKING:
    from fastapi_core._ext.selector import Matcher
    from fastapi_core.extension.kinds import Handlers
    from fastapi_core.storage.cacher.resource import ResourceCache

Objects = list[CachedObject]

#: Lists kept for clients that read them in pages, and attempts at a write that keeps losing races.
SNAPSHOTS = 8
ATTEMPTS = 5


class History:
    """Objects as they were seen last, and before that: what a change means to a selector."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[CachedObject, CachedObject | None]] = {}

    def listed(self, scope: str, objects: Mapping[str, CachedObject]) -> None:
        """All objects with keys below `scope`."""
        for key in [key for key in self._latest if key.startswith(scope) and key not in objects]:
            del self._latest[key]
        for key, obj in objects.items():
            known = self._latest.get(key)
            if known is None or known[0].revision < obj.revision:
                self._latest[key] = (obj, known and known[0])

    def changed(self, obj: CachedObject, *, deleted: bool) -> CachedObject | None:
        """Take note of a change, which several watches tell of one after the other; the state before it, if known."""
        known = self._latest.get(obj.key)
        latest, before = known or (None, None)
        if latest is not None and latest.revision == obj.revision and not deleted:
            return before
        if latest is not None and latest.revision > obj.revision:
            return None
        if deleted:
            self._latest.pop(obj.key, None)
        else:
            self._latest[obj.key] = (obj, latest)
        return latest


@dataclass(slots=True)
class Origin:
    """What all requests for a kind have in common."""

    declaration: Declaration[Any]
    definition: ResourceDefinition
    handlers: Handlers[Any]
    runner: Runner
    snapshots: OrderedDict[tuple[str, int], Objects] = field(default_factory=OrderedDict)
    """(namespace, version) -> a list that somebody has read the first page of."""
    history: History = field(default_factory=lambda: History())
    """Of kinds that can be watched."""

    def keep(self, namespace: str, revision: int, objects: Objects) -> None:
        self.snapshots[namespace, revision] = objects
        self.snapshots.move_to_end((namespace, revision))
        while len(self.snapshots) > SNAPSHOTS:
            self.snapshots.popitem(last=False)

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
        if not self.declaration.namespaced:
            metadata.pop("namespace", None)
            where = ""
        else:
            where = metadata.setdefault("namespace", namespace) or namespace
            if not where:
                raise TypeError(f"{kind} {name!r} was answered without metadata.namespace")
        revision = revision_of(metadata.pop("resourceVersion", ""), f"{kind} {name!r}")
        key = f"{self.declaration.key_prefix}{where}/{name}" if where else self.declaration.key_prefix + name
        return CachedObject(key, where, name, encode_stored(self.definition, tree), revision, 0)


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
        self._floor = 0
        self._lost = 0

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
        obj = self.origin.make(value, request.namespace)
        if obj.key != key:
            raise TypeError(f"asked for {key} the handler answered {obj.key}")
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
        items: Sequence[Any] = answer.items if isinstance(answer, Listing) else answer
        objects = [origin.make(item, request.namespace) for item in items]
        if request.namespace and self.definition.namespaced:
            objects = [obj for obj in objects if obj.namespace == request.namespace]
        objects.sort(key=lambda obj: obj.key)
        if isinstance(answer, Listing):
            revision = revision_of(answer.resource_version, f"the list of {self.definition.plural}")
        else:
            revision = max((obj.revision for obj in objects), default=0)
        self.found.objects = {obj.key: obj for obj in objects}
        self.found.revision = revision
        if handlers.watch is not None:
            origin.history.listed(self.definition.key_prefix + self.scope(request.namespace), self.found.objects)
        return objects, revision

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
        return self._paged(namespace, matcher, limit, token, exact, start)

    async def _paged(
        self, namespace: str, matcher: Matcher | None, limit: int, token: str, exact: int, start: str
    ) -> Page:
        kept = self.origin.snapshots.get((namespace, exact)) if exact > 0 else None
        if kept is not None:
            objects, revision = kept, exact
        else:
            objects, revision = await self.fetch_all()
            if 0 < exact != revision:
                raise self._too_old(StorageError(Code.COMPACTED), token, start)
            if revision and self._floor > revision:
                raise errors.too_large_resource_version(self._floor, revision)
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
            self.origin.keep(namespace, revision, objects)
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
        return await self._written(tree, value)

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
        return await self._written(tree, value)

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

    async def _written(self, tree: Tree, value: Any) -> CachedObject:
        """The object as the author has kept it; without an answer as it can be read now, or as it was given."""
        metadata = tree["metadata"]
        if value is not None:
            return self.origin.make(value, metadata.get("namespace", ""))
        if self.origin.handlers.get is not None:
            obj = await self.fetch(metadata["name"])
            if obj is not None:
                return obj
        return self.origin.cached(tree, dict(metadata), metadata.get("namespace", ""))

    async def settle(self, error: StorageError) -> None:
        await self.fetch(error.key.rpartition("/")[2])
