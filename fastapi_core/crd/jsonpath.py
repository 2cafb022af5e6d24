"""JSONPath as printer columns use it: members, quoted members, indices, slices, `*`, `..` and filters.

`parse` makes a list of steps once; `find` gives what a document has there, in order. What a path cannot be asked of a
document (an index out of bounds, a comparison of a number with a text) makes it find nothing at all, as in the reference:
that is a `FindError`, which `find` turns into no values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fastapi_core.meta.patterns import Pattern

Values = list[Any]
Step = Callable[[Values], Values]

_MEMBER = Pattern(r"(?:\\.|[^\\\s.,\[\]$@{}])*")
_NUMBER = Pattern(r"[+-]?[\d.]*")
_WORD = Pattern(r"[^\s.,\[\]$@{}]+")
_QUOTED = Pattern(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_KEY = Pattern(r"'([^']*)'")
_SLICE = Pattern(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_COMPARISON = Pattern(r"([^!<>=]+)([!<>=]+)(.+)")
_ESCAPE = Pattern(r"\\(.)")


class PathError(ValueError):
    """Not a JSONPath."""


class FindError(ValueError):
    """What a document does not bear; nothing is found then."""


def parse(text: str) -> tuple[Step, ...]:
    """The steps of a path like `.spec.a[?(@.b=="c")].d`; braces around it are allowed. Raises PathError."""
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    return _steps(f".{text}" if text[:1].isalpha() else text)


def find(steps: tuple[Step, ...], document: Any) -> Values:
    """Every value the path leads to."""
    found: Values = [document]
    try:
        for step in steps:
            found = step(found)
    except FindError:
        return []
    return found


def _steps(text: str) -> tuple[Step, ...]:
    return tuple(_Parser(text).steps())


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def steps(self) -> list[Step]:
        """All steps up to the end, or to a brace that closes the path before it."""
        made: list[Step] = []
        text = self._text
        while self._at < len(text) and text[self._at] != "}":
            if text[self._at] in " @$":
                self._at += 1
            else:
                self._add(made)
        return made

    def _add(self, made: list[Step]) -> None:
        text, at = self._text, self._at
        char = text[at]
        if text.startswith("[?(", at):
            made.append(self._filter())
        elif text.startswith("..", at):
            if made and made[-1] is _everything:
                raise PathError("invalid multiple recursive descent")
            self._at += 2
            made.append(_everything)
            if text[self._at : self._at + 1].isalnum() or text[self._at : self._at + 1] == "_":
                made.append(self._member())
        elif char == "[":
            made.extend(self._array())
        elif char in "'\"":
            made.append(_constant(_unquoted(self._match(_QUOTED, "unterminated quoted string"))))
        elif char == ".":
            self._at += 1
            made.append(self._member())
        elif char in "+-" or char.isdigit():
            made.append(_constant(_number(self._match(_NUMBER, "no number"))))
        elif char.isalnum() or char == "_":
            word = self._match(_WORD, "no word")
            made.append(_constant(word == "true") if word in ("true", "false") else _fails)
        else:
            raise PathError(f"unrecognized character in action: {char!r}")

    def _match(self, pattern: Any, complaint: str) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise PathError(complaint)
        self._at = match.end()
        return str(match[0])

    def _member(self) -> Step:
        name = self._match(_MEMBER, "no member")
        return _all if name == "*" else _named(name.replace("\\", ""))

    def _array(self) -> list[Step]:
        end = self._text.find("]", self._at)
        inside = self._text[self._at + 1 : end]
        if end < 0 or "\n" in inside:
            raise PathError("unterminated array")
        self._at = end + 1
        parts = inside.split(",")
        if len(parts) > 1:
            return [_union([_steps(f"[{part.strip(' ')}]") for part in parts])]
        key = _KEY.fullmatch(inside)
        if key is not None:
            return list(_steps(f".{key[1]}"))
        return [_element(":" if inside == "*" else inside)]

    def _filter(self) -> Step:
        """`[?(@.a=="b")]`, `[?(@.a)]`: a quoted text may hold what ends the filter."""
        text, start = self._text, self._at + 3
        at, quote, quoted = start, "", False
        while at < len(text):
            char = text[at]
            if char == "\n":
                break
            if char in "'\"":
                if not quote:
                    quote = char
                elif char == quote and text[at - 1] != "\\":
                    quoted = True
            elif char == ")" and bool(quote) == quoted:
                if text[at + 1 : at + 2] != "]":
                    raise PathError("unclosed array expect ]")
                self._at = at + 2
                return _where(text[start:at])
            at += 1
        raise PathError("unterminated filter")


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(r"\1", text[1:-1])


def _number(text: str) -> float:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise PathError(f"cannot parse number {text}") from None


def _constant(value: Any) -> Step:
    return lambda values: [value] * len(values)


def _fails(values: Values) -> Values:
    raise FindError("unrecognized identifier")


def _named(name: str) -> Step:
    def step(values: Values) -> Values:
        return [value[name] for value in values if type(value) is dict and name in value]

    return step


def _parts(value: Any) -> Values:
    if type(value) is dict:
        return [value[name] for name in sorted(value)]
    return list(value) if type(value) in (list, str) else []


def _all(values: Values) -> Values:
    return [part for value in values for part in _parts(value)]


def _everything(values: Values) -> Values:
    """Each value that has parts, and those of its parts that do."""
    found: Values = []
    for value in values:
        parts = _parts(value) if type(value) is not str else []
        if parts:
            found += [value, *_everything(parts)]
    return found


def _element(text: str) -> Step:
    """An index or a slice; what is out of bounds is an error."""
    match = _SLICE.fullmatch(text)
    if match is None:
        raise PathError(f"invalid array index {text}")
    try:
        first = int(match[1]) if match[1] else None
        last, step = (int(part[1:]) if part and part != ":" else None for part in (match[2], match[3]))
    except ValueError:
        raise PathError(f"array index {text} is not a number") from None
    if match[2] is None:
        return _sliced(first or 0, (first or 0) + 1, step, single=True)
    return _sliced(first or 0, last, step)


def _sliced(first: int, last: int | None, step: int | None, *, single: bool = False) -> Step:
    def run(values: Values) -> Values:
        found: Values = []
        for value in values:
            if value is None:
                continue
            if type(value) is not list:
                raise FindError("not an array")
            size = len(value)
            start = first + size if first < 0 else first
            end = size if last is None else last
            if end < 0 or (end == 0 and single):
                end += size
            if start == end:
                return found
            if not (0 <= start < size and 0 <= end <= size and start <= end) or (step is not None and step <= 0):
                raise FindError("array index out of bounds")
            found += value[start : end : step or 1]
        return found

    return run


def _union(parts: list[tuple[Step, ...]]) -> Step:
    def step(values: Values) -> Values:
        return [value for part in parts for value in _walk(part, values)]

    return step


def _walk(steps: tuple[Step, ...], values: Values) -> Values:
    for step in steps:
        values = step(values)
    return values


def _where(text: str) -> Step:
    match = _COMPARISON.fullmatch(text)
    left = _steps(text if match is None else match[1])
    right = () if match is None else _steps(match[3])
    operator = "" if match is None else match[2]

    def holds(item: Any) -> bool:
        if not operator:
            try:
                return bool(_walk(left, [item]))
            except FindError:
                return False
        found, wanted = _walk(left, [item]), _walk(right, [item])
        if not found or not wanted:
            return False
        if len(found) > 1 or len(wanted) > 1:
            raise FindError("can only compare one element at a time")
        return _compared(operator, found[0], wanted[0])

    def step(values: Values) -> Values:
        chosen: Values = []
        for value in values:
            if type(value) is not list:
                raise FindError("not an array")
            chosen += [item for item in value if holds(item)]
        return chosen

    return step


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_ORDERED: Final = frozenset((int, float, str))


def _compared(operator: str, left: Any, right: Any) -> bool:
    """Values of one type only; booleans have no order."""
    compare, kind = _COMPARISONS.get(operator), type(left)
    if compare is None or kind is not type(right):
        raise FindError("incompatible types for comparison")
    if kind not in _ORDERED and not (kind is bool and operator in ("==", "!=")):
        raise FindError("invalid type for comparison")
    return bool(compare(left, right))
