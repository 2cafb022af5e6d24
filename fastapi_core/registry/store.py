"""The generic store of one resource: trees in, committed objects out.

It knows keys, revisions, compare-and-swap and the stored form, and turns `StorageError` into `APIError`. What a kind
does with its objects is in its strategy (`definition.py`), what happens around a write in `lifecycle.py`.
Reads come from the cacher, synchronously; writes go to the storage and return once the cacher has seen them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from copy import copy
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.codec import json as json_codec
from fastapi_core.later import later
from fastapi_core.meta.names import path_segment
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.storage.interface import Code, Storage, StorageError

if TYPE_CHECKING:
    from fastapi_core._ext.selector import Matcher
    from fastapi_core.schema import normalize
    from fastapi_core.storage.cacher.resource import Listing, ResourceCache
else:
    normalize = later("fastapi_core.schema.normalize")

CONFLICT_TEXT = "the object has been modified; please apply your changes to the latest version and try again"
TOO_OLD = "The resourceVersion for the provided list is too old."
TOKEN_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list as the client sees it: `token` empty on the last, `remaining` -1 when unknown."""

    objects: list[CachedObject]
    revision: int
    token: str
    remaining: int


class ResourceStore:
    """Objects of one resource, all served versions of which share this store (`definition` is the storage version's)."""

    def __init__(self, definition: ResourceDefinition, storage: Storage, cache: ResourceCache) -> None:
        self.definition = definition
        self.storage = storage
        self.cache = cache
        self._named = definition

    def named(self, definition: ResourceDefinition) -> ResourceStore:
        """The same objects under the name of another group, which is the one that errors tell."""
        if definition.group == self._named.group:
            return self
        other = copy(self)
        other._named = definition
        return other

    # Keys

    def scope(self, namespace: str) -> str:
        """Key prefix below the resource for a list: all of a namespace, or everything."""
        return f"{namespace}/" if namespace and self.definition.namespaced else ""

    def key(self, namespace: str, name: str) -> str:
        """Storage key of an object; 400 for a name that is no path segment and would reach another object."""
        if name.startswith(".") or "/" in name or "%" in name:
            texts = path_segment(name)
            if texts:
                raise errors.bad_request(f"Name parameter invalid: {errors.go_quote(name)}: {'; '.join(texts)}")
        if self.definition.namespaced:
            return f"{self.definition.key_prefix}{namespace}/{name}"
        return self.definition.key_prefix + name

    def not_found(self, name: str) -> errors.APIError:
        return errors.not_found(self._named.plural, self._named.group, name)

    # Reads

    def get(self, namespace: str, name: str) -> CachedObject:
        """The newest committed object; raises NotFound."""
        obj = self.cache.get(self.key(namespace, name))
        if obj is None:
            raise self.not_found(name)
        return obj

    def wait(self, revision: int) -> Awaitable[None] | None:
        """Nothing when the cache has reached `revision`, else something to await; 504 when it does not come."""
        pending = self.cache.wait(revision)
        return None if pending is None else self._translate(pending, revision)

    def fresh(self) -> Awaitable[None] | None:
        """Nothing when the cache is known to hold every acknowledged write, else something to await."""
        pending = self.cache.fresh()
        return None if pending is None else self._translate(pending, 0)

    async def _translate(self, pending: Awaitable[None], revision: int) -> None:
        try:
            await pending
        except StorageError as error:
            raise self.read_error(error, revision) from error

    def read_error(self, error: StorageError, wanted: int) -> errors.APIError:
        """The answer to a read of the revision `wanted` that failed."""
        if error.code is Code.FUTURE_REVISION:
            return errors.too_large_resource_version(wanted, error.revision)
        if error.code is Code.COMPACTED:
            return errors.expired(TOO_OLD)
        return _trouble(error)

    def list(
        self, namespace: str, matcher: Matcher | None, *, limit: int = 0, token: str = "", exact: int = 0
    ) -> Page | Awaitable[Page]:
        """A page of the newest state, of the state at revision `exact`, or of where `token` left off."""
        scope = self.scope(namespace)
        root = self.definition.key_prefix + scope
        start = ""
        if token:
            exact, start = decode_token(token, root)
        if exact <= 0 or exact == self.cache.revision:
            return _page(self.cache.list(scope, matcher=matcher, start=start, limit=limit), root)
        try:
            historic = self.cache.list_at(exact, scope, matcher=matcher, start=start, limit=limit)
        except StorageError as error:
            raise self._too_old(error, start, root, exact) from error
        if isinstance(historic, Awaitable):
            return self._historic(historic, start, root, exact)
        return _page(historic, root)

    def check_token(self, token: str) -> None:
        """400 for a text that is no continue token."""
        decode_token(token, self.definition.key_prefix)

    async def _historic(self, pending: Awaitable[Listing], start: str, root: str, exact: int) -> Page:
        try:
            return _page(await pending, root)
        except StorageError as error:
            raise self._too_old(error, start, root, exact) from error

    def _too_old(self, error: StorageError, start: str, root: str, exact: int) -> errors.APIError:
        """`start` is where a continue token left off, else empty."""
        if error.code is Code.COMPACTED and start:
            answer = errors.expired(TOKEN_TOO_OLD)
            answer.metadata = {"continue": encode_token(-1, start, root)}
            return answer
        return self.read_error(error, exact)

    # Writes

    def encode(self, tree: Tree, known: Tree | None = None) -> bytes:
        return encode_stored(self.definition, tree, known)

    def unsaved(self, tree: Tree, revision: int = 0) -> CachedObject:
        """What a dry run answers with: the object as it would be stored, under the revision it was made from."""
        metadata = tree["metadata"]
        name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
        return CachedObject(self.key(namespace, name), namespace, name, self.encode(tree), revision, revision)

    async def create(self, tree: Tree) -> CachedObject:
        """Commit a new object; AlreadyExists when the key is taken."""
        metadata = tree["metadata"]
        key = self.key(metadata.get("namespace", ""), metadata["name"])
        try:
            revision = await self.storage.create(key, self.encode(tree), ttl=self.definition.ttl)
        except StorageError as error:
            raise self.write_error(error, metadata["name"]) from error
        return self._committed(key, revision, tree)

    async def update(self, current: CachedObject, tree: Tree, known: Tree | None = None) -> CachedObject:
        """Replace `current`, of which `tree` may share parts with the decoded form `known`.

        Nothing is written when the stored bytes stay the same. Raises StorageError CONFLICT and KEY_NOT_FOUND for the
        caller's retry loop, other failures as APIError.
        """
        value = self.encode(tree, known)
        if value == current.stored():
            return current
        try:
            revision = await self.storage.update(current.key, value, expected=current.revision, ttl=self.definition.ttl)
        except StorageError as error:
            if error.code in (Code.CONFLICT, Code.KEY_NOT_FOUND):
                raise
            raise self.write_error(error, current.name) from error
        return self._committed(current.key, revision, tree)

    async def delete(self, current: CachedObject) -> int:
        """Remove `current`; returns the revision of the deletion. StorageError as in `update`."""
        try:
            return await self.storage.delete(current.key, expected=current.revision)
        except StorageError as error:
            if error.code in (Code.CONFLICT, Code.KEY_NOT_FOUND):
                raise
            raise self.write_error(error, current.name) from error

    async def settle(self, error: StorageError) -> None:
        """After a lost race: wait until the cache shows what won."""
        pending = self.cache.wait(max(error.revision, 0))
        if pending is not None:
            await pending

    def write_error(self, error: StorageError, name: str) -> errors.APIError:
        definition = self._named
        if error.code is Code.KEY_EXISTS:
            return errors.already_exists(definition.plural, definition.group, name)
        if error.code is Code.KEY_NOT_FOUND:
            return self.not_found(name)
        if error.code is Code.CONFLICT:
            return errors.conflict(definition.plural, definition.group, name, CONFLICT_TEXT)
        if error.code is Code.TOO_LARGE:
            return errors.APIError("", "etcdserver: request is too large", code=500)
        return _trouble(error)

    def _committed(self, key: str, revision: int, tree: Tree) -> CachedObject:
        """The object under its new revision: the cacher's own when nothing newer has come since."""
        obj = self.cache.get(key)
        if obj is not None and obj.revision == revision:
            return obj
        return self.unsaved(tree, revision)


