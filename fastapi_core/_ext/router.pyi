"""Immutable path trie: literals, `{name}` for one segment, `{name...}` for the rest.

A pattern that ends in `{/}` ignores trailing slashes of the request path (the reference does for API paths only).
A rest may be empty behind its slash. An empty segment inside a path matches only a rest.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar, final

_T_co = TypeVar("_T_co", covariant=True)

@final
class Match(Generic[_T_co]):
    methods: Mapping[str, _T_co]
    """HTTP method -> endpoint."""
    params: dict[str, str]
    """Decoded path parameters."""

@final
class Router(Generic[_T_co]):
    """Built once from all routes, swapped as a whole; a literal wins over a parameter, a longer route over a rest."""

    def __init__(self, routes: Iterable[tuple[str, Mapping[str, _T_co]]]) -> None:
        """ValueError on a malformed pattern or a method given twice for one path."""
    def lookup(self, path: str) -> Match[_T_co] | None:
        """Route of a raw (still percent-encoded) path, or None."""
    def paths(self) -> list[str]:
        """Every registered pattern without its `{/}`, sorted."""
