"""Bodies that are large, empty or broken."""

from __future__ import annotations

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
    body = t.new()
    path = next(iter(t.schema.strings()), None) if t.schema is not None else None
    if path is None:
        raise Skipped("no field is known that takes any text")
    node: Tree = body
    for name in path[:-1]:
        node = node.setdefault(name, {})
        if not isinstance(node, dict):
            raise Skipped("the sample has something else where the text would go")
    node[path[-1]] = "x" * _MEBIBYTE
    answer = t.post(body)
    if answer.status == 422:
        raise Skipped(f"{'.'.join(path)} does not take a text of one MiB")
    success(answer, "an object of one MiB", 201)
    after = success(t.get(name_of(body)), "the object")
    found = after.tree()
    for name in path:
        found = found.get(name) or {}
    demand(found == "x" * _MEBIBYTE, f"{'.'.join(path)} whole", after)


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
        again = success(t.list({"limit": 1}), "a list on the same connection")
        demand(again.tree().get("kind") == f"{t.resource.kind}List", "the list, not something else", answer, again)
