"""Requests to an etcd cluster over gRPC: one channel at a time, another endpoint when that one does not answer.

gRPC's own ways to several addresses know nothing of members that answer without a leader, and of files of a certificate
that is renewed; so each endpoint has its channel here, made when it is needed and made anew when its files have changed.
Messages are bytes on either side: gRPC is asked for no serializers.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from fastapi_core.obs import logs
from fastapi_core.storage.etcd import failures
from fastapi_core.storage.etcd.settings import Settings, target
from fastapi_core.storage.interface import Code, StorageError

log = logs.get("etcd")

RANGE = "/etcdserverpb.KV/Range"
TXN = "/etcdserverpb.KV/Txn"
COMPACT = "/etcdserverpb.KV/Compact"
WATCH = "/etcdserverpb.Watch/Watch"
LEASE = "/etcdserverpb.Lease/LeaseGrant"
STATUS = "/etcdserverpb.Maintenance/Status"

#: Seconds between attempts, doubled each time.
FIRST_PAUSE, LAST_PAUSE = 0.02, 0.5

_OPTIONS = (
    # An answer may be all there is below a prefix.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A member that is gone without a word is found out; etcd takes no more than one ping in five seconds.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
)
#: Streams end with an error when their member loses its leader.
_WITH_LEADER = (("hasleader", "true"),)

LEFT = "rpc error: code = Unavailable desc = the member of etcd has not answered"

Call = Callable[..., Awaitable[bytes]]


def cancelled() -> bool:
    """Whether it is the task that was cancelled, and not just a call with its channel."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class Connection:
    """An open way to etcd; made on the loop it is used on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._at = 0
        self._calls: dict[str, Any] = {}
        self._answered = True
        self._stamp = self._stamps()
        self._closing: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._channel = self._made()

    @property
    def endpoint(self) -> str:
        """Where requests go at the moment."""
        return self._settings.endpoints[self._at]

    @property
    def channel(self) -> object:
        """What `leave` is told by whoever has found it wanting."""
        return self._channel

    async def call(
        self, method: str, request: bytes, *, key: str = "", again: bool = True, patience: float = 0
    ) -> bytes:
        """The answer to one request. `again`: it may be asked twice; others are tried again only when they were not
        sent. Raises StorageError, LeaseGoneError."""
        now = self._loop.time
        until = now() + (patience or self._settings.patience)
        pause = FIRST_PAUSE
        while True:
            channel, left = self._channel, until - now()
            limit = min(left, self._settings.attempt) if again and len(self._settings.endpoints) > 1 else left
            try:
                answer: bytes = await self._call(method)(request, timeout=limit)
                self._answered = True
                return answer
            except grpc.aio.AioRpcError as error:
                if not failures.elsewhere(error):
                    raise failures.translated(error, key) from None
                self.leave(channel)
                if not (again or failures.unsent(error)) or until - now() <= pause:
                    raise failures.translated(error, key) from None
            except asyncio.CancelledError:
                if cancelled():
                    raise
                # Somebody has left the channel for another, and it did not answer while it was still there.
                if not again:
                    raise StorageError(Code.UNAVAILABLE, key, message=LEFT) from None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE)

    def stream(self) -> Any:
        """A watch stream: `write(bytes)`, `read()` (bytes, or grpc.aio.EOF), `cancel()`."""
        found = self._calls.get(WATCH)
        if found is None:
            found = self._calls[WATCH] = self._channel.stream_stream(WATCH)
        return found(metadata=_WITH_LEADER, wait_for_ready=False)

    def leave(self, channel: object) -> None:
        """Go on to the next endpoint, unless somebody has left `channel` already."""
        if channel is not self._channel or channel is None:
            return
        count = len(self._settings.endpoints)
        if count == 1 and self._stamp == self._stamps():
            # The channel connects again by itself.
            return
        before, self._at = self._at, (self._at + 1) % count
        try:
            made = self._made()
        except StorageError as error:
            log.warning("The way to etcd stays as it is", reason=str(error))
            self._at = before
            return
        if self._answered:
            # While none answers it is said once.
            self._answered = False
            log.info("Another way to etcd is tried", endpoint=self.endpoint)
        # What the old one has been asked may still be answered.
        self._retire(self._settings.attempt)
        self._channel = made

    async def close(self) -> None:
        self._retire(None)
        if self._closing:
            await asyncio.wait(self._closing)

    def _call(self, method: str) -> Call:
        found: Call | None = self._calls.get(method)
        if found is None:
            if self._channel is None:
                raise StorageError(Code.UNAVAILABLE, message="the store is not open")
            found = self._calls[method] = self._channel.unary_unary(method)
        return found

    def _made(self) -> Any:
        """A channel to the endpoint. StorageError when a file of its certificate cannot be read."""
        name, secure = target(self.endpoint)
        if not secure:
            return grpc.aio.insecure_channel(name, options=_OPTIONS)
        stamp, credentials = self._stamps(), self._credentials()
        self._stamp = stamp
        return grpc.aio.secure_channel(name, credentials, options=_OPTIONS)

    def _retire(self, grace: float | None) -> None:
        channel, self._channel, self._calls = self._channel, None, {}
        if channel is not None:
            task = self._loop.create_task(channel.close(grace))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _files(self) -> tuple[str, ...]:
        settings = self._settings
        return settings.ca_file, settings.cert_file, settings.key_file

    def _stamps(self) -> tuple[float, ...]:
        found = []
        for path in self._files():
            try:
                found.append(os.stat(path).st_mtime if path else 0.0)
            except OSError:
                found.append(-1.0)
        return tuple(found)

    def _credentials(self) -> Any:
        """Raises StorageError when a file cannot be read."""
        contents: list[bytes | None] = []
        for path in self._files():
            if not path:
                contents.append(None)
                continue
            try:
                with open(path, "rb") as file:
                    contents.append(file.read())
            except OSError as error:
                message = f"{path} cannot be read ({error.strerror})"
                raise StorageError(Code.UNAVAILABLE, message=message) from None
        ca, cert, key = contents
        return grpc.ssl_channel_credentials(ca, key, cert)
