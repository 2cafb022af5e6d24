"""The limit: a bare uvloop + httptools server over the same TLS, sending the same bytes.

    python -m bench.limit FOLDER PORT_FILE

FOLDER holds `cert.pem`, `key.pem` and `answers.bin`, a pickle of {target: full HTTP answer}; other targets are a 404. A write (any
method but GET) appends its body to SQLite and is answered after the commit of its group. `GET /stream`, or any target that ends
in `?watch=1`, joins the fan-out; each `POST /event` sends its body, framed, to every stream.
"""

from __future__ import annotations

import asyncio
import pickle
import sqlite3
import ssl
import sys
import threading
from pathlib import Path
from typing import Any

import httptools
import uvloop

STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


class Writer(threading.Thread):
    """Commits what has come together, then answers."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(daemon=True)
        self.path, self.loop = path, loop
        self.ready = threading.Condition()
        self.pending: list[tuple[bytes, Any]] = []

    def submit(self, body: bytes, transport: Any, answer: bytes) -> None:
        with self.ready:
            self.pending.append((body, (transport, answer)))
            self.ready.notify()

    def run(self) -> None:
        database = sqlite3.connect(self.path, isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE IF NOT EXISTS history (revision INTEGER PRIMARY KEY, value BLOB)")
        while True:
            with self.ready:
                while not self.pending:
                    self.ready.wait()
                group, self.pending = self.pending, []
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT INTO history (value) VALUES (?)", [(body,) for body, _ in group])
            database.execute("COMMIT")
            self.loop.call_soon_threadsafe(self._answer, [reply for _, reply in group])

    @staticmethod
    def _answer(replies: list[tuple[Any, bytes]]) -> None:
        for transport, answer in replies:
            transport.write(answer)


class Protocol(asyncio.Protocol):
    answers: dict[str, bytes]
    writer: Writer
    streams: list[Any]

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.body = b""

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport in self.streams:
            self.streams.remove(self.transport)

    def on_url(self, url: bytes) -> None:
        self.url = url.decode()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        method = self.parser.get_method()
        if method == b"GET":
            if self.url == "/stream" or self.url.endswith("?watch=1"):
                self.transport.write(STREAM_HEAD)
                self.streams.append(self.transport)
            else:
                self.transport.write(self.answers.get(self.url, NOT_FOUND))
            return
        body, self.body = self.body, b""
        if self.url == "/event":
            frame = b"%x\r\n%b\r\n" % (len(body), body)
            for stream in self.streams:
                stream.write(frame)
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            return
        self.writer.submit(body, self.transport, self.answers[f"{method.decode()} {self.url.partition('?')[0]}"])


async def main() -> None:
    folder, port_file = Path(sys.argv[1]), Path(sys.argv[2])
    loop = asyncio.get_running_loop()
    Protocol.answers = pickle.loads((folder / "answers.bin").read_bytes())
    Protocol.writer = Writer(folder / "limit.db", loop)
    Protocol.writer.start()
    Protocol.streams = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server = await loop.create_server(Protocol, "127.0.0.1", 0, ssl=context, backlog=2048)
    port_file.write_text(str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
