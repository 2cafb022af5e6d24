"""The usual ways to break a server, for the tables of faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fixtures.faulty import Ask, Fault, Reply, Tree, said

#: What a relay would send after an answer if it were out of step.
STRAY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def hits(ask: Ask, what: str) -> bool:
    """Whether a request is `METHOD kind`: kind is item, list, watch, a subresource, a path, or nothing."""
    method, _, kind = what.partition(" ")
    if method not in ("*", ask.method):
        return False
    if kind.startswith("/"):
        return ask.path == kind or (kind.endswith("/") and ask.path.startswith(kind))
    if kind in ("item", "list", "watch"):
        shape = "watch" if ask.watch else "list" if len(ask.parts) == 1 else "item" if len(ask.parts) == 2 else ""
        return shape == kind
    return not kind or ask.subresource == kind


def ignoring(*names: str, what: str = "*") -> Fault:
    """Query parameters nobody looks at."""

    def ask(ask: Ask) -> None:
        if hits(ask, what):
            for name in names:
                ask.query.pop(name, None)

    return Fault(ask)


def setting(what: str, **query: str) -> Fault:
    """Query parameters nobody has sent."""

    def ask(ask: Ask) -> None:
        if hits(ask, what):
            ask.query |= query

    return Fault(ask)


def editing(what: str, change: Callable[[Tree], object]) -> Fault:
    """Answers with something else in them."""

    def reply(ask: Ask, reply: Reply) -> None:
        if hits(ask, what):
            reply.edit(change)

    return Fault(reply=reply)


def replacing(what: str, old: bytes, new: bytes) -> Fault:
    """Answers with another text in them."""

    def reply(ask: Ask, reply: Reply) -> None:
        if hits(ask, what):
            reply.body = reply.body.replace(old, new)

    return Fault(reply=reply)


def answering(
    what: str, status: int, when: Callable[[Ask], object] = lambda ask: True, tree: Tree | None = None
) -> Fault:
    """Another answer than the server's, without asking it."""

    def ask(ask: Ask) -> Reply | None:
        return said(status, tree) if hits(ask, what) and when(ask) else None

    return Fault(ask)


def claiming(what: str, refused: int, status: int, tree: Tree | None = None) -> Fault:
    """Success, or another code, in place of a refusal."""

    def reply(ask: Ask, reply: Reply) -> Reply | None:
        if not hits(ask, what) or reply.status != refused:
            return None
        return said(status, tree if tree is not None else ask.json if ask.body else {})

    return Fault(reply=reply)


def sending(what: str, change: Callable[[Tree], object]) -> Fault:
    """Bodies with something else in them on their way to the server."""

    def ask(ask: Ask) -> None:
        if hits(ask, what):
            try:
                tree = ask.json
            except ValueError:
                return
            change(tree)
            ask.json = tree

    return Fault(ask)


def heading(what: str, when: Callable[[Ask], object] = lambda ask: True, **headers: str) -> Fault:
    """Request headers nobody has sent; an empty one is taken away."""

    def ask(ask: Ask) -> None:
        if hits(ask, what) and when(ask):
            for name, value in headers.items():
                ask.headers = {
                    key: old for key, old in ask.headers.items() if key.lower() != name.replace("_", "-").lower()
                }
                if value:
                    ask.headers[name.replace("_", "-")] = value

    return Fault(ask)


def labelling(what: str, when: Callable[[Ask], object] = lambda ask: True, **headers: str) -> Fault:
    """Answer headers that say something else; an empty one is taken away."""

    def reply(ask: Ask, reply: Reply) -> None:
        if hits(ask, what) and when(ask):
            for name, value in headers.items():
                wanted = name.replace("_", "-")
                reply.headers = {key: old for key, old in reply.headers.items() if key.lower() != wanted.lower()}
                if value:
                    reply.headers[wanted] = value

    return Fault(reply=reply)


def moving(what: str, old: str, new: str) -> Fault:
    """Requests that go to another path."""

    def ask(ask: Ask) -> None:
        if hits(ask, what):
            ask.path = ask.path.replace(old, new)

    return Fault(ask)


def dropping(unwanted: Callable[[Tree], object]) -> Fault:
    """Watches with holes."""
    return Fault(event=lambda ask, event: [] if unwanted(event) else None)


def altering(change: Callable[[Tree], object]) -> Fault:
    """Events with something else in them."""

    def event(ask: Ask, event: Tree) -> list[Tree]:
        change(event)
        return [event]

    return Fault(event=event)


def meta(tree: Tree) -> Tree:
    found: Any = tree.setdefault("metadata", {})
    return dict(found) if not isinstance(found, dict) else found
