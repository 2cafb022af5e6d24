"""What backends publish about themselves, fetched in the background: discovery documents and OpenAPI.

Each backend has a timer of its own, so a slow one delays nobody. What was fetched last stays until there is something
newer; discovery marks it as stale.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core.aggregation import entries, swagger
from fastapi_core.aggregation.fetch import AGGREGATOR, OPENAPI, Fetcher
from fastapi_core.aggregation.rounds import NEVER, Rounds
from fastapi_core.http.asking import Whole
from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.obs import logs
from fastapi_core.records import dataclass
from fastapi_core.registry.services import Resolver, ServiceError

if TYPE_CHECKING:
    from fastapi_core.aggregation.directory import APIService, Directory, Way
    from fastapi_core.aggregation.transport import Transports

log = logs.get("aggregation")

Tree = dict[str, Any]
PERIOD = 60.0
TIMEOUT = 5.0
OPENAPI_TIMEOUT = 30.0
_FIRST_RETRY = 0.5
_INLINE = 1 << 17
_JSON = (b"accept", b"application/json")
_UNUSABLE = (UpstreamError, TimeoutError, ServiceError, ValueError)


@dataclass(slots=True)
class Source:
    """One backend, and which APIServices it stands behind."""

    way: Way
    names: set[str] = field(default_factory=set)
    etag: bytes = b""
    found: entries.Found = field(default_factory=dict)
    v3: Mapping[str, str] = field(default_factory=dict)
    """OpenAPI v3 documents: name -> path at the backend."""
    v2: swagger.Swagger | None = None


class Published:
    """Sources by backend."""

    def __init__(self, directory: Directory, resolver: Resolver, transports: Transports, fetcher: Fetcher) -> None:
        self._directory = directory
        self._resolver = resolver
        self._transports = transports
        self._fetcher = fetcher
        self._sources: dict[Way, Source] = {}
        self._rounds = Rounds("documents", self._refresh, first=_FIRST_RETRY, last=PERIOD)
        self.entries: dict[str, Tree] = {}
        """APIService -> its version in the aggregated document."""
        self._listeners: list[Callable[[str], object]] = []
        self.openapi_generation = 0
        directory.listen(self._changed)

    def listen(self, changed: Callable[[str], object]) -> None:
        """Call with the group of every entry that is another one now."""
        self._listeners.append(changed)

    def _tell(self, group: str) -> None:
        for listener in self._listeners:
            listener(group)

    def start(self) -> None:
        self._rounds.start()
        for service in self._directory.services.values():
            self._changed(None, service)

    async def stop(self) -> None:
        await self._rounds.stop()

    def source(self, service: APIService) -> Source | None:
        """The backend of an APIService, once there was time to look at it."""
        return None if service.way is None else self._sources.get(service.way)

    # Which backends there are

    def _changed(self, before: APIService | None, now: APIService | None) -> None:
        if not self._rounds.running:
            return
        if before is not None and (now is None or now.way != before.way):
            self._leave(before)
        if now is None or now.way is None:
            return
        source = self._sources.setdefault(now.way, Source(now.way))
        joined = now.name not in source.names
        source.names.add(now.name)
        if joined:
            self._put(now, source, current=False)
        if now.available and (joined or before is None or not before.available):
            self._rounds.ask(now.way, fresh=True)
        elif not now.available:
            self._put(now, source, current=False)

    def _leave(self, service: APIService) -> None:
        if service.way is None:
            return
        if self.entries.pop(service.name, None) is not None:
            self._tell(service.group)
            self.openapi_generation += 1
        source = self._sources.get(service.way)
        if source is not None:
            source.names.discard(service.name)
            if not source.names:
                self._rounds.forget(source.way)
                del self._sources[source.way]

    # One round

    def _available(self, source: Source) -> list[APIService]:
        services = (self._directory.services.get(name) for name in sorted(source.names))
        return [service for service in services if service is not None and service.available]

    async def _refresh(self, way: Way) -> float | None:
        """Seconds until the next one; None when the backend does not tell."""
        source = self._sources[way]
        services = self._available(source)
        if not services:
            return NEVER  # once it is available again it will be asked again
        try:
            await self._discover(source, services)
            await self._describe(source, services[0])
        except _UNUSABLE as error:
            log.debug("A backend does not tell what it serves", service=way[0].name, error=str(error))
            for service in self._available(source):
                self._put(service, source, current=False)
            return None
        return PERIOD

    def _target(self, service: APIService) -> Target:
        assert service.backing is not None
        return self._transports.target(service, self._resolver.places(*service.backing)[0])

    async def _discover(self, source: Source, services: list[APIService]) -> None:
        accept = [(b"accept", entries.ACCEPT)]
        if source.etag:
            accept.append((b"if-none-match", source.etag))
        target = self._target(services[0])
        fetched = await self._fetcher.get(target, "/apis", AGGREGATOR, accept, timeout=TIMEOUT)
        if fetched.status == 503:
            raise UpstreamError("the backend answers 503")
        if fetched.status == 200 and entries.is_aggregated(fetched.header(b"content-type")):
            source.found = await _parsed(fetched, entries.aggregated)
            source.etag = fetched.header(b"etag")
        elif fetched.status != 304:
            source.etag = b""
            source.found = {}
            for service in services:
                old = await self._fetcher.get(target, service.path, AGGREGATOR, [_JSON], timeout=TIMEOUT)
                if old.status != 200:
                    raise UpstreamError(f"bad status for {service.path}: {old.status}")
                source.found[service.group, service.version] = await _parsed(old, entries.legacy)
        for service in services:
            self._put(service, source, current=True)

    def _put(self, service: APIService, source: Source, *, current: bool) -> None:
        resources = source.found.get((service.group, service.version))
        entry: Tree = {"version": service.version}
        if resources:
            entry["resources"] = resources
        entry["freshness"] = "Current" if current else "Stale"
        if self.entries.get(service.name) != entry:
            self.entries[service.name] = entry
            self._tell(service.group)

    async def _describe(self, source: Source, service: APIService) -> None:
        """OpenAPI; a backend without it, or with nonsense, is one without it."""
        before = (source.v3, source.v2)
        source.v3 = await self._documents(service) or source.v3
        source.v2 = await self._swagger(service, source.v2)
        if before != (source.v3, source.v2):
            self.openapi_generation += 1

    async def _documents(self, service: APIService) -> Mapping[str, str] | None:
        """None when it cannot be told now."""
        try:
            fetched = await self._fetcher.get(
                self._target(service), "/openapi/v3", OPENAPI, [_JSON], timeout=OPENAPI_TIMEOUT
            )
            return swagger.index(orjson.loads(fetched.body)) if fetched.status == 200 else {}
        except _UNUSABLE:
            return None

    async def _swagger(self, service: APIService, old: swagger.Swagger | None) -> swagger.Swagger | None:
        headers = [_JSON]
        if old is not None and old.etag:
            headers.append((b"if-none-match", old.etag))
        try:
            fetched = await self._fetcher.get(
                self._target(service), "/openapi/v2", OPENAPI, headers, timeout=OPENAPI_TIMEOUT
            )
            if fetched.status == 304:
                return old
            if fetched.status != 200:
                return None
            if old is not None and old.body == fetched.body:
                return old
            made = await _parsed(fetched, swagger.checked)
            return swagger.Swagger(fetched.body, fetched.header(b"etag"), made)
        except _UNUSABLE:
            return old

    async def document(self, service: APIService, path: str) -> bytes:
        """An OpenAPI v3 document of a backend. Raises what a fetch raises, ValueError for nonsense."""
        fetched = await self._fetcher.get(self._target(service), path, OPENAPI, [_JSON], timeout=TIMEOUT)
        if fetched.status != 200:
            raise UpstreamError(f"bad status for {path}: {fetched.status}")
        await _parsed(fetched, swagger.checked_v3)
        return fetched.body


async def _parsed(fetched: Whole, parse: Callable[[Any], Any]) -> Any:
    """The body as `parse` wants it; large ones are parsed in a thread. Raises ValueError."""

    def work() -> Any:
        return parse(orjson.loads(fetched.body))

    if len(fetched.body) <= _INLINE:
        return work()
    return await asyncio.get_running_loop().run_in_executor(None, work)
