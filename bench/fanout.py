"""Watch fan-out: many watchers over TLS in a process of their own, counting the events that reach them.

    python -m bench.fanout PORT TARGET TOKEN WATCHERS EVENTS

Prints `ready` once every stream is open, then one JSON line when each watcher has seen EVENTS events.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import uvloop

from bench.process import Measured


class Watcher(asyncio.Protocol):
    """Counts newline-ended events; chunk framing carries no newline of its own but CRLF, which is not counted."""

    def __init__(self, request: bytes, opened: asyncio.Event, done: asyncio.Event, events: int) -> None:
        self.request, self.opened, self.done, self.left = request, opened, done, events
        self.head = True

    def connection_made(self, transport: Any) -> None:
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        if self.head:
            _, found, data = data.partition(b"\r\n\r\n")
            if not found:
                return
            self.head = False
            self.opened.set()
        self.left -= data.count(b"}\n")
        if self.left <= 0:
            self.done.set()


def fan_out(
    server: Measured, port: int, target: str, token: str, watchers: int, events: int, write: Callable[[int], None]
) -> dict[str, float]:
    """Open the streams, write `events` changes, wait until all have arrived; CPU per event delivered."""
    command = [sys.executable, "-m", "bench.fanout", str(port), target, token, str(watchers), str(events)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    before = server.cpu()
    for number in range(events):
        write(number)
    outcome = json.loads(process.stdout.readline())
    spent = server.cpu() - before
    process.wait(30)
    delivered = outcome["delivered"]
    return {"cpu": spent / delivered * 1e6, "per_second": delivered / outcome["seconds"], "watchers": watchers}


async def main() -> None:
    port, target, token, count, events = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    flags = []
    for _ in range(count):
        opened, done = asyncio.Event(), asyncio.Event()
        flags.append((opened, done))
        await loop.create_connection(
            lambda opened=opened, done=done: Watcher(request, opened, done, events),  # type: ignore[misc]
            "127.0.0.1",
            port,
            ssl=context,
        )
    for opened, _ in flags:
        await opened.wait()
    print("ready", flush=True)
    started = time.monotonic()
    for _, done in flags:
        await done.wait()
    print(json.dumps({"seconds": time.monotonic() - started, "delivered": count * events}), flush=True)


if __name__ == "__main__":
    uvloop.run(main())
