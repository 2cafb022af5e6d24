"""Requests for custom resources: which endpoint of which version answers them, made when the first one comes."""

from __future__ import annotations

import copy
from base64 import b64encode
from collections.abc import Awaitable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core import errors
from fastapi_core._ext.router import Match, Router
from fastapi_core.crd.definitions import VERBS, Definition, Names, Version, schema_of
from fastapi_core.crd.form import CustomType, LazyForm
from fastapi_core.crd.scope import Converter, CustomScope, CustomStore, Family
from fastapi_core.crd.strategy import Rules, steps
from fastapi_core.crd.surroundings import Surroundings
from fastapi_core.openapi.custom import CustomKind
from fastapi_core.registry.definition import ResourceDefinition, Subresource
from fastapi_core.request.routing import ANY, Route
from fastapi_core.request.status import page_not_found
from fastapi_core.rest.install import endpoints

if TYPE_CHECKING:
    from fastapi_core.http.exchange import Answer
    from fastapi_core.request.context import Endpoint, RequestContext

Tree = dict[str, Any]
_STATUS_VERBS = ("get", "patch", "update")
_EVERYWHERE = frozenset({"list", "watch"})
_NAMED = frozenset({"get", "update", "patch", "delete"})
TERMINATING = "create not allowed while custom resource definition is terminating"


class Resource:
    """One definition while it is served in the same way; `definition` follows changes that make no difference."""

    def __init__(self, definition: Definition, around: Surroundings) -> None:
        self.definition = definition
        self.around = around
        self.forms = {
            version.name: LazyForm(definition.source, version.name, preserve=definition.preserve)
            for version in definition.versions
        }
        self.versions = {version.name: ServedVersion(self, version) for version in definition.served_versions}
        self._family: Family | None = None
        self._store: CustomStore | None = None

    @property
    def family(self) -> Family:
        if self._family is None:
            definition = self.definition
            scales = {
                f"{definition.group}/{version.name}": tuple(f"f:{step}" for step in steps(version.scale.spec))
                for version in definition.versions
                if version.scale is not None
            }
            self._family = Family(definition.group, self.forms, scales, self.around.converter(definition))
        return self._family

    @property
    def store(self) -> CustomStore:
        """Where the objects are, in the storage version."""
        if self._store is None:
            definition = self.definition
            version = next(version for version in definition.versions if version.storage)
            served = self.versions.get(version.name)
            stored = served.definition if served is not None else declare(definition, version, self.forms[version.name])
            cache = self.around.cacher.resource(definition.key_prefix)
            self._store = CustomStore(stored, self.around.storage, cache)
        return self._store

    def scope(self, version: Version, declared: ResourceDefinition) -> CustomScope:
        around = self.around
        scope = CustomScope(
            declared, self.store, around.admission(), around.authorizer, version, self.family, self.guard
        )
        if version.storage and not (version.status and self._comes_with_status(version)):
            self.store.fresh_for = scope
        return scope

    def _comes_with_status(self, version: Version) -> bool:
        """Whether an object whose status has been taken away is shown with one by default."""
        probe: Tree = {}
        self.forms[version.name].default(probe)
        return "status" in probe

    def convert(self, tree: Tree, source: ResourceDefinition, target: ResourceDefinition) -> Tree | Awaitable[Tree]:
        """A copy of an object in another version."""
        converter = self.family.converter
        if converter is None:
            return _pruned(target, {**copy.deepcopy(tree), "apiVersion": target.group_version})
        return self._converted(converter, tree, source, target)

    async def _converted(
        self, converter: Converter, tree: Tree, source: ResourceDefinition, target: ResourceDefinition
    ) -> Tree:
        made = await converter.convert([tree], source.kind, source.group_version, target.group_version)
        return _pruned(target, made[0])

    async def guard(self, ctx: RequestContext, tree: Tree, old: Tree | None) -> None:
        """Nothing new comes to a definition that is on its way out, by whatever verb."""
        if old is None and self.definition.holds("Terminating"):
            definition = self.definition
            name = tree["metadata"].get("name") or ""
            raise errors.forbidden(definition.names.plural, definition.group, name, TERMINATING)


def _pruned(definition: ResourceDefinition, tree: Tree) -> Tree:
    if definition.form is not None:
        definition.form.coerce(tree, drop=True)
        definition.form.prune(tree)
    return tree


