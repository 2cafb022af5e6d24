"""The limit of passing on: bytes of one TLS connection to another and back, on uvloop, without a look at them.

    python -m bench.relay FOLDER PORT_FILE BACKEND_PORT

FOLDER holds `cert.pem` and `key.pem`.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from pathlib import Path
from typing import cast

import uvloop

_BUFFER = memoryview(bytearray(1 << 16))


class Side(asyncio.BufferedProtocol):
    """One of two connections that belong together."""

    def __init__(self, other: Side | None = None) -> None:
        self.other = other
        self.transport: asyncio.Transport | None = None
        self.early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self.other is not None:
            for data in self.other.early:
                self.transport.write(data)
            self.other.other = self

    def get_buffer(self, sizehint: int) -> memoryview:
        return _BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(_BUFFER[:nbytes])
        if self.other is None or self.other.transport is None:
            self.early.append(data)
        else:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


async def main() -> None:
    folder, port_file, backend = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    loop = asyncio.get_running_loop()
    dialling: set[asyncio.Task[object]] = set()
    trusting = ssl._create_unverified_context()

    class Front(Side):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            task = loop.create_task(loop.create_connection(lambda: Side(self), "127.0.0.1", backend, ssl=trusting))
            dialling.add(task)
            task.add_done_callback(dialling.discard)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server = await loop.create_server(Front, "127.0.0.1", 0, ssl=context, backlog=2048)
    port_file.write_text(str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
