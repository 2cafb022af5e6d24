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
from fastapi_core.admission.chain import AdmissionChain, Attributes
from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.apis.resources import builtin
from fastapi_core.authz.base import AlwaysAllow
from fastapi_core.controlplane import bootstrap, gates
from fastapi_core.controlplane.resources import Resources
from fastapi_core.obs.catalog import Metrics
from fastapi_core.options.options import Options
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.request.context import RequestContext
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.factory import make_storage

ITEMS = 200
POLICY = {
    "failurePolicy": "Fail",
    "matchConstraints": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"], "scope": "*"}
        ],
    },
    "validations": [
        {"expression": "object.metadata.name.size() < 60"},
        {"expression": "!has(object.metadata.labels) || object.metadata.labels.all(k, k != 'x')"},
        {"expression": "request.operation == 'CREATE'"},
        {"expression": "request.userInfo.username != 'nobody'"},
        {"expression": "object.?data.orValue({}).size() < 100"},
    ],
}
"""Five short expressions about secrets, which nothing else in the chain cares about."""


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
        "create secret, no policy": ("CREATE", "secrets", {**plain, "kind": "Secret"}, None),
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
    requests = _requests(definitions)
    for name, (operation, plural, tree, old) in requests.items():
        spent[name] = _cost(chain, operation, definitions[plural], tree, old, rounds)
    await _add_policy(resources)
    name = "create secret, no policy"
    operation, plural, tree, old = requests[name]
    spent["five expressions add"] = _cost(chain, operation, definitions[plural], tree, old, rounds) - spent[name]
    await cacher.close()
    await storage.close()
    return spent


async def _add_policy(resources: Resources) -> None:
    """A policy and its binding."""
    trees = {
        "validatingadmissionpolicies": POLICY,
        "validatingadmissionpolicybindings": {"policyName": "five", "validationActions": ["Deny"]},
    }
    for plural, spec in trees.items():
        await bootstrap.ensure(resources.stores[f"/registry/{plural}/"], {"metadata": {"name": "five"}, "spec": spec})


def _cost(
    chain: AdmissionChain,
    operation: str,
    definition: ResourceDefinition,
    tree: objects.Tree,
    old: objects.Tree | None,
    rounds: int,
) -> float:
    """Microseconds of a request in the best round."""
    best = float("inf")
    for _ in range(rounds):
        trees = [copy.deepcopy(tree) for _ in range(ITEMS)]
        contexts = [RequestContext(cast(Any, None)) for _ in range(ITEMS)]
        begin = time.process_time()
        for item, context in zip(trees, contexts, strict=True):
            attributes = Attributes(operation, definition, "", objects.NAMESPACE, "x", item, old, False, context)
            assert chain.admit(attributes) is None
            assert chain.check(attributes) is None
        best = min(best, (time.process_time() - begin) / ITEMS * 1e6)
    return best


def measure(rounds: int = 20) -> dict[str, float]:
    return asyncio.run(_measure(rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    for name, spent in measure(parser.parse_args().rounds).items():
        print(f"{name:24} {spent:7.1f} us")


if __name__ == "__main__":
    main()
