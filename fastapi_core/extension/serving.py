"""A declared kind as it is served: its definition, its scope over a store or over functions, its endpoints."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

import orjson

from fastapi_core.extension.declaration import SchemaForm, family, subresources
from fastapi_core.extension.kinds import Kind, Resource, Stored
from fastapi_core.extension.versions import Conversion, Version
from fastapi_core.openapi.custom import CustomKind
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition

if TYPE_CHECKING:
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.extension.connection import Connections
    from fastapi_core.extension.scope import KindScope
    from fastapi_core.extension.sync import Runner
    from fastapi_core.request.context import Endpoint
    from fastapi_core.rest.watch import WatchServer
    from fastapi_core.storage.cacher.cacher import Cacher
    from fastapi_core.storage.interface import Storage

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Around:
    """What the kinds of a server share. The store is opened when one of them needs it."""

    authorizer: Authorizer
    watches: WatchServer
    runner: Runner
    connections: Connections
    store: tuple[Storage, Cacher] | None


def verbs(kind: Kind[Any]) -> tuple[str, ...]:
    """What is served; ModelError when handlers are missing."""
    return kind.handlers.verbs(kind.declaration.kind) if isinstance(kind, Resource) else VERBS


def served(kind: Kind[Any], form: SchemaForm | None = None) -> ResourceDefinition:
    """The definition of a kind. ModelError when it cannot be served."""
    declaration, found = kind.declaration, verbs(kind)
    parts = subresources(declaration, found)
    parts |= {name: sub.declared() for name, sub in kind.subresources.items()}
    # An author's source need not have versions; what is kept has, and a write must name the one it is based on.
    unconditional = isinstance(kind, Resource)
    return declaration.definition(
        form or SchemaForm(declaration.model.schema), found, parts, unconditional=unconditional
    )


def definitions(kind: Kind[Any]) -> list[ResourceDefinition]:
    """A kind in all its versions, the kept one first."""
    found = [served(kind)]
    if isinstance(kind, Stored):
        found += [_version(kind, version, SchemaForm(version.declaration.model.schema)) for version in kind.versions]
    return found


def _version(kind: Stored[Any], version: Version[Any, Any], form: SchemaForm) -> ResourceDefinition:
    """A further version; it has the subresources of the kept one."""
    declaration = version.declaration
    parts = subresources(kind.declaration, VERBS) | subresources(declaration, VERBS)
    parts |= {name: sub.declared() for name, sub in kind.subresources.items()}
    return declaration.definition(form, VERBS, parts, unconditional=False)


class ServedKind:
    """One kind of a composed server."""

    def __init__(self, kind: Kind[Any], around: Around) -> None:
        from fastapi_core.extension.rules import KindRules

        self.kind = kind
        self.form = SchemaForm(kind.declaration.model.schema)
        self.definition = served(kind, self.form)
        self._around = around
        self._shown: list[tuple[str, Callable[[Any], Any]]] = []
        if isinstance(kind, Stored) and kind.versions:
            self._shown = [(kind.declaration.version, kind.declaration.model.dump)]
            self._shown += [(version.declaration.version, version.shown) for version in kind.versions]
        rules: KindRules[Any] = KindRules(kind.declaration, self.form, *kind.rules, self._shown)
        made = self._computed if isinstance(kind, Resource) else self._stored
        self.versions: list[ServedVersion] = []
        self.scope, self.endpoints = made(rules)
        for sub in kind.subresources.values():
            self.endpoints |= sub.endpoints(self.scope, around.runner, around.connections)
            for other in self.versions:
                declaration = other.version.declaration
                other.endpoints.update(sub.endpoints(other.scope, around.runner, around.connections, declaration))

    def _stored(self, rules: Any) -> tuple[KindScope, dict[str, Endpoint]]:
        from fastapi_core.crd.scope import CustomStore
        from fastapi_core.extension import endpoints
        from fastapi_core.extension.rules import KindRules
        from fastapi_core.extension.scope import KindScope

        assert self._around.store is not None
        storage, cacher = self._around.store
        kind = cast("Stored[Any]", self.kind)
        store = CustomStore(self.definition, storage, cacher.resource(self.definition.key_prefix))
        declarations = [kind.declaration, *(version.declaration for version in kind.versions)]
        forms = {d.version: SchemaForm(d.model.schema) for d in declarations} | {kind.declaration.version: self.form}
        relatives = family(declarations, forms)
        convert = Conversion(kind.declaration, kind.versions) if kind.versions else None
        authorizer = self._around.authorizer
        scope = KindScope(
            kind.declaration, relatives, rules, self.definition, store, authorizer, computed=False, convert=convert
        )
        for version in kind.versions:
            form = forms[version.declaration.version]
            definition = _version(kind, version, form)
            own: KindRules[Any] = KindRules(version.bridged(), form, *kind.rules, self._shown)
            other = KindScope(
                version.declaration, relatives, own, definition, store, authorizer, computed=False, convert=convert
            )
            made = endpoints.stored(other, self._around.watches)
            if version.declaration.scale is None and scope.declaration.scale is not None:
                # It does not say where its replicas are: they are changed where the objects are kept.
                made |= endpoints.scaling(scope)
            self.versions.append(ServedVersion(version, definition, other, made))
        probe: dict[str, Any] = {}
        self.form.default(probe)
        if not (self.kind.declaration.status and "status" in probe):
            store.fresh_for = scope
        return scope, endpoints.stored(scope, self._around.watches)

    def _computed(self, rules: Any) -> tuple[KindScope, dict[str, Endpoint]]:
        from fastapi_core.extension import endpoints
        from fastapi_core.extension.request import Request
        from fastapi_core.extension.scope import KindScope
        from fastapi_core.extension.source import Origin, RequestStore
        from fastapi_core.request.context import LOOPBACK

        kind = cast("Resource[Any]", self.kind)
        origin = Origin(kind.declaration, self.definition, kind.handlers, self._around.runner)
        scope = KindScope(
            kind.declaration,
            family([kind.declaration], {kind.declaration.version: self.form}),
            rules,
            self.definition,
            RequestStore(origin, Request(user=LOOPBACK, verb="")),
            self._around.authorizer,
            computed=True,
        )
        return scope, endpoints.computed(scope, origin, self._around.watches)

    def described(self) -> list[CustomKind]:
        """As OpenAPI documents tell of it, and of the kinds of its subresources."""
        found = [_described(self.definition, lambda: self.kind.declaration.model.schema)]
        for sub in self.kind.subresources.values():
            found.append(_described(sub.definition(), lambda sub=sub: sub.model.schema))  # type: ignore[misc]
        for served in self.versions:
            declaration = served.version.declaration
            found.append(_described(served.definition, lambda schema=declaration.model.schema: schema))  # type: ignore[misc]
            for sub in self.kind.subresources.values():
                found.append(_described(sub.definition(declaration), lambda sub=sub: sub.model.schema))  # type: ignore[misc]
        return found

    def tables(self) -> list[tuple[ResourceDefinition, dict[str, Endpoint]]]:
        """Definitions and endpoints of all versions."""
        return [(self.definition, self.endpoints), *((v.definition, v.endpoints) for v in self.versions)]


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """A further version of a kind that is kept."""

    version: Version[Any, Any]
    definition: ResourceDefinition
    scope: KindScope
    endpoints: dict[str, Endpoint]


def _described(definition: ResourceDefinition, schema: Callable[[], dict[str, Any]]) -> CustomKind:
    said = orjson.dumps([schema(), definition.verbs, list(definition.subresources), definition.namespaced])
    return CustomKind(definition, blake2b(said, digest_size=16).hexdigest(), schema, False)
