"""The generic API server: the chain, the socket, health and lifecycle around endpoints it knows nothing of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from fastapi_core.filters.chain import ChainConfig, build_chains
from fastapi_core.filters.limits import ShutdownGate
from fastapi_core.http.exchange import Answer, Handler
from fastapi_core.later import load_all
from fastapi_core.obs import logs, process
from fastapi_core.server.config import ServerConfig
from fastapi_core.server.health import ALL, HEALTHZ, LIVEZ, READYZ, Check, Health, Probe, Progress
from fastapi_core.server.lifecycle import Closer, Hook, Signals, Start, run_closers, run_hooks
from fastapi_core.server.loopback import Loopback
from fastapi_core.server.memory import Memory
from fastapi_core.server.stalls import Stalls

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Request
    from fastapi_core.request.routing import Routes


log = logs.get("server")


class Listener(Protocol):
    """The HTTP server as the lifecycle drives it."""

    @property
    def port(self) -> int: ...
    async def start(self) -> None: ...
    def stop_accepting(self) -> None: ...
    async def drain(self, timeout: float) -> bool:
        """Return when no request is under way (True), after `timeout` seconds at the latest (False)."""
        ...

    async def close(self) -> None: ...


class GenericServer:
    """One server.

    `router` gives the route snapshot of the moment, `known_group` tells whether an API group is served in any version.
    `listen` makes the listener from the handler and the handler of too large requests; the default is the TLS server
    of `http`.
    """

    def __init__(
        self,
        config: ServerConfig,
        router: Callable[[], Routes],
        *,
        known_group: Callable[[str], bool],
        listen: Callable[[ServerConfig, Handler, Handler], Listener] | None = None,
    ) -> None:
        self.config = config
        self.metrics = config.metrics
        self.router = router
        self.health = Health(config.metrics)
        self.signals = Signals()
        self._gate = ShutdownGate()
        self._listen = listen or _https
        self._listener: Listener | None = None
        self._hooks: list[Hook] = []
        self._on_shutdown: list[tuple[str, Closer]] = []
        self._pre_shutdown: list[tuple[str, Closer]] = []
        self._closers: list[tuple[str, Closer]] = []
        self._afterwards: list[Callable[[], Iterable[object]]] = [load_all]
        self._stopping: asyncio.Task[None] | None = None
        self._chains = build_chains(
            ChainConfig(
                authenticator=config.authenticator,
                authorizer=config.authorizer,
                metrics=config.metrics,
                router=router,
                known_group=known_group,
                gate=self._gate,
                audit=config.audit,
                body_limit=config.body_limit,
                request_timeout=config.request_timeout,
                max_requests_inflight=config.max_requests_inflight,
                max_mutating_requests_inflight=config.max_mutating_requests_inflight,
                flow=config.flow,
                cors_allowed_origins=config.cors_allowed_origins,
                strict_transport_security=config.strict_transport_security,
            )
        )
        self.loopback = Loopback(self._chains.loopback)
        """This server as its own client, with every right: for hooks and controllers."""
        self.stalls = Stalls() if config.contention_profiling else None
        self._memory = Memory()
        process.register(config.metrics.registry)
        self.health.add(Check("ping", _ping))
        self.health.add(Check("log", logs.SINK.check))
        # Fails as soon as shutdown begins, so it has the last word.
        self.health.add(Check("shutdown", self._check_shutdown, (READYZ,), last=True))

    def handler(self, request: Request) -> Answer | Awaitable[Answer]:
        """Run the chain for one request (`http.exchange.Handler`)."""
        return self._chains.serve(request)

    @property
    def filters(self) -> list[str]:
        """Names of the filters, outermost first."""
        return self._chains.serve.names

    @property
    def port(self) -> int:
        """The port chosen, once started."""
        return self._listener.port if self._listener is not None else self.config.port

    def add_health_check(self, name: str, probe: Probe, endpoints: tuple[str, ...] = ALL, group: str = "") -> None:
        """Add a check to the given endpoints; before `start`."""
        self._expect_not_started(f"health check {name}")
        self.health.add(Check(name, probe, endpoints, group))

    def add_hook(self, name: str, start: Start) -> None:
        """Run `start` once the socket listens; `poststarthook/<name>` fails until it has returned.

        A hook that raises ends the process: `GenericServer.start` raises HookError.
        """
        self._expect_not_started(f"hook {name}")
        progress = Progress(f"hook {name}", self.config.livez_grace_period)
        self._hooks.append(Hook(name, start, progress))
        self.health.add(Check(f"poststarthook/{name}", progress, (HEALTHZ, READYZ)))
        self.health.add(Check(f"poststarthook/{name}", progress.lenient, (LIVEZ,)))

    def add_pre_shutdown_hook(self, name: str, stop: Closer) -> None:
        """Run `stop` when shutdown begins, while requests are still served."""
        self._pre_shutdown.append((name, stop))

    def on_shutdown(self, close: Closer, name: str = "streams") -> None:
        """Run `close` when requests are no longer accepted: it ends the long-running ones."""
        self._on_shutdown.append((name, close))

    def on_stop(self, close: Closer, name: str = "resource") -> None:
        """Run `close` at the very end, last registered first: storage and what the server holds open."""
        self._closers.append((name, close))

    def afterwards(self, steps: Callable[[], Iterable[object]]) -> None:
        """Have `finish` take these steps, each of which may hold the loop for a millisecond or a few."""
        self._afterwards.append(steps)

    async def finish(self) -> None:
        """Do what a server can do without and its first requests would have to: load, and make, what was put off."""
        for steps in self._afterwards:
            for _ in steps():
                await asyncio.sleep(0)

    async def start(self) -> None:
        """Listen, run the hooks, be ready. Raises OSError (address) or HookError; the server is stopped then."""
        self._expect_not_started("start")
        listener = self._listener = self._listen(self.config, self._chains.serve, self._chains.too_large)
        try:
            await listener.start()
            self.config.files.start()
            if self.stalls is not None:
                await self.stalls.start()
            await run_hooks(self._hooks)
            self._memory.start()
        except BaseException:
            await self.stop()
            raise
        self.signals.happened("started")
        log.info("Serving", address=f"{self.config.bind_address}:{self.port}", tls=self.config.tls is not None)

    async def stop(self) -> None:
        """Go down in order; calling it again waits for the same shutdown."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(), name="shutdown")
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        signals, listener, config = self.signals, self._listener, self.config
        delay = config.shutdown_delay if signals.started.is_set() else 0.0
        signals.happened("shutdown_initiated")
        # Still serving: load balancers see /readyz fail and send new clients elsewhere.
        await asyncio.gather(run_closers(self._pre_shutdown), asyncio.sleep(delay))
        signals.happened("after_shutdown_delay")
        self._gate.redirecting = config.send_retry_after
        self._gate.closed = True
        signals.happened("not_accepting")
        # Those who are to be sent away with an answer must be able to connect for it.
        if listener is not None and not config.send_retry_after:
            listener.stop_accepting()
        # Watches have no end of their own; requests do, and get the time for it.
        await asyncio.gather(run_closers(self._on_shutdown), self._drain())
        signals.happened("drained")
        if listener is not None:
            listener.stop_accepting()
            await listener.close()
        # Every request has had its last event; whoever writes them gets the time to.
        if self.config.audit is not None:
            await run_closers([("audit", self.config.audit.close)])
        config.files.close()
        self._memory.stop()
        if self.stalls is not None:
            self.stalls.stop()
        await run_closers(self._closers[::-1])
        signals.happened("stopped")

    async def _drain(self) -> None:
        timeout = self.config.drain_timeout + self.config.watch_grace
        if self._listener is not None and not await self._listener.drain(timeout):
            log.warning("Requests were cut off", after=f"{timeout:g}s")

    def _check_shutdown(self) -> None:
        if self.signals.shutdown_initiated.is_set():
            raise RuntimeError("process is shutting down")

    def _expect_not_started(self, what: str) -> None:
        if self._listener is not None:
            raise RuntimeError(f"{what}: the server has been started already")


def _ping() -> None:
    return None


def _https(config: ServerConfig, handler: Handler, too_large: Handler) -> Listener:
    from fastapi_core.server.listener import HTTPListener

    return HTTPListener(config, handler, too_large)
