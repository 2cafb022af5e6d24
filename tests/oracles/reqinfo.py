"""Slow, obvious request info: the rules of the reference written with string methods and regular expressions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


class MalformedError(Exception):
    """Status of the refusal."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Info:
    is_resource_request: bool = False
    path: str = ""
    verb: str = ""
    api_prefix: str = ""
    api_group: str = ""
    api_version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    parts: tuple[str, ...] = ()
    query: dict[str, list[str]] = field(default_factory=dict)
    label_selector: str = ""
    field_selector: str = ""


def unquote(text: str) -> str | None:
    if re.search(r"%(?![0-9a-fA-F]{2})", text):
        return None
    raw = text.encode("utf-8", "surrogateescape")
    return re.sub(rb"%(..)", lambda m: bytes([int(m[1], 16)]), raw, flags=re.S).decode("utf-8", "replace")


def parse_query(query: str) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for pair in query.split("&"):
        if pair and ";" not in pair:
            key, value = (unquote(x.replace("+", " ")) for x in pair.partition("=")[::2])
            if key is not None and value is not None:
                out.setdefault(key, []).append(value)
    return out


def exact_name(selector: str) -> str:
    names = []
    for term in re.findall(r"(?:\\.|[^,\\]|\\$)+", selector, flags=re.S):
        m = re.match(r"(.*?)(!=|==|=)(.*)\Z", term, flags=re.S)
        if m is None or not re.fullmatch(r"(?:[^\\,=]|\\[\\,=])*", m[3], flags=re.S):
            return ""
        if m[1] == "metadata.name" and m[2] != "!=":
            names.append(re.sub(r"\\(.)", r"\1", m[3], flags=re.S))
    name = names[0] if names else ""
    return "" if name in (".", "..") or "/" in name or "%" in name else name


def int64(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", text) is not None and -(2**63) <= int(text) < 2**63


VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def parse(method: str, path: str, query: str) -> Info:
    decoded = unquote(path)
    if re.search(r"[\x00-\x1f\x7f]", path + query) or decoded is None or not (path[:1] == "/" or path == "*"):
        raise MalformedError(400)
    info = Info(path=decoded, verb=method.lower(), query=parse_query(query))
    parts = decoded.strip("/").split("/")
    if parts[0] not in ("api", "apis") or len(parts) < 3:
        return info
    info.api_prefix = parts.pop(0)
    if info.api_prefix == "apis":
        if len(parts) < 3:
            return info
        info.api_group = parts.pop(0)
    info.is_resource_request = True
    info.api_version = parts.pop(0)
    prefixed = parts[0] in ("watch", "proxy")
    if prefixed:
        info.verb = parts.pop(0)
        if not parts:
            raise MalformedError(500)
    else:
        info.verb = VERBS.get(method, "")
    if parts[0] == "namespaces" and len(parts) > 1:
        info.namespace = parts[1]
        if len(parts) > 2 and parts[2] not in ("status", "finalize"):
            parts = parts[2:]
    info.parts = tuple(parts)
    info.resource, info.name, info.subresource = (*parts, "", "")[:3]
    if info.verb == "proxy":
        info.subresource = ""
    if info.name == "" and info.verb == "get":
        watch = info.query.get("watch")
        info.verb = "watch" if watch and watch[0].lower() not in ("0", "false") else "list"
        if all(int64(info.query[x][0]) for x in ("limit", "timeoutSeconds") if x in info.query):
            info.name = exact_name(info.query.get("fieldSelector", [""])[0])
    elif info.name == "" and info.verb == "delete":
        info.verb = "deletecollection"
    if not prefixed and info.verb in ("list", "watch", "deletecollection"):
        info.field_selector = info.query.get("fieldSelector", [""])[0]
        info.label_selector = info.query.get("labelSelector", [""])[0]
    return info
