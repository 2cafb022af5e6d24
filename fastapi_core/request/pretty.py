"""Whether a client wants its JSON indented, apart from what its Accept header says."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_PEOPLE = (b"curl", b"Wget", b"Mozilla/5.0")


def asks_for_pretty(ctx: RequestContext) -> bool:
    """The `pretty` parameter decides when it is not empty; else tools that people look at get indented JSON."""
    asked = ctx.info.first("pretty")
    if asked:
        return asked in _TRUE
    agent = ctx.request.header(b"user-agent")
    return agent is not None and agent.startswith(_PEOPLE)
