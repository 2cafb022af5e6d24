"""Which certificate authority vouches for a connection.

The TLS layer verifies a client's chain against all authorities at once; whether it ends at one of the client CAs or at
one of the front proxy's decides what the certificate may say. When a bundle is read anew, a chain
whose anchor has left it stops counting on connections that are open already.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastapi_core.authn import der
from fastapi_core.authn.base import WrongCredential
from fastapi_core.meta.patterns import Pattern
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Connection

UNKNOWN_AUTHORITY = "x509: certificate signed by unknown authority"
EXPIRED = "x509: certificate has expired or is not yet valid"

_PEM = Pattern(
    rb"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----(.*?)-----END (?:TRUSTED |X509 )?CERTIFICATE-----", re.S
)

Identity = tuple[bytes, bytes]
"""Name and key of an authority: a certificate that was issued anew for the same key is the same authority."""


def identities(pem: bytes) -> frozenset[Identity]:
    """The authorities of a PEM bundle; raises ValueError when there is none or one is broken."""
    found = set()
    for match in _PEM.finditer(pem):
        certificate = der.read(base64.b64decode(b"".join(match[1].split()), validate=True))
        found.add((certificate.subject, certificate.key))
    if not found:
        raise ValueError("no certificates found")
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a bundle says of one connection's chain, until its files change or a certificate of the chain runs out."""

    generation: int
    not_before: float
    not_after: float
    anchored: bool


class Trust:
    """The authorities of some PEM files. Raises OSError or ValueError when one cannot be used."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self.paths = tuple(dict.fromkeys(paths))
        self._given: frozenset[Identity] = frozenset()
        self._authorities: frozenset[Identity] = frozenset()
        self.generation = 0
        self.reload()

    def replace(self, pem: bytes) -> None:
        """Authorities beside those of the files. Raises ValueError for a broken bundle, the old ones stay then."""
        self._given = identities(pem) if pem else frozenset()
        self.reload()

    def reload(self) -> None:
        """Read the files again; the old authorities stay when one cannot be used (same errors)."""
        found: set[Identity] = set(self._given)
        for path in self.paths:
            with open(path, "rb") as file:
                found |= identities(file.read())
        if found != self._authorities:
            self._authorities = frozenset(found)
            self.generation += 1

    def check(self, connection: Connection, now: float) -> bool | None:
        """None without a client certificate; raises WrongCredential when its chain is not ours or has run out."""
        chain = connection.peer_chain
        if not chain:
            return None
        verdict: Verdict | None = connection.memo.get(self)
        if verdict is None or verdict.generation != self.generation:
            verdict = connection.memo[self] = self._judge(chain)
        if not verdict.anchored:
            raise WrongCredential(UNKNOWN_AUTHORITY)
        if not verdict.not_before <= now < verdict.not_after:
            raise WrongCredential(EXPIRED)
        return True

    def _judge(self, chain: Sequence[bytes]) -> Verdict:
        try:
            certificates = [der.read(data) for data in chain]
        except der.CertificateError as error:
            raise WrongCredential(f"x509: {error}") from None
        anchor = certificates[-1]
        identity = anchor.subject, anchor.key
        return Verdict(
            self.generation,
            max(certificate.not_before for certificate in certificates),
            min(certificate.not_after for certificate in certificates),
            identity in self._authorities,
        )
