"""What the default admission chain costs a write: microseconds of both phases, by kind of request.

    python -m bench.micro_admission [--rounds 20]

In this process, on a server composed in memory and never started; fresh objects, each request's best round counts. The
main bench adds them as a row.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import time
from typing import Any, cast

from bench import objects
from fastapi_core.admission.chain import Attributes
from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.apis.resources import builtin
from fastapi_core.authz.base import AlwaysAllow
from fastapi_core.controlplane import bootstrap, gates
from fastapi_core.controlplane.resources import Resources
from fastapi_core.obs.catalog import Metrics
from fastapi_core.options.options import Options
from fastapi_core.request.context import RequestContext
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.factory import make_storage

ITEMS = 200


def _requests(definitions: dict[str, Any]) -> dict[str, tuple[str, str, objects.Tree, objects.Tree | None]]:
    """Name -> operation, plural, object, old object."""
    pod, plain, token = objects.pod("p"), objects.configmap("c"), objects.pod("t")
    del token["spec"]["automountServiceAccountToken"]
    for tree in (pod, token):
        apply_defaults(definitions["pods"], tree)
    lease = objects.lease("l")
    return {
        "create pod": ("CREATE", "pods", pod, None),
        "create pod with token": ("CREATE", "pods", token, None),
        "create configmap": ("CREATE", "configmaps", plain, None),
        "update configmap": ("UPDATE", "configmaps", plain, plain),
        "update lease": ("UPDATE", "leases", lease, lease),
    }


async def _measure(rounds: int) -> dict[str, float]:
    storage = make_storage(None)
    await storage.open()
    cacher = Cacher(storage)
    nothing = cast(Any, None)
    resources = Resources(
        builtin(), storage, cacher, event_ttl=3600.0, allocator=ServiceAllocator(), issuer=nothing, upstreams=nothing
    )
    await cacher.open()
    await bootstrap.ensure(resources.namespaces, {"metadata": {"name": objects.NAMESPACE}})
    account = {"metadata": {"name": "default", "namespace": objects.NAMESPACE}}
    await bootstrap.ensure(resources.stores["/registry/serviceaccounts/"], account)
    chain = gates.chain(Options(), resources, AlwaysAllow(), Metrics())
    definitions = {d.plural: d for d in resources.definitions if d.group in ("", "coordination.k8s.io")}
    spent = {}
    for name, (operation, plural, tree, old) in _requests(definitions).items():
        best = float("inf")
        for _ in range(rounds):
            trees = [copy.deepcopy(tree) for _ in range(ITEMS)]
            contexts = [RequestContext(nothing) for _ in range(ITEMS)]
            begin = time.process_time()
            for item, context in zip(trees, contexts, strict=True):
                attributes = Attributes(
                    operation, definitions[plural], "", objects.NAMESPACE, "x", item, old, False, context
                )
                assert chain.admit(attributes) is None
                assert chain.check(attributes) is None
            best = min(best, (time.process_time() - begin) / ITEMS * 1e6)
        spent[name] = best
    await cacher.close()
    await storage.close()
    return spent


def measure(rounds: int = 20) -> dict[str, float]:
    return asyncio.run(_measure(rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    for name, spent in measure(parser.parse_args().rounds).items():
        print(f"{name:24} {spent:7.1f} us")


if __name__ == "__main__":
    main()
