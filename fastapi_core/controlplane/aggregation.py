"""Aggregation wired to the server: who is registered, who is available, who answers which path."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from fastapi_core.aggregation.availability import Availability, Policy
from fastapi_core.aggregation.directory import APISERVICES, APIService, Directory
from fastapi_core.aggregation.fetch import Fetcher
from fastapi_core.aggregation.headers import Dropped
from fastapi_core.aggregation.proxy import Front, Proxied
from fastapi_core.aggregation.published import Published
from fastapi_core.aggregation.registration import Registrations
from fastapi_core.aggregation.transport import Transports
from fastapi_core.http.client import Tunnel
from fastapi_core.http.pool import Pool
from fastapi_core.later import later
from fastapi_core.options.flags import OptionsError
from fastapi_core.registry.services import Resolver, Way

if TYPE_CHECKING:
    from fastapi_core.aggregation import discovery as discovery_views
    from fastapi_core.aggregation import openapi as openapi_views
    from fastapi_core.controlplane.delegation import Delegation
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.discovery.endpoints import DiscoveryEndpoints
    from fastapi_core.discovery.live import LiveDocuments
    from fastapi_core.openapi.endpoints import OpenAPIEndpoints
    from fastapi_core.options.authentication import Authentication
    from fastapi_core.options.complete import Completed
    from fastapi_core.server.generic import GenericServer
else:
    discovery_views = later("fastapi_core.aggregation.discovery")
    openapi_views = later("fastapi_core.aggregation.openapi")

#: Seconds after which there is time for what no request has asked for.
QUIET = 1.0


class Aggregation:
    """Everything of it, for one server. `install` before the server starts."""

    def __init__(
        self, completed: Completed, resources: Resources, delegation: Delegation, server: GenericServer
    ) -> None:
        options = completed.options.aggregation
        self._files = (options.proxy_client_cert_file, options.proxy_client_key_file)
        self._server = server
        self._delegation = delegation
        metrics = completed.config.metrics
        self.directory = Directory(resources.stores[APISERVICES])
        self.registrations = Registrations(resources.stores[APISERVICES], self.directory)
        self.services = resources.backends.services
        self.services.own_port = lambda: server.port
        self.resolver = Resolver(self.services, Way.ENDPOINTS if options.enable_aggregator_routing else Way.CLUSTER)
        self.transports = Transports(*self._files, _tunnel(options.egress_selector_config_file))
        self.pool = Pool(
            idle_timeout=options.aggregator_idle_connection_timeout,
            idle_limit=options.aggregator_idle_connections_per_backend,
            limit=options.aggregator_connections_per_backend,
        )
        self.fetcher = Fetcher(self.pool)
        self._front = Front(
            self.pool,
            self.resolver,
            self.transports,
            resources.backends.upstreams,
            dropped=Dropped(_own_headers(completed.credentials.flags)),
            reject_redirects=options.aggregator_reject_forwarding_redirect,
            timeout=options.aggregator_proxy_timeout,
            retry_after=options.aggregator_retry_after,
            breaker=options.aggregator_circuit_breaker_failures,
            metrics=metrics,
        )
        self.availability = Availability(
            self.directory,
            self.resolver,
            self.transports,
            self.fetcher,
            self._write_status,
            metrics,
            Policy(
                options.aggregator_health_path,
                options.aggregator_health_period,
                failures=options.aggregator_health_failures,
                successes=options.aggregator_health_successes,
            ),
        )
        self.published = Published(self.directory, self.resolver, self.transports, self.fetcher)
        self._proxied: dict[str, Proxied] = {}
        self._groups: dict[str, set[str]] = {}
        self._front.broken = self.availability.enqueue
        self.directory.listen(self._changed)
        self.availability.on_check(self._checked)
        self.transports.on_renewal(self._renew)

    def show(self, documents: LiveDocuments, discovery: DiscoveryEndpoints, openapi: OpenAPIEndpoints) -> None:
        """Put what backends publish into the documents of the server."""
        self._discovery = discovery
        listed = self._listed = cache(lambda: discovery_views.DiscoveryView(documents, self.directory, self.published))
        described = cache(lambda: openapi_views.OpenAPIView(self.directory, self.published))
        discovery.shown = lambda documents: listed()(documents)
        openapi.shown = lambda documents: described()(documents)

    def install(self, server: GenericServer, builtin: Mapping[str, tuple[str, ...]]) -> None:
        """Hooks, checks and their ends. `builtin`: group -> versions."""
        registrations = self.registrations
        registrations.builtin(builtin)

        async def informers() -> None:
            self.services.open()
            await self.directory.open()

        async def certificate() -> None:
            if all(self._files):
                server.config.files.follow(self._files, self.transports.reload)

        async def register() -> None:
            await registrations.start()

        async def available() -> None:
            self.availability.start()

        async def discovery() -> None:
            self.published.start()
            # Groups by the hundred are not for the first request to put together.
            asyncio.get_running_loop().call_later(QUIET, self._listed)

        async def nothing() -> None:
            """Done by another hook."""

        def complete() -> None:
            missing = registrations.missing()
            if missing:
                raise RuntimeError(f"missing APIService: {missing}")

        server.add_hook("aggregator-reload-proxy-client-cert", certificate)
        server.add_hook("start-kube-aggregator-informers", informers)
        server.add_hook("kube-apiserver-autoregistration", register)
        server.add_hook("apiservice-registration-controller", nothing)
        server.add_hook("apiservice-wait-for-first-sync", nothing)
        server.add_hook("apiservice-status-local-available-controller", nothing)
        server.add_hook("apiservice-status-remote-available-controller", available)
        server.add_hook("apiservice-discovery-controller", discovery)
        server.add_hook("apiservice-openapi-controller", nothing)
        server.add_hook("apiservice-openapiv3-controller", nothing)
        server.add_health_check("autoregister-completion", complete)
        server.on_shutdown(self.availability.stop, "availability")
        server.on_shutdown(self._front.shutdown, "streams of aggregated servers")
        server.on_shutdown(self.published.stop, "documents of backends")
        server.on_shutdown(registrations.stop, "registration")
        server.on_stop(self._close, "aggregation")

    async def _close(self) -> None:
        self.directory.close()
        self.services.close()
        self.pool.close()

    def _changed(self, before: APIService | None, now: APIService | None) -> None:
        """Another registration: put its endpoint in its place, or take it back."""
        self._list(before, now)
        if before is not None and (now is None or now.backing is None):
            found = self._proxied.pop(before.name, None)
            if found is not None:
                found.renew()
                self._delegation.drop_aggregated(before.group, before.version)
        if now is None or now.backing is None or not now.group:
            return
        known = self._proxied.get(now.name)
        if known is not None:
            known.update(now)
            return
        made = self._proxied[now.name] = Proxied(self._front, now)
        self._delegation.put_aggregated(now.group, now.version, made)

    def _list(self, before: APIService | None, now: APIService | None) -> None:
        """The document of a group is there as long as one of its versions is registered."""
        if now is not None and now.group:
            names = self._groups.setdefault(now.group, set())
            if not names:
                self._delegation.put_listed(now.group, self._discovery.group(now.group))
            names.add(now.name)
        elif now is None and before is not None and before.group:
            names = self._groups[before.group]
            names.discard(before.name)
            if not names:
                del self._groups[before.group]
                self._delegation.drop_listed(before.group)

    def _checked(self, service: APIService, passed: bool) -> None:
        found = self._proxied.get(service.name)
        if found is not None and passed:
            found.mend()

    def _renew(self) -> None:
        for proxied in self._proxied.values():
            proxied.renew()

    async def _write_status(self, name: str, tree: dict[str, Any]) -> None:
        await self._server.loopback.call("PUT", f"/apis/apiregistration.k8s.io/v1/apiservices/{name}/status", tree)


def _tunnel(path: str) -> Tunnel | None:
    """The way to the cluster network, where the file names one. Raises OptionsError."""
    if not path:
        return None
    from fastapi_core.aggregation import egress

    try:
        return egress.load(path)
    except OSError as error:
        raise OptionsError([f"--egress-selector-config-file: {path!r}: {error.strerror}"]) from None
    except ValueError as error:
        lines = str(error).splitlines()
        raise OptionsError([f"--egress-selector-config-file: {path!r}: {line}" for line in lines]) from None


def _own_headers(flags: Authentication) -> tuple[bytes, ...]:
    """Names of the headers that say who a front proxy's user is; a prefix ends in `*`."""
    names = (
        *flags.requestheader_username_headers,
        *flags.requestheader_uid_headers,
        *flags.requestheader_group_headers,
        *(prefix + "*" for prefix in flags.requestheader_extra_headers_prefix),
    )
    return tuple(name.lower().encode() for name in names)
