"""RE2 patterns to Python's: the same language written down differently, and how long a search may take."""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found,unused-ignore]
import re._parser as sre_parser  # type: ignore[import-not-found,unused-ignore]
import unicodedata
from functools import lru_cache
from typing import Any, Final

from fastapi_core.records import dataclass

_REPEAT_LIMIT: Final = 1000
_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_CATEGORIES: Final = frozenset(
    (
        *("C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No"),
        *("P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"),
    )
)
_PLAIN_ESCAPES: Final = frozenset("aftnrvdDsSwW")
_NAME: Final = re.compile(r"\w+")
_COUNT: Final = re.compile(r"\{(\d+)(,(\d*))?\}")


class PatternError(Exception):
    """A pattern that is none; the text is Go's."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


def _fail(reason: str, part: str) -> PatternError:
    return PatternError(f"error parsing regexp: {reason}: `{part}`")


@dataclass(frozen=True, slots=True)
class Translated:
    """A pattern for Python's engine; a search takes at most about len(text) ** (degree + 1) steps, -1 exponentially."""

    pattern: re.Pattern[str]
    degree: int


def translate(pattern: str, complete: bool) -> Translated:
    """The pattern in Python's syntax; PatternError when RE2 would refuse it.

    Without `complete` only what RE2's messages are known for is checked, the pattern not being used.
    """
    text = _Translator(pattern).translate()
    if not complete:
        return Translated(re.compile(""), 0)
    try:
        compiled = re.compile(text, re.ASCII)
        tree = sre_parser.parse(text, re.ASCII)
        degree = _degree(tree) if _ways(tree) <= _FEW_WAYS else -1
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"error parsing regexp: {error}") from None
    return Translated(compiled, degree)


