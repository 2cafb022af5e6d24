"""The client of the kit: requests on one kept connection, watches on connections of their own.

It is made of the standard library on purpose: a fault of the server under test must not be hidden by a fault of a
client that comes from the same hands. It does not follow redirects, does not unpack, does not retry what was answered.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from typing import Any
from urllib.parse import urlencode, urlsplit

from fastapi_core.testing.conformance.target import Credential, Target
from fastapi_core.testing.conformance.verdicts import SHORT, Failed

Query = Mapping[str, str | int]
#: JSON as Python has it.
Tree = dict[str, Any]

JSON = "application/json"
#: The longest body that is read, and the longest event of a watch.
LONGEST = 64 << 20


class EndlessError(http.client.HTTPException):
    """An answer that does not come to its end."""


@dataclass(frozen=True)
class Answer:
    """One request and what came back."""

    method: str
    path: str
    sent: bytes
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def header(self, name: str) -> str:
        """All values of a header, joined; empty when there is none."""
        return ", ".join(self.headers.get_all(name, ()))

    @property
    def media(self) -> str:
        """The media type without its parameters."""
        return self.header("Content-Type").split(";")[0].strip().lower()

    def json(self) -> Any:
        """The body; a failed check when it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise Failed("the body is JSON", self) from None
        except RecursionError:
            raise Failed("the body is JSON that is not nested without end", self) from None

    def tree(self) -> Tree:
        """The body as an object; a failed check when it is none."""
        value = self.json()
        if not isinstance(value, dict):
            raise Failed("the body is a JSON object", self)
        return value

    def evidence(self, limit: int = SHORT) -> Iterator[str]:
        """The lines a failure prints; bodies up to a limit."""
        yield f"> {self.method} {self.path}" + (f"  {_short(self.sent, limit)}" if self.sent else "")
        kind = f"  [{self.header('Content-Type')}]" if self.media not in ("", JSON) else ""
        yield f"< {self.status}{kind}  {_short(self.body, limit)}".rstrip()


@dataclass(frozen=True)
class Event:
    """One event of a watch."""

    type: str
    object: Tree

    @property
    def name(self) -> str:
        return str((self.object.get("metadata") or {}).get("name", ""))

    @property
    def version(self) -> str:
        return str((self.object.get("metadata") or {}).get("resourceVersion", ""))

    def __str__(self) -> str:
        return f"{self.type} {self.name or _short(json.dumps(self.object).encode())} at {self.version or '?'}"


