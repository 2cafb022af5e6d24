"""Bodies that are large, empty or broken."""

from __future__ import annotations

import itertools
import json

from fastapi_core.testing.conformance.client import Tree
from fastapi_core.testing.conformance.subject import Subject, error, name_of, success
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand

_MEBIBYTE = 1 << 20


@check("body.malformed", needs="create delete")
def body_malformed(t: Subject) -> None:
    """A body that cannot be read is a 400 BadRequest with a Status, and the server goes on."""
    whole = json.dumps(t.new()).encode()
    for body in (b"{", b"[]", b'"text"', b"\xff\xfe", whole[: len(whole) // 2], b"\0" * 64, whole + b"}"):
        error(t.post(body), 400, "BadRequest", f"the body {body[:20]!r}")
    success(t.post(t.new()), "a create after them", 201)


@check("body.empty", needs="create delete")
def body_empty(t: Subject) -> None:
    """A create without a body is an error, not an object."""
    answer = t.post(b"")
    error(answer, (400, 422))


@check("body.one-mebibyte", needs="create get delete")
def body_one_mebibyte(t: Subject) -> None:
    """An object of one MiB is stored and comes back whole; that is what users may put into one."""
    paths = list(itertools.islice(t.schema.strings(), 12)) if t.schema is not None else []
    for path in paths:
        short, body = t.new(), t.new()
        if not _filled(short, path, 10) or t.post(short).status != 201:
            # No text at all goes there.
            continue
        _filled(body, path, _MEBIBYTE)
        answer = t.post(body)
        if answer.status == 422:
            continue
        success(answer, "an object of one MiB", 201)
        after = success(t.get(name_of(body)), "the object")
        found: object = after.tree()
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        if found is None:
            # A field that is only written.
            continue
        demand(found == "x" * _MEBIBYTE, f"{'.'.join(path)} whole", after)
        return
    raise Skipped("no field is known that takes any text and gives it back")


def _filled(body: Tree, path: tuple[str, ...], length: int) -> bool:
    """Put a text at a path; whether there is room for it."""
    node = body
    for name in path[:-1]:
        node = node.setdefault(name, {})
        if not isinstance(node, dict):
            return False
    node[path[-1]] = "x" * length
    return True


@check("body.too-large", needs="create get delete")
def body_too_large(t: Subject) -> None:
    """A body beyond all measure is refused (413) and not stored; one client must not fill the server."""
    body = t.new(annotations={"fastapi-core.conformance/filler": "x" * (16 * _MEBIBYTE)})
    try:
        answer = t.post(body)
    except OSError:
        # Cut off in the middle: the server has said no as well as it could.
        t.client.close()
        answer = None
    if answer is not None:
        error(answer, (400, 413, 422))
    demand(t.get(name_of(body)).status == 404, "nothing is stored", t.get(name_of(body)))


@check("body.too-large-told", SHOULD, needs="create get delete")
def body_too_large_told(t: Subject) -> None:
    """The refusal is a 413 RequestEntityTooLarge that reaches the client."""
    body = t.new(annotations={"fastapi-core.conformance/filler": "x" * (4 * _MEBIBYTE)})
    try:
        answer = t.post(body)
    except OSError:
        t.client.close()
        demand(False, "413, not a broken connection")
        return
    error(answer, 413, "RequestEntityTooLarge")


@check("body.in-step", needs="create list delete")
def body_in_step(t: Subject) -> None:
    """After a refused body the connection is in step or closed; answers must not be taken for those of others."""
    for body, media in ((b"{", "application/json"), (b"x" * 50_000, "application/x-conformance")):
        answer = t.post(body, headers={"Content-Type": media})
        demand(answer.status in (400, 415), "400 or 415", answer)
        again = success(t.listing({"limit": 1}), "a list on the same connection")
        demand(again.tree().get("kind") == f"{t.resource.kind}List", "the list, not something else", answer, again)
