"""Whether a pattern matches, in time linear in the text: for patterns that Python's engine could take forever on.

The parsed pattern becomes a nondeterministic automaton; a search steps through sets of its states, and remembers the
steps it has made (a deterministic automaton, made where texts go). It knows no groups and no places, only yes or no.
"""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found,unused-ignore]
import re._parser as sre_parser  # type: ignore[import-not-found,unused-ignore]
from collections.abc import Callable
from typing import Any, Final

_MOST_STATES: Final = 20_000
#: Steps remembered; beyond that all are forgotten.
_MOST_STEPS: Final = 20_000
_REPEATS: Final = (sre.MAX_REPEAT, sre.MIN_REPEAT)
#: What stands before a place.
_START, _LINE, _WORD, _OTHER = range(4)

Test = Callable[[str], bool]


class TooLargeError(Exception):
    """A pattern with more states than are good."""


class _Step:
    """A set of states reached at one place, and where characters lead from there."""

    __slots__ = ("before", "next", "states")

    def __init__(self, states: frozenset[int], before: int) -> None:
        self.states = states
        self.before = before
        self.next: dict[str, _Step | bool] = {}


class Automaton:
    """A pattern in Python's syntax, compiled with `re.ASCII`. TooLargeError when it has too many states."""

    def __init__(self, text: str) -> None:
        self._tests: list[Test | None] = []
        """For each state that takes a character what it takes."""
        self._ways: list[list[tuple[Any, int]]] = []
        """Where a state leads without taking one: (what must hold there, state)."""
        parsed = sre_parser.parse(text, re.ASCII)
        self._end = self._state()
        self._first = self._sequence(parsed, parsed.state.flags, self._end)
        self._steps: dict[tuple[frozenset[int], int], _Step] = {}
        self._made = 0

    def search(self, text: str) -> bool:
        """Whether there is a match anywhere in a text."""
        step = self._step(frozenset(), _START)
        for character in text:
            found = step.next.get(character)
            if found is None:
                found = self._advance(step, character)
            if found is True:
                return True
            step = found  # type: ignore[assignment]
        found = step.next.get("")
        if found is None:
            found = step.next[""] = self._end in self._reach(step, "")
        return bool(found)

    # Searching

    def _step(self, states: frozenset[int], before: int) -> _Step:
        key = (states, before)
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = _Step(states, before)
        return step

    def _advance(self, step: _Step, character: str) -> _Step | bool:
        self._made += 1
        if self._made > _MOST_STEPS:
            self._steps.clear()
            self._made = 0
            step = self._step(step.states, step.before)
        reached = self._reach(step, character)
        if self._end in reached:
            step.next[character] = True
            return True
        following = set()
        for state in reached:
            test = self._tests[state]
            if test is not None and test(character):
                following.add(state + 1)
        before = _LINE if character == "\n" else _WORD if _is_word(character) else _OTHER
        found = step.next[character] = self._step(frozenset(following), before)
        return found

    def _reach(self, step: _Step, character: str) -> set[int]:
        """All states that are reached before the next character (empty at the end)."""
        reached: set[int] = set()
        pending = [*step.states, self._first]
        while pending:
            state = pending.pop()
            if state in reached:
                continue
            reached.add(state)
            for condition, target in self._ways[state]:
                if condition is None or _holds(condition, step.before, character):
                    pending.append(target)
        return reached

    # Building. A state that takes a character is followed by the one it leads to.

    def _state(self, test: Test | None = None) -> int:
        if len(self._tests) >= _MOST_STATES:
            raise TooLargeError
        self._tests.append(test)
        self._ways.append([])
        return len(self._tests) - 1

    def _taking(self, test: Test, then: int) -> int:
        state = self._state(test)
        after = self._state()
        self._ways[after].append((None, then))
        return state

    def _sequence(self, items: Any, flags: int, then: int) -> int:
        """The first state of a sequence that goes on with `then`."""
        for operator, argument in reversed(list(items)):
            then = self._item(operator, argument, flags, then)
        return then

    def _item(self, operator: Any, argument: Any, flags: int, then: int) -> int:
        if operator in _REPEATS:
            low, high, body = argument
            return self._repeat(low, high, body, flags, then)
        if operator is sre.SUBPATTERN:
            _, added, removed, body = argument
            return self._sequence(body, (flags | added) & ~removed, then)
        if operator is sre.BRANCH:
            state = self._state()
            for branch in argument[1]:
                self._ways[state].append((None, self._sequence(branch, flags, then)))
            return state
        if operator is sre.AT:
            state = self._state()
            line = flags & re.MULTILINE and argument in (sre.AT_BEGINNING, sre.AT_END)
            self._ways[state].append(((argument, bool(line)), then))
            return state
        return self._taking(_test(operator, argument, flags), then)

    def _repeat(self, low: int, high: int, body: Any, flags: int, then: int) -> int:
        if high == sre.MAXREPEAT:
            loop = self._state()
            self._ways[loop].append((None, then))
            self._ways[loop].append((None, self._sequence(body, flags, loop)))
            first = loop
        else:
            first = then
            for _ in range(high - low):
                inner = self._sequence(body, flags, first)
                state = self._state()
                self._ways[state] += [(None, inner), (None, then)]
                first = state
        for _ in range(low):
            first = self._sequence(body, flags, first)
        return first


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


