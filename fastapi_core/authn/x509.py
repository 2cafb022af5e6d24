"""Client certificates: the TLS layer has verified the chain, the subject says who it is."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from fastapi_core.authn.base import CREDENTIAL_ID, WrongCredential, with_authenticated
from fastapi_core.authn.der import CertificateError, subject
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.authn.trust import Trust
    from fastapi_core.request.context import RequestContext

__all__ = ["CREDENTIAL_ID", "CertificateError", "ClientCertificates", "common_name", "subject", "user_of"]

_COMMON_NAME = bytes.fromhex("550403")
_ORGANIZATION = bytes.fromhex("55040a")
#: 1.3.6.1.4.1.57683.2, the reference's attribute for a user's UID.
_UID = bytes.fromhex("2b0601040183c25302")


def common_name(der: bytes) -> str:
    """The last CN of the subject, empty without one. Raises CertificateError."""
    return next((value for oid, value in reversed(subject(der)) if oid == _COMMON_NAME), "")


def user_of(der: bytes) -> User | None:
    """CN is the user (the last one when there are several), each O a group; None without a CN.

    Raises CertificateError, also for more than one UID.
    """
    attributes = subject(der)
    names = [value for oid, value in attributes if oid == _COMMON_NAME]
    groups = tuple(value for oid, value in attributes if oid == _ORGANIZATION)
    uids = [value for oid, value in attributes if oid == _UID]
    if not names or not names[-1]:
        return None
    if len(uids) > 1:
        raise CertificateError("expected 1 UID, but found multiple")
    credential = (f"X509SHA256={sha256(der).hexdigest()}",)
    return with_authenticated(User(names[-1], uids[0] if uids else "", groups, {CREDENTIAL_ID: credential}))


class ClientCertificates:
    """Users by the certificate of their connection; read once per connection.

    `trust` holds the client CAs; without it every chain the handshake verified counts.
    """

    def __init__(self, trust: Trust | None = None) -> None:
        self._trust = trust

    def authenticate(self, ctx: RequestContext) -> User | None:
        connection = ctx.request.connection
        der = connection.peer_certificate
        if der is None:
            return None
        if self._trust is not None:
            self._trust.check(connection, ctx.request.received)
        memo = connection.memo
        user: User | None = memo.get(ClientCertificates)
        if user is None:
            try:
                user = user_of(der)
            except CertificateError as error:
                raise WrongCredential(f"x509: {error}") from None
            if user is None:
                return None
            memo[ClientCertificates] = user
        return user
