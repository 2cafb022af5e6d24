"""Slow, obvious router: every pattern becomes a regular expression, the most specific match wins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.oracles.reqinfo import unquote


def _expression(pattern: str) -> str:
    body = pattern.removesuffix("{/}")
    out = []
    for piece in re.split(r"(\{[^}]*\})", body):
        if piece.endswith("...}"):
            out.append(f"(?P<{piece[1:-4]}>.*)")
        elif piece.startswith("{"):
            out.append(f"(?P<{piece[1:-1]}>[^/]+)")
        else:
            out.append(re.escape(piece))
    return "".join(out)


def _rank(pattern: str) -> list[int]:
    """Orders patterns by their segments from the left: literal, parameter, rest."""
    segments = pattern.removesuffix("{/}").split("/")
    return [2 if s.endswith("...}") else 1 if s.startswith("{") else 0 for s in segments]


def lookup(
    routes: Iterable[tuple[str, Mapping[str, Any]]], path: str
) -> tuple[Mapping[str, Any], dict[str, str]] | None:
    sent = path if path == "/" else path.rstrip("/") or "/"
    slashes = path[len(sent) :]
    decoded = unquote(sent)
    if decoded is None:
        return None
    for pattern, methods in sorted(routes, key=lambda route: _rank(route[0])):
        # An encoded slash at the end is part of the path: it must not be taken for a trailing one.
        ends = [decoded] if pattern.endswith("{/}") else [decoded + slashes]
        if decoded.endswith("/") and decoded != "/" and "..." not in pattern:
            continue
        for end in ends:
            m = re.fullmatch(_expression(pattern), end, flags=re.S)
            if m:
                return methods, m.groupdict()
    return None
