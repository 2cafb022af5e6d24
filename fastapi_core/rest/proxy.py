"""Subresource proxy of pods, services and nodes: requests passed on to whatever listens there."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from urllib.parse import urlsplit, urlunsplit

from fastapi_core import errors
from fastapi_core.errors import APIError
from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.http.exchange import Answer, Header, Response
from fastapi_core.registry.definition import Tree
from fastapi_core.registry.services import SERVICES, Address
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest.backends import NODES, PODS, Backends
from fastapi_core.rest.kubelet import admit_connect, connect_query, location, upgraded
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.upstream import passed_on

_KINDS = {"pods": "PodProxyOptions", "services": "ServiceProxyOptions", "nodes": "NodeProxyOptions"}


def split_name(text: str, kind: str) -> tuple[str, str, str]:
    """(scheme, name, port) of `name`, `name:port` or `scheme:name:port`; BadRequest for anything else."""
    parts = text.split(":")
    scheme, name, port = (
        (["", *parts, ""] if len(parts) == 1 else ["", *parts])[-3:] if len(parts) < 4 else ["", "", ""]
    )
    if len(parts) > 3 or not name or scheme not in ("", "http", "https"):
        raise errors.bad_request(f"invalid {kind} request {errors.go_quote(text)}")
    return scheme, name, port


def _target(backends: Backends, scheme: str, host: str, port: str) -> Target:
    secure = scheme == "https"
    if port and not (port.isdigit() and 0 < int(port) < 65536):
        raise APIError("ServiceUnavailable", f"error trying to reach service: address {port}: invalid port")
    tls = backends.upstreams.proxy_tls() if secure else None
    return Target(host, int(port) if port else 443 if secure else 80, tls)


def pod_target(backends: Backends, namespace: str, text: str) -> Target:
    """Where a pod listens: at its address, on the port asked for or its first one."""
    scheme, name, port = split_name(text, "pod")
    pod = backends.stores[PODS].get(namespace, name).tree()
    if not port:
        ports = (p for c in (pod.get("spec") or {}).get("containers") or () for p in c.get("ports") or ())
        port = next((str(p["containerPort"]) for p in ports), "")
    return _target(backends, scheme, _proxyable(_pod_address(pod)), port)


def _pod_address(pod: Tree) -> str:
    status: Tree = pod.get("status") or {}
    addresses = status.get("podIPs") or ()
    return (addresses[0].get("ip") or "") if addresses else status.get("podIP") or ""


def _proxyable(address: str) -> str:
    """An address of another machine; what is ours alone (loopback, link-local) is not reached through us."""
    try:
        parsed = ip_address(address)
    except ValueError:
        parsed = None
    if parsed is None or parsed.is_loopback or parsed.is_unspecified or parsed.is_multicast or parsed.is_link_local:
        raise errors.bad_request("address not allowed")
    return address


def node_location(backends: Backends, namespace: str, text: str) -> Target:
    """A node's kubelet, or another port of the node."""
    scheme, name, port = split_name(text, "node")
    upstreams = backends.upstreams
    host, own = location(backends.stores[NODES].get("", name).tree(), upstreams.kubelet)
    if port in ("", str(own)):
        return Target(host, own, upstreams.kubelet_tls())
    return _target(backends, scheme, _proxyable(host), port)


def service_target(backends: Backends, namespace: str, text: str) -> Target:
    """One of the pods behind a service."""
    scheme, name, port = split_name(text, "service")
    services = backends.stores[SERVICES]
    if port.isdigit():
        spec: Tree = services.get(namespace, name).tree().get("spec") or {}
        named = [p.get("name") or "" for p in spec.get("ports") or () if p["port"] == int(port)]
        if not named:
            quoted = errors.go_quote(name)
            raise APIError("ServiceUnavailable", f"no service port {port} found for service {quoted}")
        port = named[0]
    found = [a for a in backends.services.ready(namespace, name, port) if _is_pod(backends, namespace, a)]
    if not found:
        services.get(namespace, name)
        raise APIError("ServiceUnavailable", f"no endpoints available for service {errors.go_quote(text)}")
    chosen = random.choice(found)
    return _target(backends, scheme, chosen.host, str(chosen.port))


