"""Regular expressions in the syntax of RE2.

With the package `google-re2` installed (extra `re2`) it does the matching, in linear time. Without it a pattern is
translated to Python's syntax. Whether one that could backtrack beyond measure matches is found out by an automaton of
our own, slower but linear; where it matches is only looked for in texts short enough.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.regex_translate import PatternError, Translated, translate

if TYPE_CHECKING:
    from fastapi_core.cel.regex_linear import Automaton

_CACHE: Final = 512
#: Steps a backtracking search may take at the worst, reckoned from the text's length and the pattern's degree.
_STEP_LIMIT: Final = 20_000_000
#: As many it may take before the automaton, which is slower by character, is asked instead.
_PATIENCE: Final = 100_000


class Pattern(Protocol):
    """What is needed of a compiled pattern, of either engine."""

    def search(self, text: str) -> Any: ...

    def finditer(self, text: str) -> Any: ...


class _Bounded:
    """A pattern of Python's engine that refuses texts on which it could take too long."""

    __slots__ = ("_automaton", "_degree", "_pattern")

    def __init__(self, translated: Translated) -> None:
        self._pattern = translated.pattern
        self._degree = translated.degree
        self._automaton: Automaton | None = None

    def _steps(self, text: str) -> int:
        if self._degree < 0:
            return int(2 ** min(len(text), 64))
        return int(max(len(text), 1) ** (self._degree + 1))

    def _check(self, text: str) -> None:
        if self._steps(text) > _STEP_LIMIT:
            raise EvalError("regular expression is too expensive for the text")

    def test(self, text: str) -> bool:
        """Whether there is a match."""
        if self._steps(text) <= _PATIENCE:
            return self._pattern.search(text) is not None
        from fastapi_core.cel.regex_linear import Automaton, TooLargeError

        if self._automaton is None:
            try:
                self._automaton = Automaton(self._pattern.pattern)
            except TooLargeError:
                return self.search(text) is not None
        return self._automaton.search(text)

    def search(self, text: str) -> Any:
        self._check(text)
        return self._pattern.search(text)

    def finditer(self, text: str) -> Any:
        self._check(text)
        return self._pattern.finditer(text)


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
        return cast(Pattern, engine(pattern))
    except Exception as error:
        raise PatternError(f"error parsing regexp: {error}") from None


def pattern_of(text: str) -> Pattern:
    """A pattern given by a value."""
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise EvalError(str(error)) from None


def search(text: str, pattern: str) -> bool:
    """Whether a pattern matches anywhere in a text."""
    return tester(pattern_of(pattern))(text)


def tester(pattern: Pattern) -> Callable[[str], bool]:
    """The function that says whether a compiled pattern matches."""
    return pattern.test if isinstance(pattern, _Bounded) else lambda text: pattern.search(text) is not None


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
    last = -1
    for match in compiled.finditer(text):
        if limit >= 0 and len(result) >= limit:
            break
        # Go leaves out an empty match right after the one before.
        if match.end() == match.start() == last:
            continue
        result.append(match.group())
        last = match.end()
    return result
