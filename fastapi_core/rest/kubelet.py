"""Subresources that a kubelet answers: pods/log, exec, attach and portforward.

The node of the pod says where its kubelet listens. A request that upgrades becomes a tunnel; what the protocol inside
says (SPDY or WebSocket) is between the client and the kubelet.
"""

from __future__ import annotations

from collections.abc import Awaitable
from urllib.parse import urlencode

from fastapi_core import errors
from fastapi_core._ext.reqinfo import parse_query
from fastapi_core.admission.chain import Attributes
from fastapi_core.codec.negotiate import RESOURCE_TYPES
from fastapi_core.errors import APIError, FieldError
from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.http.exchange import Answer, Response
from fastapi_core.meta import time
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import Tree
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.authorize import check_connect
from fastapi_core.rest.backends import NODES, Backends
from fastapi_core.rest.options import Query, first, flag, integer
from fastapi_core.rest.scope import Scope
from fastapi_core.rest.upstream import KubeletAccess, Reply, passed_on

KUBELET_PORT = 10250
READ_LIMIT = 50_000
STREAMS = {"exec": "PodExecOptions", "attach": "PodAttachOptions", "portforward": "PodPortForwardOptions"}
_STREAMS = (("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty"))


def location(node: Tree, access: KubeletAccess) -> tuple[str, int]:
    """Host and port of a node's kubelet. Raises an error when the node names no address of a kind we may use."""
    status: Tree = node.get("status") or {}
    addresses = status.get("addresses") or ()
    port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or KUBELET_PORT
    for kind in access.address_types:
        for address in addresses:
            if address.get("type") == kind and address.get("address"):
                return address["address"], port
    known = " ".join(f"{{{a.get('type', '')} {a.get('address', '')}}}" for a in addresses)
    raise APIError("", f"no preferred addresses found; known addresses: [{known}]", code=500)


def node_target(backends: Backends, name: str, *, insecure: bool = False) -> Target:
    """The kubelet of a node; NotFound without the node."""
    upstreams = backends.upstreams
    host, port = location(backends.stores[NODES].get("", name).tree(), upstreams.kubelet)
    return Target(host, port, upstreams.kubelet_tls(insecure=insecure))


def container_of(pod: Tree, asked: str) -> str:
    """The container a request is about; BadRequest when it has to say which, or says a wrong one."""
    spec, name = pod.get("spec") or {}, pod["metadata"]["name"]
    kinds = ("initContainers", "containers", "ephemeralContainers")
    names = [container["name"] for kind in kinds for container in spec.get(kind) or ()]
    if asked:
        if asked not in names:
            raise errors.bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    regular: list[Tree] = spec.get("containers") or []
    if len(regular) == 1:
        return str(regular[0]["name"])
    choice = f", choose one of: [{' '.join(names)}]" if regular else ""
    raise errors.bad_request(f"a container name must be specified for pod {name}{choice}")


# Logs


@dataclass(frozen=True, slots=True)
class LogOptions:
    container: str
    insecure: bool
    passed: dict[str, str]
    """What the kubelet is asked."""


def log_options(query: Query, name: str) -> LogOptions:
    """Options of a log request; 422 with every problem."""
    tail, limit, seconds = integer(query, "tailLines"), integer(query, "limitBytes"), integer(query, "sinceSeconds")
    since = first(query, "sinceTime")
    problems = []
    if tail is not None and tail < 0:
        problems.append(FieldError("Invalid value", "tailLines", "must be greater than or equal to 0", tail))
    if limit is not None and limit < 1:
        problems.append(FieldError("Invalid value", "limitBytes", "must be greater than 0", limit))
    if seconds is not None and since:
        text = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        problems.append(FieldError("Forbidden", "[]", text))
    elif seconds is not None and seconds < 1:
        problems.append(FieldError("Invalid value", "sinceSeconds", "must be greater than 0", seconds))
    if "stream" in query:
        problems.append(FieldError("Forbidden", "stream", "may not be specified"))
    if problems:
        raise errors.invalid("PodLogOptions", "", name, problems)
    passed = {member: "true" for member in ("follow", "previous", "timestamps") if flag(query, member)}
    numbers = (("sinceSeconds", seconds), ("tailLines", tail), ("limitBytes", limit))
    passed.update({member: str(value) for member, value in numbers if value is not None})
    if since:
        try:
            passed["sinceTime"] = time.canonical(since) or ""
        except ValueError as error:
            raise errors.bad_request(str(error)) from error
    return LogOptions(first(query, "container"), bool(flag(query, "insecureSkipTLSVerifyBackend")), passed)