def _is_pod(backends: Backends, namespace: str, endpoint: Address) -> bool:
    """Endpoints are written by users too: only the address of a pod that exists is called."""
    reference = endpoint.target
    if reference.get("kind") != "Pod" or reference.get("namespace", namespace) != namespace:
        return False
    pods = backends.stores[PODS]
    pod = pods.cache.get(pods.key(namespace, reference.get("name") or ""))
    if pod is None:
        return False
    status: Tree = pod.tree().get("status") or {}
    known = {entry.get("ip") for entry in status.get("podIPs") or ()} | {status.get("podIP")}
    return endpoint.host in known


_PLACES: dict[str, Callable[[Backends, str, str], Target]] = {
    "pods": pod_target,
    "services": service_target,
    "nodes": node_location,
}


def proxier(scope: Scope, backends: Backends) -> Endpoint:
    """Any method below .../NAME/proxy."""
    plural = scope.definition.plural
    place = _PLACES[plural]

    def proxy(ctx: RequestContext) -> Awaitable[Answer]:
        connect_query(ctx)
        return admitted(ctx, _rest(ctx))

    async def admitted(ctx: RequestContext, rest: str) -> Answer:
        query = f"?{ctx.request.query}" if ctx.request.query else ""
        options: Tree = {"kind": _KINDS[plural], "apiVersion": "v1"}
        await admit_connect(ctx, scope, "proxy", {**options, "path": rest} if rest else options)
        target = place(backends, ctx.info.namespace, ctx.info.name)
        if not rest and ctx.request.method in ("GET", "HEAD"):
            where = f"{ctx.request.path}/{query}".encode("utf-8", "surrogateescape")
            return Response(301, [(b"Location", where)])
        return await _proxy(ctx, backends, target, (rest or "/") + query)

    return proxy


def _rest(ctx: RequestContext) -> str:
    """The path behind `/proxy` as the client sent it: its escapes are the other server's business."""
    parts = ctx.request.path.split("/")
    behind = parts[_position(parts) + 1 :]
    return "/" + "/".join(behind) if behind else ""


def _position(parts: list[str]) -> int:
    """Where the subresource stands: `api/v1[/namespaces/NAMESPACE]/RESOURCE/NAME/proxy`."""
    start = 3
    if parts[start : start + 1] == ["namespaces"] and len(parts) > start + 4:
        start += 2
    return start + 2


async def _proxy(ctx: RequestContext, backends: Backends, target: Target, path: str) -> Answer:
    request = ctx.request
    if request.upgrade:
        return await upgraded(ctx, backends, target, path)
    headers = _forwarded(ctx, target)
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        headers.append((b"content-length", str(len(request.body)).encode()))
    try:
        reply = await backends.upstreams.fetch(target, request.method, path, headers, request.body)
    except UpstreamError as error:
        raise APIError("ServiceUnavailable", f"error trying to reach service: {error}") from error
    kept = [h for h in passed_on(reply.headers) if h[0] != b"content-length" or reply.bodiless]
    return await reply.answer([_rewritten(ctx, target, header) for header in kept])


def _rewritten(ctx: RequestContext, target: Target, header: Header) -> Header:
    """A redirect within the other server, as one within its proxy."""
    name, value = header
    if name != b"location":
        return header
    url = urlsplit(value.decode("latin-1"))
    if (url.netloc and url.netloc not in (target.authority, target.host)) or not url.path.startswith("/"):
        return header
    parts = ctx.request.path.split("/")
    prefix = "/".join(parts[: _position(parts) + 1])
    return name, urlunsplit(("", "", prefix + url.path, url.query, url.fragment)).encode("latin-1")


def _forwarded(ctx: RequestContext, target: Target) -> list[Header]:
    """The client's header fields, without its credentials and with where the request came from."""
    request = ctx.request
    dropped = (b"host", b"authorization", b"content-length", b"x-forwarded-for")
    headers = [(name, value) for name, value in passed_on(request.headers) if name not in dropped]
    client = request.connection.peer.rpartition(":")[0].strip("[]")
    before = request.header(b"x-forwarded-for")
    origin = client.encode() if before is None else before + b", " + client.encode()
    return [
        (b"host", target.authority.encode()),
        *headers,
        (b"x-forwarded-for", origin),
        (b"x-forwarded-uri", request.path.encode("utf-8", "surrogateescape")),
        (b"x-forwarded-host", request.header(b"host") or b""),
        (b"x-forwarded-proto", b"https" if request.connection.tls else b"http"),
    ]
