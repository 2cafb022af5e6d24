"""Regular expressions that are compiled when they are first needed: most servers never need most of them, and compiling
all at the start costs more than opening the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator


class Pattern:
    """A pattern of `re`, with what is used of its methods."""

    __slots__ = ("_compiled", "_flags", "pattern")

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    @property
    def compiled(self) -> re.Pattern[str]:
        found = self._compiled
        if found is None:
            found = self._compiled = re.compile(self.pattern, self._flags)
        return found

    def match(self, text: str, at: int = 0) -> re.Match[str] | None:
        return self.compiled.match(text, at)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self.compiled.fullmatch(text)

    def search(self, text: str) -> re.Match[str] | None:
        return self.compiled.search(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self.compiled.finditer(text)

    def findall(self, text: str) -> list[tuple[str, ...]]:
        """Of a pattern with several groups."""
        return self.compiled.findall(text)

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str) -> str:
        return self.compiled.sub(replacement, text)
