"""Which form of a document an Accept header asks for."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from fastapi_core.later import later

if TYPE_CHECKING:
    from fastapi_core.codec import accept as accepted
else:
    accepted = later("fastapi_core.codec.accept")


def choose(accept: str, offered: tuple[str, ...]) -> str | None:
    """The first of the client's choices that is offered, "" for none, None when nothing in the header is a media type.

    An empty header takes the first offer.
    """
    return _remembered(accept, offered) if len(accept) <= _LONG else _choose(accept, offered)


_LONG = 512
"""Longer headers are not remembered: memory is for what clients really send."""


def _choose(accept: str, offered: tuple[str, ...]) -> str | None:
    clauses = accepted.clauses(accept or "*/*")
    for clause in clauses:
        for offer in offered:
            main, _, sub = offer.partition("/")
            if clause.main in ("*", main) and clause.sub in ("*", sub):
                return offer
    return "" if clauses else None


_remembered = lru_cache(maxsize=256)(_choose)
