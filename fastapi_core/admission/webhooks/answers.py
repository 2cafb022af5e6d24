"""What the HTTP answer of a webhook says, in the words of the reference's client.

`answered` turns the bytes into a document or a `RequestError`; admission and conversion share it.
"""

from __future__ import annotations

from typing import Any

import orjson

from fastapi_core.codec import decode
from fastapi_core.errors import go_quote
from fastapi_core.schema.errors import DecodeError

#: Statuses with a text of their own.
_TEXTS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
#: Bytes of a failure's body that are repeated.
_SHOWN = 2048
_WANTED = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
#: Statuses whose text is the server's.
_THEIRS = (403, 406, 415)


class RequestError(Exception):
    """A request without a usable answer; `code` is the status that metrics show for it."""

    def __init__(self, text: str, code: int = 503) -> None:
        super().__init__(text)
        self.code = code


def answered(status: int, content_type: str, body: bytes) -> dict[str, Any]:
    """The document of an answer. Raises RequestError."""
    if not 200 <= status <= 206:
        raise _refused(status, content_type, body)
    if not body:
        told = content_type or "application/json"
        raise RequestError(f"0-length response with status code: {status} and content type: {told}")
    try:
        tree: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            # YAML that is no JSON, and JSON that is not of the standard.
            tree = decode.parse(body, "json" if body.lstrip()[:1] == b"{" else "yaml").tree
        except DecodeError as error:
            raise RequestError(f"couldn't get version/kind; json parse error: {error}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        text = f"json: cannot unmarshal {_noun(tree)} into Go value of type {_WANTED}"
        raise RequestError(f"couldn't get version/kind; json parse error: {text}")
    return tree


def check_review(tree: dict[str, Any], group: str, kind: str, wanted: str) -> tuple[str, str]:
    """Kind and apiVersion of a review (either may be missing), of version `wanted`; RequestError for any other document."""
    found, api = tree.get("kind") or "", tree.get("apiVersion") or ""
    if not isinstance(found, str) or not isinstance(api, str):
        raise RequestError("couldn't get version/kind; json parse error: json: cannot unmarshal into a Go string")
    version = api.rpartition("/")[2]
    if found == "Status" and api == "v1":
        raise RequestError(f"converting (v1.Status) to ({wanted}.{kind}): unknown conversion")
    if (found and found != kind) or (api and api not in (f"{group}/v1", f"{group}/v1beta1")):
        text = f"no kind {go_quote(found or kind)} is registered for version {go_quote(api or f'{group}/{wanted}')}"
        raise RequestError(f'{text} in scheme "k8s.io/apiserver/pkg/util/webhook/client.go:71"')
    if api and version != wanted:
        raise RequestError(f"converting ({version}.{kind}) to ({wanted}.{kind}): unknown conversion")
    return found, api


def _noun(value: Any) -> str:
    return {list: "array", str: "string", bool: "bool"}.get(type(value), "number")


def _refused(status: int, content_type: str, body: bytes) -> RequestError:
    found = _status(body)
    if found is not None:
        code = found.get("code")
        return RequestError(str(found.get("message") or "unknown"), code if isinstance(code, int) else status)
    text = "unknown"
    if not content_type or content_type.startswith("text/"):
        text = body[:_SHOWN].decode("utf-8", "replace").strip()
    if status in _THEIRS:
        return RequestError(text, status)
    if status in _TEXTS:
        return RequestError(_TEXTS[status], status)
    if status >= 500:
        shown = f"an error on the server ({go_quote(text)}) has prevented the request from succeeding"
        return RequestError(shown, status)
    return RequestError(
        f"the server responded with the status code {status} but did not return more information", status
    )


def _status(body: bytes) -> dict[str, Any] | None:
    """The Status a body is, None when it is none."""
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(tree, dict) and tree.get("kind") == "Status" and tree.get("apiVersion") == "v1":
        return tree if tree.get("status") != "Success" else None
    return None