def _trouble(error: StorageError) -> errors.APIError:
    """A store that does not serve. What etcd says goes out as it is, as clients know it from the reference."""
    if error.code is Code.TIMEOUT:
        return errors.timeout("request did not complete within requested timeout - context deadline exceeded")
    text = str(error)
    if text.startswith(("etcdserver: ", "rpc error: ")):
        return errors.APIError("", text, code=500)
    return errors.internal(text)


def encode_stored(definition: ResourceDefinition, tree: Tree, known: Tree | None = None) -> bytes:
    """The stored form: canonical JSON (members in order, zero values dropped) without resourceVersion. `known` is a
    tree from the store whose parts `tree` may share."""
    metadata = tree["metadata"]
    if "resourceVersion" in metadata:
        tree = {**tree, "metadata": {k: v for k, v in metadata.items() if k != "resourceVersion"}}
    if definition.custom:
        return json_codec.encode(sorted_tree(tree))
    return json_codec.encode(normalize.canonical(definition.type, tree, known))


def sorted_tree(value: Any) -> Any:
    """A tree with all members in alphabetical order, as custom resources are printed."""
    if isinstance(value, dict):
        return {key: sorted_tree(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [sorted_tree(item) for item in value]
    return value


async def retrying(
    store: ResourceStore, namespace: str, name: str, attempt: Callable[[CachedObject], Awaitable[Any]]
) -> Any:
    """Run `attempt` on the newest object until it does not lose the race for it (GuaranteedUpdate of the reference).

    Bounded by the request's deadline, not by a count. NotFound when the object is gone. A refusal counts only when it was
    said of the newest state: where others write to the store, the cache is asked to catch up and, if there is news of the
    object, the attempt is made again.
    """
    behind = True
    while True:
        current = None
        try:
            current = store.get(namespace, name)
            return await attempt(current)
        except StorageError as error:
            if error.code not in (Code.CONFLICT, Code.KEY_NOT_FOUND):
                raise
            await store.settle(error)
        except errors.APIError as error:
            # What the store itself could not answer may have happened, and is not tried again.
            answered = not isinstance(error.__cause__, StorageError)
            pending = store.fresh() if behind and answered else None
            if pending is None:
                raise
            behind = False
            await pending
            if store.cache.get(store.key(namespace, name)) is current:
                raise


def _page(listing: Listing, root: str) -> Page:
    """A listing below the key `root` as the client sees it."""
    token = encode_token(listing.revision, listing.next, root) if listing.next else ""
    return Page(listing.objects, listing.revision, token, listing.remaining)


_TOKEN_VERSION = "meta.k8s.io/v1"


def encode_token(revision: int, start: str, prefix: str) -> str:
    """The reference's continue token: base64url JSON of version, revision and the relative key to go on from."""
    body = orjson.dumps({"v": _TOKEN_VERSION, "rv": revision, "start": start[len(prefix) :]})
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def decode_token(token: str, prefix: str) -> tuple[int, str]:
    """(revision, full key to start from) of a continue token; 400 when it is not one of ours."""
    try:
        body = _token_body(token)
    except ValueError as error:
        raise errors.bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    return body[0], prefix + body[1]


def _token_body(token: str) -> tuple[int, str]:
    """Revision and relative key; names of members count as Go's JSON takes them, in any case."""
    if "=" in token or not token.isascii():
        raise ValueError("illegal base64 data at input byte 0")
    try:
        raw = base64.b64decode(token.encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("illegal base64 data at input byte 0") from None
    tree = json_codec.parse(raw).tree
    if not isinstance(tree, dict | None):
        raise ValueError("json: cannot unmarshal into Go value of type storage.continueToken")
    body = {name.lower(): value for name, value in (tree or {}).items() if value is not None}
    version, revision, start = body.get("v", ""), body.get("rv", 0), body.get("start", "")
    if not isinstance(version, str) or type(revision) is not int or not isinstance(start, str):
        raise ValueError("json: cannot unmarshal into Go struct field continueToken")
    if version != _TOKEN_VERSION:
        raise ValueError(f"server does not recognize this encoded version {version}")
    if revision == 0:
        raise ValueError(f"incorrect encoded start resourceVersion (version {version})")
    if not start:
        raise ValueError(f"encoded start key empty (version {version})")
    relative = start.removeprefix("/")
    if any(part in ("", ".", "..") for part in relative.split("/")):
        # Not a plain path: it could reach keys of somebody else.
        raise ValueError(start)
    return revision, relative
