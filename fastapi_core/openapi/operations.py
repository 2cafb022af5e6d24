"""Every operation the server has, as plain records that both document versions are written from.

A resource gives its operations by rule from its verbs and subresources, the same rule that its routes follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastapi_core.openapi import parameters
from fastapi_core.openapi.names import scope_name, tag
from fastapi_core.openapi.parameters import Parameter
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition, Subresource

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ANY = "*/*"
OBJECT_TYPES = (JSON, YAML, PROTOBUF)
STREAM_TYPES = (*OBJECT_TYPES, f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
CUSTOM_TYPES = (JSON, YAML)
CUSTOM_PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)

STRING = ""
"""As a response: text, not a schema of its own."""
STATUS = "meta/v1.Status"
WATCH_EVENT = "meta/v1.WatchEvent"
DELETE_OPTIONS = "meta/v1.DeleteOptions"
PATCH = "meta/v1.Patch"


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `responses` and `body` name types; `gvk` is (group, version, kind)."""

    path: str
    method: str
    id: str
    tag: str
    responses: tuple[tuple[str, str], ...]
    produces: tuple[str, ...] = OBJECT_TYPES
    consumes: tuple[str, ...] = (ANY,)
    action: str = ""
    gvk: tuple[str, str, str] | None = None
    parameters: tuple[Parameter, ...] = ()
    body: str | None = None
    body_required: bool = True


class _Writer:
    """Operations of one resource (or one of its subresources) under one group version."""

    def __init__(self, definition: ResourceDefinition) -> None:
        self.definition = definition
        group, version = definition.group, definition.version
        self.root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        self.scope = scope_name(group, version)
        self.tag = tag(group, version)
        self.own = f"{group or 'core'}/{version}"
        self.gvk = (group, version, definition.kind)
        self.namespaced = "Namespaced" if definition.namespaced else ""
        place = "/namespaces/{namespace}" if definition.namespaced else ""
        self.place = f"{place}/{definition.plural}"

    def make(
        self,
        path: str,
        method: str,
        verb: str,
        rest: str,
        action: str,
        responses: tuple[tuple[str, str], ...],
        params: tuple[Parameter, ...],
        *,
        gvk: tuple[str, str, str] | None = None,
        produces: tuple[str, ...] = OBJECT_TYPES,
        consumes: tuple[str, ...] = (ANY,),
        body: str | None = None,
        body_required: bool = True,
        pretty: bool = True,
    ) -> Operation:
        found = tuple(parameters.in_path(name) for name in ("name", "namespace", "path") if f"{{{name}}}" in path)
        if self.definition.custom:
            produces = CUSTOM_TYPES
            consumes = CUSTOM_PATCH_TYPES if method == "patch" else CUSTOM_TYPES
            gvk = self.gvk
            if method == "patch":
                responses = responses[:1]
        return Operation(
            path=self.root + path,
            method=method,
            id=f"{verb}{self.scope}{rest}",
            tag=self.tag,
            responses=responses,
            produces=produces,
            consumes=consumes,
            action=action,
            gvk=gvk or self.gvk,
            parameters=(*found, *((parameters.PRETTY,) if pretty else ()), *params),
            body=body,
            body_required=body_required,
        )

    def collection(self) -> Iterator[Operation]:
        definition, kind, own = self.definition, self.definition.kind, f"{self.own}.{self.definition.kind}"
        named = self.namespaced + kind
        listed = f"{self.own}.{definition.list_kind or kind + 'List'}"
        if "list" in definition.verbs:
            yield self._list(self.place, f"{named}", listed)
            if definition.namespaced:
                yield self._list(f"/{definition.plural}", f"{kind}ForAllNamespaces", listed)
        if "create" in definition.verbs:
            yield self.make(
                self.place, "post", "create", named, "post", _codes(own, 200, 201, 202), parameters.WRITE, body=own
            )
        if "deletecollection" in definition.verbs and definition.custom:
            # The reference describes it as a list.
            codes = _codes(STATUS, 200)
            rest = f"Collection{named}"
            yield self.make(self.place, "delete", "delete", rest, "deletecollection", codes, parameters.LIST)
        elif "deletecollection" in definition.verbs:
            yield self.make(
                self.place,
                "delete",
                "delete",
                f"Collection{named}",
                "deletecollection",
                _codes(STATUS, 200),
                parameters.DELETE_COLLECTION,
                body=DELETE_OPTIONS,
                body_required=False,
            )

    def _list(self, path: str, rest: str, listed: str) -> Operation:
        return self.make(path, "get", "list", rest, "list", _codes(listed, 200), parameters.LIST, produces=STREAM_TYPES)

    def item(self) -> Iterator[Operation]:
        definition = self.definition
        path, named, own = self.place + "/{name}", self.namespaced + definition.kind, f"{self.own}.{definition.kind}"
        yield from self._reads_and_writes(path, named, definition.verbs, own, self.gvk)
        if "delete" in definition.verbs:
            yield self.make(
                path,
                "delete",
                "delete",
                named,
                "delete",
                _codes(own if definition.return_deleted and own not in _SAYS_STATUS else STATUS, 200, 202),
                parameters.DELETE,
                body=DELETE_OPTIONS,
                body_required=False,
            )

    def _reads_and_writes(
        self, path: str, named: str, verbs: tuple[str, ...], ref: str, gvk: tuple[str, str, str]
    ) -> Iterator[Operation]:
        if "get" in verbs:
            params = parameters.CUSTOM_GET if self.definition.custom else ()
            yield self.make(path, "get", "read", named, "get", _codes(ref, 200), params, gvk=gvk)
        if "update" in verbs:
            yield self.make(
                path, "put", "replace", named, "put", _codes(ref, 200, 201), parameters.WRITE, gvk=gvk, body=ref
            )
        if "patch" in verbs:
            yield self.make(
                path,
                "patch",
                "patch",
                named,
                "patch",
                _codes(ref, 200, 201),
                parameters.PATCH,
                gvk=gvk,
                consumes=PATCH_TYPES,
                body=PATCH,
            )

    def subresource(self, sub: Subresource) -> Iterator[Operation]:
        path = f"{self.place}/{{name}}/{sub.name}"
        named = self.namespaced + self.definition.kind + sub.name[:1].upper() + sub.name[1:]
        group, version = (sub.group, sub.version) if sub.version else (self.definition.group, self.definition.version)
        gvk, ref = (group, version, sub.kind), f"{group or 'core'}/{version}.{sub.kind}"
        # Kinds that are not built in name their subresources as they like: a name says nothing of what is behind it.
        if not self.definition.custom and sub.kind.endswith("Options"):
            yield from self._connect(path, named, sub, ref, gvk)
        elif not self.definition.custom and sub.name == "log":
            yield self.make(
                path,
                "get",
                "read",
                named,
                "get",
                _codes(STRING, 200),
                parameters.options(f"{self.own}.PodLogOptions"),
                produces=("text/plain", *OBJECT_TYPES),
            )
        else:
            if "create" in sub.verbs:
                codes = _codes(ref, 200, 201, 202)
                yield self.make(path, "post", "create", named, "post", codes, parameters.WRITE, gvk=gvk, body=ref)
            yield from self._reads_and_writes(path, named, sub.verbs, ref, gvk)

    def _connect(
        self, path: str, named: str, sub: Subresource, ref: str, gvk: tuple[str, str, str]
    ) -> Iterator[Operation]:
        methods = [_METHODS[verb] for verb in sub.verbs]
        paths = [(path, named)]
        if sub.name == "proxy":
            methods += ["head", "options"]
            paths.append((path + "/{path}", named + "WithPath"))
        for where, name in paths:
            for method in methods:
                yield self.make(
                    where,
                    method,
                    "connect",
                    method.title() + name,
                    "connect",
                    _codes(STRING, 200),
                    parameters.options(ref),
                    gvk=gvk,
                    produces=(ANY,),
                    pretty=False,
                )

    def watches(self) -> Iterator[Operation]:
        """The deprecated /watch/ paths."""
        definition, kind = self.definition, self.definition.kind
        if "watch" not in definition.verbs or definition.custom:
            return
        paths = [
            (f"/watch{self.place}/{{name}}", f"{self.namespaced}{kind}", "watch"),
            (f"/watch{self.place}", f"{self.namespaced}{kind}List", "watchlist"),
        ]
        if definition.namespaced:
            paths.append((f"/watch/{definition.plural}", f"{kind}ListForAllNamespaces", "watchlist"))
        for path, rest, action in paths:
            yield self.make(
                path,
                "get",
                "watch",
                rest,
                action,
                _codes(WATCH_EVENT, 200),
                parameters.LIST,
                produces=STREAM_TYPES,
            )


