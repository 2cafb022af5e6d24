"""From resource definitions to routes.

The reference has two kinds of paths. *Services* (`/api`, `/apis/GROUP` of built-in groups, `/version`) ignore trailing
slashes and answer a wrong method with a Status; their patterns end in `{/}` and name their methods. Everything else is
an exact path that takes any method (`ANY`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from fastapi_core import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from fastapi_core._ext.router import Match
    from fastapi_core.http.exchange import Answer
    from fastapi_core.request.context import Endpoint, RequestContext

Route = tuple[str, "Mapping[str, Endpoint]"]

#: Key of an endpoint that takes every HTTP method.
ANY = "*"


class Routes(Protocol):
    """Where dispatch looks a path up: one `Router`, or several behind each other."""

    def lookup(self, path: str) -> Match[Endpoint] | None:
        """Route of a raw (still percent-encoded) path, or None."""
        ...


class ServedSubresource(Protocol):
    """What routing needs of a subresource (`registry.definition.Subresource`)."""

    @property
    def name(self) -> str: ...
    @property
    def verbs(self) -> tuple[str, ...]: ...


class Served(Protocol):
    """What routing needs of a resource (`registry.definition.ResourceDefinition`, a layer above)."""

    @property
    def group(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def namespaced(self) -> bool: ...
    @property
    def verbs(self) -> tuple[str, ...]: ...
    @property
    def custom(self) -> bool: ...
    @property
    def subresources(self) -> Mapping[str, ServedSubresource]: ...


_METHODS = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_PROXY_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def group_version_path(group: str, version: str) -> str:
    """`/api/v1` or `/apis/GROUP/VERSION`."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def resource_routes(definition: Served, endpoints: Mapping[str, Endpoint]) -> list[tuple[str, dict[str, Endpoint]]]:
    """Routes of one resource, as (pattern, {HTTP method: endpoint}).

    Keys of `endpoints`: the verbs get, list, create, update, patch, delete, deletecollection and watch, and for
    subresources `NAME:VERB` (`status:get`) or `NAME:connect` for every verb of one that streams. A verb is routed when
    the definition declares it and an endpoint is given. The list endpoint decides itself whether a query asks for a
    watch; the watch endpoint answers the deprecated `/watch/` paths, where `ctx.info.name` may be one object to watch.
    """
    root = group_version_path(definition.group, definition.version)
    verbs = {verb: endpoints[verb] for verb in definition.verbs if verb in endpoints}
    scope = f"{root}/namespaces/{{namespace}}" if definition.namespaced else root
    plural = definition.plural
    routes = {
        f"{scope}/{plural}": _collection(definition, verbs),
        f"{scope}/{plural}/{{name}}": {
            _METHODS[verb]: verbs[verb] for verb in ("get", "update", "patch", "delete") if verb in verbs
        },
    }
    if definition.namespaced and "list" in verbs:
        routes[f"{root}/{plural}"] = {"GET": routes[f"{scope}/{plural}"]["GET"]}
    if "watch" in verbs:
        routes |= _watch_paths(root, definition, verbs["watch"])
    for sub in definition.subresources.values():
        routes |= _subresource(f"{scope}/{plural}/{{name}}/{sub.name}", sub, endpoints)
    return [
        (pattern if pattern.endswith("...}") else pattern + "{/}", methods)
        for pattern, methods in routes.items()
        if methods
    ]


def _collection(definition: Served, verbs: Mapping[str, Endpoint]) -> dict[str, Endpoint]:
    methods: dict[str, Endpoint] = {}
    if "list" in verbs:
        watchable = "watch" in definition.verbs
        methods["GET"] = verbs["list"] if watchable else _list_only(definition, verbs["list"])
    if "create" in verbs:
        methods["POST"] = verbs["create"]
    if "deletecollection" in verbs:
        methods["DELETE"] = verbs["deletecollection"]
    return methods


def _list_only(definition: Served, listing: Endpoint) -> Endpoint:
    """A collection that can be listed and not watched."""
    kind = errors.qualified(definition.plural, definition.group)
    details = {"group": definition.group} if definition.group else {}
    refusal = f"watch is not supported on resources of kind {errors.go_quote(kind)}"

    def collection(ctx: RequestContext) -> Answer | Awaitable[Answer]:
        if ctx.info.verb == "watch":
            raise errors.APIError("MethodNotAllowed", refusal, details={**details, "kind": definition.plural})
        return listing(ctx)

    return collection


def _watch_paths(root: str, definition: Served, watch: Endpoint) -> dict[str, dict[str, Endpoint]]:
    """The deprecated form: `/watch` after the version."""
    scope = f"{root}/watch/namespaces/{{namespace}}" if definition.namespaced else f"{root}/watch"
    paths = [f"{scope}/{definition.plural}/{{name}}"]
    if "list" in definition.verbs:
        paths += [f"{scope}/{definition.plural}", f"{root}/watch/{definition.plural}"]
    return {path: {"GET": watch} for path in paths}


def _subresource(
    path: str, sub: ServedSubresource, endpoints: Mapping[str, Endpoint]
) -> dict[str, dict[str, Endpoint]]:
    connect = endpoints.get(f"{sub.name}:connect") or (endpoints.get("proxy:get") if sub.name == "proxy" else None)
    methods: dict[str, Endpoint] = {}
    for verb in sub.verbs:
        endpoint = endpoints.get(f"{sub.name}:{verb}", connect)
        if endpoint is not None:
            methods[_METHODS[verb]] = endpoint
    if sub.name != "proxy":
        return {path: methods}
    if connect is not None:
        methods = dict.fromkeys(_PROXY_METHODS, connect)
    return {path: methods, f"{path}/{{path...}}": methods}