class _Translator:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        #: For each open group how many scoped flag groups were opened inside it, and whether `$` ends lines.
        self.groups: list[tuple[int, bool]] = []
        self.scoped = 0
        self.multiline = False
        self.repeatable = False

    def translate(self) -> str:
        text = self.text
        while self.at < len(text):
            character = text[self.at]
            if character == "\\":
                self._escape()
            elif character == "[":
                self._set()
            elif character == "(":
                self._open()
            elif character == ")":
                self._close()
            elif character in "*+?":
                self._repeat(character)
            elif character == "{":
                self._count()
            else:
                self._single(character)
        if self.groups:
            raise _fail("missing closing )", text)
        self.out.append(")" * self.scoped)
        return "".join(self.out)

    def _single(self, character: str) -> None:
        if character == "$":
            self._emit("$" if self.multiline else r"\Z")
        elif character == "|":
            self._emit("|", repeatable=False)
            self._reopen()
        elif character == "^":
            self._emit("^" if self.multiline else r"\A")
        elif character in ".}]":
            self._emit(character if character == "." else "\\" + character)
        else:
            self._emit(re.escape(character))
        self.at += 1

    def _reopen(self) -> None:
        """Flags set in the middle of a group go on in the next alternative, which Python's scoped groups do already."""

    def _emit(self, text: str, *, repeatable: bool = True) -> None:
        self.out.append(text)
        self.repeatable = repeatable

    def _escape(self) -> None:
        text = self.text
        if self.at + 1 >= len(text):
            raise _fail("trailing backslash at end of expression", "")
        kind = text[self.at + 1]
        if kind == "Q":
            end = text.find("\\E", self.at + 2)
            literal = text[self.at + 2 : end if end >= 0 else len(text)]
            self._emit(re.escape(literal), repeatable=bool(literal))
            self.at = end + 2 if end >= 0 else len(text)
        elif kind in "AbBz":
            self._emit(r"\Z" if kind == "z" else "\\" + kind)
            self.at += 2
        elif kind in "pP":
            self._emit(f"[{self._category()}]")
        else:
            self._emit(self._character())

    def _character(self) -> str:
        """An escape that stands for a character or class, and past it."""
        text = self.text
        kind = text[self.at + 1]
        if kind in _PLAIN_ESCAPES:
            self.at += 2
            return "\\" + kind
        if kind == "x":
            match = re.compile(r"\\x(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{2}))").match(text, self.at)
            if match is None:
                raise _fail("invalid escape sequence", text[self.at : self.at + 2])
            code = int(match.group(1) or match.group(2), 16)
            if code > 0x10FFFF:
                raise _fail("invalid escape sequence", match.group())
            self.at = match.end()
            return re.escape(chr(code))
        octal = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})").match(text, self.at)
        if octal is not None:
            self.at = octal.end()
            return re.escape(chr(int(octal.group(1), 8)))
        if (ord(kind) < 128 and not kind.isalnum()) or kind == "_":
            self.at += 2
            return re.escape(kind)
        raise _fail("invalid escape sequence", "\\" + kind)

    def _category(self) -> str:
        text = self.text
        match = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))").match(text, self.at)
        if match is None:
            raise _fail("invalid character class range", text[self.at : self.at + 2])
        negated = (match.group(1) == "P") != (match.group(2) == "^")
        name = match.group(3) or match.group(4)
        self.at = match.end()
        if name == "Any":
            return r"\x00-\U0010FFFF"
        if name not in _CATEGORIES:
            raise _fail("invalid character class range", match.group())
        return category_ranges(name, negated)

    def _set(self) -> None:
        text = self.text
        start = self.at
        self.at += 1
        parts = ["["]
        if text[self.at : self.at + 1] == "^":
            parts.append("^")
            self.at += 1
        first = True
        while True:
            if self.at >= len(text):
                raise _fail("missing closing ]", text[start:])
            character = text[self.at]
            if character == "]" and not first:
                break
            first = False
            parts.append(self._member(character))
        self.at += 1
        parts.append("]")
        body = "".join(parts)
        try:
            re.compile(body)
        except re.error:
            found = re.search(r"(\\?.)-(\\?.)", text[start + 1 : self.at - 1])
            raise _fail("invalid character class range", found.group() if found else text[start : self.at]) from None
        self._emit(body)

    def _member(self, character: str) -> str:
        text = self.text
        if text.startswith("[:", self.at):
            end = text.find(":]", self.at)
            if end >= 0:
                return self._posix(end)
        if character == "\\":
            if self.at + 1 >= len(text):
                raise _fail("missing closing ]", text)
            if text[self.at + 1] in "pP":
                return self._category()
            return self._character()
        self.at += 1
        if character in "[&~|":
            return "\\" + character
        return character

    def _posix(self, end: int) -> str:
        name = self.text[self.at + 2 : end]
        negated = name.startswith("^")
        ranges = _CLASSES.get(name.removeprefix("^"))
        if ranges is None:
            raise _fail("invalid character class range", self.text[self.at : end + 2])
        self.at = end + 2
        return _complement(name[1:]) if negated else ranges

    def _open(self) -> None:
        text = self.text
        if not text.startswith("(?", self.at):
            self._push("(")
            self.at += 1
            return
        named = re.compile(r"\(\?P?<([^>]*)>").match(text, self.at)
        if named is not None and not text.startswith(("(?<=", "(?<!"), self.at):
            if not _NAME.fullmatch(named.group(1)):
                raise _fail("invalid named capture", named.group())
            self._push(f"(?P<{named.group(1)}>")
            self.at = named.end()
            return
        flags = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])").match(text, self.at)
        if flags is None:
            wrong = re.compile(r"\(\?[imsU-]*.?", re.DOTALL).match(text, self.at)
            raise _fail("invalid or unsupported Perl syntax", wrong.group() if wrong else text[self.at :])
        self._flags(flags.group(1), flags.group(2) or "", flags.group(3))
        self.at = flags.end()

    def _flags(self, on: str, off: str, end: str) -> None:
        before = self.multiline
        if "m" in on:
            self.multiline = True
        if "m" in off:
            self.multiline = False
        plus = on.replace("U", "")
        minus = off.replace("U", "")
        opening = f"(?{plus}{'-' + minus if minus else ''}:" if plus or minus else "(?:"
        if end == ":":
            self.groups.append((self.scoped, before))
            self.scoped = 0
            self.out.append(opening)
        else:
            self.out.append(opening)
            self.scoped += 1
        self.repeatable = False

    def _push(self, opening: str) -> None:
        self.groups.append((self.scoped, self.multiline))
        self.scoped = 0
        self.out.append(opening)
        self.repeatable = False

    def _close(self) -> None:
        if not self.groups:
            raise _fail("unexpected )", self.text)
        self.out.append(")" * self.scoped)
        self.scoped, self.multiline = self.groups.pop()
        self._emit(")")
        self.at += 1

    def _repeat(self, operator: str) -> None:
        text = self.text
        if not self.repeatable:
            raise _fail("missing argument to repetition operator", operator)
        start = self.at
        self.at += 1
        if text[self.at : self.at + 1] == "?":
            operator += "?"
            self.at += 1
        following = text[self.at : self.at + 1]
        if following and following in "*+?":
            raise _fail("invalid nested repetition operator", text[start : self.at + 1])
        self.out.append(operator)

    def _count(self) -> None:
        text = self.text
        match = _COUNT.match(text, self.at)
        if match is None:
            self._emit(r"\{")
            self.at += 1
            return
        if not self.repeatable:
            raise _fail("missing argument to repetition operator", match.group())
        low = int(match.group(1))
        high = int(match.group(3)) if match.group(3) else low
        if low > _REPEAT_LIMIT or high > _REPEAT_LIMIT or high < low:
            raise _fail("invalid repeat count", match.group())
        self.at = match.end()
        lazy = text[self.at : self.at + 1] == "?"
        self.at += lazy
        following = text[self.at : self.at + 1]
        if following and following in "*+?":
            raise _fail("invalid nested repetition operator", match.group() + following)
        self.out.append(match.group() + ("?" if lazy else ""))


