"""Asking a conversion webhook: where a client configuration leads, one question, its whole answer."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64decode
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fastapi_core.admission.webhooks.answers import RequestError, answered
from fastapi_core.admission.webhooks.letter import Letter
from fastapi_core.authn.outbound import client_tls
from fastapi_core.http.client import Target, UpstreamError
from fastapi_core.http.pool import Pool
from fastapi_core.registry.services import ServiceError

if TYPE_CHECKING:
    from fastapi_core.registry.services import Resolver

Tree = dict[str, Any]
#: Longest answer read (a page of large objects), and for how many seconds it is waited for.
ANSWER_LIMIT = 64 << 20
PATIENCE = 30.0
#: Connections kept for one address.
KEPT = 25
_CONTEXTS = 64
_FIELDS = b"User-Agent: kube-apiserver\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"

__all__ = ["RequestError", "WebhookClient"]


class WebhookClient:
    """A `crd.conversion.Caller` over connections that are kept."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._pool = Pool(idle_limit=KEPT)
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def ask(self, config: Tree, body: bytes) -> Tree:
        """The document the webhook answers. Raises RequestError."""
        authority, path = _address(config)
        letter = Letter(authority, f"{path}?timeout={int(PATIENCE)}s", _FIELDS, body)
        context = self._context(config.get("caBundle") or "")
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await letter.answer(self._pool, self._place(config, context), ANSWER_LIMIT)
        except TimeoutError:
            raise RequestError(f'Post "{letter.url}": context deadline exceeded') from None
        except (UpstreamError, ServiceError, UnicodeError) as error:
            raise RequestError(f'Post "{letter.url}": {error}') from None
        return answered(answer.status, answer.header(b"content-type").decode("latin-1"), answer.body)

    def _place(self, config: Tree, context: ssl.SSLContext) -> Target:
        """Where to connect. Raises ServiceError."""
        service = config.get("service")
        if service:
            name, namespace = service.get("name") or "", service.get("namespace") or ""
            host, number = self._resolver.places(namespace, name, service.get("port") or 443)[0]
            return Target(host, number, context, f"{name}.{namespace}.svc")
        parts = urlsplit(config["url"])
        return Target(parts.hostname or "", parts.port or 443, context)

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

    def close(self) -> None:
        self._pool.close()


def _address(config: Tree) -> tuple[str, str]:
    """Host and port, and the path, to ask for. Raises RequestError."""
    service = config.get("service")
    if service:
        authority = f"{service.get('name')}.{service.get('namespace')}.svc:{service.get('port') or 443}"
        return authority, "/" + (service.get("path") or "").lstrip("/")
    parts = urlsplit(config.get("url") or "")
    if not parts.hostname:
        raise RequestError("webhook configuration must have either service or URL")
    return parts.netloc, parts.path or "/"