class ServedVersion:
    """One version: declared at once, for discovery; everything else is made with the first request."""

    __slots__ = ("_described", "_match", "_resource", "_scope", "_table", "definition", "version")

    def __init__(self, resource: Resource, version: Version) -> None:
        self._resource = resource
        self.version = version
        self.definition = declare(resource.definition, version, resource.forms[version.name])
        self._scope: CustomScope | None = None
        self._table: Mapping[str, Endpoint] | None = None
        self._match: Match[Endpoint] | None = None
        self._described: CustomKind | None = None

    def lookup(self, path: str) -> Match[Endpoint] | None:
        """Takes every path that names the resource; what else it names is read from the request."""
        if self._match is None:
            routes: list[Route] = [("/x", {ANY: self.serve})]
            self._match = Router(routes).lookup("/x")
        return self._match

    def serve(self, ctx: RequestContext) -> Answer | Awaitable[Answer]:
        info = ctx.info
        definition = self.definition
        verb = info.verb
        if not info.is_resource_request or info.resource != definition.plural:
            return page_not_found()
        if definition.namespaced != bool(info.namespace) and (info.namespace or verb not in _EVERYWHERE):
            return page_not_found()
        if self.version.warning:
            ctx.warn(self.version.warning)
        table = self._table
        if table is None:
            table = self._table = self._made()
        sub = info.subresource
        if sub and sub not in definition.subresources:
            raise errors.not_found(definition.plural, definition.group, info.name)
        if not info.name and verb in _NAMED:
            raise errors.bad_request("name must be provided")
        endpoint = table.get(f"{sub}:{verb}" if sub else verb)
        if endpoint is None:
            kind = errors.qualified(definition.plural, definition.group)
            text = f"{verb} is not supported on resources of kind {errors.go_quote(kind)}"
            details = {"group": definition.group, "kind": definition.plural}
            raise errors.APIError("MethodNotAllowed", text, details=details)
        return endpoint(ctx)

    def described(self) -> CustomKind:
        """As OpenAPI documents tell of it."""
        if self._described is not None:
            return self._described
        source, name = self._resource.definition.source, self.version.name
        metadata = orjson.loads(source.metadata())
        digest = f"{metadata.get('uid')}/{metadata.get('generation')}/{self._resource.definition.accepted}/{name}"
        preserve = self._resource.definition.preserve
        self._described = CustomKind(self.definition, digest, lambda: schema_of(source, name), preserve)
        return self._described

    def scope(self) -> CustomScope:
        """Its objects as this version shows them."""
        scope = self._scope
        if scope is None:
            scope = self._scope = self._resource.scope(self.version, self.definition)
        return scope

    def _made(self) -> Mapping[str, Endpoint]:
        resource = self._resource
        table = endpoints(self.definition, self.scope, resource.around.watches, resource.around.backends)
        # A list decides itself whether the query asks for a watch.
        table["watch"] = table["list"]
        return table


def declare(definition: Definition, version: Version, form: LazyForm) -> ResourceDefinition:
    """A version as the store, the handlers and discovery know resources."""
    names = definition.accepted if definition.accepted.kind else definition.names
    group = definition.group
    rules = Rules(form, status=version.status, scale=version.scale)
    rules.definition = ResourceDefinition(
        group=group,
        version=version.name,
        kind=names.kind,
        plural=definition.names.plural,
        singular=names.singular,
        namespaced=definition.namespaced,
        verbs=VERBS,
        type=CustomType(f"{group}/{version.name}.{names.kind}", form),
        storage_group=group,
        storage_version=definition.storage_version,
        key_prefix=definition.key_prefix,
        short_names=names.short_names,
        categories=names.categories,
        subresources=_subresources(names, version),
        storage_version_hash=_hash(definition),
        selectable_fields={path.removeprefix("."): steps(path) for path in version.selectable},
        list_kind=names.list_kind or names.kind + "List",
        unconditional_update=False,
        custom=True,
        form=form,
        strategy=rules.strategy(),
    )
    return rules.definition


def _hash(definition: Definition) -> str:
    """What discovery tells so that clients notice when objects are stored in another version."""
    if not any(version.storage and version.served for version in definition.versions):
        return ""
    text = f"{definition.group}/{definition.storage_version}/{definition.names.kind}"
    return b64encode(sha256(text.encode()).digest()[:8]).decode()


def _subresources(names: Names, version: Version) -> Mapping[str, Subresource]:
    found = {}
    if version.status:
        found["status"] = Subresource("status", _STATUS_VERBS, names.kind)
    if version.scale is not None:
        found["scale"] = Subresource("scale", _STATUS_VERBS, "Scale", "autoscaling", "v1")
    return found
