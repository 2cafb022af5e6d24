"""Which form of a document an Accept header asks for."""

from __future__ import annotations

from functools import lru_cache


def choose(accept: str, offered: tuple[str, ...]) -> str:
    """The first of the client's choices that is offered, "" for none.

    Choices count in order of their weight, then of how exact they are, then as written; an unreadable weight counts as
    1, and a weight of 0 is the last choice, not a refusal, as in the reference. An empty header takes the first offer.
    """
    return _remembered(accept, offered) if len(accept) <= _LONG else _choose(accept, offered)


_LONG = 512
"""Longer headers are not remembered: memory is for what clients really send."""


def _choose(accept: str, offered: tuple[str, ...]) -> str:
    choices = []
    for place, text in enumerate(accept.split(",") if accept.strip() else ["*/*"]):
        kind, *parameters = [part.strip() for part in text.split(";")]
        main, slash, sub = kind.lower().partition("/")
        if not slash and main != "*":
            continue
        sub = sub or "*"
        exact = (main != "*") + (sub != "*")
        choices.append((-_weight(parameters), -exact, place, main, sub))
    for _, _, _, main, sub in sorted(choices):
        for offer in offered:
            offer_main, _, offer_sub = offer.partition("/")
            if main in ("*", offer_main) and sub in ("*", offer_sub):
                return offer
    return ""


_remembered = lru_cache(maxsize=256)(_choose)


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0
    return 1.0
