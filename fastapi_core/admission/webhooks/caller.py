"""Calling a webhook: where its server is, how it is known, one question within the time there is."""

from __future__ import annotations

import asyncio
import posixpath
import ssl
from base64 import b64decode
from math import ceil
from urllib.parse import quote, urlsplit

from fastapi_core.admission.webhooks.answers import RequestError, answered
from fastapi_core.admission.webhooks.credentials import Credentials
from fastapi_core.admission.webhooks.letter import Letter
from fastapi_core.authn.outbound import Identity, client_tls, load_pair
from fastapi_core.http.client import BodyError, Target, UpstreamError
from fastapi_core.http.pool import Pool
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import Tree
from fastapi_core.registry.services import Resolver, ServiceError
from fastapi_core.request.status import Overtime

#: Longest answer read: more than any object this server stores, patched and in base64.
ANSWER_LIMIT = 8 << 20
#: Connections kept for one address.
KEPT = 25
#: Servers remembered with their TLS settings; the oldest goes first.
_MEMORY = 200
_FIELDS = b"User-Agent: kube-apiserver-admission\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"


class CallError(Exception):
    """A webhook that could not be asked; `text` is what goes behind its name, `code` what metrics show."""

    def __init__(self, text: str, code: int = 503) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Server:
    """Where the webhooks of one client configuration are. `service` (namespace, name, port) is resolved anew for each call."""

    path: str
    authority: str
    host: str
    port: int
    tls: ssl.SSLContext
    identity: Identity
    service: tuple[str, str, int] | None

    def letter(self, seconds: int, body: bytes) -> Letter:
        """The question, for `seconds` of patience."""
        fields = b"".join([b"%b: %b\r\n" % header for header in (*self.identity.headers, *self._token())])
        return Letter(self.authority, f"{self.path}?timeout={seconds}s", _FIELDS + fields, body)

    def _token(self) -> list[tuple[bytes, bytes]]:
        path = self.identity.token_file
        if not path:
            return []
        try:
            with open(path, "rb") as file:
                return [(b"authorization", b"Bearer " + file.read().strip())]
        except OSError as error:
            raise CallError(f"could not get REST client: open {path}: {(error.strerror or '').lower()}", 500) from None


class Caller:
    """Calls webhooks over connections that are kept."""

    def __init__(self, credentials: Credentials, resolver: Resolver) -> None:
        self._credentials = credentials
        self._resolver = resolver
        self._pool = Pool(idle_limit=KEPT)
        self._servers: dict[tuple[object, ...], Server] = {}

    def server(self, config: Tree) -> Server:
        """The server of a client configuration. Raises CallError."""
        bundle, service = config.get("caBundle") or "", config.get("service")
        key = (config.get("url"), bundle, *(sorted(service.items()) if service else ()))
        known = self._servers.get(key)
        if known is None:
            known = self._make(config, bundle, service)
            while len(self._servers) >= _MEMORY:
                del self._servers[next(iter(self._servers))]
            self._servers[key] = known
        return known

    def _make(self, config: Tree, bundle: str, service: Tree | None) -> Server:
        if service:
            port = service.get("port") or 443
            named = service.get("namespace") or "", service.get("name") or "", port
            host, path = f"{named[1]}.{named[0]}.svc", service.get("path") or ""
            authority = f"{host}:{port}"
        else:
            parts = urlsplit(config.get("url") or "")
            if not parts.hostname:
                raise CallError("could not get REST client: webhook configuration must have either service or URL", 500)
            host, port, path, named = parts.hostname, parts.port or 443, parts.path, None
            authority = parts.netloc
        path = quote(posixpath.normpath("/" + path.lstrip("/")), safe="/%:@!$&'()*+,;=~")
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        identity = self._credentials.for_server(address)
        try:
            tls = client_tls(b64decode(bundle) if bundle else None)
            if identity.pair is not None:
                load_pair(tls, *identity.pair)
        except (ValueError, ssl.SSLError) as error:
            raise CallError(f"could not get REST client: unable to load root certificates: {error}", 500) from None
        return Server(path, authority, host, port, tls, identity, named)

    async def ask(self, server: Server, body: bytes, patience: float, left: float | None) -> Tree:
        """The document a webhook answers within `patience` seconds, or the `left` ones of the whole request.

        Raises CallError; Overtime when it is the request whose time is over."""
        seconds = patience if left is None else min(patience, left)
        rounded = max(ceil(seconds), 1)
        letter = server.letter(rounded, body)
        try:
            async with asyncio.timeout(seconds):
                answer = await letter.answer(self._pool, self._target(server), ANSWER_LIMIT)
        except TimeoutError:
            if left is not None and left <= patience:
                raise Overtime() from None
            raise CallError(f'failed to call webhook: Post "{letter.url}": context deadline exceeded') from None
        except BodyError as error:
            text = f"unexpected error when reading response body. Please retry. Original error: {error}"
            raise CallError(f"failed to call webhook: {text}") from None
        except (UpstreamError, ServiceError, UnicodeError) as error:
            raise CallError(f'failed to call webhook: Post "{letter.url}": {error}') from None
        try:
            return answered(answer.status, answer.header(b"content-type").decode("latin-1"), answer.body)
        except RequestError as error:
            raise CallError(f"failed to call webhook: {error}", error.code) from None

    def _target(self, server: Server) -> Target:
        if server.service is None:
            return Target(server.host, server.port, server.tls)
        host, port = self._resolver.places(*server.service)[0]
        return Target(host, port, server.tls, server.host)

    def close(self) -> None:
        self._pool.close()
