"""The objects of one's own kinds, for background tasks and handlers: requests to the server itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from urllib.parse import quote, urlencode

from fastapi_core import errors
from fastapi_core.extension.declaration import Declaration
from fastapi_core.extension.request import Event

if TYPE_CHECKING:
    from fastapi_core.server.loopback import Loopback

T = TypeVar("T")
Tree = dict[str, Any]

ATTEMPTS = 10
#: Seconds between watches that tell nothing.
PAUSE = 1.0


class Objects(Generic[T]):
    """Get, list, write and follow the objects of a kind, as `system:apiserver`, once the server has been composed.

    Everything that holds for other clients holds here: validation, conflicts (`APIError` with the reason Conflict),
    field ownership. `namespace` stays empty for cluster-scoped kinds.
    """

    def __init__(self, declaration: Declaration[T]) -> None:
        self._declaration = declaration
        self._loopback: Loopback | None = None

    def bind(self, loopback: Loopback) -> None:
        """Send requests there from now on."""
        self._loopback = loopback

    async def get(self, name: str, namespace: str = "") -> T:
        """One object; APIError (NotFound) when there is none."""
        return self._load(await self._server().call("GET", self._path(namespace, name)))

    async def find(self, name: str, namespace: str = "") -> T | None:
        """One object, or None."""
        try:
            return await self.get(name, namespace)
        except errors.APIError as error:
            if error.code != 404:
                raise
            return None

    async def list(self, namespace: str = "", *, labels: str = "") -> list[T]:
        """All objects of a namespace, or of all; `labels` is a label selector."""
        query = "?" + urlencode({"labelSelector": labels}) if labels else ""
        found = await self._server().call("GET", self._path(namespace) + query)
        return [self._load(item) for item in found.get("items") or ()]

    async def create(self, obj: T) -> T:
        """Create an object; the answer is it as it is kept."""
        tree = self._tree(obj)
        return self._load(await self._server().call("POST", self._path(_namespace(tree)), tree))

    async def update(self, obj: T) -> T:
        """Replace an object; APIError (Conflict) when it has changed since it was read."""
        return await self._put(obj, "")

    async def update_status(self, obj: T) -> T:
        """Replace its status alone."""
        return await self._put(obj, "/status")

    async def modify(self, name: str, namespace: str, change: Callable[[T], T | None], *, status: bool = False) -> T:
        """Read, change and write, again while others are faster. `change` alters the object or answers another one."""
        for attempt in range(ATTEMPTS):
            obj = await self.get(name, namespace)
            changed = change(obj)
            try:
                return await self._put(obj if changed is None else changed, "/status" if status else "")
            except errors.APIError as error:
                if error.reason != "Conflict" or attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def delete(self, name: str, namespace: str = "") -> None:
        """Delete an object; APIError (NotFound) when there is none."""
        await self._server().call("DELETE", self._path(namespace, name))

    async def changes(self, namespace: str = "", *, labels: str = "") -> AsyncGenerator[Event[T], None]:
        """First every object there is, as ADDED, then every change, without an end.

        When the server has forgotten too much to go on, objects come as ADDED again: act on the state, not on the event.
        """
        version = ""
        loop = asyncio.get_running_loop()
        while True:
            began, told = loop.time(), False
            query = {"watch": "true", "allowWatchBookmarks": "true", **({"labelSelector": labels} if labels else {})}
            if version:
                query["resourceVersion"] = version
            events = self._server().watch(f"{self._path(namespace)}?{urlencode(query)}")
            async for event in events:
                told = True
                if event["type"] == "ERROR":
                    version = ""
                    break
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    yield Event(event["type"], self._load(event["object"]))
            if not told and loop.time() - began < PAUSE:
                # Watches that end at once (--min-request-timeout=0) are no reason to be busy.
                await asyncio.sleep(PAUSE)

    # Paths and trees

    async def _put(self, obj: T, part: str) -> T:
        tree = self._tree(obj)
        path = self._path(_namespace(tree), tree["metadata"]["name"]) + part
        return self._load(await self._server().call("PUT", path, tree))

    def _server(self) -> Loopback:
        if self._loopback is None:
            raise RuntimeError(f"the {self._declaration.plural} are there once the server runs")
        return self._loopback

    def _path(self, namespace: str, name: str = "") -> str:
        declaration = self._declaration
        where = f"namespaces/{quote(namespace, safe='')}/" if namespace and declaration.namespaced else ""
        path = f"/apis/{declaration.group_version}/{where}{declaration.plural}"
        return f"{path}/{quote(name, safe='')}" if name else path

    def _load(self, tree: Tree) -> T:
        return self._declaration.model.load(tree)

    def _tree(self, obj: T) -> Tree:
        declaration = self._declaration
        return {"apiVersion": declaration.group_version, "kind": declaration.kind, **declaration.model.dump(obj)}


def _namespace(tree: Tree) -> str:
    return cast("str", (tree.get("metadata") or {}).get("namespace") or "")
