"""Which endpoint carries out which subresource of which kind, beyond status, scale and finalize."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fastapi_core.apis.strategies import certificates, pod_parts
from fastapi_core.registry.definition import Strategy
from fastapi_core.request.context import Endpoint
from fastapi_core.rest import binding, eviction, get, kubelet, patch, proxy, render, tokens, update
from fastapi_core.rest.backends import Backends
from fastapi_core.rest.scope import Scope

#: Subresources that are a writable part of their object: (plural, subresource) -> the rules of that part.
_PARTS: dict[tuple[str, str], Strategy] = {
    ("pods", "ephemeralcontainers"): pod_parts.EPHEMERAL,
    ("pods", "resize"): pod_parts.RESIZE,
    ("certificatesigningrequests", "approval"): certificates.APPROVAL,
}
_CREATORS: dict[tuple[str, str], Callable[[Scope, Backends], Endpoint]] = {
    ("pods", "binding"): lambda scope, backends: binding.binder(scope),
    ("pods", "eviction"): eviction.evictor,
    ("serviceaccounts", "token"): tokens.requester,
}


def endpoint(scope: Scope, name: str, verb: str, backends: Backends) -> Endpoint | None:
    """The endpoint of a built-in subresource; None when there is none."""
    if scope.definition.custom:
        return None
    key = (scope.definition.plural, name)
    creator = _CREATORS.get(key)
    if creator is not None:
        return render.negotiated(creator(scope, backends))
    if name == "proxy":
        return proxy.proxier(scope, backends)
    if name == "log":
        return kubelet.logger(scope, backends)
    if name in kubelet.STREAMS:
        return kubelet.connector(scope, name, backends)
    strategy = _PARTS.get(key)
    if strategy is not None:
        part = _part(part_scope(scope, strategy), name, verb)
        # What is a part of a pod has no columns; approvals have those of their requests.
        return render.negotiated(part) if scope.definition.kind == "Pod" else part
    return None


def _part(scope: Scope, name: str, verb: str) -> Endpoint:
    if verb == "get":
        return get.getter(scope)
    return update.updater(scope, name) if verb == "update" else patch.patcher(scope, name)


def part_scope(scope: Scope, strategy: Strategy) -> Scope:
    """The scope of a subresource whose writes follow rules of their own."""
    return Scope(replace(scope.definition, strategy=strategy), scope.store, scope.admission, scope.authorizer)


def status_scope(scope: Scope) -> Scope:
    """The scope of the status subresource."""
    if scope.definition.kind == "CertificateSigningRequest" and not scope.definition.custom:
        return part_scope(scope, certificates.with_status(scope.definition.strategy))
    return scope.status()
