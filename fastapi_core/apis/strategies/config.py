"""ConfigMaps and Secrets: total size, immutability, the keys that a secret's type demands."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

import orjson

from fastapi_core.apis.strategies.basics import Tree
from fastapi_core.codec import go_syntax
from fastapi_core.errors import FieldError
from fastapi_core.meta import names

LIMIT = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_REDACTED = "<secret contents redacted>"
_ACCOUNT = "kubernetes.io/service-account.name"

_JSON_TYPES = {list: "array", str: "string", int: "number", float: "number", bool: "bool"}
_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def _decoded(value: Any) -> bytes:
    """Bytes of a base64 member; a malformed one was refused when it was read."""
    try:
        return base64.b64decode(value or "", validate=False)
    except (binascii.Error, ValueError):
        return b""


def keep_type(new: Tree, old: Tree | None) -> None:
    """A secret that states no type on update keeps its own."""
    if old is not None and not new.get("type"):
        new["type"] = old.get("type") or ""


def only_names(new: Tree, old: Tree | None) -> None:
    """An account keeps nothing of its secrets but their names."""
    secrets = new.get("secrets")
    if secrets:
        new["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]


def _frozen(new: Tree, old: Tree, *members: str) -> list[FieldError]:
    """Changes of an object that has been made immutable."""
    if not old.get("immutable"):
        return []
    errors = []
    if not new.get("immutable"):
        errors.append(FieldError("Forbidden", "immutable", _FROZEN))
    for member in members:
        if (new.get(member) or {}) != (old.get(member) or {}):
            errors.append(FieldError("Forbidden", member, _FROZEN))
    return errors


def _keys(data: Tree, field: str) -> list[FieldError]:
    return [
        FieldError("Invalid value", f"{field}[{key}]", text, key) for key in data for text in names.config_map_key(key)
    ]


def validate_config_map(new: Tree, old: Tree | None) -> list[FieldError]:
    errors = _frozen(new, old, "data", "binaryData") if old is not None else []
    data: Tree = new.get("data") or {}
    binary: Tree = new.get("binaryData") or {}
    errors += _keys(data, "data")
    errors += [
        FieldError("Invalid value", f"data[{key}]", "duplicate of key present in binaryData", key)
        for key in data
        if key in binary
    ]
    errors += _keys(binary, "binaryData")
    total = _bytes(data.values()) + sum(map(len, map(_decoded, binary.values())))
    if total > LIMIT:
        errors.append(FieldError("Too long", "[]", f"may not be more than {LIMIT} bytes"))
    return errors


def _bytes(texts: Iterable[str | None]) -> int:
    return sum([len(text) if text.isascii() else len(text.encode()) for text in texts if text])


def validate_secret(new: Tree, old: Tree | None) -> list[FieldError]:
    errors = []
    if old is not None:
        if new.get("type") != old.get("type"):
            errors.append(FieldError("Invalid value", "type", "field is immutable", new.get("type") or ""))
        errors += _frozen(new, old, "data")
    data: Tree = new.get("data") or {}
    errors += _keys(data, "data")
    if sum(len(_decoded(value)) for value in data.values()) > LIMIT:
        errors.append(FieldError("Too long", "data", f"may not be more than {LIMIT} bytes"))
    return errors + _typed(new, data)


def _typed(new: Tree, data: Tree) -> list[FieldError]:
    """What the well-known types demand."""
    kind = new.get("type") or ""
    if kind == "kubernetes.io/service-account-token":
        annotations = new["metadata"].get("annotations") or {}
        return [] if annotations.get(_ACCOUNT) else [FieldError("Required value", f"metadata.annotations[{_ACCOUNT}]")]
    if kind == "kubernetes.io/basic-auth":
        if "username" in data or "password" in data:
            return []
        return [FieldError("Required value", "data[username]"), FieldError("Required value", "data[password]")]
    if kind == "kubernetes.io/ssh-auth":
        return [] if data.get("ssh-privatekey") else [FieldError("Required value", "data[ssh-privatekey]")]
    errors = []
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data:
            errors.append(FieldError("Required value", f"data[{key}]"))
        elif key.startswith(".docker"):
            errors += _json_object(data[key], f"data[{key}]")
    return errors


def _json_object(value: str, field: str) -> list[FieldError]:
    content = _decoded(value)
    try:
        parsed = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        text = go_syntax.explain(content.decode(errors="replace")) or str(error)
        return [FieldError("Invalid value", field, text, _REDACTED)]
    if parsed is None or isinstance(parsed, dict):
        return []
    text = f"json: cannot unmarshal {_JSON_TYPES[type(parsed)]} into Go value of type map[string]interface {{}}"
    return [FieldError("Invalid value", field, text, _REDACTED)]
