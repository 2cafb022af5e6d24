"""One object of the core API, as it is now: listed once, watched from there, listed again when that breaks off."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from time import monotonic
from typing import Any
from urllib.parse import urlencode

from fastapi_core.authn.outbound import OutboundError
from fastapi_core.errors import APIError
from fastapi_core.extension.delegated.client import WATCH_SECONDS, CoreClient, segment
from fastapi_core.obs import logs

Tree = dict[str, Any]
log = logs.get("delegated")

FIRST_PAUSE, LONGEST_PAUSE = 0.8, 30.0
"""Seconds before the next attempt after the first failure, and after many."""


class _AgainError(Exception):
    """The watch cannot go on from where it was."""


class Followed:
    """Tells `changed` of the object: the tree, or None when there is none.

    `collection` is the path of the namespace's objects of the kind. Only `get`, `list` and `watch` of this one name
    are asked for, as the roles for it allow.
    """

    def __init__(
        self,
        client: CoreClient,
        collection: str,
        name: str,
        changed: Callable[[Tree | None], None],
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._collection = collection
        self._name = name
        self._changed = changed
        self._pause = pause
        self._version = ""
        """Where the next watch begins; empty: with a list."""
        self._task: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Read it once. Raises APIError or OutboundError."""
        self._changed(await self._client.find(f"{self._collection}/{segment(self._name)}"))

    async def start(self) -> None:
        """Follow it from now on."""
        self._task = asyncio.create_task(self._run(), name=f"follow-{self._name}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        wait = FIRST_PAUSE
        while True:
            try:
                if not self._version:
                    await self._list()
                version, began = self._version, monotonic()
                await self._watch()
                if self._version != version or monotonic() - began > 1.0:
                    wait = FIRST_PAUSE
                    continue
                log.warning("A watch ended as soon as it had begun", what=self._name)
            except _AgainError:
                self._version = ""
            except APIError as error:
                self._version = ""
                log.warning("Cannot be followed", what=self._name, error=error.message)
            except OutboundError as error:
                # The connection alone broke: the watch goes on from where it was.
                log.warning("Cannot be followed", what=self._name, error=str(error))
            except Exception as error:
                self._version = ""
                log.error("Cannot be followed", error, what=self._name)
            await self._pause(wait * random.uniform(1.0, 1.5))
            wait = min(wait * 2, LONGEST_PAUSE)

    async def _list(self) -> None:
        """Tell the state, and note its resource version."""
        found = await self._client.get(f"{self._collection}?{self._query()}")
        items = [item for item in found.get("items") or () if self._is_it(item)]
        self._changed(items[0] if items else None)
        self._version = _version(found)
        if not self._version:
            raise _AgainError

    async def _watch(self) -> None:
        """Tell changes until the watch ends, and note the version it has come to."""
        more = {"watch": "true", "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        query = self._query(**more, timeoutSeconds=str(WATCH_SECONDS))
        async with aclosing(self._client.watch(f"{self._collection}?{query}")) as events:
            async for event in events:
                kind, tree = event.get("type"), event.get("object")
                if kind == "ERROR" or not isinstance(tree, dict):
                    raise _AgainError
                self._version = _version(tree) or self._version
                if kind in ("ADDED", "MODIFIED", "DELETED") and self._is_it(tree):
                    self._changed(None if kind == "DELETED" else tree)

    def _query(self, **more: str) -> str:
        return urlencode({"fieldSelector": f"metadata.name={self._name}", **more})

    def _is_it(self, tree: object) -> bool:
        metadata = tree.get("metadata") if isinstance(tree, dict) else None
        return isinstance(metadata, dict) and metadata.get("name") == self._name


def _version(tree: Tree) -> str:
    metadata = tree.get("metadata")
    found = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else ""
