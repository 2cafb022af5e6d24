"""Audit events as bytes: `audit.k8s.io/v1` Events, one JSON object a line, members in the reference's order.

What repeats from request to request is encoded once (`Subject`): an event of a GET is a join of a few pieces. Events
that carry bodies are put together later, by the thread or task that writes them (`Deferred`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fastapi_core.audit.policy import LEVEL_NAMES, Ruling
from fastapi_core.codec import json

if TYPE_CHECKING:
    from fastapi_core._ext.reqinfo import RequestInfo
    from fastapi_core.request.context import User

#: What a line of the log begins with; items of a list go without it.
PREFIX = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1",'
END = b"}\n"

#: Characters of a User-Agent that are kept.
AGENT_LIMIT = 1024
TRUNCATED = "...TRUNCATED"
TRUNCATED_ANNOTATION = "audit.k8s.io/truncated"

DECISION = "authorization.k8s.io/decision"
REASON = "authorization.k8s.io/reason"


class Subject:
    """What all requests with the same user, target, client and ruling have in common, encoded."""

    __slots__ = ("complete", "head", "level", "received", "ref", "ruling", "source", "started", "who")

    def __init__(
        self, ruling: Ruling, user: User | None, uri: str, info: RequestInfo, ips: list[str], agent: str
    ) -> None:
        self.ruling = ruling
        self.level = ruling.level
        self.head = PREFIX + b'"level":"%b","auditID":' % LEVEL_NAMES[ruling.level].encode()
        self.who = b',"requestURI":%b,"verb":%b,"user":%b' % (
            encode(uri), encode(info.verb), encode(user_tree(user))
        )  # fmt: skip
        source = b',"sourceIPs":' + encode(ips) if ips else b""
        if agent:
            kept = agent if len(agent) <= AGENT_LIMIT else agent[:AGENT_LIMIT] + TRUNCATED
            source += b',"userAgent":' + encode(kept)
        self.source = source
        self.ref = reference(info, {}) if info.is_resource_request else b""
        whole = self.who + self.source + self.ref
        end = b',"requestReceivedTimestamp":"'
        omitted = ruling.omit_stages
        self.received = _stage("RequestReceived", omitted, whole + end)
        """Between audit ID and time for the first stage; empty when that stage is left out."""
        self.started = _stage("ResponseStarted", omitted, whole)
        self.complete = _stage("ResponseComplete", omitted, whole)


def _stage(name: str, omitted: frozenset[str], rest: bytes) -> bytes:
    return b"" if name in omitted else b',"stage":"%b"%b' % (name.encode(), rest)


def user_tree(user: User | None) -> dict[str, Any]:
    """A `UserInfo`."""
    if user is None:
        return {}
    tree: dict[str, Any] = {"username": user.name} if user.name else {}
    if user.uid:
        tree["uid"] = user.uid
    if user.groups:
        tree["groups"] = list(user.groups)
    if user.extra:
        tree["extra"] = {key: list(user.extra[key]) for key in sorted(user.extra)}
    return tree


def reference(info: RequestInfo, known: dict[str, str]) -> bytes:
    """The `objectRef` member; `known` is what the body says where the URL is silent (name, namespace, uid, version)."""
    tree = {
        "resource": info.resource,
        "namespace": info.namespace or known.get("namespace", ""),
        "name": info.name or known.get("name", ""),
        "uid": known.get("uid", ""),
        "apiGroup": info.api_group,
        "apiVersion": info.api_version,
        "resourceVersion": known.get("resourceVersion", ""),
        "subresource": info.subresource,
    }
    return b',"objectRef":' + encode({name: value for name, value in tree.items() if value})


def encode(tree: Any) -> bytes:
    """JSON of whatever a client may have made of its words: halves of characters are replaced."""
    try:
        return json.encode(tree)
    except (TypeError, ValueError):
        return json.encode(_whole(tree))


def _whole(tree: Any) -> Any:
    if isinstance(tree, str):
        return tree.encode("utf-8", "replace").decode()
    if isinstance(tree, dict):
        return {_whole(key): _whole(value) for key, value in tree.items()}
    return [_whole(value) for value in tree] if isinstance(tree, list | tuple) else tree


@lru_cache(maxsize=1024)
def status_code(code: int) -> bytes:
    """The `responseStatus` of an answer that is no Status."""
    return b',"responseStatus":{"metadata":{},"code":%d}' % code


def status_member(status: dict[str, Any], code: int) -> bytes:
    """The `responseStatus` of an answer that is a Status."""
    tree: dict[str, Any] = {"metadata": {}}
    for name in ("status", "message", "reason", "details"):
        if status.get(name) not in (None, ""):
            tree[name] = status[name]
    tree["code"] = code
    return b',"responseStatus":' + encode(tree)


@lru_cache(maxsize=4096)
def decision_member(decision: str, reason: str) -> bytes:
    """The annotations of a request about which only the authorizer had something to say."""
    return annotations_member({DECISION: decision, REASON: reason})


def annotations_member(annotations: dict[str, str]) -> bytes:
    if not annotations:
        return b""
    return b',"annotations":' + encode({key: annotations[key] for key in sorted(annotations)})


_THREE = tuple(b"%03d" % number for number in range(1000))
_seconds: dict[int, bytes] = {}


def stamp(seconds: float) -> bytes:
    """A time with microseconds, as the reference prints it, in UTC."""
    whole = int(seconds)
    text = _seconds.get(whole)
    if text is None:
        text = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(whole)).encode()
        if len(_seconds) >= 64:
            _seconds.clear()
        _seconds[whole] = text
    millis, micros = divmod(int((seconds - whole) * 1e6), 1000)
    return b"".join((text, _THREE[millis], _THREE[micros], b"Z"))


class Deferred:
    """An event that is put together by whoever writes it, because it carries bodies.

    `before` and `after` are the event's bytes around the bodies, `annotations` what follows the time of the stage.
    `request` is JSON. `response` is the answer's body as it went out, in the form `form` (json, yaml, protobuf).
    """

    __slots__ = ("after", "annotations", "before", "form", "omit", "request", "response")

    def __init__(
        self,
        before: bytes,
        after: bytes,
        annotations: dict[str, str],
        request: bytes,
        response: bytes | list[bytes],
        form: str,
        *,
        omit: bool,
    ) -> None:
        self.before, self.after, self.annotations = before, after, annotations
        self.request, self.response, self.form, self.omit = request, response, form, omit

    @property
    def size(self) -> int:
        """About as many bytes as it will be."""
        response = self.response
        length = len(response) if isinstance(response, bytes) else sum(map(len, response))
        return len(self.before) + len(self.after) + len(self.request) + length

    def line(self) -> bytes:
        """The whole event as a line."""
        parts = [self.before]
        if self.request:
            parts += (b',"requestObject":', self.request)
        response = self._response()
        if response:
            parts += (b',"responseObject":', response)
        return b"".join((*parts, self.after, annotations_member(self.annotations), END))

    def shortened(self) -> bytes:
        """The event without its bodies, and marked so."""
        annotations = {**self.annotations, TRUNCATED_ANNOTATION: "true"}
        return b"".join((self.before, self.after, annotations_member(annotations), END))

    def _response(self) -> bytes:
        body = self.response if isinstance(self.response, bytes) else b"".join(self.response)
        if not body:
            return b""
        return compact(body, self.form, omit=self.omit, ours=True)


Event = bytes | Deferred


def size_of(event: Event) -> int:
    return len(event) if isinstance(event, bytes) else event.size


def compact(body: bytes, form: str, *, omit: bool, ours: bool = False) -> bytes:
    """A body as compact JSON, without managedFields when asked to; empty when it cannot be read.

    `ours`: the server has written it, so that JSON need not be looked at.
    """
    from fastapi_core.codec import decode, protobuf
    from fastapi_core.schema.errors import DecodeError
    from fastapi_core.schema.tables import type_for

    try:
        if form == "protobuf":
            envelope = protobuf.open_envelope(body)
            group, _, version = envelope.api_version.rpartition("/")
            type_ = type_for(group, version, envelope.kind)
            if type_ is None:
                return b""
            tree = decode.from_protobuf(type_, envelope.message)
            tree = {"kind": envelope.kind, "apiVersion": envelope.api_version, **tree}
        else:
            # One line of JSON is as it shall be; what is indented is read and written again.
            if ours and form == "json" and not omit and b"\n" not in body[:-1]:
                return body.rstrip(b"\n")
            tree = decode.parse(body, form).tree
        if omit:
            drop_managed_fields(tree)
        return json.encode(tree)
    except (DecodeError, ValueError, TypeError, KeyError):
        return b""


def drop_managed_fields(tree: Any) -> None:
    """Take metadata.managedFields out of an object, the items of a list, the objects of a Table; in place."""
    if not isinstance(tree, dict):
        return
    metadata = tree.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    items = tree.get("items")
    if isinstance(items, list) and str(tree.get("kind", "")).endswith("List"):
        for item in items:
            drop_managed_fields(item)
    if tree.get("kind") == "Table":
        for row in tree.get("rows") or ():
            drop_managed_fields(row.get("object"))


def source_ips(forwarded: bytes | None, real: bytes | None, peer: str) -> list[str]:
    """Where a request came from: the chain of proxies as they tell it, then the address of the connection.

    `peer` is the remote address without its port.
    """
    found = []
    for part in (forwarded or b"").split(b","):
        address = _address(part.strip())
        if address:
            found.append(address)
    address = _address(real or b"")
    if address and address not in found:
        found.append(address)
    address = _address(peer.encode())
    if address and (not found or found[-1] != address):
        found.append(address)
    return found


def _address(text: bytes) -> str:
    """An IP address in Go's spelling, empty for what is none. Leading zeros are taken as decimal, as by the reference."""
    import ipaddress

    if not text:
        return ""
    try:
        plain = text.decode("ascii")
        if ":" not in plain:
            plain = ".".join(part.lstrip("0") or "0" if part.isdigit() else part for part in plain.split("."))
        address = ipaddress.ip_address(plain)
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id:
            return ""
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
    return str(address)


