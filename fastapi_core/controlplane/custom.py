"""Custom resources in the composed server: definitions, what they serve, their documents and APIServices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fastapi_core.aggregation.directory import APISERVICES
from fastapi_core.controlplane.delegation import Delegation
from fastapi_core.crd import conditions
from fastapi_core.crd.controller import Definitions
from fastapi_core.crd.definitions import FINALIZER, PREFIX, Definition
from fastapi_core.later import later
from fastapi_core.registry import lifecycle
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.services import Resolver, Services, Way

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from fastapi_core.aggregation.registration import Registrations
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.crd import serving
    from fastapi_core.crd.client import WebhookClient
    from fastapi_core.crd.scope import Converter
    from fastapi_core.crd.serving import Resource, ServedVersion
    from fastapi_core.crd.surroundings import Surroundings
    from fastapi_core.discovery.endpoints import DiscoveryEndpoints
    from fastapi_core.discovery.live import LiveDocuments
    from fastapi_core.openapi import documents as openapi_documents
    from fastapi_core.openapi.documents import OpenAPIDocuments
    from fastapi_core.openapi.endpoints import OpenAPIEndpoints
    from fastapi_core.registry.store import ResourceStore
    from fastapi_core.server.generic import GenericServer
else:
    openapi_documents = later("fastapi_core.openapi.documents")
    serving = later("fastapi_core.crd.serving")

#: Names that are stored where built-in resources are.
OVERLAPPING = frozenset({PREFIX, APISERVICES})
_WRITES = frozenset({"create", "patch", "update"})


class ConversionWebhooks:
    """Converters of definitions; the client is made, and loaded, with the first definition that has a webhook."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._client: WebhookClient | None = None

    def converter(self, definition: Definition) -> Converter | None:
        """None when versions differ in their names alone."""
        if definition.conversion.get("strategy") != "Webhook":
            return None
        from fastapi_core.crd.conversion import WebhookConverter

        return WebhookConverter(definition.conversion, self._made())

    def _made(self) -> WebhookClient:
        if self._client is None:
            from fastapi_core.crd.client import WebhookClient

            self._client = WebhookClient(Resolver(self._services, Way.NEAREST))
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            self._client.close()


