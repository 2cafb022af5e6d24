"""A serving certificate that is made once and kept in a Secret, for servers that run as several pods."""

from __future__ import annotations

import tempfile
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from fastapi_core.extension.certificates import BUNDLE, made
from fastapi_core.extension.registration.manifests import SECRETS, Object

if TYPE_CHECKING:
    from fastapi_core.extension.description import Description

Tree = dict[str, Any]
RENEW_DAYS = 30
"""A certificate that expires sooner is replaced by the next registration."""
_CERT, _KEY = "tls.crt", "tls.key"


def holds(secret: Tree | None, description: Description) -> bytes:
    """The CA of a Secret whose certificate is good for the Service and another while; empty when it is not."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509

    data = (secret or {}).get("data") or {}
    try:
        certificate = x509.load_pem_x509_certificate(b64decode(data[_CERT]))
        ca = b64decode(data[BUNDLE])
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (KeyError, ValueError, x509.ExtensionNotFound):
        return b""
    soon = datetime.now(UTC) + timedelta(days=RENEW_DAYS)
    known = set(names.get_values_for_type(x509.DNSName))
    return ca if certificate.not_valid_after_utc > soon and known >= set(description.service_names()) else b""


def make(name: str, description: Description) -> tuple[Object, bytes]:
    """A Secret with a new certificate of a new CA, and that CA; the key of the CA is forgotten. Raises OptionsError."""
    with tempfile.TemporaryDirectory() as folder:
        files = made(folder, description.service_names())
        cert, key, ca = (_read(path) for path in (files.cert, files.key, files.ca))
    data = {_CERT: cert, _KEY: key, BUNDLE: ca}
    content = {"type": "kubernetes.io/tls", "data": {key: b64encode(value).decode() for key, value in data.items()}}
    return Object(SECRETS, description.namespace, name, content), ca


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
