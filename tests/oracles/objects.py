"""Slow, obvious oracle of `fastapi_core._ext.objects`: works on trees and encodes them anew."""

from __future__ import annotations

from typing import Any

import orjson

Tree = dict[str, Any]
FIRST = ("name", "generateName", "namespace", "selfLink", "uid")


def with_revision(tree: Tree, revision: int) -> Tree:
    """The tree with resourceVersion where the reference prints it; revision 0 is none."""
    if not revision:
        return tree
    typed = next(iter(tree)) in ("kind", "metadata")
    items = list(tree["metadata"].items())
    at = 0
    while at < len(items) and (items[at][0] in FIRST if typed else items[at][0] < "resourceVersion"):
        at += 1
    items.insert(at, ("resourceVersion", str(revision)))
    return {**tree, "metadata": dict(items)}


def head(tree: Tree) -> bytes:
    members = list(tree.items())
    if len(members) > 2 and {members[0][0], members[1][0]} == {"kind", "apiVersion"}:
        return orjson.dumps(dict(members[:2]))[:-1] + b","
    return b"{"


def without(value: Any, name: str) -> Any:
    """The value with null for every member of a name."""
    if isinstance(value, dict):
        return {key: None if key == name else without(inner, name) for key, inner in value.items()}
    return [without(inner, name) for inner in value] if isinstance(value, list) else value


def labels(tree: Tree) -> dict[str, str]:
    found = tree["metadata"].get("labels")
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


def list_document(opening: bytes, trees: list[Tree], tail: bytes, *, whole: bool) -> bytes:
    items = []
    for tree in trees:
        text = orjson.dumps(tree)
        items.append(text if whole else b"{" + text[len(head(tree)) :])
    return opening + b",".join(items) + tail


def watch_frame(event: str, tree: Tree, *, chunked: bool) -> bytes:
    text = orjson.dumps({"type": event, "object": tree}) + b"\n"
    return b"%x\r\n%s\r\n" % (len(text), text) if chunked else text
