"""Patterns as automata: matching whose time grows with the text and no faster, whatever the pattern.

For patterns that could keep a backtracking engine busy. A search for whether there is a match walks a deterministic
automaton that is made as far as texts need it; where a match is, is found by running all ways at once in order of
preference (Pike's machine).
"""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found,unused-ignore]
import re._parser as sre_parser  # type: ignore[import-not-found,unused-ignore]
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

_SIZE_LIMIT: Final = 20_000
#: Steps of the automaton kept; beyond it starts over.
_STEPS_KEPT: Final = 20_000

_CHARACTER, _SPLIT, _ASSERT, _MATCH = range(4)
#: What comes next: the end, a newline before the end, a word character, anything else.
_END, _NEWLINE, _WORD, _OTHER = range(4)
_REPEATS: Final = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_WORD_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")

Test = Callable[[str], bool]


class TooLargeError(Exception):
    """A pattern whose repetitions make too large an automaton."""


class Found(NamedTuple):
    """Where a match is, in the manner of `re.Match`."""

    text: str
    first: int
    last: int

    def group(self) -> str:
        return self.text[self.first : self.last]

    def start(self) -> int:
        return self.first

    def end(self) -> int:
        return self.last


def _kind(text: str, at: int) -> int:
    if at >= len(text):
        return _END
    character = text[at]
    if character == "\n":
        return _NEWLINE
    return _WORD if character in _WORD_CHARACTERS else _OTHER


class Automaton:
    """A pattern in Python's syntax, as `regex_translate` writes it."""

    def __init__(self, pattern: str) -> None:
        self._code: list[tuple[int, Any, int, int]] = []
        tree = sre_parser.parse(pattern, re.ASCII)
        self._emit(tree, tree.state.flags)
        self._add(_MATCH)
        self._states: dict[frozenset[int], int] = {}
        self._members: list[frozenset[int]] = []
        self._steps: dict[tuple[int, str, int], int] = {}
        self._starts: dict[tuple[int, int], int] = {}

    # Instructions.

    def _add(self, kind: int, argument: Any = None, first: int = -1, second: int = -1) -> int:
        if len(self._code) >= _SIZE_LIMIT:
            raise TooLargeError
        self._code.append((kind, argument, first, second))
        return len(self._code) - 1

    def _patch(self, at: int, first: int, second: int = -1) -> None:
        kind, argument, _, _ = self._code[at]
        self._code[at] = (kind, argument, first, second)

    def _emit(self, tree: Any, flags: int) -> None:
        for operator, argument in tree:
            if operator in _REPEATS:
                self._repeat(argument, flags, greedy=operator is sre.MAX_REPEAT)
            elif operator is sre.SUBPATTERN:
                _, on, off, body = argument
                self._emit(body, (flags | on) & ~off)
            elif operator is sre.BRANCH:
                self._branch(argument[1], flags)
            elif operator is sre.AT:
                at = self._add(_ASSERT, (argument, bool(flags & re.MULTILINE)))
                self._patch(at, at + 1)
            else:
                at = self._add(_CHARACTER, _test(operator, argument, flags))
                self._patch(at, at + 1)

    def _branch(self, branches: list[Any], flags: int) -> None:
        ends: list[int] = []
        for branch in branches[:-1]:
            split = self._add(_SPLIT)
            self._emit(branch, flags)
            ends.append(self._add(_SPLIT))
            self._patch(split, split + 1, len(self._code))
        self._emit(branches[-1], flags)
        for end in ends:
            self._patch(end, len(self._code))

    def _repeat(self, argument: Any, flags: int, *, greedy: bool) -> None:
        low, high, body = argument
        for _ in range(low):
            self._emit(body, flags)
        if high == sre.MAXREPEAT:
            split = self._add(_SPLIT)
            self._emit(body, flags)
            self._patch(self._add(_SPLIT), split)
            self._leave(split, greedy)
            return
        splits: list[int] = []
        for _ in range(high - low):
            splits.append(self._add(_SPLIT))
            self._emit(body, flags)
        for split in splits:
            self._leave(split, greedy)

    def _leave(self, split: int, greedy: bool) -> None:
        """A choice between going into what follows the split and past what was emitted."""
        inside, past = split + 1, len(self._code)
        self._patch(split, inside if greedy else past, past if greedy else inside)

    def _closure(self, starts: Iterable[int], before: int, after: int) -> list[int]:
        """The instructions reached without reading, in order of preference."""
        seen: set[int] = set()
        result: list[int] = []
        stack = list(starts)[::-1]
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            kind, argument, first, second = self._code[at]
            if kind == _SPLIT:
                if second >= 0:
                    stack.append(second)
                stack.append(first)
            elif kind == _ASSERT:
                if _holds(argument, before, after):
                    stack.append(first)
            else:
                result.append(at)
        return result

    # Is there a match?

    def _state(self, members: list[int]) -> int:
        """The number of a set of instructions; -1 for one with a match in it."""
        if any(self._code[at][0] == _MATCH for at in members):
            return -1
        key = frozenset(members)
        known = self._states.get(key)
        if known is None:
            known = len(self._members)
            self._states[key] = known
            self._members.append(key)
        return known

    def search(self, text: str) -> Found | None:
        """Some match (not where it is); None without one."""
        state = self._state(self._closure([0], _END, _kind(text, 0)))
        steps = self._steps
        for at, character in enumerate(text, 1):
            if state < 0:
                break
            after = _kind(text, at)
            step = (state, character, after)
            following = steps.get(step)
            if following is None:
                following = self._step(state, character, after)
                if len(steps) >= _STEPS_KEPT:
                    steps.clear()
                steps[step] = following
            state = following
        return Found(text, 0, 0) if state < 0 else None

    def _step(self, state: int, character: str, after: int) -> int:
        code = self._code
        before = _kind(character, 0)
        reached = [code[at][2] for at in sorted(self._members[state]) if code[at][1](character)]
        return self._state(self._closure([*reached, 0], before, after))

    # Where is it?

    def first(self, text: str, start: int = 0) -> Found | None:
        """The leftmost match from `start` on, and of these the preferred."""
        code = self._code
        threads: list[tuple[int, int]] = []
        best: Found | None = None
        for at in range(start, len(text) + 1):
            before = _kind(text, at - 1) if at else _END
            ready = self._threads(threads if best is not None else [*threads, (0, at)], before, _kind(text, at))
            threads = []
            for where, origin in ready:
                kind, test, following, _ = code[where]
                if kind == _MATCH:
                    best = Found(text, origin, at)
                    break
                if at < len(text) and test(text[at]):
                    threads.append((following, origin))
            if best is not None and not threads:
                return best
        return best

    def _threads(self, starts: list[tuple[int, int]], before: int, after: int) -> list[tuple[int, int]]:
        seen: set[int] = set()
        ready: list[tuple[int, int]] = []
        for start, origin in starts:
            for where in self._closure([start], before, after):
                if where not in seen:
                    seen.add(where)
                    ready.append((where, origin))
        return ready


