"""An extension as a server: its kinds over their sources, behind the generic server.

The parts are those the kube-apiserver is composed of, without admission, flow control and what belongs to a cluster.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi_core import __version__
from fastapi_core.discovery.documents import DiscoveryDocuments
from fastapi_core.discovery.endpoints import DiscoveryEndpoints
from fastapi_core.discovery.index import VersionInfo, index_routes
from fastapi_core.discovery.priorities import GroupPriority
from fastapi_core.extension.certificates import serving_files
from fastapi_core.extension.connection import Connections
from fastapi_core.extension.kinds import Stored
from fastapi_core.extension.serving import Around, ServedKind
from fastapi_core.extension.sync import Runner
from fastapi_core.extension.tasks import Tasks
from fastapi_core.http.tls import NamedCertificate, TLSFiles
from fastapi_core.later import later
from fastapi_core.obs.catalog import Metrics
from fastapi_core.obs.files import FileWatcher
from fastapi_core.openapi.endpoints import OpenAPIEndpoints
from fastapi_core.records import dataclass
from fastapi_core.request.routing import Route, resource_routes
from fastapi_core.rest.watch import WatchServer
from fastapi_core.server import routes as server_routes
from fastapi_core.server.config import ServerConfig
from fastapi_core.server.exports import WatchMetrics, export_storage_metrics, export_version_metrics
from fastapi_core.server.generic import GenericServer
from fastapi_core.server.health import READYZ

if TYPE_CHECKING:
    from fastapi_core.authn.base import Authenticator
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.extension.app import Extension
    from fastapi_core.extension.delegated import Delegated
    from fastapi_core.extension.options import Options
    from fastapi_core.openapi import documents as openapi_documents
    from fastapi_core.rest.scope import Scope
    from fastapi_core.storage.cacher.cacher import Cacher
    from fastapi_core.storage.compactor import Compactor
    from fastapi_core.storage.etcd.compaction import TurnCompactor
    from fastapi_core.storage.interface import Storage
else:
    openapi_documents = later("fastapi_core.openapi.documents")

_GENERIC = ("apis", "version")


async def compose(
    app: Extension,
    options: Options,
    *,
    authenticator: Authenticator | None = None,
    authorizer: Authorizer | None = None,
    plain: bool = False,
) -> GenericServer:
    """Storage open, routes made, certificates there. Raises OptionsError, OSError, StorageError, ModelError."""
    app.description  # noqa: B018 - what cannot be served is said before anything is opened
    home = Home(options.storage.data_dir)
    try:
        delegated = None
        files, metrics = FileWatcher(), Metrics()
        if authenticator is None or authorizer is None:
            from fastapi_core.extension.delegated import connect

            delegated = await connect(options.delegated, agent=app.name, files=files, metrics=metrics)
            authenticator = authenticator or delegated.authenticator
            authorizer = authorizer or delegated.authorizer
        tls = None if plain else _tls(app, options, home, delegated)
        config = _config(options, authenticator, authorizer, files, metrics, tls)
        store = await open_store(app, options, home) if any(isinstance(kind, Stored) for kind in app.kinds) else None
    except BaseException:
        home.remove()
        raise
    server = _composed(app, options, config, store)
    if delegated is not None:
        delegated.install(server)
    server.on_stop(home.close, "temporary files")
    return server


class Home:
    """The data directory, or a temporary one."""

    def __init__(self, data_dir: str) -> None:
        self.data_dir = Path(data_dir) if data_dir else None
        if self.data_dir is not None:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._temporary = "" if data_dir else tempfile.mkdtemp(prefix="fastapi-core-")

    @property
    def path(self) -> str:
        return self._temporary or str(self.data_dir)

    def remove(self) -> None:
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    async def close(self) -> None:
        self.remove()


@dataclass(frozen=True, slots=True)
class Store:
    """What keeps the objects of stored kinds."""

    storage: Storage
    cacher: Cacher
    compactor: Compactor | TurnCompactor

    def install(self, server: GenericServer) -> None:
        """Its checks, its upkeep and its end."""

        async def compaction() -> None:
            self.compactor.start()

        server.add_health_check("etcd", self.storage.check)
        server.add_health_check("informer-sync", self.cacher.check, (READYZ,))
        server.add_hook("storage-compaction", compaction)
        server.on_stop(self.storage.close, "storage")
        server.on_stop(self.cacher.close, "cacher")
        server.on_stop(self.compactor.stop, "compactor")


async def open_store(app: Extension, options: Options, home: Home) -> Store:
    """Raises OSError or StorageError."""
    from fastapi_core.options import etcd
    from fastapi_core.storage.cacher.cacher import Cacher
    from fastapi_core.storage.factory import make_compactor, make_storage, shared

    storage = make_storage(home.data_dir, etcd.settings(options.etcd, app.group_version.group))
    await storage.open()
    cacher = Cacher(storage, remote=shared(storage))
    try:
        await cacher.open()
    except BaseException:
        await storage.close()
        raise
    return Store(storage, cacher, make_compactor(storage, options.etcd.etcd_compaction_interval))


def _composed(app: Extension, options: Options, config: ServerConfig, store: Store | None) -> GenericServer:
    from fastapi_core._ext.router import Router

    router: Router[Any] = Router([])
    groups = frozenset(kind.declaration.group for kind in app.kinds)
    server = GenericServer(config, lambda: router, known_group=lambda group: group in groups)
    metrics = config.metrics
    counted = WatchMetrics(metrics)
    watches = WatchServer(float(options.generic.min_request_timeout), _observer(counted), counted.terminated)
    runner, connections = Runner(), Connections()
    around = Around(
        config.authorizer, watches, runner, connections, None if store is None else (store.storage, store.cacher)
    )
    kinds = [ServedKind(kind, around) for kind in app.kinds]
    server.on_shutdown(lambda: watches.shutdown(config.watch_grace), "watches")
    server.on_shutdown(connections.close, "connections")
    server.on_stop(runner.close, "handlers")
    if store is not None:
        store.install(server)
        export_storage_metrics(metrics, store.storage, store.cacher, tuple(kind.definition for kind in kinds))
    Tasks(app.tasks).install(server)
    for kind in app.kinds:
        kind.objects.bind(server.loopback)
        for version in kind.versions if isinstance(kind, Stored) else ():
            version.objects.bind(server.loopback)
    router = Router(_routes(app, server, kinds))
    return server


def _routes(app: Extension, server: GenericServer, kinds: list[ServedKind]) -> list[Route]:
    """Every path there is."""
    tables = [table for kind in kinds for table in kind.tables()]
    definitions = [definition for definition, _ in tables]
    own = app.group_version
    priorities = {d.group: GroupPriority(own.group_priority, other=own.version_priority) for d in definitions}
    discovery = DiscoveryEndpoints(DiscoveryDocuments(definitions, group_priorities=priorities), _yaml)
    described = [found for kind in kinds for found in kind.described()]
    openapi = OpenAPIEndpoints(lambda: openapi_documents.OpenAPIDocuments((), custom=described, generic=_GENERIC))
    routes: list[Route] = []
    for definition, endpoints in tables:
        routes += resource_routes(definition, endpoints)
    routes += [*discovery.routes(), *openapi.routes(), *server_routes.routes(server)]
    export_version_metrics(server.metrics, VersionInfo(product_version=__version__).tree())
    return routes + index_routes(routes, __version__)


def _observer(count: WatchMetrics) -> Any:
    """Counts by kind, whichever scope a request had."""

    def observe(scope: Scope, events: int, size: int) -> None:
        count(getattr(scope, "origin", scope), events, size)

    return observe


def _tls(app: Extension, options: Options, home: Home, delegated: Delegated | None) -> TLSFiles:
    serving = options.serving
    files = serving_files(serving, app.description.service_names(), home.path)
    return TLSFiles(
        files.cert,
        files.key,
        delegated.client_ca_files if delegated is not None else (),
        tuple(NamedCertificate(cert, key, names) for cert, key, names in serving.tls_sni_cert_key),
        serving.tls_min_version,
        serving.tls_cipher_suites,
        delegated.authorities if delegated is not None else None,
    )


def _config(
    options: Options,
    authenticator: Authenticator,
    authorizer: Authorizer,
    files: FileWatcher,
    metrics: Metrics,
    tls: TLSFiles | None,
) -> ServerConfig:
    from fastapi_core.options.audit import auditor

    serving, generic = options.serving, options.generic
    return ServerConfig(
        authenticator=authenticator,
        authorizer=authorizer,
        metrics=metrics,
        audit=auditor(options.audit, metrics),
        files=files,
        tls=tls,
        bind_address=serving.bind_address,
        port=serving.secure_port,
        share_port=serving.permit_port_sharing,
        max_connections=serving.max_connections,
        request_timeout=generic.request_timeout,
        max_requests_inflight=generic.max_requests_inflight,
        max_mutating_requests_inflight=generic.max_mutating_requests_inflight,
        cors_allowed_origins=generic.cors_allowed_origins,
        strict_transport_security=generic.strict_transport_security_directives,
        shutdown_delay=generic.shutdown_delay_duration,
        send_retry_after=generic.shutdown_send_retry_after,
        watch_grace=generic.shutdown_watch_termination_grace_period,
        drain_timeout=generic.request_timeout,
        livez_grace_period=generic.livez_grace_period,
        profiling=False,
    )


def _yaml(tree: dict[str, Any]) -> bytes:
    from fastapi_core.codec import yaml

    return yaml.dump(tree)
