"""JSON patch, one operation at a time on a full copy of the document. Slow on purpose."""

from __future__ import annotations

import copy
import re
from typing import Any


class DoesNotApplyError(Exception):
    pass


def oracle(document: Any, operations: list[dict[str, Any]]) -> Any:
    for operation in operations:
        document = step(copy.deepcopy(document), copy.deepcopy(operation))
    return document


def step(document: Any, operation: dict[str, Any]) -> Any:
    kind, path = operation["op"], operation["path"]
    if kind == "test":
        want = operation.get("value")
        if not identical(document if path == "" else read(document, path), want):
            raise DoesNotApplyError
    elif kind == "add":
        write(document, path, operation.get("value"))
    elif kind == "remove":
        delete(document, path)
    elif kind == "replace":
        if path == "":
            if not isinstance(operation.get("value"), dict | list):
                raise DoesNotApplyError
            return operation["value"]
        parent, key = walk(document, path)
        parent[index(parent, key, 0) if isinstance(parent, list) else key] = operation.get("value")
    elif kind == "move":
        write(document, path, delete(document, operation["from"]))
    elif kind == "copy":
        write(document, path, copy.deepcopy(read(document, operation["from"])))
    else:
        raise DoesNotApplyError
    return document


def walk(document: Any, pointer: str) -> tuple[Any, str]:
    if "/" not in pointer:
        raise DoesNotApplyError
    *parents, key = [unescape(part) for part in pointer.split("/")[1:]]
    for part in parents:
        if isinstance(document, list):
            document = document[index(document, part, 0)]
        elif part in document:
            document = document[part]
        else:
            raise DoesNotApplyError
        if not isinstance(document, dict | list):
            raise DoesNotApplyError
    return document, key


def unescape(part: str) -> str:
    return re.sub("~[01]", lambda match: "~" if match[0] == "~0" else "/", part)


def index(items: list[Any], key: str, extra: int) -> int:
    if not re.fullmatch("[-+]?[0-9]+", key):
        raise DoesNotApplyError
    place = int(key)
    if place < 0:
        place += len(items) + extra
    if not 0 <= place < len(items) + extra:
        raise DoesNotApplyError
    return place


def read(document: Any, pointer: str) -> Any:
    parent, key = walk(document, pointer)
    return parent[index(parent, key, 0)] if isinstance(parent, list) else parent.get(key)


def write(document: Any, pointer: str, value: Any) -> None:
    parent, key = walk(document, pointer)
    if isinstance(parent, list):
        parent.insert(len(parent) if key == "-" else index(parent, key, 1), value)
    else:
        parent[key] = value


def delete(document: Any, pointer: str) -> Any:
    parent, key = walk(document, pointer)
    if isinstance(parent, list):
        return parent.pop(index(parent, key, 0))
    if key not in parent:
        raise DoesNotApplyError
    return parent.pop(key)


def identical(left: Any, right: Any) -> bool:
    import json

    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