def _holds(assertion: tuple[Any, bool], before: int, after: int) -> bool:
    where, multiline = assertion
    if where in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
        return before == _END or (multiline and where is sre.AT_BEGINNING and before == _NEWLINE)
    if where in (sre.AT_END, sre.AT_END_STRING):
        return after == _END or (multiline and where is sre.AT_END and after == _NEWLINE)
    boundary = (before == _WORD) != (after == _WORD)
    return boundary if where is sre.AT_BOUNDARY else not boundary


def _test(operator: Any, argument: Any, flags: int) -> Test:
    """Whether one character fits."""
    if operator is sre.ANY:
        return (lambda character: True) if flags & re.DOTALL else (lambda character: character != "\n")
    if operator is sre.NOT_LITERAL:
        # A class of one: folded letters are all left out.
        operator, argument = sre.IN, [(sre.NEGATE, None), (sre.LITERAL, argument)]
    members = argument if operator is sre.IN else [(operator, argument)]
    negated = members[0][0] is sre.NEGATE
    tests = [_member(*member) for member in members if member[0] is not sre.NEGATE]
    fold = bool(flags & re.IGNORECASE)
    known: dict[str, bool] = {}

    def test(character: str) -> bool:
        result = known.get(character)
        if result is None:
            shapes = {character, character.lower(), character.upper()} if fold else {character}
            result = any(one(shape) for one in tests for shape in shapes) is not negated
            if len(known) < 1024:
                known[character] = result
        return result

    return test


def _member(operator: Any, argument: Any) -> Test:
    if operator is sre.LITERAL:
        wanted = chr(argument)
        return lambda character: character == wanted
    if operator is sre.RANGE:
        low, high = argument
        return lambda character: low <= ord(character) <= high
    return _CATEGORIES[argument]


_SPACES: Final = frozenset("\t\n\f\r ")
_DIGITS: Final = frozenset("0123456789")
_CATEGORIES: Final[dict[Any, Test]] = {
    sre.CATEGORY_DIGIT: _DIGITS.__contains__,
    sre.CATEGORY_NOT_DIGIT: lambda character: character not in _DIGITS,
    sre.CATEGORY_SPACE: _SPACES.__contains__,
    sre.CATEGORY_NOT_SPACE: lambda character: character not in _SPACES,
    sre.CATEGORY_WORD: _WORD_CHARACTERS.__contains__,
    sre.CATEGORY_NOT_WORD: lambda character: character not in _WORD_CHARACTERS,
}
