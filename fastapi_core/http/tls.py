"""TLS for the server: contexts built from files, and built again when the files change.

New handshakes use the newest files that could be loaded; connections keep what they were made with. A file that is
broken or half written is reported once and the last good state stays.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Sequence
from typing import Any

logger = logging.getLogger("fastapi_core.http")

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""TLS 1.2 suites: forward secret and authenticated, what Go offers first."""

Stamp = tuple[tuple[int, int, int] | None, ...]


def build_context(cert_file: str, key_file: str, client_ca_files: Sequence[str] = ()) -> ssl.SSLContext:
    """A server context: TLS 1.2 or newer, ALPN http/1.1, a client certificate asked for but not required.

    A certificate the client does send must be signed by one of `client_ca_files`; without any none is asked for.
    Raises OSError or ssl.SSLError when a file is missing or broken.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # A resumed session would carry a client certificate past a change of the client CA.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.load_cert_chain(cert_file, key_file)
    for name in client_ca_files:
        context.load_verify_locations(cafile=name)
    # Whatever stands in a bundle is trusted, an intermediate authority without its root, too (as in Go).
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = ssl.CERT_OPTIONAL if client_ca_files else ssl.CERT_NONE
    return context


class ReloadingContext(ssl.SSLContext):
    """The context given to the event loop; each handshake is made by the newest context behind it."""

    current: ssl.SSLContext

    def __new__(cls, current: ssl.SSLContext) -> ReloadingContext:
        self = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        self.current = current
        return self

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        return self.current.wrap_bio(*args, **kwargs)


class ServerTLS:
    """Certificate, key and client CAs of a server, followed on disk.

    `context` goes to `HTTPServer.start`. `watch` looks at the files every `interval` seconds until `close`.
    """

    def __init__(self, cert_file: str, key_file: str, client_ca_files: Sequence[str] = ()) -> None:
        """Load the files; raises OSError or ssl.SSLError when they cannot be used."""
        self._cert_file = cert_file
        self._key_file = key_file
        self._client_ca_files = tuple(client_ca_files)
        self._stamp = self._look()
        self._timer: asyncio.TimerHandle | None = None
        self.context = ReloadingContext(build_context(cert_file, key_file, self._client_ca_files))

    def reload(self) -> bool:
        """Load the files again if any changed since the last look; True when new ones are in use."""
        stamp = self._look()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self.context.current = build_context(self._cert_file, self._key_file, self._client_ca_files)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            logger.error("TLS files cannot be loaded, the old ones stay in use: %s", error)
            return False
        logger.info("TLS files reloaded: %s", self._cert_file)
        return True

    def watch(self, interval: float = 10.0) -> None:
        """Call `reload` every `interval` seconds on the running loop."""
        self.close()
        self._schedule(asyncio.get_running_loop(), interval)

    def close(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self, loop: asyncio.AbstractEventLoop, interval: float) -> None:
        def tick() -> None:
            self.reload()
            self._schedule(loop, interval)

        self._timer = loop.call_later(interval, tick)

    def _look(self) -> Stamp:
        return tuple(_stamp(name) for name in (self._cert_file, self._key_file, *self._client_ca_files))


def _stamp(name: str) -> tuple[int, int, int] | None:
    """What changes when a file is written or replaced (a symbolic link swapped, too)."""
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