def legacy(line: bytes) -> bytes:
    """An event in the format `legacy` of the log: one line of words."""
    import orjson

    from fastapi_core.errors import go_quote

    event = orjson.loads(line)

    def strings(values: Iterable[str]) -> str:
        return ",".join(map(go_quote, values))

    user = event.get("user", {})
    name, groups = user.get("username") or "<none>", "<none>"
    if user.get("username") and user.get("groups"):
        groups = strings(user["groups"])
    other, other_groups = "<self>", "<lookup>"
    impersonated = event.get("impersonatedUser")
    if impersonated is not None:
        other = impersonated.get("username", "")
        if impersonated.get("groups"):
            other_groups = strings(impersonated["groups"])
    code = str(event["responseStatus"].get("code", 0)) if "responseStatus" in event else "<deferred>"
    words: list[tuple[str, str]] = [
        ("id", event["auditID"]),
        ("stage", event["stage"]),
        ("ip", (event.get("sourceIPs") or ["<unknown>"])[0]),
        ("method", event["verb"]),
        ("user", name),
        ("groups", groups),
        ("as", other),
        ("asgroups", other_groups),
        ("user-agent", event.get("userAgent", "")),
        ("namespace", event.get("objectRef", {}).get("namespace") or "<none>"),
        ("uri", event["requestURI"]),
    ]
    text = " ".join(f"{key}={go_quote(value)}" for key, value in words)
    received = _nano(event["requestReceivedTimestamp"])
    return f'{received} AUDIT: {text} response="{code}"\n'.encode("utf-8", "replace")


def _nano(micro: str) -> str:
    """A time of an event as RFC 3339 with as many digits as it needs."""
    second, _, fraction = micro.removesuffix("Z").partition(".")
    fraction = fraction.rstrip("0")
    return f"{second}.{fraction}Z" if fraction else f"{second}Z"


def render(event: Event) -> bytes:
    """The line of an event."""
    return event if isinstance(event, bytes) else event.line()


def limited(limit: int) -> Callable[[Event], bytes | None]:
    """`render` for a backend that takes events of at most `limit` bytes: bodies go first; None is too large still."""

    def render_limited(event: Event) -> bytes | None:
        line = render(event)
        if len(line) > limit and isinstance(event, Deferred):
            line = event.shortened()
        return line if len(line) <= limit else None

    return render_limited
