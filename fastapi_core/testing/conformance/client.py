"""The client of the kit: requests on one kept connection, watches on connections of their own.

It is made of the standard library on purpose: a fault of the server under test must not be hidden by a fault of a
client that comes from the same hands. It does not follow redirects, does not unpack, does not retry what was answered.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from fastapi_core.testing.conformance.target import NOBODY, Credential, Target
from fastapi_core.testing.conformance.verdicts import Failed

Query = Mapping[str, str | int]
#: JSON as Python has it.
Tree = dict[str, Any]

JSON = "application/json"


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

    def tree(self) -> Tree:
        """The body as an object; a failed check when it is none."""
        value = self.json()
        if not isinstance(value, dict):
            raise Failed("the body is a JSON object", self)
        return value

    def evidence(self) -> Iterator[str]:
        """The lines a failure prints."""
        yield f"> {self.method} {self.path}" + (f"  {_short(self.sent)}" if self.sent else "")
        kind = f"  [{self.header('Content-Type')}]" if self.media not in ("", JSON) else ""
        yield f"< {self.status}{kind}  {_short(self.body)}".rstrip()


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
    """Requests as one user, one after the other. Not for several threads at once: `again()` makes another."""

    def __init__(self, target: Target, credential: Credential | None = None) -> None:
        self.target = target
        self.credential = target.credential if credential is None else credential
        parts = urlsplit(target.url)
        self._secure, self._prefix = parts.scheme == "https", parts.path.rstrip("/")
        self._host, self._port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        self._context = target.context(self.credential)
        self._kept: http.client.HTTPConnection | None = None
        #: The last request, and the last answer: for failures that have nothing else to show.
        self.asked = ""
        self.recent: Answer | None = None

    def again(self) -> Client:
        """Another client for the same user, with a connection of its own."""
        return Client(self.target, self.credential)

    def anonymous(self) -> Client:
        """Another client for nobody."""
        return Client(self.target, NOBODY)

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
        reused = self._kept is not None
        try:
            return self._exchange(method, url, sent if body is not None else None, lines)
        except (http.client.RemoteDisconnected, ConnectionError, http.client.CannotSendRequest):
            self.close()
            if not reused:
                raise
            # A kept connection may have been closed by the server before it saw this request.
            return self._exchange(method, url, sent if body is not None else None, lines)
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
        connection = self._kept = self._kept or self._connect(self.target.timeout)
        self.asked = f"{method} {url}"
        try:
            connection.request(method, self._prefix + url, sent, dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            # It may have answered before it had read everything: an answer to a body that is too large.
            if sent is None or len(sent) < 1 << 16:
                raise
        answer = connection.getresponse()
        data = answer.read()
        if answer.will_close:
            self.close()
        self.recent = Answer(method, url, sent or b"", answer.status, answer.headers, data)
        return self.recent

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if not self._secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        assert self._context is not None
        if not self.target.server_name:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context)
        return _Renamed(self._host, self._port, timeout, self._context, self.target.server_name)

    def watch(self, path: str, query: Query | None = None, headers: Mapping[str, str] | None = None) -> Watch:
        """Open a watch; it is there, or refused, when this returns."""
        url = f"{path}?{urlencode({'watch': '1', **(query or {})})}"
        return Watch(self._connect(self.target.timeout), self._prefix, url, self._headers(headers, None))

    def close(self) -> None:
        """Let the kept connection go; the next request makes another."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None


class Watch:
    """The stream of a watch. `answer` tells how it began; `next` takes one event, `rest` all until the end."""

    def __init__(
        self, connection: http.client.HTTPConnection, prefix: str, url: str, headers: Mapping[str, str]
    ) -> None:
        self._connection = connection
        self._buffer = b""
        self.seen: list[Event] = []
        try:
            connection.request("GET", prefix + url, headers=dict(headers))
            self._socket = connection.sock
            self._response = connection.getresponse()
            body = b"" if self._response.status == 200 else self._response.read()
        except TimeoutError:
            connection.close()
            raise Failed(f"GET {url} is answered at once, before there are events") from None
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        self.answer = Answer("GET", url, b"", self._response.status, self._response.headers, body)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()
        self._response.close()

    def evidence(self) -> Iterator[str]:
        """The lines a failure prints."""
        yield from self.answer.evidence()
        for event in self.seen[-12:]:
            yield f"< {event}"

    def next(self, expected: str = "another event", within: float = 10.0) -> Event:
        """The next event; a failed check when there is none in time."""
        event = self._event(expected, time.monotonic() + within)
        if event is None:
            raise Failed(f"{expected}; the watch ended", self)
        return event

    def rest(self, within: float = 10.0) -> list[Event]:
        """All events until the server ends the watch, which it has to do within these seconds."""
        until = time.monotonic() + within
        events = []
        while (event := self._event(f"the watch ends within {within:g} s", until)) is not None:
            events.append(event)
        return events

    def until(self, name: str, kind: str, within: float = 10.0) -> list[Event]:
        """All events up to one of this type about the object of this name."""
        until = time.monotonic() + within
        events: list[Event] = []
        while not events or (events[-1].name, events[-1].type) != (name, kind):
            event = self._event(f"{kind} of {name}", until)
            if event is None:
                raise Failed(f"{kind} of {name}; the watch ended", self)
            events.append(event)
        return events

    def _event(self, expected: str, until: float) -> Event | None:
        while b"\n" not in self._buffer:
            self._socket.settimeout(max(until - time.monotonic(), 0.001))
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
        except (ValueError, KeyError, TypeError):
            raise Failed(f"one event a line, with type and object; got {_short(line)}", self) from None
        self.seen.append(event)
        return event


class _Renamed(http.client.HTTPSConnection):
    """A connection to a server whose certificate bears another name than its address."""

    def __init__(self, host: str, port: int, timeout: float, context: Any, name: str) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._tls, self._name = context, name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def _short(data: bytes, limit: int = 400) -> str:
    text = " ".join(data[: limit * 2].decode(errors="replace").split())
    return text if len(text) <= limit else f"{text[:limit]}... ({len(data)} bytes)"
