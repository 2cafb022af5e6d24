"""The clauses of an Accept header in the order in which the reference tries them.

A clause of greater weight goes before its neighbour, but so does one that is exact before one with a wildcard, whatever
they weigh: what comes of both depends on how they are written. A weight that is no number is zero, and zero still counts.
"""

from __future__ import annotations

from typing import NamedTuple


class Clause(NamedTuple):
    main: str
    sub: str
    weight: float
    params: tuple[tuple[str, str], ...]


def clauses(accept: str) -> list[Clause]:
    """Clauses, first choice first; what is no media type is left out."""
    out: list[Clause] = []
    for text in accept.split(","):
        clause = _clause(text)
        if clause is None:
            continue
        place = len(out)
        while place and _goes_before(clause, out[place - 1]):
            place -= 1
        out.insert(place, clause)
    return out


def _goes_before(one: Clause, other: Clause) -> bool:
    return one.weight > other.weight or (one.main != "*" and other.main == "*") or (one.sub != "*" and other.sub == "*")


def _clause(text: str) -> Clause | None:
    media, *rest = text.strip(" ").split(";")
    main, _, sub = media.partition("/")
    main = main.strip(" ")
    if sub:
        sub, _, more = sub.partition("/")
        if more:
            return None
    elif main != "*":
        return None
    sub = sub.strip(" ") if sub else "*"
    weight = 1.0
    params: dict[str, str] = {}
    for param in rest:
        name, _, value = param.partition("=")
        if not value or "=" in value:
            continue
        if name.strip(" ") == "q":
            weight = _weight(value)
        else:
            params[name.strip(" ")] = value.strip(" ")
    return Clause(main, sub, weight, tuple(params.items()))


def _weight(text: str) -> float:
    try:
        value = float(text) if text == text.strip() else 0.0
    except ValueError:
        return 0.0
    return value if value == value else 0.0
