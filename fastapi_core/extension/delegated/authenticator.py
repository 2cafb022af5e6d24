"""Who is asking: front proxies and client certificates by the CAs that the core API publishes, tokens by TokenReview."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from fastapi_core.authn.base import Anonymous, Authenticator, Union
from fastapi_core.authn.frontproxy import FrontProxy, HeaderNames, Outermost
from fastapi_core.authn.trust import Trust
from fastapi_core.authn.x509 import ClientCertificates
from fastapi_core.extension.delegated.published import Published, read
from fastapi_core.http.tls import Authorities

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fastapi_core.authn.outbound import Asked
    from fastapi_core.extension.delegated.options import DelegatedOptions
    from fastapi_core.obs.files import FileWatcher
    from fastapi_core.request.context import RequestContext, User

    Tree = Mapping[str, Any]

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
TIMEOUT = 10.0
"""Seconds for a review, however often it is asked for."""


class DelegatedAuthenticator:
    """What the flags say, and what the ConfigMap says at the moment (`take`).

    `authorities` are the CAs of the ConfigMap for the TLS side, `client_ca_files` those of the flags. Raises OSError or
    ValueError for a file of the flags that cannot be used.
    """

    def __init__(self, options: DelegatedOptions, reviews: Asked | None) -> None:
        self._options = options
        self._clients = Trust(_paths(options.client_ca_file))
        self._proxies = Trust(_paths(options.requestheader_client_ca_file))
        self._published = Published()
        self._by_token = _token_ways(options, reviews)
        self._anonymous = Anonymous(None) if options.anonymous_auth else None
        self.authorities = Authorities()
        self._inner = self._made()

    @property
    def client_ca_files(self) -> tuple[str, ...]:
        return (*self._clients.paths, *self._proxies.paths)

    def authenticate(self, ctx: RequestContext) -> User | Awaitable[User | None] | None:
        return self._inner.authenticate(ctx)

    def follow(self, files: FileWatcher) -> None:
        """CAs of files that were exchanged count at once, on open connections, too."""
        for trust in (self._clients, self._proxies):
            if trust.paths:
                files.follow(trust.paths, trust.reload)

    def take(self, config_map: Tree | None) -> None:
        """The ConfigMap is so now. One that is gone changes nothing: who was known yesterday is known today."""
        data = config_map.get("data") if config_map is not None else None
        if not isinstance(data, dict):
            return
        found = read(data, self._published)
        if found == self._published:
            return
        clients, proxies = self._options.looks_up
        # Handshakes first: a certificate that is believed but cannot be shown is the smaller harm.
        self.authorities.replace(b"".join((found.client_ca if clients else b"", found.proxy_ca if proxies else b"")))
        if clients:
            self._clients.replace(found.client_ca)
        if proxies:
            self._proxies.replace(found.proxy_ca)
        self._published = found
        self._inner = self._made()

    def _made(self) -> Outermost:
        """All ways in the reference's order."""
        names, allowed = self._headers()
        ways: tuple[Authenticator, ...] = (
            FrontProxy(self._proxies, names, allowed),
            ClientCertificates(self._clients),
            *self._by_token,
        )
        return Outermost(Union(ways, self._anonymous), names)

    def _headers(self) -> tuple[HeaderNames, Sequence[str]]:
        options = self._options
        if not options.requestheader_client_ca_file:
            return self._published.names, self._published.allowed
        names = HeaderNames.of(
            options.requestheader_username_headers,
            options.requestheader_uid_headers,
            options.requestheader_group_headers,
            options.requestheader_extra_headers_prefix,
        )
        return names, options.requestheader_allowed_names


def _paths(path: str) -> tuple[str, ...]:
    return (path,) if path else ()


def _token_ways(options: DelegatedOptions, reviews: Asked | None) -> tuple[Authenticator, ...]:
    if reviews is None:
        return ()
    from fastapi_core.authn.tokens import Bearer, Tokens, WebSocketProtocol
    from fastapi_core.authn.webhook import WebhookTokens

    ttl = options.authentication_token_webhook_cache_ttl
    kind = WebhookTokens(reviews, "v1", ttl, options.api_audiences, timeout=TIMEOUT, within=TIMEOUT, strict=True)
    tokens = Tokens([kind], options.api_audiences)
    return Bearer(tokens), WebSocketProtocol(tokens)
