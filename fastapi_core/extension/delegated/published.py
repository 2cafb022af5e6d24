"""What the core API publishes about how it knows callers: ConfigMap `extension-apiserver-authentication`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from fastapi_core.authn.frontproxy import HeaderNames
from fastapi_core.authn.trust import identities
from fastapi_core.obs import logs

log = logs.get("delegated")

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
ROLE = "extension-apiserver-authentication-reader"
CLIENT_CA, PROXY_CA = "client-ca-file", "requestheader-client-ca-file"
_USER, _UID, _GROUP = ("requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers")
_EXTRA, _ALLOWED = "requestheader-extra-headers-prefix", "requestheader-allowed-names"
NO_NAMES = HeaderNames()


@dataclass(frozen=True, slots=True)
class Published:
    """CAs as PEM bundles, the header names of front proxies, the common names they may have (empty: any)."""

    client_ca: bytes = b""
    proxy_ca: bytes = b""
    names: HeaderNames = NO_NAMES
    allowed: tuple[str, ...] = ()


def read(data: Mapping[str, Any], before: Published) -> Published:
    """What the data of the ConfigMap says; a part that is missing or broken stays as it was `before`.

    Header names belong together, so they are taken or left together.
    """
    names, allowed = before.names, before.allowed
    try:
        user, uid, group, extra, allowed = (_texts(data, key) for key in (_USER, _UID, _GROUP, _EXTRA, _ALLOWED))
        names = HeaderNames.of(user, uid, group, extra)
    except ValueError as error:
        log.error("The header names of front proxies stay as they were", configmap=NAME, err=str(error))
    return Published(
        _bundle(data, CLIENT_CA, before.client_ca), _bundle(data, PROXY_CA, before.proxy_ca), names, allowed
    )


def _bundle(data: Mapping[str, Any], key: str, before: bytes) -> bytes:
    """A CA that vanishes is more likely a mistake than a wish: nothing but another one takes its place."""
    value = data.get(key)
    if not isinstance(value, str) or not value:
        return before
    pem = value.encode("utf-8", "replace")
    if pem == before:
        return before
    try:
        identities(pem)
    except ValueError as error:
        log.error("The CAs stay as they were", configmap=NAME, key=key, err=str(error))
        return before
    return pem


def _texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A JSON array of texts, empty without the key. Raises ValueError."""
    value = data.get(key)
    if not value:
        return ()
    try:
        found = orjson.loads(value)
    except (orjson.JSONDecodeError, TypeError):
        found = None
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ValueError(f"{key}: a JSON array of texts is expected")
    return tuple(found)
