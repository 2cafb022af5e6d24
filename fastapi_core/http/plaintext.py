"""Answers plain HTTP that comes to a TLS port, as Go's server does, instead of hanging up without a word.

Costs TLS connections nothing but a method call for each step of their handshake.
"""

from __future__ import annotations

import ssl

_TEXT = b"Client sent an HTTP request to an HTTPS server.\n"
#: With its length, because nobody can end the connection from here: the client does, or the handshake's timeout.
ANSWER = b"HTTP/1.0 400 Bad Request\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(_TEXT), _TEXT)


class Handshake(ssl.SSLObject):
    """The TLS side of one connection; `outgoing` is what goes to its socket."""

    outgoing: ssl.MemoryBIO | None = None
    _refused: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._refused is not None:
            # Whoever has been told goes on talking, or has gone.
            raise self._refused
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if error.reason != "HTTP_REQUEST" or self.outgoing is None:
                raise
            self._refused = error
            self.outgoing.write(ANSWER)
            # After any other error the transport would drop what waits to be sent.
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "told to use TLS") from None
