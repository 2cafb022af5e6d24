"""Slow and obvious HTTP/1 request parser: the whole byte stream at once, one regular expression per grammar rule."""

from __future__ import annotations

import re
from dataclasses import dataclass

TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([!-~\x80-\xff]+) HTTP/([0-9])\.([0-9])")
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*([\t -~\x80-\xff]*)")
TARGET = re.compile(rb"(?:(?i:https?)://[^/?]+)?(/[^?]*)?(?:\?(.*))?", re.DOTALL)
PATH = re.compile(rb"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)
HOST = re.compile(rb"[!$%&()*+,\-.:;=\[\]'_~0-9A-Za-z]*")
QUOTED = rb'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\t -~\x80-\xff])*"'
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;" + TOKEN + rb"(?:=(?:" + TOKEN + rb"|" + QUOTED + rb"))?)*")


class RefusalError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class IncompleteError(Exception):
    """More bytes are needed."""


@dataclass(frozen=True)
class Message:
    method: str
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    keep_alive: bool


def parse(stream: bytes, header_limit: int, body_limit: int) -> tuple[list[Message], int | None]:
    """Messages of a stream, and the status with which it is refused (None: well so far)."""
    messages: list[Message] = []
    at = 0
    try:
        while at < len(stream):
            message, at = _message(stream, at, header_limit, body_limit)
            messages.append(message)
            if not message.keep_alive:
                break
    except IncompleteError:
        return messages, None
    except RefusalError as refusal:
        return messages, refusal.status
    return messages, None


def _line(stream: bytes, at: int, end_limit: int, status: int) -> tuple[bytes, int]:
    """A line without its CRLF, and where the next begins; the LF must lie before `end_limit`."""
    end = stream.find(b"\n", at)
    if end < 0:
        if len(stream) > end_limit:
            raise RefusalError(status)
        raise IncompleteError
    if end >= end_limit:
        raise RefusalError(status)
    if end == at or stream[end - 1 : end] != b"\r":
        raise RefusalError(400)
    return stream[at : end - 1], end + 1


def _message(stream: bytes, start: int, header_limit: int, body_limit: int) -> tuple[Message, int]:
    if not re.match(TOKEN, stream[start : start + 1]):
        raise RefusalError(400)
    line, at = _line(stream, start, start + header_limit, 431)
    found = REQUEST_LINE.fullmatch(line)
    if found is None:
        raise RefusalError(400)
    method, target, major, minor = found.groups()
    if major != b"1":
        raise RefusalError(505)
    _check_target(method, target)
    headers = []
    while True:
        line, at = _line(stream, at, start + header_limit, 431)
        if not line:
            break
        field = FIELD.fullmatch(line)
        if field is None:
            raise RefusalError(400)
        headers.append((field[1].lower(), field[2].rstrip(b" \t")))
        if len(headers) > 1000:
            raise RefusalError(431)
    keep_alive = _keep_alive(headers, minor)
    body, at = _body(stream, at, headers, minor, header_limit, body_limit)
    return Message(method.decode(), target, tuple(headers), body, keep_alive), at


def _check_target(method: bytes, target: bytes) -> None:
    if target == b"*" and method == b"OPTIONS":
        return
    found = TARGET.fullmatch(target)
    if found is None or target.startswith(b"?") or PATH.fullmatch(found[1] or b"") is None:
        raise RefusalError(400)


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key == name]


def _keep_alive(headers: list[tuple[bytes, bytes]], minor: bytes) -> bool:
    # llhttp reads Proxy-Connection like Connection; that only ever ends a connection earlier or at a client's wish.
    values = _values(headers, b"connection") + _values(headers, b"proxy-connection")
    options = [option.strip(b" \t").lower() for value in values for option in value.split(b",")]
    if minor == b"0":
        return b"keep-alive" in options
    return b"close" not in options


def _body(
    stream: bytes, at: int, headers: list[tuple[bytes, bytes]], minor: bytes, header_limit: int, body_limit: int
) -> tuple[bytes, int]:
    codings = _values(headers, b"transfer-encoding")
    lengths = _values(headers, b"content-length")
    hosts = _values(headers, b"host")
    expects = _values(headers, b"expect")
    if codings and minor == b"0":
        raise RefusalError(400)
    if codings and (len(codings) > 1 or codings[0].lower() != b"chunked"):
        raise RefusalError(501)
    if (codings and lengths) or len(lengths) > 1 or (lengths and not re.fullmatch(rb"[0-9]{1,18}", lengths[0])):
        raise RefusalError(400)
    if len(hosts) > 1 or (not hosts and minor != b"0") or (hosts and HOST.fullmatch(hosts[0]) is None):
        raise RefusalError(400)
    if minor != b"0" and expects and expects[-1].lower() != b"100-continue":
        raise RefusalError(417)
    if codings:
        return _chunked(stream, at, header_limit, body_limit)
    length = int(lengths[0]) if lengths else 0
    if length > body_limit:
        raise RefusalError(413)
    if len(stream) - at < length:
        raise IncompleteError
    return stream[at : at + length], at + length


def _chunked(stream: bytes, at: int, header_limit: int, body_limit: int) -> tuple[bytes, int]:
    body = b""
    while True:
        line, at = _line(stream, at, at + 4096, 400)
        found = CHUNK.fullmatch(line)
        if found is None:
            raise RefusalError(400)
        size = int(found[1], 16)
        if size == 0:
            break
        if len(body) + size > body_limit:
            raise RefusalError(413)
        body += stream[at : at + size]
        at += size
        ending = stream[at : at + 2]
        if not b"\r\n".startswith(ending):
            raise RefusalError(400)
        if len(ending) < 2:
            raise IncompleteError
        at += 2
    trailers = at
    while True:
        line, at = _line(stream, at, trailers + header_limit, 431)
        if not line:
            return body, at
        field = FIELD.fullmatch(line)
        if field is None or field[1].lower() in (b"content-length", b"transfer-encoding"):
            raise RefusalError(400)
