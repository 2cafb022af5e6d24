"""The issuer of service account tokens as others see it: discovery document and key set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from fastapi_core.http.exchange import Answer, Response
from fastapi_core.obs import logs
from fastapi_core.request.context import RequestContext
from fastapi_core.request.routing import Route

if TYPE_CHECKING:
    from fastapi_core.authn.jws import PublicKey

log = logs.get("authn")

CONFIGURATION, KEYS = "/.well-known/openid-configuration", "/openid/v1/jwks"
_CACHE = (b"Cache-Control", b"public, max-age=3600")
_JSON, _KEY_SET = "application/json", "application/jwk-set+json"


def problem(issuer: str) -> str:
    """Why an issuer cannot be discovered, empty when it can."""
    parts = urlsplit(issuer)
    if parts.scheme != "https":
        return f"issuer URL must use https scheme, got: {issuer}"
    if parts.query:
        return f"issuer URL may not include a query, got: {issuer}"
    return f"issuer URL may not include a fragment, got: {issuer}" if parts.fragment else ""


def routes(issuer: str, jwks_uri: Callable[[], str], keys: Callable[[], Sequence[PublicKey]]) -> list[Route]:
    """Routes of both documents; none for an issuer that is no https URL. The keys are asked for with the first request."""
    trouble = problem(issuer)
    if trouble:
        log.info("The issuer of service account tokens cannot be discovered", reason=trouble)
        return []
    documents: dict[str, bytes] = {}

    def configuration(ctx: RequestContext) -> Answer:
        _check(ctx, _JSON)
        uri = jwks_uri()
        if uri not in documents:
            documents[uri] = orjson.dumps(
                {
                    "issuer": issuer,
                    "jwks_uri": uri,
                    "response_types_supported": ["id_token"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": sorted({key.algorithm for key in keys()}),
                }
            )
        return Response(200, [(b"Content-Type", _JSON.encode()), _CACHE], documents[uri])

    def key_set(ctx: RequestContext) -> Answer:
        _check(ctx, _KEY_SET)
        if KEYS not in documents:
            tree: dict[str, Any] = {"keys": [key.jwk() for key in keys()]}
            documents[KEYS] = orjson.dumps(tree)
        return Response(200, [(b"Content-Type", _KEY_SET.encode()), _CACHE], documents[KEYS])

    def _check(ctx: RequestContext, produced: str) -> None:
        accept = ctx.request.header(b"accept")
        if accept is not None:
            from fastapi_core.codec.negotiate import check_produced

            check_produced(accept.decode("latin-1"), (produced,))

    return [(CONFIGURATION + "{/}", {"GET": configuration}), (KEYS + "{/}", {"GET": key_set})]
