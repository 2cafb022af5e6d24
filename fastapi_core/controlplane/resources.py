"""Built-in resources wired to storage: one store per key prefix, one scope per served version, and their routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from fastapi_core.admission.chain import AdmissionChain
from fastapi_core.admission.conversions import Conversions
from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.apis.resources import builtin, deprecation, optional
from fastapi_core.apis.service_store import ServiceStore
from fastapi_core.authn.issuer import TokenIssuer
from fastapi_core.authz.base import Authorizer
from fastapi_core.authz.rbac import RoleIndex
from fastapi_core.controlplane.custom import terminating
from fastapi_core.controlplane.served import Served
from fastapi_core.later import later
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.registry.fields import extractor
from fastapi_core.registry.services import SERVICES
from fastapi_core.registry.store import ResourceStore
from fastapi_core.request.routing import Route, resource_routes
from fastapi_core.rest.backends import Backends
from fastapi_core.rest.install import endpoints, made_later, virtual_endpoints, warned
from fastapi_core.storage.factory import shared

if TYPE_CHECKING:
    from fastapi_core.controlplane import param_kinds
    from fastapi_core.request.context import Endpoint
    from fastapi_core.rest import components, defaulting, escalation, param_access
    from fastapi_core.rest import scope as scopes
    from fastapi_core.rest.scope import Scope
    from fastapi_core.rest.upstream import Upstreams
    from fastapi_core.rest.watch import WatchServer
    from fastapi_core.schema import normalize
    from fastapi_core.storage.cacher.cacher import Cacher
    from fastapi_core.storage.interface import Storage
else:
    param_kinds = later("fastapi_core.controlplane.param_kinds")
    components = later("fastapi_core.rest.components")
    defaulting = later("fastapi_core.rest.defaulting")
    normalize = later("fastapi_core.schema.normalize")
    escalation = later("fastapi_core.rest.escalation")
    param_access = later("fastapi_core.rest.param_access")
    scopes = later("fastapi_core.rest.scope")

#: Field selectors by which the cacher indexes watchers: each kubelet watches the pods of its node.
TRIGGERS = {"/registry/pods/": ("spec.nodeName",)}
#: Where the policy objects are kept: cluster roles, roles, and the bindings of both.
POLICIES = (
    "/registry/clusterroles/",
    "/registry/roles/",
    "/registry/clusterrolebindings/",
    "/registry/rolebindings/",
)


#: Kinds that clients write as soon as there is a server, or often: (group, kind).
COMMON = frozenset(
    {
        ("", "Pod"), ("", "Namespace"), ("", "ConfigMap"), ("", "Secret"), ("", "Service"), ("", "ServiceAccount"),
        ("", "Node"), ("", "Event"), ("apps", "Deployment"), ("coordination.k8s.io", "Lease"),
    }
)  # fmt: skip


class Resources:
    """Every resource this server stores, and the scopes that serve them."""

    def __init__(
        self,
        definitions: Sequence[ResourceDefinition],
        storage: Storage,
        cacher: Cacher,
        *,
        event_ttl: float,
        allocator: ServiceAllocator,
        issuer: TokenIssuer,
        upstreams: Upstreams,
    ) -> None:
        self._allocator = allocator
        self.definitions = tuple(self._adapted(d, event_ttl) for d in definitions)
        self.storage = storage
        self.cacher = cacher
        self.stores: dict[str, ResourceStore] = {}
        # What is not served is stored all the same: services need addresses, authorizers need roles.
        own = [self._adapted(d, event_ttl) for d in builtin()]
        for definition in storage_versions([*own, *_stored_forms(self.definitions)]):
            extract = extractor(definition, None)
            cache = cacher.resource(definition.key_prefix, extract, TRIGGERS.get(definition.key_prefix, ()))
            self.stores[definition.key_prefix] = ResourceStore(definition, storage, cache)
        plain = self.stores[SERVICES]
        self.services = _service_store(storage)(
            plain.definition,
            storage,
            plain.cache,
            allocator,
            self.stores["/registry/ipaddresses/"],
            self.stores["/registry/servicecidrs/"],
        )
        self.stores[SERVICES] = self.services
        self.backends = Backends(self.stores, issuer, upstreams)
        self.served = Served(self.definitions, self.stores)
        self.service_ranges = self.stores["/registry/servicecidrs/"]
        self.namespaces = self.stores["/registry/namespaces/"]
        self.priority_classes = self.stores["/registry/priorityclasses/"]
        self.roles = RoleIndex(*(self.stores[prefix].cache for prefix in POLICIES))
        self.conversions = Conversions()
        """How admission gets at other versions of an object; custom resources tie theirs in as `conversions.custom`."""
        self.admission = AdmissionChain(())
        """What every write passes; `gates.chain` makes it once there is an authorizer to ask."""

    def _adapted(self, definition: ResourceDefinition, event_ttl: float) -> ResourceDefinition:
        definition = terminating(definition)
        if (definition.group, definition.plural) == ("", "services"):
            return self._allocator.bind(definition)
        return definition.but(ttl=event_ttl) if definition.ttl else definition

    def prepare(self) -> Iterator[object]:
        """Step by step make what the first write of a common kind would have to make."""
        self.admission.prepare()
        yield None
        for definition in self.definitions:
            if (definition.group, definition.kind) in COMMON:
                yield definition.strategy
                tree = normalize.normalize(definition.type, {"metadata": {}, "spec": {}}).tree
                defaulting.apply_defaults(definition, tree)
                yield None

    def routes(self, watches: WatchServer, authorizer: Authorizer) -> list[Route]:
        """Routes of every resource in every served version."""
        found: list[Route] = []
        scope = self._scopes(authorizer)
        for definition in self.definitions:
            if definition.key_prefix:
                mine = cache(partial(scope, definition))
                self.backends.scopes.setdefault((definition.group, definition.plural), mine)
                made = endpoints(definition, mine, watches, self.backends)
            elif definition.kind == "ComponentStatus":
                made = self._component_endpoints(definition)
            else:
                made = virtual_endpoints(definition, authorizer, self.backends, self.admission)
            warning = deprecation(definition)
            if warning:
                made = {verb: warned(endpoint, warning) for verb, endpoint in made.items()}
            found += resource_routes(definition, made)
        return found

    def _scopes(self, authorizer: Authorizer) -> Callable[[ResourceDefinition], Scope]:
        """What makes the scope of a definition."""
        parameters = cache(lambda: param_kinds.known(self.definitions, self.stores))

        def make(definition: ResourceDefinition) -> Scope:
            guard = escalation.guard(definition, authorizer, self.roles)
            guard = guard or param_access.guard(definition, authorizer, parameters())
            return scopes.Scope(definition, self.stores[definition.key_prefix], self.admission, authorizer, guard)

        return make

    def _component_endpoints(self, definition: ResourceDefinition) -> dict[str, Endpoint]:
        """Made for each answer: a store that keeps none of its own, beside any cache for its revision."""

        @cache
        def table() -> Mapping[str, Endpoint]:
            named = definition.but(key_prefix="/registry/componentstatuses/")
            scope = scopes.Scope(named, ResourceStore(named, self.storage, self.namespaces.cache), self.admission)
            return components.Components(scope, self.backends.upstreams, self.storage.check).endpoints()

        return {verb: made_later(partial(lambda verb: table()[verb], verb)) for verb in definition.verbs}


def _stored_forms(served: Iterable[ResourceDefinition]) -> list[ResourceDefinition]:
    """Of kinds that are served on demand only: every version, served or not, so that the stored one never changes."""
    wanted = {definition.key_prefix for definition in served} - {definition.key_prefix for definition in builtin()}
    return [definition for definition, _ in optional() if definition.key_prefix in wanted] if wanted else []


def _service_store(storage: Storage) -> type[ServiceStore]:
    if not shared(storage):
        return ServiceStore
    from fastapi_core.apis.shared_services import SharedServiceStore

    return SharedServiceStore


def storage_versions(definitions: Iterable[ResourceDefinition]) -> list[ResourceDefinition]:
    """For each key prefix the definition whose version is stored: the declared one where it is given, else the first."""
    chosen: dict[str, ResourceDefinition] = {}
    for definition in definitions:
        if not definition.key_prefix:
            continue
        stored = (definition.group, definition.version) == (definition.storage_group, definition.storage_version)
        if stored or definition.key_prefix not in chosen:
            chosen[definition.key_prefix] = definition
    return list(chosen.values())
