"""Which certificate authority vouches for a connection.

The TLS layer verifies a client's chain against all authorities at once; whether it ends at one of the client CAs or at
one of the front proxy's decides what the certificate may say. Bundles are followed on disk: a chain whose anchor has
left its bundle stops counting on connections that are open already.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from fastapi_core.authn import der
from fastapi_core.authn.base import WrongCredential
from fastapi_core.obs import logs

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Connection

log = logs.get("authn")

#: Seconds between two looks at the files of a bundle.
LOOK = 5.0
UNKNOWN_AUTHORITY = "x509: certificate signed by unknown authority"
EXPIRED = "x509: certificate has expired or is not yet valid"

_PEM = re.compile(
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
    """The authorities of some PEM files, followed on disk. Raises OSError or ValueError when one cannot be used."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(dict.fromkeys(paths))
        self._stamps: dict[str, tuple[int, int, int] | None] = {}
        self._bundles: dict[str, frozenset[Identity]] = {}
        self._looked = 0.0
        self.generation = 0
        for path in self._paths:
            self._stamps[path] = _stamp(path)
            with open(path, "rb") as file:
                self._bundles[path] = identities(file.read())

    def check(self, connection: Connection, now: float) -> bool | None:
        """None without a client certificate; raises WrongCredential when its chain is not ours or has run out."""
        chain = connection.peer_chain
        if not chain:
            return None
        if monotonic() - self._looked > LOOK:
            self.look()
        verdict: Verdict | None = connection.memo.get(self)
        if verdict is None or verdict.generation != self.generation:
            verdict = connection.memo[self] = self._judge(chain)
        if not verdict.anchored:
            raise WrongCredential(UNKNOWN_AUTHORITY)
        if not verdict.not_before <= now < verdict.not_after:
            raise WrongCredential(EXPIRED)
        return True

    def look(self) -> None:
        """Read the files that have changed; what cannot be read keeps its last content."""
        self._looked = monotonic()
        for path in self._paths:
            stamp = _stamp(path)
            if stamp == self._stamps[path]:
                continue
            self._stamps[path] = stamp
            try:
                with open(path, "rb") as file:
                    bundle = identities(file.read())
            except (OSError, ValueError) as error:
                log.error("CA bundle cannot be read, its last content stays in use", path=path, err=str(error))
                continue
            if bundle != self._bundles[path]:
                self._bundles[path] = bundle
                self.generation += 1
                log.info("CA bundle reloaded", path=path)

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
            any(identity in bundle for bundle in self._bundles.values()),
        )


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
