"""Whether each registered group version can be used: checked beside the requests, told in its condition.

Every APIService has a timer of its own. A check looks at the Service and its endpoints, then asks the backend for the
document of the group version; what has failed is looked at again soon, then less and less often.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

from fastapi_core.aggregation.directory import AVAILABLE, APIService, Backing, Directory, condition
from fastapi_core.aggregation.fetch import AGGREGATOR, Fetcher
from fastapi_core.aggregation.rounds import NEVER, Rounds
from fastapi_core.aggregation.transport import Transports
from fastapi_core.errors import APIError, go_quote
from fastapi_core.http.client import UpstreamError
from fastapi_core.meta import time
from fastapi_core.obs import logs
from fastapi_core.records import dataclass
from fastapi_core.registry.services import Place, Resolver, ServiceError, is_ready

if TYPE_CHECKING:
    from fastapi_core.obs.catalog import Metrics

log = logs.get("aggregation")

Tree = dict[str, Any]
ATTEMPTS = 5
PARALLEL = 256
"""Checks at the same time: those of silent backends take seconds, and others are not to wait for them."""
_FIRST_RETRY, _LAST_RETRY = 0.25, 30.0
_BODY_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Policy:
    """How backends are probed. The defaults are the reference's; times in seconds."""

    path: str = ""
    """Probed path; empty: the document of the group version."""
    period: float = 30.0
    timeout: float = 5.0
    failures: int = 1
    """Failed probes in a row that make a backend unavailable."""
    successes: int = 1
    """Passed probes in a row that make it available again."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the condition says."""

    status: str
    reason: str
    message: str

    @property
    def passed(self) -> bool:
        return self.status == "True"


LOCAL = Finding("True", "Local", "Local APIServices are always available")
PASSED = Finding("True", "Passed", "all checks passed")


@dataclass(slots=True)
class _State:
    failed: int = 0
    passed: int = 0
    told: Finding | None = None


WriteStatus = Callable[[str, Tree], Awaitable[None]]
"""Puts a whole APIService with another status. Raises APIError."""


