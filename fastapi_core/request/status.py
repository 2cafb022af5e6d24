"""The one place where an exception turns into bytes, and the short table of answers in plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi_core.errors import APIError
from fastapi_core.http.exchange import Header, Response

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Request

JSON = b"application/json"
YAML = b"application/yaml"
PROTOBUF = b"application/vnd.kubernetes.protobuf"

_TEXT_HEADERS: tuple[Header, ...] = (
    (b"Content-Type", b"text/plain; charset=utf-8"),
    (b"X-Content-Type-Options", b"nosniff"),
)
#: What these clients show to a person is indented without asking (the reference's list of User-Agent prefixes).
_PRETTY_AGENTS = (b"curl", b"Wget", b"Mozilla/5.0")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})

PANIC = "This request caused apiserver to panic. Look in the logs for details."
TOO_MANY = "Too many requests, please try again later."


def text(status: int, message: str) -> Response:
    """A plain-text failure as the reference writes it: a line, and no sniffing."""
    return Response(status, list(_TEXT_HEADERS), message.encode("utf-8", "replace") + b"\n")


def page_not_found() -> Response:
    """The answer to a path nobody serves."""
    return text(404, "404 page not found")


def bad_request_line() -> Response:
    """The answer to a request target that cannot be decoded; the reference's HTTP library gives it, not its API."""
    headers: list[Header] = [(b"Content-Type", b"text/plain; charset=utf-8"), (b"Connection", b"close")]
    return Response(400, headers, b"400 Bad Request")


TOO_LONG = "Timeout: request did not complete within the allotted timeout"


class Overtime(APIError):  # noqa: N818 - what happened to the request, not a failure of its endpoint
    """A request that was cut off at its deadline."""

    def __init__(self) -> None:
        super().__init__("Timeout", TOO_LONG, details={})


def render_error(error: APIError, request: Request) -> Response:
    """The Status of a failed request in the format its client accepts (JSON when it accepts nothing we have)."""
    content_type, body = encode(error.to_status(), request)
    headers: list[Header] = [(b"Content-Type", content_type)]
    if error.retry_after:
        headers.append((b"Retry-After", str(error.retry_after).encode()))
    return Response(error.code if 100 <= error.code <= 999 else 500, headers, body)


def encode(tree: dict[str, Any], request: Request) -> tuple[bytes, bytes]:
    """Content type and bytes of a small document in the negotiated format."""
    from fastapi_core.codec import json

    pretty = wants_pretty(request)
    accept = request.header(b"accept")
    if accept is not None and accept not in (b"*/*", JSON):
        from fastapi_core.codec.negotiate import NO_TRANSFORMS, negotiate

        # None: nothing we have is accepted, or only as a Table. Failures go out as JSON for people then.
        media = negotiate(accept.decode("latin-1"), NO_TRANSFORMS)
        if media is not None and media.format == "yaml":
            from fastapi_core.codec import yaml

            return YAML, yaml.dump(tree)
        if media is not None and media.format == "protobuf":
            from fastapi_core.codec import protobuf

            return PROTOBUF, protobuf.answer(tree)
        pretty = pretty or media is None or media.pretty
    return JSON, json.encode_pretty(tree) if pretty else json.encode(tree) + b"\n"


def wants_pretty(request: Request) -> bool:
    """True when the client asks for indented JSON, by `pretty` or by being a tool for people."""
    query = request.query
    if query and "pretty=" in query:
        for part in query.split("&"):
            if part.startswith("pretty=") and len(part) > len("pretty="):
                return part[len("pretty=") :] in _TRUE
    agent = request.header(b"user-agent")
    return agent is not None and agent.startswith(_PRETTY_AGENTS)
