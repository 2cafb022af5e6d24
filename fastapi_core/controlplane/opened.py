"""The open store and what lives on it: cacher, compaction, resources, and the way out to kubelets."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.controlplane import outside
from fastapi_core.controlplane.resources import Resources
from fastapi_core.options import etcd
from fastapi_core.options.enablement import served
from fastapi_core.records import dataclass
from fastapi_core.server.health import READYZ
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.factory import make_compactor, make_storage, shared

if TYPE_CHECKING:
    from fastapi_core.options.complete import Completed
    from fastapi_core.options.groups import Network
    from fastapi_core.rest.upstream import Upstreams
    from fastapi_core.server.generic import GenericServer
    from fastapi_core.storage.compactor import Compactor
    from fastapi_core.storage.etcd.compaction import TurnCompactor
    from fastapi_core.storage.interface import Storage


@dataclass(frozen=True, slots=True)
class Opened:
    """Made by `open_store`; closed by the server it is installed in."""

    storage: Storage
    cacher: Cacher
    compactor: Compactor | TurnCompactor
    resources: Resources
    upstreams: Upstreams
    readiness: float
    """Seconds in which the store has to answer who asks whether the server is ready."""

    def install(self, server: GenericServer) -> None:
        """Checks, compaction, and the end of it all."""

        async def compaction() -> None:
            self.compactor.start()

        async def informers() -> None:
            pending = self.cacher.fresh()
            if pending is not None:
                await pending

        async def answers() -> None:
            await self.storage.sync()

        async def ready() -> None:
            async with asyncio.timeout(self.readiness):
                await self.storage.check()

        server.add_health_check("etcd", self.storage.check)
        server.add_health_check("etcd-readiness", ready, (READYZ,))
        server.add_health_check("informer-sync", self.cacher.check, (READYZ,))
        server.add_hook("generic-apiserver-start-informers", informers)
        server.add_hook("storage-readiness", answers)
        server.add_hook("storage-compaction", compaction)
        server.on_shutdown(self.upstreams.shutdown, "proxied connections")
        server.on_stop(self.storage.close, "storage")
        server.on_stop(self.cacher.close, "cacher")
        server.on_stop(self.compactor.stop, "compactor")


async def open_store(completed: Completed) -> Opened:
    """Open the store and load every cache. Raises OSError or StorageError."""
    options = completed.options
    storage = make_storage(Path(completed.data_dir) if completed.data_dir else None, etcd.settings(options.etcd))
    await storage.open()
    try:
        cacher = Cacher(storage, remote=shared(storage))
        upstreams = outside.upstreams(options.kubelet)
        resources = Resources(
            served(options.features.runtime_config, options.gates),
            storage,
            cacher,
            event_ttl=options.storage.event_ttl,
            allocator=_allocator(options.network),
            issuer=outside.token_issuer(completed),
            upstreams=upstreams,
        )
        await cacher.open()
        await resources.services.learn()
        return Opened(
            storage,
            cacher,
            make_compactor(storage, options.etcd.etcd_compaction_interval),
            resources,
            upstreams,
            options.etcd.etcd_readycheck_timeout,
        )
    except BaseException:
        await storage.close()
        raise


def _allocator(network: Network) -> ServiceAllocator:
    """Addresses out of the service ranges, node ports out of theirs."""
    first, last = network.service_node_port_range.split("-")
    ranges = [str(ip_network(text.strip(), strict=False)) for text in network.service_cluster_ip_range.split(",")]
    return ServiceAllocator(ranges, int(first), int(last))