class CustomResources:
    """Serves what the definitions say (`crd.controller.Server`)."""

    def __init__(
        self,
        resources: Resources,
        around: Surroundings,
        delegation: Delegation,
        discovery: DiscoveryEndpoints,
        documents: LiveDocuments,
        openapi: OpenAPIEndpoints,
        registrations: Registrations,
    ) -> None:
        self._around = around
        self._delegation = delegation
        self._discovery = discovery
        self._documents = documents
        self._openapi = openapi
        self._served = resources.served
        self._definitions = resources.definitions
        resources.conversions.custom = self.convert
        stores = resources.stores
        self._resources: dict[str, Resource] = {}
        self._groups: dict[str, dict[str, Resource]] = {}
        self._versions: dict[str, set[str]] = {}
        self._unpublished: set[str] | None = None
        """Groups whose documents wait for all definitions of the start; None afterwards."""
        self._builtin = documents.versions
        self._registrations = registrations
        self.definitions = Definitions(stores[PREFIX], self, sound_bundle=_sound)

    def install(self, server: GenericServer) -> None:
        """Serve from the start on, write while the server runs."""

        async def begin() -> None:
            await self.definitions.start()

        self._unpublished = set()
        self.definitions.follow()
        groups, self._unpublished = self._unpublished, None
        for group in groups:
            self._publish(group)
        server.add_hook("start-apiextensions-controllers", begin)
        server.on_shutdown(self.definitions.stop, "custom resource definitions")

    # What definitions ask for

    def serve(self, definition: Definition) -> None:
        before = self._resources.get(definition.name)
        if before is not None and before.definition.same_serving(definition):
            ends = definition.holds("Terminating") is not before.definition.holds("Terminating")
            before.definition = definition
            if ends:
                self._publish(definition.group)
            return
        if definition.key_prefix in OVERLAPPING:
            return
        made = serving.Resource(definition, self._around)
        for version in self._builtin.get(definition.group, ()):
            # Whatever is below a built-in group version is answered there.
            made.versions.pop(version, None)
        self._resources[definition.name] = made
        self._groups.setdefault(definition.group, {})[definition.name] = made
        plural = definition.names.plural
        for version in before.versions if before is not None else ():
            if version not in made.versions:
                self._delegation.drop_custom(definition.group, version, plural)
        for name, served in made.versions.items():
            self._delegation.put_routes(definition.group, name, plural, served)
        self._publish(definition.group)
        self._served.put(definition.name, [(served.definition, served.scope) for served in made.versions.values()])
        if before is not None:
            self._around.watches.end_resource(definition.group, plural)

    def drop(self, definition: Definition) -> None:
        before = self._resources.pop(definition.name, None)
        if before is None:
            return
        del self._groups[definition.group][definition.name]
        for version in before.versions:
            self._delegation.drop_custom(definition.group, version, definition.names.plural)
        self._publish(definition.group)
        self._served.drop(definition.name)
        self._around.watches.end_resource(definition.group, definition.names.plural)

    def store(self, definition: Definition) -> ResourceStore | None:
        if definition.key_prefix in OVERLAPPING:
            return None
        known = self._resources.get(definition.name)
        return (known or serving.Resource(definition, self._around)).store

    def convert(self, tree: Tree, source: ResourceDefinition, target: ResourceDefinition) -> Tree | Awaitable[Tree]:
        """An object of one version in another one (`admission.conversions.CustomConversion`)."""
        resource = self._resources.get(f"{source.plural}.{source.group}")
        if resource is None or tree.get("kind") != source.kind or source.group_version == target.group_version:
            return tree
        return resource.convert(tree, source, target)

    def _publish(self, group: str) -> None:
        """The documents of a group, and its APIServices."""
        if self._unpublished is not None:
            self._unpublished.add(group)
            return
        members = self._groups.get(group, {})
        if not members:
            self._groups.pop(group, None)
        declared: list[ResourceDefinition] = [
            _declared(resource, served) for resource in members.values() for served in resource.versions.values()
        ]
        versions = self._documents.put(group, declared)
        routes = self._discovery.group_routes(group, versions, whole=group not in self._builtin) if versions else []
        self._delegation.put_documents(group, routes)
        self._openapi.outdate(self._described)
        before = self._versions.pop(group, set())
        if versions:
            self._versions[group] = set(versions)
        self._registrations.settle(group, set(versions), before)

    def _described(self, previous: OpenAPIDocuments) -> OpenAPIDocuments:
        kinds = [served.described() for made in self._resources.values() for served in made.versions.values()]
        return openapi_documents.OpenAPIDocuments(self._definitions, custom=kinds, previous=previous)


def _declared(resource: Resource, served: ServedVersion) -> ResourceDefinition:
    """A version as discovery tells it: nothing new comes to a definition that is on its way out."""
    found = served.definition
    if resource.definition.holds("Terminating"):
        found = replace(found, verbs=tuple(verb for verb in found.verbs if verb not in _WRITES))
    return found


def terminate(tree: Tree) -> None:
    """The first delete of a definition: its objects go before it does."""
    metadata = tree["metadata"]
    finalizers = metadata.get("finalizers") or []
    if FINALIZER not in finalizers:
        metadata["finalizers"] = [*finalizers, FINALIZER]
    tree["status"] = conditions.terminating(tree, conditions.PENDING, lifecycle.timestamp())["status"]


def terminating(definition: ResourceDefinition) -> ResourceDefinition:
    """The declaration of definitions, with what their first delete does."""
    if definition.key_prefix != PREFIX:
        return definition
    return definition.revised(lambda strategy: replace(strategy, terminate=terminate))


def _sound(definition: Definition) -> bool:
    """Whether the bundle of the conversion webhook holds certificates, if it has one."""
    bundle = ((definition.conversion.get("webhook") or {}).get("clientConfig") or {}).get("caBundle")
    if definition.conversion.get("strategy") != "Webhook" or not bundle:
        return True
    from fastapi_core.crd.conversion import sound_bundle

    return sound_bundle(bundle)


__all__ = ["CustomResources", "terminate", "terminating"]
