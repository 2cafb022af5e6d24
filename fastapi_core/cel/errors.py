"""What can go wrong: issues found while compiling, with the place in the expression, and errors while evaluating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastapi_core.records import dataclass

#: Offset of an issue that has no place in the expression.
NOWHERE: Final = -1
#: More issues than this are only counted.
ISSUE_LIMIT: Final = 100
_SNIPPET_LIMIT: Final = 16384


class Source:
    """The text of an expression, and the lines and columns in it."""

    __slots__ = ("lines", "starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines[:-1]:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def place(self, offset: int) -> tuple[int, int]:
        """Line (from 1) and column (from 0) of an offset in characters; (-1, -1) of `NOWHERE`."""
        if offset < 0:
            return -1, -1
        if not self.text:
            return 1, -1
        line = 1
        while line < len(self.starts) and self.starts[line] <= offset:
            line += 1
        return line, offset - self.starts[line - 1]

    def show(self, message: str, offset: int) -> str:
        line, column = self.place(offset)
        result = f"ERROR: <input>:{line}:{column + 1}: {message}"
        if line < 1 or not self.text:
            return result
        snippet = self.lines[line - 1]
        if len(snippet) > _SNIPPET_LIMIT:
            return result
        snippet = snippet.replace("\t", " ")
        dots = "".join("." if ord(character) < 128 else "\uff0e" for character in snippet[:column])
        wide = column < len(snippet) and ord(snippet[column]) >= 128
        return f"{result}\n | {snippet}\n | {dots}{chr(0xFF3E) if wide else '^'}"


@dataclass(frozen=True, slots=True)
class Issue:
    """One finding; `offset` in characters or `NOWHERE`."""

    message: str
    offset: int = NOWHERE


class CompileError(Exception):
    """An expression that is refused; the text lists every finding as the reference does."""

    def __init__(self, source: Source, issues: Sequence[Issue]) -> None:
        ordered = sorted(issues[:ISSUE_LIMIT], key=lambda issue: source.place(issue.offset))
        shown = [source.show(issue.message, issue.offset) for issue in ordered]
        if len(issues) > ISSUE_LIMIT:
            shown.append(f"{len(issues) - ISSUE_LIMIT} more errors were truncated")
        super().__init__("\n".join(shown))
        self.issues = tuple(ordered)

    #: Whether the expression is sound in itself, and only making a program of it failed.
    late = False

    @property
    def told(self) -> str:
        """What those say who tell the step that failed."""
        return f"{'program instantiation' if self.late else 'compilation'} failed: {self}"


class InstantiationError(CompileError):
    """A constant that cannot be converted, or a constant pattern that is none: found when the program is made."""

    late = True

    def __init__(self, text: str) -> None:
        Exception.__init__(self, text)
        self.issues = ()


class OutputTypeError(Exception):
    """An expression of another type than its user allows; the text is the reference's."""


class EvalError(Exception):
    """An evaluation that failed; `&&` and `||` may absorb it."""


class CostError(Exception):
    """An evaluation that went over its limit; nothing absorbs it."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


NO_OVERLOAD: Final = "no such overload"


def no_overload(function: str = "") -> EvalError:
    return EvalError(f"{NO_OVERLOAD}: {function}" if function else NO_OVERLOAD)