#: Kinds whose delete answers with the object and is described as answering with a Status.
_SAYS_STATUS = frozenset({"core/v1.Namespace"})
_METHODS = {"get": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}


def _codes(ref: str, *codes: int) -> tuple[tuple[str, str], ...]:
    return tuple((str(code), ref) for code in codes)


def of_resource(definition: ResourceDefinition) -> Iterator[Operation]:
    """Every operation of a resource."""
    writer = _Writer(definition)
    yield from writer.collection()
    yield from writer.item()
    for sub in definition.subresources.values():
        yield from writer.subresource(sub)
    yield from writer.watches()


def of_group_version(definitions: Iterable[ResourceDefinition]) -> list[Operation]:
    """Every operation of the resources of one group version, its discovery document first."""
    found = list(definitions)
    group, version = found[0].group, found[0].version
    if all(definition.custom for definition in found):
        return [operation for definition in found for operation in of_resource(definition)]
    root = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
    operations = [
        _discovery(root, f"get{scope_name(group, version)}APIResources", tag(group, version), "meta/v1.APIResourceList")
    ]
    for definition in found:
        operations += of_resource(definition)
    return operations


def of_group(group: str) -> list[Operation]:
    """The discovery document of a group."""
    return [_discovery(f"/apis/{group}/", f"get{scope_name(group)}APIGroup", tag(group), "meta/v1.APIGroup")]


def _discovery(path: str, id: str, tag: str, ref: str) -> Operation:
    return Operation(path, "get", id, tag, _codes(ref, 200), consumes=OBJECT_TYPES)


#: Documents of paths that belong to no group.
GENERIC: dict[str, Operation] = {
    "api": _discovery("/api/", "getCoreAPIVersions", "core", "meta/v1.APIVersions"),
    "apis": _discovery("/apis/", "getAPIVersions", "apis", "meta/v1.APIGroupList"),
    "version": Operation(
        "/version/", "get", "getCodeVersion", "version", _codes("version.Info", 200), produces=(JSON,), consumes=(JSON,)
    ),
    "openid/v1/jwks": Operation(
        "/openid/v1/jwks/",
        "get",
        "getServiceAccountIssuerOpenIDKeyset",
        "openid",
        _codes(STRING, 200),
        produces=("application/jwk-set+json",),
        consumes=(),
    ),
    ".well-known/openid-configuration": Operation(
        "/.well-known/openid-configuration/",
        "get",
        "getServiceAccountIssuerOpenIDConfiguration",
        "WellKnown",
        _codes(STRING, 200),
        produces=(JSON,),
        consumes=(),
    ),
}