class Availability:
    """The controller. `write` puts an APIService with a new status."""

    def __init__(
        self,
        directory: Directory,
        resolver: Resolver,
        transports: Transports,
        fetcher: Fetcher,
        write: WriteStatus,
        metrics: Metrics,
        policy: Policy | None = None,
    ) -> None:
        self._directory = directory
        self._resolver = resolver
        self._transports = transports
        self._fetcher = fetcher
        self._write = write
        self._policy = policy or Policy()
        self._states: dict[str, _State] = {}
        self._slots = asyncio.Semaphore(PARALLEL)
        self._by_service: dict[tuple[str, str], set[str]] = {}
        self._checked: list[Callable[[APIService, bool], None]] = []
        self._rounds = Rounds("availability", self._round, first=_FIRST_RETRY, last=_LAST_RETRY)
        registry = metrics.registry
        self._gauge = registry.gauge(
            "aggregator_unavailable_apiservice", "1 for a registered API service that is not available.", ("name",)
        )
        self._counter = registry.counter(
            "aggregator_unavailable_apiservice_total", "Times an API service became unavailable, by reason.",
            ("name", "reason"),
        )  # fmt: skip
        directory.listen(self._changed)
        resolver.services.listen(self._service_changed)

    def on_check(self, checked: Callable[[APIService, bool], None]) -> None:
        """Call after every check of a backend, with whether it passed."""
        self._checked.append(checked)

    def start(self) -> None:
        """Check everything now, and go on until `stop`."""
        self._rounds.start()
        for service in self._directory.services.values():
            self._changed(None, service)

    async def stop(self) -> None:
        await self._rounds.stop()

    # What asks for a check

    def _changed(self, before: APIService | None, now: APIService | None) -> None:
        if before is not None and before.backing is not None:
            place = before.backing[:2]
            names = self._by_service.get(place, set())
            names.discard(before.name)
            if not names:
                self._by_service.pop(place, None)
        if now is not None and now.backing is not None:
            self._by_service.setdefault(now.backing[:2], set()).add(now.name)
        if now is None:
            self._forget(before)
        elif before is None or (before.way, before.uid) != (now.way, now.uid):
            self._rounds.ask(now.name, fresh=True)
        elif self._contradicted(now):
            self._rounds.ask(now.name)

    def _contradicted(self, service: APIService) -> bool:
        """Whether somebody else has written the condition."""
        state = self._states.get(service.name)
        told = None if state is None else state.told
        return told is not None and service.said != (told.status, told.reason, told.message)

    def _forget(self, service: APIService | None) -> None:
        if service is None:
            return
        self._rounds.forget(service.name)
        self._states.pop(service.name, None)
        self._gauge.children.pop((service.name,), None)

    def _service_changed(self, namespace: str, name: str) -> None:
        for apiservice in tuple(self._by_service.get((namespace, name), ())):
            self._rounds.ask(apiservice)

    def enqueue(self, name: str) -> None:
        """Check it now, or once more when a check is under way."""
        self._rounds.ask(name)

    # A check

    async def _round(self, name: str) -> float | None:
        """Seconds until the next one; None after one that was not passed."""
        async with self._slots:
            finding = await self._check(name, self._states.setdefault(name, _State()))
        if finding is None or finding is LOCAL:
            return NEVER
        return self._policy.period if finding.passed else None

    async def _check(self, name: str, state: _State) -> Finding | None:
        service = self._directory.services.get(name)
        if service is None:
            return None
        finding = LOCAL if service.backing is None else await self._look(service, service.backing)
        if service.backing is not None:
            finding = self._settled(state, service, finding)
            for checked in self._checked:
                checked(service, finding.passed)
        if self._directory.services.get(name) is not None:
            self._count(name, state, finding)
            await self._tell(name, service, finding)
        return finding

    def _settled(self, state: _State, service: APIService, finding: Finding) -> Finding:
        """The finding, or the last one while the thresholds are not reached."""
        state.passed, state.failed = (state.passed + 1, 0) if finding.passed else (0, state.failed + 1)
        if state.told is None or state.told.passed == finding.passed:
            return finding
        enough = state.passed >= self._policy.successes if finding.passed else state.failed >= self._policy.failures
        return finding if enough or finding.reason not in ("Passed", "FailedDiscoveryCheck") else state.told

    def _count(self, name: str, state: _State, finding: Finding) -> None:
        self._gauge.labels(name).set(0.0 if finding.passed else 1.0)
        if not finding.passed and (state.told is None or state.told.reason != finding.reason):
            self._counter.labels(name, finding.reason).inc()
        state.told = finding

    async def _look(self, service: APIService, backing: Backing) -> Finding:
        unready = self._endpoints(backing)
        if unready is not None:
            return unready
        try:
            places = self._resolver.places(*backing)
            await self._probe(service, places)
        except (ServiceError, UpstreamError, ValueError) as error:
            return Finding("False", "FailedDiscoveryCheck", str(error))
        return PASSED

    def _endpoints(self, backing: Backing) -> Finding | None:
        """What is wrong with the Service; None when nothing is."""
        where = f"service/{backing.name} in {go_quote(backing.namespace)}"
        service = self._resolver.services.service(backing.namespace, backing.name)
        if service is None:
            return Finding("False", "ServiceNotFound", f"{where} is not present")
        spec: Tree = service.get("spec") or {}
        if (spec.get("type") or "ClusterIP") != "ClusterIP":
            return None
        port = next((p for p in spec.get("ports") or () if p.get("port") == backing.port), None)
        if port is None:
            return Finding("False", "ServicePortError", f"{where} is not listening on port {backing.port}")
        slices = self._resolver.services.slices(backing.namespace, backing.name)
        if not slices:
            return Finding("False", "EndpointsNotFound", f"cannot find endpointslices for {where}")
        name = port.get("name") or ""
        for tree in slices:
            named = any((p.get("name") or "") == name and p.get("port") for p in tree.get("ports") or ())
            if named and any(is_ready(endpoint) for endpoint in tree.get("endpoints") or ()):
                return None
        text = f"endpointslices for {where} have no addresses with port name {go_quote(name)}"
        return Finding("False", "MissingEndpoints", text)

    async def _probe(self, service: APIService, places: list[Place]) -> None:
        """Ask once; when that fails at once ask all the others. UpstreamError with the last failure."""
        end = monotonic() + self._policy.timeout
        try:
            await self._once(service, places[0], end)
            return
        except UpstreamError:
            if monotonic() > end - self._policy.timeout / 2:
                raise
        others = [places[number % len(places)] for number in range(1, ATTEMPTS)]
        tasks = [asyncio.ensure_future(self._once(service, place, end)) for place in others]
        last: BaseException | None = None
        try:
            for attempt in asyncio.as_completed(tasks):
                try:
                    await attempt
                    return
                except UpstreamError as error:
                    last = error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        raise UpstreamError(str(last))

    async def _once(self, service: APIService, place: Place, end: float) -> None:
        target = self._transports.target(service, place)
        path = self._policy.path or service.path
        url = f"https://{target.authority}{path}"
        try:
            left = max(end - monotonic(), 0.01)
            fetched = await self._fetcher.get(target, path, AGGREGATOR, timeout=left, limit=_BODY_LIMIT)
        except TimeoutError:
            reason = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            raise UpstreamError(f'failing or missing response from {url}: Get "{url}": {reason}') from None
        except UpstreamError as error:
            raise UpstreamError(f'failing or missing response from {url}: Get "{url}": {error}') from None
        if not 200 <= fetched.status < 300:
            bad = f"bad status from {url}: {fetched.status}"
            raise UpstreamError(f"failing or missing response from {url}: {bad}")

    # The condition

    async def _tell(self, name: str, service: APIService, finding: Finding) -> None:
        for _ in range(5):
            obj = self._directory.store.cache.get(self._directory.store.key("", name))
            if obj is None:
                return
            tree = obj.tree()
            new = with_finding(tree, finding)
            # Somebody may have pointed it elsewhere while we looked; that will be looked at next.
            if new is None or (tree.get("metadata") or {}).get("uid") != service.uid:
                return
            tree["metadata"]["resourceVersion"] = str(obj.revision)
            try:
                await self._write(name, {**tree, "status": new})
                return
            except APIError as error:
                if error.code == 404:
                    return
                if error.code != 409:
                    raise


def with_finding(tree: Tree, finding: Finding) -> Tree | None:
    """The status that says so; None when it does already. The time of the transition moves with the status only."""
    old = condition(tree)
    wanted = {"status": finding.status, "reason": finding.reason, "message": finding.message}
    if old is not None and all((old.get(key) or "") == value for key, value in wanted.items()):
        return None
    same = old is not None and old.get("status") == finding.status
    since = (old or {}).get("lastTransitionTime") if same else None
    new = {"type": AVAILABLE, "status": finding.status, "lastTransitionTime": since or time.now()}
    new |= {"reason": finding.reason, "message": finding.message}
    status: Tree = tree.get("status") or {}
    conditions = status.get("conditions") or []
    if old is None:
        return {**status, "conditions": [*conditions, new]}
    return {**status, "conditions": [new if entry is old else entry for entry in conditions]}
