"""Asking a webhook by HTTPS: where a client configuration leads, one question, its whole answer."""

from __future__ import annotations

import asyncio
import random
import ssl
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fastapi_core.authn.outbound import client_tls
from fastapi_core.codec import json as json_codec
from fastapi_core.errors import go_quote
from fastapi_core.http.client import Target, UpstreamError, send
from fastapi_core.rest.backends import ENDPOINTS, SERVICES, SLICES

if TYPE_CHECKING:
    from fastapi_core.registry.store import ResourceStore

Tree = dict[str, Any]
#: Longest answer read, and for how many seconds it is waited for.
ANSWER_LIMIT = 64 << 20
PATIENCE = 30.0
_SERVICE_NAME = "kubernetes.io/service-name"
_CONTEXTS = 64


class RequestError(Exception):
    """A question without a usable answer; the text is the reference's."""


class WebhookClient:
    """A `crd.conversion.Caller`; services are looked up among the stored ones."""

    def __init__(self, stores: Mapping[str, ResourceStore]) -> None:
        self._stores = stores
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def ask(self, config: Tree, body: bytes) -> Tree:
        """The document the webhook answers. Raises RequestError."""
        target, authority, path = self._place(config)
        url = f"https://{authority}{path}?timeout={int(PATIENCE)}s"
        headers = [
            (b"host", authority.encode()), (b"user-agent", b"kube-apiserver"), (b"connection", b"close"),
            (b"accept", b"application/json, */*"), (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]  # fmt: skip
        try:
            async with asyncio.timeout(PATIENCE):
                reply = await send(target, "POST", f"{path}?timeout={int(PATIENCE)}s", headers, body, timeout=PATIENCE)
                try:
                    answer = await reply.whole(ANSWER_LIMIT)
                finally:
                    reply.close()
        except TimeoutError:
            raise RequestError(f'Post "{url}": context deadline exceeded') from None
        except UpstreamError as error:
            raise RequestError(f'Post "{url}": {error}') from None
        return _document(reply.status, answer)

    def _place(self, config: Tree) -> tuple[Target, str, str]:
        """Where to connect, the name to ask for, and the path."""
        context = self._context(config.get("caBundle") or "")
        service = config.get("service")
        if service:
            port = service.get("port") or 443
            name = f"{service.get('name')}.{service.get('namespace')}.svc"
            host, number = self._resolve(service.get("namespace") or "", service.get("name") or "", port)
            return Target(host, number, context, name), f"{name}:{port}", "/" + (service.get("path") or "").lstrip("/")
        parts = urlsplit(config.get("url") or "")
        if not parts.hostname:
            raise RequestError("webhook configuration must have either service or URL")
        return Target(parts.hostname, parts.port or 443, context), parts.netloc, parts.path or "/"

    def _context(self, bundle: str) -> ssl.SSLContext:
        known = self._contexts.get(bundle)
        if known is None:
            try:
                known = client_tls(b64decode(bundle) if bundle else None)
            except ValueError as error:
                raise RequestError(f"unable to load root certificates: {error}") from None
            while len(self._contexts) >= _CONTEXTS:
                del self._contexts[next(iter(self._contexts))]
            self._contexts[bundle] = known
        return known

    def _resolve(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """One of the ready endpoints of a service, or else its own address."""
        store = self._stores[SERVICES]
        found = store.cache.get(store.key(namespace, name))
        if found is None:
            raise RequestError(f"service {go_quote(name)} not found")
        spec: Tree = found.tree().get("spec") or {}
        if spec.get("type") == "ExternalName":
            return spec.get("externalName") or "", port
        ports = [entry.get("name") or "" for entry in spec.get("ports") or () if entry.get("port") == port]
        if not ports:
            raise RequestError(f"no service port {port} found for service {go_quote(name)}")
        places = list(self._endpoints(namespace, name, ports[0]))
        if places:
            return random.choice(places)
        address = spec.get("clusterIP") or ""
        if address in ("", "None"):
            raise RequestError(f"no endpoints available for service {go_quote(name)}")
        return address, port

    def _endpoints(self, namespace: str, name: str, port: str) -> Iterator[tuple[str, int]]:
        slices = self._stores[SLICES]
        for obj in slices.cache.list(slices.scope(namespace)).objects:
            if obj.labels().get(_SERVICE_NAME) != name:
                continue
            tree = obj.tree()
            numbers = [p["port"] for p in tree.get("ports") or () if (p.get("name") or "") == port and p.get("port")]
            for endpoint in tree.get("endpoints") or ():
                if (endpoint.get("conditions") or {}).get("ready") is not False:
                    yield from ((address, number) for address in endpoint["addresses"] for number in numbers)
        store = self._stores[ENDPOINTS]
        found = store.cache.get(store.key(namespace, name))
        for subset in (found.tree().get("subsets") or ()) if found is not None else ():
            numbers = [p["port"] for p in subset.get("ports") or () if (p.get("name") or "") == port]
            for address in subset.get("addresses") or ():
                yield from ((address["ip"], number) for number in numbers)


_TEXTS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def _document(status: int, body: bytes) -> Tree:
    """The document of an answer, or the failure that its status means."""
    if not 200 <= status <= 206:
        text = body.decode("utf-8", "replace").strip()
        if status in _TEXTS:
            raise RequestError(_TEXTS[status])
        if status >= 500:
            raise RequestError(f"an error on the server ({go_quote(text)}) has prevented the request from succeeding")
        raise RequestError(f"the server responded with the status code {status} but did not return more information")
    try:
        tree = json_codec.parse(body).tree
    except json_codec.DecodeError as error:
        raise RequestError(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(tree, dict):
        raise RequestError("couldn't get version/kind; json parse error: not an object")
    return tree
