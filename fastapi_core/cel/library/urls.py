"""URLs, as Go's net/url takes them apart."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.functions import library
from fastapi_core.cel.values import Opaque
from fastapi_core.errors import go_quote

_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]*", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_HOST: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010FFFF]*")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_PATH_KEPT: Final = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]*", re.ASCII)
_PATH_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")


class URLValue(Opaque):
    """The parts of a URL."""

    __slots__ = ("host", "path", "query", "scheme", "text")
    cel_type = "kubernetes.URL"

    def __init__(self, scheme: str, host: str, path: str, query: str, text: str) -> None:
        self.scheme = scheme
        self.host = host
        self.path = path
        self.query = query
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, URLValue) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def parse_request(text: str) -> URLValue:
    """A URL with a scheme, or a path from the root; ValueError with Go's text."""
    return _parse(text, text)


def _failure(text: str, reason: str) -> ValueError:
    return ValueError(f"parse {go_quote(text)}: {reason}")


def _parse(text: str, whole: str) -> URLValue:
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise _failure(whole, "net/url: invalid control character in URL")
    if not text:
        raise _failure(whole, "empty url")
    if text == "*":
        return URLValue("", "", "*", "", text)
    scheme, rest = _split_scheme(text, whole)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return URLValue(scheme.lower(), "", "", query, text)
        raise _failure(whole, "invalid URI for request")
    host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = _authority(authority, whole)
    bad = _BAD_ESCAPE.search(rest)
    if bad:
        raise _failure(whole, f"invalid URL escape {go_quote(rest[bad.start() : bad.start() + 3])}")
    return URLValue(scheme.lower(), host, rest, query, text)


def _split_scheme(text: str, whole: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match is not None and text[match.end() : match.end() + 1] == ":":
        return match.group(), text[match.end() + 1 :]
    if text.startswith(":"):
        raise _failure(whole, "missing protocol scheme")
    return "", text


def _authority(authority: str, whole: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise _failure(whole, "net/url: invalid userinfo")
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise _failure(whole, "missing ']' in host")
        _check_port(host[end + 1 :], whole)
    elif ":" in host:
        _check_port(host[host.rindex(":") :], whole)
    bad = _BAD_ESCAPE.search(host)
    if bad:
        raise _failure(whole, f"invalid URL escape {go_quote(host[bad.start() : bad.start() + 3])}")
    if not _HOST.fullmatch(host):
        known = _HOST.match(host)
        wrong = host[known.end() if known else 0]
        raise _failure(whole, f"invalid character {go_quote(wrong)} in host name")
    return unquote_to_bytes(host).decode(errors="replace")


def _check_port(port: str, whole: str) -> None:
    if port and not re.fullmatch(r":[0-9]*", port, re.ASCII):
        raise _failure(whole, f"invalid port {go_quote(port)} after host")


def _url(text: str) -> URLValue:
    try:
        url = parse_request(text)
    except ValueError as error:
        raise EvalError(f"URL parse error during conversion from string: {error}") from None
    # The second reading, unlike the first, knows fragments.
    before, mark, _ = text.partition("#")
    return parse_request(before) if mark else url


def _is_url(text: str) -> bool:
    try:
        parse_request(text)
    except ValueError:
        return False
    return True


def _split_port(host: str) -> tuple[str, str]:
    name, port = host, ""
    colon = host.rfind(":")
    if colon >= 0 and re.fullmatch(r":[0-9]*", host[colon:], re.ASCII):
        name, port = host[:colon], host[colon + 1 :]
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name, port


def _escaped_path(url: URLValue) -> str:
    if _PATH_KEPT.fullmatch(url.path):
        return url.path
    raw = unquote_to_bytes(url.path)
    return "".join(chr(byte) if byte in _PATH_PLAIN else f"%{byte:02X}" for byte in raw)


def _query(url: URLValue) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        key, _, value = pair.replace("+", " ").partition("=")
        name = unquote_to_bytes(key).decode(errors="replace")
        result.setdefault(name, []).append(unquote_to_bytes(value).decode(errors="replace"))
    return result


URLS: Final = library(
    [
        ("string_to_url url(string) -> URL", _url),
        ("url_get_scheme URL::getScheme() -> string", lambda url: url.scheme),
        ("url_get_host URL::getHost() -> string", lambda url: url.host),
        ("url_get_hostname URL::getHostname() -> string", lambda url: _split_port(url.host)[0]),
        ("url_get_port URL::getPort() -> string", lambda url: _split_port(url.host)[1]),
        ("url_get_escaped_path URL::getEscapedPath() -> string", _escaped_path),
        ("url_get_query URL::getQuery() -> map(string, list(string))", _query),
        ("is_url_string isURL(string) -> bool", _is_url),
    ]
)