def _complement(name: str) -> str:
    inside = re.compile(f"[{_CLASSES[name]}]")
    return _ranges([code for code in range(128) if not inside.match(chr(code))]) + r"\x80-\U0010FFFF"


@lru_cache(64)
def category_ranges(name: str, negated: bool) -> str:
    """The characters of a Unicode category as the inside of a set."""
    codes = [
        code
        for code in range(0x110000)
        if unicodedata.category(chr(code)).startswith(name) != negated and not 0xD800 <= code <= 0xDFFF
    ]
    return _ranges(codes)


def _ranges(codes: list[int]) -> str:
    parts: list[str] = []
    start = previous = -2
    for code in [*codes, 0x110001]:
        if code == previous + 1:
            previous = code
            continue
        if start >= 0:
            parts.append(f"\\U{start:08X}" if start == previous else f"\\U{start:08X}-\\U{previous:08X}")
        start = previous = code
    return "".join(parts)


def _degree(tree: Any) -> int:
    """How often repetitions without bound follow each other on one way; -1 when one is inside another."""
    total = 0
    for operator, argument in tree:
        inner = _operand_degree(operator, argument)
        if inner < 0:
            return -1
        total += inner
    return total


_REPEATS: Final = (sre.MAX_REPEAT, sre.MIN_REPEAT)


def _operand_degree(operator: Any, argument: Any) -> int:
    if operator in _REPEATS:
        low, high, body = argument
        inner = _degree(body)
        if inner < 0:
            return -1
        if inner and (high == sre.MAXREPEAT or high > 1):
            return -1
        if high == sre.MAXREPEAT or (high - low) * max(1, _variable(body)) > 16:
            return -1 if _variable(body) > 1 and high != low else 1
        return 0
    if operator is sre.SUBPATTERN:
        return _degree(argument[-1])
    if operator is sre.BRANCH:
        degrees = [_degree(branch) for branch in argument[1]]
        return -1 if min(degrees) < 0 else max(degrees)
    return 0


#: Ways to go through the bounded choices of a pattern (`a?`, `a|b`, `a{1,3}`) that a backtracking search may try in full.
_FEW_WAYS: Final = 256


def _ways(tree: Any) -> int:
    """In how many ways the bounded choices of a pattern combine; more than `_FEW_WAYS` is not told apart.

    They multiply where they follow each other: `(a?){99}` has two to the 99th and no repetition without bound.
    """
    total = 1
    for operator, argument in tree:
        total = min(total * _operand_ways(operator, argument), _FEW_WAYS + 1)
    return total


def _operand_ways(operator: Any, argument: Any) -> int:
    if operator is sre.SUBPATTERN:
        return _ways(argument[-1])
    if operator is sre.BRANCH:
        return sum(_ways(branch) for branch in argument[1])
    if operator not in _REPEATS:
        return 1
    low, high, body = argument
    inner = _ways(body)
    if high == sre.MAXREPEAT or high - low > 16:
        # How often it goes round is counted by the degree.
        rounds: int = inner ** min(low, 64)
        return min(rounds, _FEW_WAYS + 1)
    ways = 0
    for count in range(low, high + 1):
        ways += min(inner ** min(count, 64), _FEW_WAYS + 1)
        if ways > _FEW_WAYS:
            break
    return ways


def _variable(tree: Any) -> int:
    """More than 1 when a repetition of this could match one text in several ways."""
    for operator, argument in tree:
        if operator is sre.BRANCH or (operator in _REPEATS and argument[0] != argument[1]):
            return 2
        if operator is sre.SUBPATTERN and _variable(argument[-1]) > 1:
            return 2
    return 1
