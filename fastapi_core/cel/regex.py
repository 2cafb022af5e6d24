"""Regular expressions in the syntax of RE2.

With the package `google-re2` installed (extra `re2`) it does the matching, in linear time. Without it a pattern is
translated to Python's syntax; where one could backtrack beyond measure, an automaton does the matching (`regex_automaton`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Protocol, cast

from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.regex_automaton import Automaton, TooLargeError
from fastapi_core.cel.regex_translate import PatternError, Translated, translate

_CACHE: Final = 512
#: Steps a backtracking search may take at the worst, reckoned from the text's length and the pattern's degree.
_STEP_LIMIT: Final = 100_000
#: Texts so short that not even exponential backtracking takes long.
_SHORT: Final = 12


class Pattern(Protocol):
    """What is needed of a compiled pattern, of either engine."""

    def matches(self, text: str) -> bool: ...

    def search(self, text: str, at: int = 0) -> Any: ...


class _Bounded:
    """A pattern of Python's engine, and an automaton for the texts on which that could take too long."""

    __slots__ = ("_automaton", "_degree", "_pattern")

    def __init__(self, translated: Translated) -> None:
        self._pattern = translated.pattern
        self._degree = translated.degree
        self._automaton: Automaton | None = None

    def _is_cheap(self, text: str) -> bool:
        if self._degree < 0:
            return len(text) <= _SHORT
        steps: int = max(len(text), 1) ** (self._degree + 1)
        return steps <= _STEP_LIMIT

    def _safe(self) -> Automaton:
        if self._automaton is None:
            try:
                self._automaton = Automaton(self._pattern.pattern)
            except (TooLargeError, RecursionError):
                raise EvalError("regular expression is too large") from None
        return self._automaton

    def matches(self, text: str) -> bool:
        if self._is_cheap(text):
            return self._pattern.search(text) is not None
        return self._safe().search(text) is not None

    def search(self, text: str, at: int = 0) -> Any:
        return self._pattern.search(text, at) if self._is_cheap(text) else self._safe().first(text, at)


class _Native:
    """A pattern of google-re2."""

    __slots__ = ("_pattern", "search")

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern
        self.search = pattern.search

    def matches(self, text: str) -> bool:
        found: bool = self._pattern.search(text) is not None
        return found


def _engine() -> Callable[[str], Any] | None:
    try:
        import re2
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False

    def compiled(pattern: str) -> Any:
        return re2.compile(pattern, options)

    return compiled


class _Engine:
    """The engine, looked for when the first pattern comes."""

    def __init__(self) -> None:
        self.found = False
        self.compile: Callable[[str], Any] | None = None

    def get(self) -> Callable[[str], Any] | None:
        if not self.found:
            self.compile = _engine()
            self.found = True
        return self.compile


_ENGINE: Final = _Engine()


@lru_cache(_CACHE)
def compile_pattern(pattern: str) -> Pattern:
    """A pattern ready to search with; PatternError with Go's text when it is none."""
    engine = _ENGINE.get()
    translated = translate(pattern, engine is None)
    if engine is None:
        return _Bounded(translated)
    try:
        return _Native(engine(pattern))
    except Exception as error:
        raise PatternError(f"error parsing regexp: {error}") from None


def pattern_of(text: str) -> Pattern:
    """A pattern given by a value."""
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise EvalError(str(error)) from None


def search(text: str, pattern: str) -> bool:
    return pattern_of(pattern).matches(text)


def find(text: str, pattern: str) -> str:
    """The first match, empty without one."""
    try:
        found = compile_pattern(pattern).search(text)
    except PatternError as error:
        raise EvalError(f"Illegal regex: {error}") from None
    return "" if found is None else cast(str, found.group())


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """All matches that do not overlap, at most `limit` when that is not negative."""
    try:
        compiled = compile_pattern(pattern)
    except PatternError as error:
        raise EvalError(f"Illegal regex: {error}") from None
    result: list[str] = []
    at, last = 0, -1
    while at <= len(text) and len(result) != limit:
        match = compiled.search(text, at)
        if match is None:
            break
        empty = match.end() == at
        # An empty match right after the one before is left out.
        if not (empty and match.start() == last):
            result.append(match.group())
        at = last = match.end()
        at += empty
    return result
