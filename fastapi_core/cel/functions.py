"""Functions: their overloads, written as signatures, and the sets of them that a version of Kubernetes offers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, Final

from fastapi_core.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    OPAQUE,
    STRING,
    TIMESTAMP,
    TYPE_TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    param,
    struct,
    type_of,
)
from fastapi_core.records import dataclass

Impl = Callable[..., Any]

QUANTITY: Final = struct("kubernetes.Quantity")
URL: Final = struct("kubernetes.URL")
FORMAT: Final = struct("kubernetes.NamedFormat")
SEMVER: Final = struct("kubernetes.Semver")
IP: Final = Type(OPAQUE, "net.IP")
CIDR: Final = Type(OPAQUE, "net.CIDR")
AUTHORIZER: Final = struct("kubernetes.authorization.Authorizer")
PATH_CHECK: Final = struct("kubernetes.authorization.PathCheck")
GROUP_CHECK: Final = struct("kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = struct("kubernetes.authorization.ResourceCheck")
DECISION: Final = struct("kubernetes.authorization.Decision")

_NAMED: Final = {
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "timestamp": TIMESTAMP,
    "duration": DURATION,
    "dyn": DYN,
    "type": TYPE_TYPE,
    "Quantity": QUANTITY,
    "URL": URL,
    "Format": FORMAT,
    "Semver": SEMVER,
    "IP": IP,
    "CIDR": CIDR,
    "Authorizer": AUTHORIZER,
    "PathCheck": PATH_CHECK,
    "GroupCheck": GROUP_CHECK,
    "ResourceCheck": RESOURCE_CHECK,
    "Decision": DECISION,
}
_SIGNATURE: Final = re.compile(r"(\S+) (?:(.+?)::)?([^\s(]+)\((.*)\) -> (.+)")


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function. `args` includes the receiver of a member; `parameters` names the type parameters."""

    id: str
    function: str
    member: bool
    args: tuple[Type, ...]
    result: Type
    impl: Impl | None = field(compare=False)
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Library:
    """Functions that come and go together: from version `since`, before version `until` (None: still there)."""

    overloads: tuple[Overload, ...]
    since: tuple[int, int] = (1, 0)
    until: tuple[int, int] | None = None


def overload(signature: str, impl: Impl | None) -> Overload:
    """An overload of `id receiver::name(types) -> type`, without `receiver::` for a function of its own."""
    match = _SIGNATURE.fullmatch(signature)
    assert match is not None, signature
    identifier, receiver, name, inner, result = match.groups()
    args = [_type(text) for text in _split(inner)]
    if receiver is not None:
        args.insert(0, _type(receiver))
    names: dict[str, None] = {}
    for arg in (*args, _type(result)):
        _collect(arg, names)
    return Overload(identifier, name, receiver is not None, tuple(args), _type(result), impl, tuple(names))


def _collect(kind: Type, names: dict[str, None]) -> None:
    if kind.kind == "param":
        names[kind.name] = None
    for inner in kind.params:
        _collect(inner, names)


def _split(text: str) -> list[str]:
    parts: list[str] = []
    depth = 0
    current = ""
    for character in text:
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
            continue
        depth += (character == "(") - (character == ")")
        current += character
    if current.strip():
        parts.append(current.strip())
    return parts


def _type(text: str) -> Type:
    if text in _NAMED:
        return _NAMED[text]
    if len(text) == 1:
        return param(text)
    name, _, rest = text.partition("(")
    inner = [_type(part) for part in _split(rest.removesuffix(")"))]
    if name == "list":
        return list_of(inner[0])
    if name == "map":
        return map_of(inner[0], inner[1])
    if name == "optional":
        return optional_of(inner[0])
    assert name == "type", text
    return type_of(inner[0])


def library(
    entries: Iterable[tuple[str, Impl | None]],
    *,
    since: tuple[int, int] = (1, 0),
    until: tuple[int, int] | None = None,
) -> Library:
    return Library(tuple(overload(signature, impl) for signature, impl in entries), since, until)
