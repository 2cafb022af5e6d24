"""Other servers: where they are, how they are reached, and what is said when they are not.

Requests go over connections (`connection.py`) of a `Pool`; whole answers are had with `asking.ask`, answers that are passed on
to a client as they come are a `relay.Relay`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from fastapi_core.http.exchange import Header
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    import socket

#: What clients know verification failures by, as far as OpenSSL says it otherwise.
_EXPIRED, _UNKNOWN = "certificate has expired or is not yet valid", "certificate signed by unknown authority"
_VERIFICATION = {9: _EXPIRED, 10: _EXPIRED, 18: _UNKNOWN, 19: _UNKNOWN, 20: _UNKNOWN, 21: _UNKNOWN}


class UpstreamError(Exception):
    """The other side cannot be reached or does not speak HTTP; the text is as clients know it."""


class BodyError(UpstreamError):
    """The answer began and did not come to its end."""


class Tunnel(Protocol):
    """A way to servers in another network."""

    async def open(self, host: str, port: int) -> socket.socket:
        """A socket whose bytes go to that server and come from it. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes. `tls` None for plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    name: str = ""
    """Whom the certificate must be of, where that is not the host."""
    through: Tunnel | None = None
    """How to get there, where it is not reached directly."""

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def request_head(method: str, path: str, headers: Iterable[Header]) -> bytes:
    """The head of a request."""
    first = f"{method} {path} HTTP/1.1\r\n".encode("utf-8", "surrogateescape")
    return first + b"".join([b"%b: %b\r\n" % header for header in headers]) + b"\r\n"


def dial_problem(error: BaseException, target: Target) -> str:
    """A failed connection in the words clients of the reference know."""
    import socket

    if isinstance(error, TimeoutError):
        return f"dial tcp {target.authority}: i/o timeout"
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {target.authority}: connect: connection refused"
    if isinstance(error, socket.gaierror | UnicodeError):
        # The latter for labels that no name has: longer than 63 characters, or empty.
        return f"dial tcp: lookup {target.host}: no such host"
    if isinstance(error, ssl.SSLCertVerificationError):
        words = _VERIFICATION.get(error.verify_code, error.verify_message)
        return f"tls: failed to verify certificate: x509: {words}"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error.reason or error}"
    if isinstance(error, OSError) and error.strerror:
        return f"dial tcp {target.authority}: connect: {error.strerror.lower()}"
    return str(error) or type(error).__name__


_P = TypeVar("_P", bound=asyncio.BaseProtocol)


async def create_transport(
    loop: asyncio.AbstractEventLoop, protocol: Callable[[], _P], target: Target
) -> tuple[asyncio.Transport, _P]:
    """A connection to `target`. Raises OSError, or ValueError for what is no host."""
    name = (target.name or target.host) if target.tls is not None else None
    if target.through is None:
        return await loop.create_connection(protocol, target.host, target.port, ssl=target.tls, server_hostname=name)
    sock = await target.through.open(target.host, target.port)
    try:
        return await loop.create_connection(protocol, sock=sock, ssl=target.tls, server_hostname=name)
    except BaseException:
        sock.close()
        raise
