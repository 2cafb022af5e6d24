"""JSON patch (RFC 6902) on decoded trees, as the reference applies it.

Where it differs from the RFC: `replace` of a member that does not exist adds it, `copy` of one adds null, `test` of
one against null holds, indices may count from the end (`-1`), a missing `value` is null, and what precedes the first
slash of a pointer is ignored.

Containers are copied when first written to and never again, so a long patch costs the size of what it touches.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

from fastapi_core.patch.errors import PatchError, too_deep

MAX_OPERATIONS = 10_000
MAX_COPY_BYTES = 3 << 20
"""Limit of all `copy` operations of one patch together, as JSON text."""

_INDEX = re.compile(r"[+-]?[0-9]{1,18}")
_MEMBERS = ("op", "path", "from")
_ABSENT = object()


def apply_json_patch(tree: dict[str, Any], body: Any) -> dict[str, Any]:
    """The object after the patch; `body` is the decoded patch document.

    Raises PatchError: bad_request for a document that is not a list of operations, too_many above MAX_OPERATIONS,
    unprocessable for an operation that does not apply (a failed test included).
    """
    operations = _check(body)
    document = _Document(tree)
    for operation in operations:
        handler = _OPERATIONS.get(operation.get("op") or "unknown")
        if handler is None:
            raise _failed(f"Unexpected kind: {operation.get('op') or 'unknown'}")
        try:
            handler(document, operation)
        except RecursionError:
            raise too_deep() from None
    root = document.root
    if not isinstance(root, dict):
        raise PatchError("undecodable", "the patched document is not an object", value=_text(root).decode())
    return root


def unknown_members(body: Any) -> list[str]:
    """What strict field validation has to say about the members of the operations, in order of the document."""
    known = (*_MEMBERS, "value")
    return [
        f'json patch unknown field "[{index}].{member}"'
        for index, operation in enumerate(body if isinstance(body, list) else ())
        if isinstance(operation, dict)
        for member in operation
        if member not in known
    ]


def _check(body: Any) -> list[dict[str, Any]]:
    if body is None:
        return []
    if body.__class__ is not list:
        raise PatchError(
            "bad_request", f"error decoding patch: a JSON patch is a list of operations, not {_noun(body)}"
        )
    operations = []
    for index, operation in enumerate(body):
        if operation is None:
            operation = {}
        elif operation.__class__ is not dict:
            raise PatchError(
                "bad_request", f"error decoding patch: operation {index} is {_noun(operation)}, not an object"
            )
        for member in _MEMBERS:
            value = operation.get(member)
            if value is not None and value.__class__ is not str:
                raise PatchError(
                    "bad_request",
                    f"error decoding patch: {member} of operation {index} is {_noun(value)}, not a string",
                )
        operations.append(operation)
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(
            "too_many",
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}",
        )
    return operations


def _noun(value: Any) -> str:
    return {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}.get(value.__class__, "a number")


def _failed(cause: str) -> PatchError:
    return PatchError("unprocessable", cause)


class _Document:
    """The tree being patched: which containers are already private to it, and how much has been copied."""

    __slots__ = ("copied", "owned", "root")

    def __init__(self, root: Any) -> None:
        self.root = root
        self.owned: dict[int, Any] = {}
        self.copied = 0

    def find(self, pointer: str) -> tuple[Any, str]:
        """The container a pointer ends in, to read, and the last key."""
        parts = _split(pointer)
        node = self.root
        for part in parts[:-1]:
            node = _get(node, part)
            if node.__class__ is not dict and node.__class__ is not list:
                raise _failed(f"missing path: {pointer}")
        return node, parts[-1]

    def find_to_write(self, pointer: str) -> tuple[Any, str]:
        """As find, with every container on the way made private."""
        parts = _split(pointer)
        node = self.root = self._own(self.root)
        for part in parts[:-1]:
            child = _get(node, part)
            if child.__class__ is not dict and child.__class__ is not list:
                raise _failed(f"missing path: {pointer}")
            private = self._own(child)
            if private is not child:
                node[_position(node, part) if node.__class__ is list else part] = private
            node = private
        return node, parts[-1]

    def _own(self, node: Any) -> Any:
        if id(node) in self.owned:
            return node
        private = node.copy()
        self.owned[id(private)] = private
        return private


def _split(pointer: str) -> list[str]:
    parts = pointer.split("/")
    if len(parts) < 2:
        raise _failed(f"missing path: {pointer!r}")
    return [part.replace("~1", "/").replace("~0", "~") if "~" in part else part for part in parts[1:]]


def _position(items: list[Any], key: str, *, extra: int = 0) -> int:
    """Index into `items`, from the end when negative; `extra` is 1 where the place after the last is meant too."""
    if _INDEX.fullmatch(key) is None:
        raise _failed(f"not an index: {key!r}")
    index = int(key)
    size = len(items) + extra
    if not -size <= index < size:
        raise _failed(f"invalid index: {index}")
    return index + size if index < 0 else index


def _get(node: Any, key: str) -> Any:
    """Value of a member (None when absent) or of a list item (an error when out of range)."""
    if node.__class__ is list:
        return node[_position(node, key)]
    return node.get(key)


def _put(node: Any, key: str, value: Any) -> None:
    if node.__class__ is dict:
        node[key] = value
    elif key == "-":
        node.append(value)
    else:
        node.insert(_position(node, key, extra=1), value)


def _take(node: Any, key: str) -> Any:
    if node.__class__ is list:
        return node.pop(_position(node, key))
    if key not in node:
        raise _failed(f"Unable to remove nonexistent key: {key}")
    return node.pop(key)


def _pointer(operation: dict[str, Any], member: str) -> str:
    pointer: str | None = operation.get(member)
    if pointer is None:
        raise _failed(f"operation without {member}")
    return pointer


def _add(document: _Document, operation: dict[str, Any]) -> None:
    node, key = document.find_to_write(_pointer(operation, "path"))
    _put(node, key, operation.get("value"))


def _remove(document: _Document, operation: dict[str, Any]) -> None:
    node, key = document.find_to_write(_pointer(operation, "path"))
    _take(node, key)


def _replace(document: _Document, operation: dict[str, Any]) -> None:
    pointer = _pointer(operation, "path")
    value = operation.get("value")
    if not pointer:
        if value.__class__ is not dict and value.__class__ is not list:
            raise _failed("replace of the whole document needs an object or a list")
        document.root = value
        return
    node, key = document.find_to_write(pointer)
    if node.__class__ is list:
        node[_position(node, key)] = value
    else:
        node[key] = value


def _move(document: _Document, operation: dict[str, Any]) -> None:
    node, key = document.find_to_write(_pointer(operation, "from"))
    value = _take(node, key)
    node, key = document.find_to_write(_pointer(operation, "path"))
    _put(node, key, value)


def _copy(document: _Document, operation: dict[str, Any]) -> None:
    source, name = document.find(_pointer(operation, "from"))
    value = _get(source, name)
    node, key = document.find_to_write(_pointer(operation, "path"))
    if value is not None:
        text = _text(value)
        document.copied += len(text)
        if document.copied > MAX_COPY_BYTES:
            raise _failed(f"copies of {document.copied} bytes, the limit is {MAX_COPY_BYTES}")
        if value.__class__ is dict or value.__class__ is list:
            value = orjson.loads(text)  # a private container must not be reachable twice
    _put(node, key, value)


def _test(document: _Document, operation: dict[str, Any]) -> None:
    pointer = _pointer(operation, "path")
    if pointer:
        node, key = document.find(pointer)
        value = _get(node, key)
    else:
        value = document.root
    if not equal(value, operation.get("value")):
        raise _failed(f"testing value {pointer} failed: test failed")


def _text(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:  # nested deeper than orjson writes
        raise _failed(str(error)) from None


def equal(left: Any, right: Any) -> bool:
    """JSON equality that keeps numbers, booleans and spellings of a number apart, as the reference does."""
    if left.__class__ is not right.__class__:
        return False
    if left.__class__ is dict:
        return len(left) == len(right) and all(equal(value, right.get(key, _ABSENT)) for key, value in left.items())
    if left.__class__ is list:
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


_OPERATIONS: dict[str, Callable[[_Document, dict[str, Any]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