class Client:
    """Requests as one user, one after the other. Not for several threads at once."""

    def __init__(self, target: Target, credential: Credential | None = None) -> None:
        self.target = target
        self.credential = target.credential if credential is None else credential
        parts = urlsplit(target.url)
        self._prefix = parts.path.rstrip("/")
        self._host, self._port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        self._context = target.context(self.credential)
        self._kept: _Connection | None = None
        #: The last request, and the last answer: for failures that have nothing else to show.
        self.asked = ""
        self.recent: Answer | None = None

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request. A body of bytes is sent as it is, anything else as JSON. OSError when nobody answers."""
        url = f"{path}?{urlencode(query)}" if query else path
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        lines = self._headers(headers, sent if body is not None else None)
        while True:
            reused = self._kept is not None
            try:
                return self._exchange(method, url, sent if body is not None else None, lines)
            except (http.client.RemoteDisconnected, ConnectionError, http.client.CannotSendRequest):
                self.close()
                # A kept connection may have been closed by the server before it saw this request.
                if not reused:
                    raise
            except (OSError, http.client.HTTPException):
                self.close()
                raise

    def _headers(self, headers: Mapping[str, str] | None, sent: bytes | None) -> dict[str, str]:
        lines = {"Accept": JSON, "User-Agent": "conformance"}
        if sent is not None:
            lines["Content-Type"] = JSON
        if self.credential.token:
            lines["Authorization"] = f"Bearer {self.credential.token}"
        lines |= headers or {}
        return {name: value for name, value in lines.items() if value}

    def _exchange(self, method: str, url: str, sent: bytes | None, headers: Mapping[str, str]) -> Answer:
        self.asked = f"{method} {url}"
        connection = self._kept = self._kept or self._connect()
        connection.allow(self.target.timeout)
        try:
            connection.request(method, self._prefix + url, sent, dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            # It may have answered before it had read everything: an answer to a body that is too large.
            if sent is None or len(sent) < 1 << 16:
                raise
        answer = connection.getresponse()
        data = _body(answer)
        if answer.will_close:
            self.close()
        self.recent = Answer(method, url, sent or b"", answer.status, answer.headers, data)
        return self.recent

    def _connect(self) -> _Connection:
        if self._context is None:
            return _Connection(self._host, self._port, self.target.timeout)
        name = self.target.server_name or self._host
        return _Secure(self._host, self._port, self.target.timeout, self._context, name)

    def watch(self, path: str, query: Query | None = None, headers: Mapping[str, str] | None = None) -> Watch:
        """Open a watch; it is there, or refused, when this returns."""
        url = f"{path}?{urlencode({'watch': '1', **(query or {})})}"
        lines = self._headers(headers, None)
        return Watch(self._connect(), self._prefix, url, lines, self.target.patience)

    def close(self) -> None:
        """Let the kept connection go; the next request makes another."""
        if self._kept is not None:
            self._kept.hang_up()
            self._kept = None


class Watch:
    """The stream of a watch. `answer` tells how it began; `next` takes one event, `rest` all until the end."""

    def __init__(
        self,
        connection: _Connection,
        prefix: str,
        url: str,
        headers: Mapping[str, str],
        patience: float,
    ) -> None:
        self._connection, self._patience = connection, patience
        self._buffer = b""
        self.seen: list[Event] = []
        try:
            connection.allow(connection.patient)
            connection.request("GET", prefix + url, headers=dict(headers))
            self._response = connection.getresponse()
            body = b"" if self._response.status == 200 else _body(self._response)
        except TimeoutError:
            connection.hang_up()
            raise Failed(f"GET {url} is answered at once, before there are events") from None
        except (OSError, http.client.HTTPException):
            connection.hang_up()
            raise
        self.answer = Answer("GET", url, b"", self._response.status, self._response.headers, body)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.hang_up()

    def evidence(self, limit: int = SHORT) -> Iterator[str]:
        """The lines a failure prints."""
        yield from self.answer.evidence(limit)
        for event in self.seen[-12:]:
            yield f"< {event}"

    def next(self, expected: str = "another event") -> Event:
        """The next event; a failed check when there is none in time."""
        event = self._event(expected, time.monotonic() + self._patience)
        if event is None:
            raise Failed(f"{expected}; the watch ended", self)
        return event

    def rest(self, seconds: int) -> list[Event]:
        """All events until the server ends the watch, which it has to do in about so many seconds."""
        within = seconds + self._patience
        until = time.monotonic() + within
        events = []
        while (event := self._event(f"the watch ends within {within:g} s", until)) is not None:
            events.append(event)
        return events

    def until(self, name: str, kind: str) -> list[Event]:
        """All events up to one of this type about the object of this name."""
        until = time.monotonic() + self._patience
        events: list[Event] = []
        while not events or (events[-1].name, events[-1].type) != (name, kind):
            event = self._event(f"{kind} of {name}", until)
            if event is None:
                raise Failed(f"{kind} of {name}; the watch ended", self)
            events.append(event)
        return events

    def _event(self, expected: str, until: float) -> Event | None:
        # Also where events come faster than they are read.
        if time.monotonic() > until:
            raise Failed(f"{expected}; time is over", self)
        self._connection.until = until
        while b"\n" not in self._buffer:
            if len(self._buffer) > LONGEST:
                raise Failed(f"{expected}; one of more than {LONGEST >> 20} MiB does not end", self)
            try:
                data = self._response.read1(1 << 16)
            except TimeoutError:
                raise Failed(f"{expected}; nothing came", self) from None
            except (http.client.HTTPException, OSError) as error:
                raise Failed(f"{expected}; the stream broke off: {error!r}", self) from None
            if not data:
                if self._buffer.strip():
                    raise Failed(f"whole events; the last one was {_short(self._buffer)}", self)
                return None
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        try:
            tree = json.loads(line)
            event = Event(tree["type"], tree["object"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Failed(f"one event a line, with type and object; got {_short(line)}", self) from None
        self.seen.append(event)
        return event


class _Connection(http.client.HTTPConnection):
    """A connection with one buffer for all its answers.

    The library makes one for each answer and throws away what is left in it: what a server sends too much would go
    unnoticed. Here it is the beginning of the next answer, as it is for other clients.
    """

    reader: BufferedReader | None = None
    #: When (monotonic) the answer has to be here.
    until = 0.0

    def __init__(self, host: str, port: int, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self.patient = timeout

    def connect(self) -> None:
        super().connect()
        self.reader = BufferedReader(_Timed(self))

    def allow(self, seconds: float) -> None:
        """The whole of what comes next has so long, not each piece of it."""
        self.until = time.monotonic() + seconds
        if self.sock is not None:
            self.sock.settimeout(seconds)

    def response_class(self, sock: Any, **options: Any) -> http.client.HTTPResponse:  # type: ignore[override]
        response = http.client.HTTPResponse(sock, **options)
        response.fp.close()
        response.fp = _Shared(self.reader)  # type: ignore[assignment]
        return response

    def hang_up(self) -> None:
        """Close, answer or not; `close` lets an answer be read to its end."""
        self.close()
        if self.reader is not None:
            self.reader.close()


class _Secure(_Connection):
    """The same over TLS; the certificate may have to bear another name than the address."""

    def __init__(self, host: str, port: int, timeout: float, context: ssl.SSLContext, name: str) -> None:
        super().__init__(host, port, timeout)
        self._context, self._name = context, name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._context.wrap_socket(self.sock, server_hostname=self._name)
        self.reader = BufferedReader(_Timed(self))


class _Timed(RawIOBase):
    """What comes in on a connection, until its time is over."""

    def __init__(self, connection: _Connection) -> None:
        super().__init__()
        self._connection = connection
        self._socket = connection.sock
        self._file = self._socket.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._connection.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Shared:
    """A buffer that answers cannot close."""

    def __init__(self, reader: BufferedReader | None) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def close(self) -> None:
        """The next answer goes on from here."""


def _body(answer: http.client.HTTPResponse) -> bytes:
    """The whole body; EndlessError when there is more of it than anybody could want."""
    if answer.length is not None and answer.length > LONGEST:
        raise EndlessError(f"a body of {answer.length} bytes is announced")
    data = answer.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise EndlessError(f"the body is longer than {LONGEST >> 20} MiB")
    if answer.length:
        raise http.client.IncompleteRead(data, answer.length)
    return data


def unpacked(data: bytes) -> bytes:
    """What gzip packed. Raises ValueError when it is broken, or would be longer than any body."""
    reader = zlib.decompressobj(wbits=31)
    try:
        found = reader.decompress(data, LONGEST)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not reader.eof or reader.unused_data:
        raise ValueError("not one whole gzip stream")
    return found


def _short(data: bytes, limit: int = SHORT) -> str:
    text = " ".join(data[: limit * 2].decode(errors="replace").split())
    return text if len(text) <= limit else f"{text[:limit]}... ({len(data)} bytes)"