def _holds(condition: tuple[Any, bool], before: int, character: str) -> bool:
    where, lines = condition
    if where in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
        return before == _START or (lines and before == _LINE)
    if where in (sre.AT_END, sre.AT_END_STRING):
        return character == "" or (lines and character == "\n")
    boundary = (before == _WORD) != (character != "" and _is_word(character))
    return boundary == (where is sre.AT_BOUNDARY)


_CATEGORIES: Final[dict[Any, Test]] = {
    sre.CATEGORY_DIGIT: lambda character: "0" <= character <= "9",
    sre.CATEGORY_SPACE: lambda character: character in " \t\n\r\f\v",
    sre.CATEGORY_WORD: _is_word,
}
_NEGATED: Final = {
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_SPACE: sre.CATEGORY_SPACE,
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
}


def _test(operator: Any, argument: Any, flags: int) -> Test:
    """What a state takes."""
    if operator is sre.ANY:
        return (lambda character: True) if flags & re.DOTALL else (lambda character: character != "\n")
    if operator is sre.IN:
        test = _set(argument)
    elif operator is sre.LITERAL:
        test = _set([(sre.LITERAL, argument)])
    elif operator is sre.NOT_LITERAL:
        test = _set([(sre.NEGATE, None), (sre.LITERAL, argument)])
    else:
        raise TooLargeError
    return _any_case(operator, argument, test) if flags & re.IGNORECASE else test


def _any_case(operator: Any, argument: Any, test: Test) -> Test:
    negated = operator is sre.NOT_LITERAL or (operator is sre.IN and argument[0][0] is sre.NEGATE)

    def either(character: str) -> bool:
        found = (test(character), test(character.swapcase() if character.isascii() else character))
        return all(found) if negated else any(found)

    return either


def _set(members: Any) -> Test:
    negated = bool(members) and members[0][0] is sre.NEGATE
    singles: set[str] = set()
    ranges: list[tuple[str, str]] = []
    tests: list[Test] = []
    for operator, argument in members[negated:]:
        if operator is sre.LITERAL:
            singles.add(chr(argument))
        elif operator is sre.RANGE:
            ranges.append((chr(argument[0]), chr(argument[1])))
        elif argument in _NEGATED:
            tests.append(_not(_CATEGORIES[_NEGATED[argument]]))
        else:
            tests.append(_CATEGORIES[argument])

    def test(character: str) -> bool:
        found = (
            character in singles
            or any(low <= character <= high for low, high in ranges)
            or any(inner(character) for inner in tests)
        )
        return found != negated

    return test


def _not(test: Test) -> Test:
    return lambda character: not test(character)
