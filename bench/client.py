"""Setting up what is measured: one keep-alive connection, and who pushes events into the limit server."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.load import Shot
    from bench.objects import Tree
    from bench.process import Limit

TOKEN = "bench-token"
JSON = (("Content-Type", "application/json"),)


def body(tree: Tree) -> str:
    return json.dumps(tree, separators=(",", ":"))


class Client:
    """One keep-alive connection for setting up."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context())

    def send(self, method: str, target: str, tree: Any = None, headers: tuple[tuple[str, str], ...] = JSON) -> bytes:
        sent = {"Authorization": f"Bearer {TOKEN}", **dict(headers)}
        try:
            self.connection.request(method, target, body(tree) if tree is not None else None, sent)
            answer = self.connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):  # idle for too long between two rows
            self.connection.close()
            self.connection.request(method, target, body(tree) if tree is not None else None, sent)
            answer = self.connection.getresponse()
        data = answer.read()
        if answer.status >= 300 and answer.status not in (404, 409):
            raise RuntimeError(f"{method} {target}: {answer.status} {data[:300]!r}")
        return data

    def until(self, target: str) -> None:
        """Wait until a path is served."""
        while self.send("GET", target).startswith(b"404"):
            time.sleep(0.01)

    def raw(self, shot: Shot, number: int) -> bytes:
        """The whole answer, head included, as it came over the wire."""
        text = shot.body.replace("@ID@", "raw").replace("@N@", str(number)).replace("@M@", "1")
        target = shot.target.replace("@N@", "1")
        context = ssl._create_unverified_context()
        with context.wrap_socket(socket.create_connection(("127.0.0.1", self.connection.port))) as stream:
            head = f"{shot.method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
            head += "".join(f"{k}: {v}\r\n" for k, v in shot.headers)
            if text:
                head += f"Content-Length: {len(text)}\r\n"
            stream.sendall((head + "\r\n" + text).encode())
            data = b""
            while b"\r\n\r\n" not in data:
                data += stream.recv(65536)
            before, _, rest = data.partition(b"\r\n\r\n")
            length = next(
                int(line.partition(b":")[2])
                for line in before.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            )
            chunks = [rest]
            have = len(rest)
            while have < length:
                chunks.append(stream.recv(1 << 20))
                have += len(chunks[-1])
            return before + b"\r\n\r\n" + b"".join(chunks)


def pusher(limit: Limit, frame: bytes) -> Callable[[int], None]:
    """Each call sends one event to every stream of a limit server."""
    connection = http.client.HTTPSConnection("127.0.0.1", limit.port, context=ssl._create_unverified_context())

    def push(number: int) -> None:
        connection.request("POST", "/event", frame)
        connection.getresponse().read()

    return push