def logger(scope: Scope, backends: Backends) -> Endpoint:
    """GET pods/NAME/log."""

    def logs(ctx: RequestContext) -> Answer | Awaitable[Answer]:
        options = log_options(parse_query(ctx.request.query) if ctx.request.query else {}, ctx.info.name)
        pod = scope.store.get(ctx.info.namespace, ctx.info.name).tree()
        container = container_of(pod, options.container)
        node = (pod.get("spec") or {}).get("nodeName")
        if not node:
            return Response(204, [])
        target = node_target(backends, node, insecure=options.insecure)
        return _logs(ctx, backends, target, _path(pod, "containerLogs", container), options)

    return render.negotiated(logs, produced=("text/plain", *RESOURCE_TYPES))


def _path(pod: Tree, what: str, container: str = "") -> str:
    metadata = pod["metadata"]
    return "/".join(("", what, metadata["namespace"], metadata["name"], *([container] if container else [])))


async def _logs(ctx: RequestContext, backends: Backends, target: Target, path: str, options: LogOptions) -> Answer:
    asked = f"{path}?{urlencode(sorted(options.passed.items()))}" if options.passed else path
    headers = [(b"host", target.authority.encode()), (b"accept-encoding", b"identity")]
    try:
        reply = await backends.upstreams.fetch(target, "GET", asked, headers)
    except UpstreamError as error:
        raise APIError("", f'Get "https://{target.authority}{asked}": {error}', code=500) from error
    if not 200 <= reply.status < 300:
        raise await _kubelet_error(reply, ctx.info.name)
    return await reply.answer([(b"Content-Type", b"text/plain")])


async def _kubelet_error(reply: Reply, name: str) -> APIError:
    """What a kubelet's refusal is to the client."""
    text = (await reply.whole(READ_LIMIT)).decode("utf-8", "replace")
    if reply.status == 500:
        return errors.internal(text)
    if reply.status == 400:
        return errors.bad_request(text)
    reasons = {
        401: ("Unauthorized", "the server has asked for the client to provide credentials"),
        403: ("Forbidden", text),
        404: ("NotFound", "the server could not find the requested resource"),
        405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
        429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
        503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504: ("Timeout", "the server was unable to return a response in the time allotted, but may still be processing the request"),
    }  # fmt: skip
    default = f"the server responded with the status code {reply.status} but did not return more information"
    reason, message = reasons.get(reply.status, ("", default))
    details = {
        "name": name,
        "kind": "pods/log",
        "causes": [{"reason": "UnexpectedServerResponse", "message": text or "unknown"}],
    }
    return APIError(reason, f"{message} (get pods/log {name})", code=reply.status, details=details)


# Streams


def connect_query(ctx: RequestContext) -> Query:
    """The query of a request that connects; 400 for a dry run, which there cannot be."""
    query = parse_query(ctx.request.query) if ctx.request.query else {}
    if "dryRun" in query:
        raise errors.bad_request("dryRun is not supported")
    return query


