"""Client certificates: the TLS layer has verified the chain, this reads the subject out of the DER.

A reader of the few DER structures on the way to the subject, instead of an X.509 library: importing one costs more
start-up time and memory than all the rest of this package, for two strings.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from fastapi_core.authn.base import with_authenticated
from fastapi_core.errors import unauthorized
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"

_COMMON_NAME = bytes.fromhex("550403")
_ORGANIZATION = bytes.fromhex("55040a")
#: 1.3.6.1.4.1.57683.2, the reference's attribute for a user's UID.
_UID = bytes.fromhex("2b0601040183c25302")
_SEQUENCE, _SET, _OID, _INTEGER, _VERSION = 0x30, 0x31, 0x06, 0x02, 0xA0
_ENCODINGS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1C: "utf-32-be", 0x1E: "utf-16-be"}


class CertificateError(ValueError):
    """Bytes that are not the DER of a certificate as we understand it."""


def _element(data: bytes, start: int, end: int) -> tuple[int, int, int]:
    """Tag, start and end of the content of the element at `start`; bounds are checked against `end`."""
    if start + 2 > end:
        raise CertificateError("truncated element")
    tag, length = data[start], data[start + 1]
    start += 2
    if length & 0x80:
        size = length & 0x7F
        if not 1 <= size <= 4 or start + size > end:
            raise CertificateError("bad length")
        length = int.from_bytes(data[start : start + size], "big")
        start += size
    if start + length > end:
        raise CertificateError("element longer than its container")
    return tag, start, start + length


def _enter(data: bytes, start: int, end: int, tag: int) -> tuple[int, int]:
    found, inner, stop = _element(data, start, end)
    if found != tag:
        raise CertificateError(f"expected tag {tag:#x}, found {found:#x}")
    return inner, stop


def subject(der: bytes) -> list[tuple[bytes, str]]:
    """(attribute OID, value) pairs of the subject, in order. Raises CertificateError."""
    start, end = _enter(der, 0, len(der), _SEQUENCE)
    start, end = _enter(der, start, end, _SEQUENCE)
    tag, _, stop = _element(der, start, end)
    if tag == _VERSION:
        start = stop
    # serial number, signature algorithm, issuer, validity
    for expected in (_INTEGER, _SEQUENCE, _SEQUENCE, _SEQUENCE):
        _, start = _enter(der, start, end, expected)
    start, end = _enter(der, start, end, _SEQUENCE)
    pairs: list[tuple[bytes, str]] = []
    while start < end:
        inner, stop = _enter(der, start, end, _SET)
        while inner < stop:
            attribute, after = _enter(der, inner, stop, _SEQUENCE)
            oid_start, oid_end = _enter(der, attribute, after, _OID)
            tag, value_start, value_end = _element(der, oid_end, after)
            if tag in _ENCODINGS:
                try:
                    pairs.append((der[oid_start:oid_end], der[value_start:value_end].decode(_ENCODINGS[tag])))
                except UnicodeDecodeError:
                    raise CertificateError("undecodable name") from None
            inner = after
        start = stop
    return pairs


def user_of(der: bytes) -> User | None:
    """CN is the user (the last one when there are several), each O a group; None without a CN."""
    name, uid, groups = "", "", []
    for oid, value in subject(der):
        if oid == _COMMON_NAME:
            name = value
        elif oid == _ORGANIZATION:
            groups.append(value)
        elif oid == _UID:
            uid = value
    if not name:
        return None
    credential = (f"X509SHA256={sha256(der).hexdigest()}",)
    return with_authenticated(User(name, uid, tuple(groups), {CREDENTIAL_ID: credential}))


class ClientCertificates:
    """Users by the certificate of their connection; read once per connection."""

    def authenticate(self, ctx: RequestContext) -> User | None:
        connection = ctx.request.connection
        der = connection.peer_certificate
        if der is None:
            return None
        memo = connection.memo
        user: User | None = memo.get(ClientCertificates)
        if user is None:
            try:
                user = user_of(der)
            except CertificateError:
                raise unauthorized() from None
            if user is None:
                return None
            memo[ClientCertificates] = user
        return user
