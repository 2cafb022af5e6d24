"""Warnings about secrets and drivers of storage."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from fastapi_core.apis.validation.rules import Tree
from fastapi_core.errors import go_quote

_TOKENS: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


def csi_driver(new: Tree, old: Tree | None) -> list[str]:
    """Tokens that are newly asked for, and may end up in logs."""
    spec: Tree = new.get("spec") or {}
    requests = spec.get("tokenRequests")
    if not requests or spec.get("serviceAccountTokenInSecrets") is not None:
        return []
    if old is not None and requests == (old.get("spec") or {}).get("tokenRequests"):
        return []
    return [_TOKENS]


def resource_slice(new: Tree, old: Tree | None) -> list[str]:
    """The name of a driver is compared as it is written."""
    driver = (new.get("spec") or {}).get("driver") or ""
    if old is not None or driver == driver.lower():
        return []
    return [f"spec.driver: driver names should be lowercase; {go_quote(driver)} contains uppercase characters"]


_BLOCK: Final = re.compile(rb"-----BEGIN ([^\n]*?)-----\s*\n(.*?)-----END \1-----", re.DOTALL)


def _blocks(value: str | None) -> list[tuple[str, bytes]]:
    """The PEM blocks of a base64 member: type and whole text."""
    try:
        text = base64.b64decode(value or "")
    except (binascii.Error, ValueError):
        return []
    found = []
    for match in _BLOCK.finditer(text):
        body = match[2].rpartition(b"\n\n")[2]
        try:
            base64.b64decode(b"".join(body.split()), validate=True)
        except (binascii.Error, ValueError):
            continue
        found.append((match[1].decode(errors="replace"), match[0]))
    return found


def _unusable(blocks: list[tuple[str, bytes]], side: str) -> str:
    """Why there is no certificate, or no key, among them."""
    types = [kind for kind, _ in blocks]
    if not types:
        return f"tls: failed to find any PEM data in {side} input"
    listed = f"PEM blocks of the following types: [{' '.join(types)}]"
    if side == "certificate":
        if len(types) == 1 and types[0].endswith("PRIVATE KEY"):
            return (
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs "
                "may have been switched"
            )
        return f'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping {listed}'
    if len(types) == 1 and types[0] == "CERTIFICATE":
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return f'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping {listed}'


def _mismatch(certificate: bytes, key: bytes) -> str:
    """Why a certificate and a private key do not go together; empty when they do."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    try:
        public = x509.load_pem_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "x509: malformed certificate"
    try:
        private = serialization.load_pem_private_key(key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls: failed to parse private key"
    own = private.public_key()
    if type(own) is not type(public):
        return "tls: private key type does not match public key type"
    raw = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return "" if own.public_bytes(*raw) == public.public_bytes(*raw) else "tls: private key does not match public key"


def secret(new: Tree, old: Tree | None) -> list[str]:
    """A certificate and a key that no server could use."""
    if new.get("type") != "kubernetes.io/tls":
        return []
    data: Tree = new.get("data") or {}
    certificates, keys = _blocks(data.get("tls.crt")), _blocks(data.get("tls.key"))
    certificate = next((text for kind, text in certificates if kind == "CERTIFICATE"), None)
    if certificate is None:
        return [_unusable(certificates, "certificate")]
    key = next((text for kind, text in keys if kind == "PRIVATE KEY" or kind.endswith(" PRIVATE KEY")), None)
    if key is None:
        return [_unusable(keys, "key")]
    problem = _mismatch(certificate, key)
    return [problem] if problem else []
