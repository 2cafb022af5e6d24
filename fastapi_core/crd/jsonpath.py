"""JSONPath as printer columns use it: members, quoted members, indices, slices, `*`, `..` and filters.

`parse` makes a list of steps once; `find` yields what a document has there, in order. A path that is none never finds
anything: definitions are validated elsewhere, and a table is printed whatever they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from fastapi_core.meta.patterns import Pattern

Step = Callable[[Iterable[Any]], Iterator[Any]]

_NAME = Pattern(r"(?:\\.|[^.\[\]\s{}()?@*'\"\\])+")
_ESCAPE = Pattern(r"\\(.)")
_SLICE = Pattern(r"(-?\d+)?(?::(-?\d+)?)?(?::(-?\d+)?)?")
_COMPARE = Pattern(r"\s*(==|!=|<=|>=|<|>)\s*")
_ABSENT: Final = object()


class PathError(ValueError):
    """Not a JSONPath."""


def parse(text: str) -> tuple[Step, ...]:
    """The steps of a path like `.spec.a[?(@.b=="c")].d`; braces around it are allowed. Raises PathError."""
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    return _Parser(text.removeprefix("$").removeprefix("@")).steps()


def find(steps: tuple[Step, ...], document: Any) -> Iterator[Any]:
    """Every value the path leads to."""
    found: Iterable[Any] = (document,)
    for step in steps:
        found = step(found)
    return iter(found)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def steps(self) -> tuple[Step, ...]:
        made: list[Step] = []
        while self._at < len(self._text):
            made.append(self._step())
        return tuple(made)

    def _step(self) -> Step:
        text, at = self._text, self._at
        if text.startswith("..", at):
            self._at += 2
            if text[self._at : self._at + 1] == "[":
                inner = self._bracket()
            elif text[self._at : self._at + 1] == "*":
                self._at += 1
                inner = _all
            else:
                inner = _member(self._name())
            return lambda values: inner(_below(values))
        if text[at] == ".":
            self._at += 1
            if text[self._at : self._at + 1] == "*":
                self._at += 1
                return _all
            if text[self._at : self._at + 1] == "[":
                return self._bracket()
            return _member(self._name())
        if text[at] == "[":
            return self._bracket()
        return _member(self._name())

    def _name(self) -> str:
        match = _NAME.match(self._text, self._at)
        if match is None:
            raise PathError(f"a member name is missing in {self._text!r}")
        self._at = match.end()
        return _ESCAPE.sub(r"\1", match[0])

    def _bracket(self) -> Step:
        inside = self._inside()
        if inside.startswith("?"):
            return _filter(inside[1:].strip())
        parts = [part.strip() for part in _split(inside)]
        made = [_element(part) for part in parts]
        return made[0] if len(made) == 1 else _union(made)

    def _inside(self) -> str:
        """The text between the brackets, which may be nested and contain quoted ones."""
        text, start = self._text, self._at + 1
        depth, quote, at = 1, "", start
        while at < len(text):
            char = text[at]
            if quote:
                at += char == "\\"
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char in "[]":
                depth += 1 if char == "[" else -1
                if not depth:
                    self._at = at + 1
                    return text[start:at].strip()
            at += 1
        raise PathError(f"unterminated brackets in {text!r}")


def _split(text: str) -> list[str]:
    """The parts of a union, which are divided by commas outside of quotes."""
    parts, quote, part = [], "", ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == ",":
            parts.append(part)
            part = ""
            continue
        part += char
    return [*parts, part]


def _element(text: str) -> Step:
    if text == "*":
        return _all
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return _member(_ESCAPE.sub(r"\1", text[1:-1]))
    match = _SLICE.fullmatch(text)
    if match is None or not text:
        raise PathError(f"invalid index {text!r}")
    if ":" not in text:
        return _index(int(text))
    start, stop, step = (int(part) if part else None for part in match.groups())
    return _slice(slice(start, stop, step))


def _member(name: str) -> Step:
    def step(values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            if isinstance(value, dict) and name in value:
                yield value[name]

    return step


def _all(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value


def _below(values: Iterable[Any]) -> Iterator[Any]:
    """Each value and everything in it."""
    for value in values:
        yield value
        yield from _below(_all((value,)))


def _index(number: int) -> Step:
    def step(values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            if isinstance(value, list) and -len(value) <= number < len(value):
                yield value[number]

    return step


def _slice(part: slice) -> Step:
    if part.step == 0:
        raise PathError("a slice goes on by at least one")

    def step(values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            if isinstance(value, list):
                yield from value[part]

    return step


def _union(elements: list[Step]) -> Step:
    def step(values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            for element in elements:
                yield from element((value,))

    return step


def _filter(text: str) -> Step:
    """`(@.a=="b")`, `(@.a)`: of lists the items for which it holds."""
    if not (text.startswith("(") and text.endswith(")")):
        raise PathError(f"a filter stands in parentheses: {text!r}")
    text = text[1:-1].strip()
    operator = next((match for match in _COMPARE.finditer(text) if _outside(text, match.start())), None)
    if operator is None:
        left = _operand(text)
        return _where(lambda item: left(item) is not _ABSENT)
    left, right = _operand(text[: operator.start()].strip()), _operand(text[operator.end() :].strip())
    compare = _COMPARISONS[operator[1]]
    return _where(lambda item: _compared(compare, left(item), right(item)))


def _outside(text: str, at: int) -> bool:
    """Whether a place is outside of quotes."""
    quote = ""
    for char in text[:at]:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
    return not quote


def _where(holds: Callable[[Any], bool]) -> Step:
    def step(values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            if isinstance(value, list):
                yield from (item for item in value if holds(item))

    return step


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def _compared(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    if left is _ABSENT or right is _ABSENT:
        return False
    try:
        return compare(left, right)
    except TypeError:
        return False


def _operand(text: str) -> Callable[[Any], Any]:
    if text[:1] in ("@", "$", "."):
        steps = parse(text)
        return lambda item: next(find(steps, item), _ABSENT)
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return _constant(_ESCAPE.sub(r"\1", text[1:-1]))
    if text in ("true", "false"):
        return _constant(text == "true")
    try:
        return _constant(float(text) if "." in text else int(text))
    except ValueError:
        raise PathError(f"unknown operand {text!r}") from None


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda item: value
