"""The etcd back end: the same store for every server that names the same cluster and prefix.

A write is one transaction that compares the revision of its key, and returns when the watch (`following.py`) has
brought its event, as a write of another server would be seen. So listeners hear of every commit once and in order,
whoever made it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from fastapi_core._ext.protowire import Message
from fastapi_core.storage.etcd import messages
from fastapi_core.storage.etcd.connection import COMPACT, LEASE, RANGE, STATUS, TXN, Connection
from fastapi_core.storage.etcd.failures import UNHEARD, LeaseGoneError
from fastapi_core.storage.etcd.following import Following, Stream, StreamEndedError
from fastapi_core.storage.etcd.leases import Leases
from fastapi_core.storage.etcd.names import Names
from fastapi_core.storage.etcd.settings import Settings
from fastapi_core.storage.interface import Code, Events, KeyValue, Listener, Page, StorageError
from fastapi_core.storage.listeners import Listeners

#: Seconds that writes under way have when the store is closed.
CLOSING_SECONDS = 5.0

#: What no revision of a key is: compared with it, a write is refused and told the key's state.
_NEVER = -1


class EtcdStorage:
    """A `Storage` that other processes write to as well."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._names = Names(settings.root, settings.prefix)
        self._listeners = Listeners()
        self._compacted = 0
        self._newest = 0
        self._writing = 0
        self._written: asyncio.Future[None] | None = None
        self._connection: Connection | None = None
        self._following: Following | None = None
        self._leases: Leases
        self._patience = settings.patience
        self._silence = settings.attempt

    async def open(self) -> None:
        """Find out how far etcd is and follow it from there. StorageError(UNAVAILABLE) when it does not answer."""
        if self._connection is not None:
            raise StorageError(Code.UNAVAILABLE, message="the store is open already")
        connection = self._connection = Connection(self._settings)
        try:
            revision = await self._ask_revision(patience=self._settings.opening)
            self._compacted = await self._learn_compacted(connection)
        except BaseException:
            self._connection = None
            await connection.close()
            raise
        self._newest = revision
        self._leases = Leases(self._grant, self._settings.lease_reuse)
        self._following = Following(connection, self._names, revision, self._deliver, self._lose, self._ask_revision)

    async def close(self) -> None:
        """Let writes under way come to their end, then close the connection; harmless when closed."""
        following, self._following = self._following, None
        connection = self._connection
        if following is None or connection is None:
            return
        if self._writing:
            self._written = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._written], timeout=min(self._patience, CLOSING_SECONDS))
        self._connection = None
        await following.close()
        await connection.close()

    @property
    def settings(self) -> Settings:
        """What the store was made with."""
        return self._settings

    @property
    def revision(self) -> int:
        return self._newest

    @property
    def compacted(self) -> int:
        return self._compacted

    # --- writes ---------------------------------------------------------------------------------------------------

    async def create(self, key: str, value: bytes, *, ttl: float = 0) -> int:
        return await self._write(key, value, 0, ttl)

    async def update(self, key: str, value: bytes, *, expected: int, ttl: float = 0) -> int:
        return await self._write(key, value, expected if expected > 0 else _NEVER, ttl)

    async def delete(self, key: str, *, expected: int) -> int:
        return await self._write(key, None, expected if expected > 0 else _NEVER, 0)

    async def _write(self, key: str, value: bytes | None, expected: int, ttl: float) -> int:
        following = self._serving()
        name = self._names.key(key)
        self._writing += 1
        try:
            answer = await self._commit(key, name, value, expected, ttl)
            if answer.get("succeeded"):
                revision = messages.revision_of(answer)
                await self._reach(following, revision)
                return revision
        finally:
            self._writing -= 1
            if self._written is not None and not self._writing and not self._written.done():
                self._written.set_result(None)
        found = messages.looked(answer)
        if found is None:
            raise StorageError(Code.KEY_NOT_FOUND, key)
        raise StorageError(Code.CONFLICT if expected else Code.KEY_EXISTS, key, found.get("mod_revision", 0))

    async def _commit(self, key: str, name: bytes, value: bytes | None, expected: int, ttl: float) -> messages.Tree:
        compare, failure = [messages.compare_mod(name, expected)], [messages.look(name)]
        while True:
            lease = await self._leases.lease(ttl) if ttl > 0 else 0
            success = [messages.delete(name) if value is None else messages.put(name, value, lease)]
            request = messages.encode(
                messages.TXN_REQUEST, {"compare": compare, "success": success, "failure": failure}
            )
            try:
                return await self._call(messages.TXN_RESPONSE, TXN, request, key=key, again=False)
            except LeaseGoneError:
                # Etcd was restored, or did not hear of us for so long. A new one is not refused for that.
                self._leases.forget(lease)

    # --- reads ----------------------------------------------------------------------------------------------------

    async def get(self, key: str) -> KeyValue | None:
        following = self._serving()
        answer = await self._range({"key": self._names.key(key)}, key=key)
        await self._reach(following, messages.revision_of(answer))
        found = answer.get("kvs")
        return self._names.item(found[0]) if found else None

    async def list(self, prefix: str, *, revision: int = 0, start: str = "", limit: int = 0) -> Page:
        following = self._serving()
        key, end = self._names.span(prefix)
        if start > prefix and start.startswith(self._names.root):
            key = max(key, self._names.key(start))
        try:
            answer = await self._range({"key": key, "range_end": end, "limit": limit, "revision": revision})
        except StorageError as error:
            raise await self._explained(error) from None
        if not revision:
            await self._reach(following, messages.revision_of(answer))
        found = answer.get("kvs", [])
        items = [item for item in map(self._names.item, found) if item is not None]
        return Page(items, revision or messages.revision_of(answer), max(0, answer.get("count", 0) - len(found)))

    async def history(self, prefix: str, *, after: int, until: int) -> Events:
        following = self._serving()
        if after < self._compacted:
            raise StorageError(Code.COMPACTED, revision=self._compacted)
        until = min(until, following.revision)
        if after >= until:
            return []
        try:
            async with asyncio.timeout(self._patience):
                while True:
                    # A member that has just come back may leave one stream without a word, and answer the next.
                    with suppress(TimeoutError):
                        return await self._told(prefix, after, until)
        except StreamEndedError as error:
            if error.compacted:
                self._compacted = max(self._compacted, error.compacted)
                raise StorageError(Code.COMPACTED, revision=error.compacted) from None
            raise StorageError(Code.UNAVAILABLE, message=f"rpc error: code = Unavailable desc = {error}") from None
        except ValueError as error:
            raise StorageError(Code.UNAVAILABLE, message=f"etcd's answer cannot be read: {error}") from None
        except TimeoutError:
            raise StorageError(Code.TIMEOUT, message=UNHEARD) from None

    async def _told(self, prefix: str, after: int, until: int) -> Events:
        """What a stream of its own says has happened. TimeoutError when it falls silent."""
        stream = Stream(self._connected(), self._names, prefix)
        events: Events = []
        revision = 0
        try:
            # Etcd refuses what begins below the compacted revision; deletions at it may be gone as well.
            await stream.open(max(1, after))
            async with stream.asking():
                while revision < until:
                    async with asyncio.timeout(self._silence):
                        found, revision = await stream.next()
                    events += [event for event in found if after < event.revision <= until]
        finally:
            stream.cancel()
        return events

    def listen(self, listener: Listener, lost: Callable[[], None] | None = None) -> Callable[[], None]:
        return self._listeners.add(listener, lost)

    # --- upkeep ---------------------------------------------------------------------------------------------------

    async def compact(self, revision: int) -> None:
        following = self._serving()
        if revision <= self._compacted:
            return
        request = messages.encode(messages.COMPACTION_REQUEST, {"revision": revision})
        try:
            await self._connected().call(COMPACT, request)
        except StorageError as error:
            if error.code is Code.FUTURE_REVISION:
                raise StorageError(Code.FUTURE_REVISION, revision=following.revision) from None
            if error.code is not Code.COMPACTED:
                raise
        self._compacted = max(self._compacted, revision)

    async def sync(self) -> int:
        following = self._serving()
        revision = await self._ask_revision()
        await self._reach(following, revision)
        return max(revision, following.revision)

    async def check(self) -> None:
        self._serving()
        await self._ask_revision(patience=self._settings.check_seconds)

    async def size(self) -> int:
        """Bytes of the database of the member that is asked."""
        self._serving()
        return int((await self._call(messages.STATUS_RESPONSE, STATUS, b"")).get("dbSize", 0))

    async def turn(self, name: str, version: int, value: bytes) -> tuple[bool, int, int]:
        """Take a turn that several servers share: the key `name` (of etcd itself, below no prefix) is written if it has
        `version`. (whether it was, its version now, the store's revision)."""
        key = name.encode()
        compare = {"target": messages.VERSION, "key": key, "version": version}
        tree = {"compare": [compare], "success": [messages.put(key, value)], "failure": [messages.look(key)]}
        request = messages.encode(messages.TXN_REQUEST, tree)
        answer = await self._call(messages.TXN_RESPONSE, TXN, request, key=name, again=False)
        revision = messages.revision_of(answer)
        if answer.get("succeeded"):
            return True, version + 1, revision
        found = messages.looked(answer) or {}
        return False, found.get("version", 0), revision

    # --- inside ---------------------------------------------------------------------------------------------------

    def _serving(self) -> Following:
        if self._following is None:
            raise StorageError(Code.UNAVAILABLE, message="the store is not open")
        return self._following

    def _connected(self) -> Connection:
        if self._connection is None:
            raise StorageError(Code.UNAVAILABLE, message="the store is not open")
        return self._connection

    async def _call(
        self,
        answer: Message,
        method: str,
        request: bytes,
        *,
        key: str = "",
        again: bool = True,
        patience: float = 0,
    ) -> messages.Tree:
        data = await self._connected().call(method, request, key=key, again=again, patience=patience)
        try:
            return messages.decode(answer, data)
        except ValueError as error:
            raise StorageError(Code.UNAVAILABLE, key, message=f"etcd's answer cannot be read: {error}") from None

    async def _range(self, request: messages.Tree, *, key: str = "", patience: float = 0) -> messages.Tree:
        encoded = messages.encode(messages.RANGE_REQUEST, request)
        return await self._call(messages.RANGE_RESPONSE, RANGE, encoded, key=key, patience=patience)

    async def _ask_revision(self, patience: float = 0) -> int:
        """The newest revision there is, agreed on by most members."""
        key, _ = self._names.span("")
        return messages.revision_of(await self._range({"key": key, "count_only": True}, patience=patience))

    async def _grant(self, seconds: int) -> int:
        request = messages.encode(messages.LEASE_REQUEST, {"TTL": seconds})
        answer = await self._call(messages.LEASE_RESPONSE, LEASE, request)
        if answer.get("error") or not answer.get("ID"):
            raise StorageError(Code.UNAVAILABLE, message=f"etcd grants no lease: {answer.get('error', '')}")
        return int(answer["ID"])

    async def _reach(self, following: Following, revision: int) -> None:
        """Listeners have seen `revision`."""
        if revision > following.revision:
            try:
                await following.reach(revision, self._patience)
            except TimeoutError:
                raise StorageError(Code.TIMEOUT, message=UNHEARD) from None

    def _deliver(self, events: Events) -> None:
        following = self._following
        if following is not None:
            self._newest = following.revision
            self._listeners.deliver(events)

    def _lose(self, compacted: int) -> None:
        following = self._following
        if following is not None:
            self._compacted = max(self._compacted, compacted)
            self._newest = following.revision
            self._listeners.lose()

    async def _explained(self, error: StorageError) -> StorageError:
        """The error with the revision that explains it, which etcd does not tell."""
        if error.code is Code.FUTURE_REVISION:
            return StorageError(error.code, error.key, self._newest)
        if error.code is Code.COMPACTED:
            self._compacted = max(self._compacted, await self._learn_compacted(self._connected()))
            return StorageError(error.code, error.key, self._compacted)
        return error

    async def _learn_compacted(self, connection: Connection) -> int:
        """Which history is gone. Etcd tells it to who asks for history that is."""
        key, _ = self._names.span("")
        try:
            await self._range({"key": key, "count_only": True, "revision": 1})
            return 0
        except StorageError as error:
            if error.code is Code.FUTURE_REVISION:
                return 0
            if error.code is not Code.COMPACTED:
                raise
        stream = Stream(connection, self._names, "")
        try:
            async with asyncio.timeout(self._patience):
                await stream.open(1)
                while True:
                    await stream.next()
        except StreamEndedError as error:
            return error.compacted
        except ValueError as error:
            raise StorageError(Code.UNAVAILABLE, message=f"etcd's answer cannot be read: {error}") from None
        except TimeoutError:
            raise StorageError(Code.TIMEOUT, message=UNHEARD) from None
        finally:
            stream.cancel()
