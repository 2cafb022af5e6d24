"""Built-in resources wired to storage: one store per key prefix, one scope per served version, and their routes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fastapi_core.admission.chain import AdmissionChain
from fastapi_core.admission.conversions import Conversions
from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.apis.resources import builtin, deprecation, optional
from fastapi_core.apis.service_store import ServiceStore
from fastapi_core.authn.issuer import TokenIssuer
from fastapi_core.authz.base import Authorizer
from fastapi_core.authz.rbac import RoleIndex
from fastapi_core.controlplane import param_kinds
from fastapi_core.controlplane.custom import terminating
from fastapi_core.controlplane.served import Served
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.registry.fields import extractor
from fastapi_core.registry.services import SERVICES
from fastapi_core.registry.store import ResourceStore
from fastapi_core.request.routing import Route, resource_routes
from fastapi_core.rest import escalation, param_access
from fastapi_core.rest.backends import Backends
from fastapi_core.rest.components import Components
from fastapi_core.rest.install import endpoints, virtual_endpoints, warned
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.upstream import Upstreams
from fastapi_core.rest.watch import WatchServer
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.interface import Storage

#: Field selectors by which the cacher indexes watchers: each kubelet watches the pods of its node.
TRIGGERS = {"/registry/pods/": ("spec.nodeName",)}
#: Where the policy objects are kept: cluster roles, roles, and the bindings of both.
POLICIES = (
    "/registry/clusterroles/",
    "/registry/roles/",
    "/registry/clusterrolebindings/",
    "/registry/rolebindings/",
)


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
        self.services = ServiceStore(
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
        return replace(definition, ttl=event_ttl) if definition.ttl else definition

    def routes(self, watches: WatchServer, authorizer: Authorizer) -> list[Route]:
        """Routes of every resource in every served version."""
        found: list[Route] = []
        parameters = param_kinds.known(self.definitions, self.stores)
        for definition in self.definitions:
            if definition.key_prefix:
                guard = escalation.guard(definition, authorizer, self.roles)
                guard = guard or param_access.guard(definition, authorizer, parameters)
                scope = Scope(definition, self.stores[definition.key_prefix], self.admission, authorizer, guard)
                self.backends.scopes.setdefault((definition.group, definition.plural), scope)
                made = endpoints(scope, watches, self.backends)
            elif definition.kind == "ComponentStatus":
                made = self._components(definition).endpoints()
            else:
                made = virtual_endpoints(definition, authorizer, self.backends, self.admission)
            warning = deprecation(definition)
            if warning:
                made = {verb: warned(endpoint, warning) for verb, endpoint in made.items()}
            found += resource_routes(definition, made)
        return found

    def _components(self, definition: ResourceDefinition) -> Components:
        """Made for each answer: a store that keeps none of its own, beside any cache for its revision."""
        named = replace(definition, key_prefix="/registry/componentstatuses/")
        store = ResourceStore(named, self.storage, self.namespaces.cache)
        return Components(Scope(named, store, self.admission), self.backends.upstreams, self.storage.check)


def _stored_forms(served: Iterable[ResourceDefinition]) -> list[ResourceDefinition]:
    """Of kinds that are served on demand only: every version, served or not, so that the stored one never changes."""
    wanted = {definition.key_prefix for definition in served} - {definition.key_prefix for definition in builtin()}
    return [definition for definition, _ in optional() if definition.key_prefix in wanted] if wanted else []


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