def connector(scope: Scope, name: str, backends: Backends) -> Endpoint:
    """GET and POST of pods/NAME/exec, attach or portforward."""

    def connect(ctx: RequestContext) -> Awaitable[Answer]:
        query = connect_query(ctx)
        return check_then_connect(ctx, query) if is_websocket(ctx) else begin(ctx, query)

    async def check_then_connect(ctx: RequestContext, query: Query) -> Answer:
        await check_connect(ctx, scope)
        return await begin(ctx, query)

    async def begin(ctx: RequestContext, query: Query) -> Answer:
        await admit_connect(ctx, scope, name, _options(name, query))
        pod = scope.store.get(ctx.info.namespace, ctx.info.name).tree()
        container = container_of(pod, first(query, "container")) if name != "portforward" else ""
        node = (pod.get("spec") or {}).get("nodeName")
        if not node:
            raise errors.bad_request(f"pod {ctx.info.name} does not have a host assigned")
        target = node_target(backends, node)
        path = _path(pod, "portForward" if name == "portforward" else name, container)
        asked = urlencode(sorted(_stream_options(name, query), key=lambda option: option[0]))
        if not ctx.request.upgrade:
            raise errors.bad_request("Upgrade request required")
        return await upgraded(ctx, backends, target, f"{path}?{asked}" if asked else path)

    return connect


def is_websocket(ctx: RequestContext) -> bool:
    """Whether the client offers to speak WebSocket."""
    offered = ctx.request.header(b"upgrade") or b""
    return bool(ctx.request.upgrade) and b"websocket" in offered.lower()


def _stream_options(name: str, query: Query) -> list[tuple[str, str]]:
    if name == "portforward":
        ports = _ports(query)
        for port in ports:
            if not port.isdigit():
                raise errors.bad_request(f"strconv.ParseInt: parsing {errors.go_quote(port)}: invalid syntax")
        return [("port", ",".join(ports))] if ports else []
    options = [(theirs, "1") for ours, theirs in _STREAMS if flag(query, ours)]
    if name == "exec":
        options += [("command", word) for word in query.get("command") or ()]
    return options


def _ports(query: Query) -> list[str]:
    return [port for ports in query.get("ports") or () for port in ports.split(",")]


def _options(name: str, query: Query) -> Tree:
    """The query as the object that admission sees."""
    options: Tree = {"kind": STREAMS[name], "apiVersion": "v1"}
    if name == "portforward":
        ports = [int(port) for port in _ports(query) if port.isdigit()]
        return {**options, "ports": ports} if ports else options
    options |= {ours: True for ours, _ in _STREAMS if flag(query, ours)}
    if first(query, "container"):
        options["container"] = first(query, "container")
    if name == "exec" and query.get("command"):
        options["command"] = list(query["command"])
    return options


async def admit_connect(ctx: RequestContext, scope: Scope, name: str, options: Tree) -> None:
    """Admission of a connection, before anything about its target is looked at."""
    info = ctx.info
    attributes = Attributes("CONNECT", scope.definition, name, info.namespace, info.name, options, None, False, ctx)
    await scope.admission.mutate(attributes)
    await scope.admission.validate(attributes)


async def upgraded(ctx: RequestContext, backends: Backends, target: Target, path: str) -> Answer:
    """Pass an upgrade on; the answer is a tunnel when the other side agrees, else its refusal."""
    request = ctx.request
    headers = [(n, v) for n, v in passed_on(request.headers) if n not in (b"host", b"authorization", b"content-length")]
    headers.append((b"host", target.authority.encode()))
    headers += [(b"connection", b"Upgrade"), (b"upgrade", request.header(b"upgrade") or b"")]
    try:
        reply = await backends.upstreams.fetch(target, request.method, path, headers, upgrade=True)
    except UpstreamError as error:
        raise APIError("", f"error dialing backend: {error}", code=500) from error
    if reply.status == 101:
        agreed = [(b"Connection", b"Upgrade"), (b"Upgrade", reply.header(b"upgrade"))]
        return reply.stream([*passed_on(reply.headers), *agreed])
    return await reply.answer([h for h in passed_on(reply.headers) if h[0] != b"content-length"])
