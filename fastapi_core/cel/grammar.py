"""Error recovery of the parser: which tokens may come next, what is reported, and where parsing goes on.

Follows the default strategy of ANTLR 4, whose messages users of the reference see: one token too many is left out, one
missing is made up, anything else skips to a token that some open rule can go on with. While recovering, nothing more is
reported until a token fits again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fastapi_core.cel.errors import NOWHERE, Issue
from fastapi_core.cel.lexer import BYTES, EOF, ESCAPED, FLOAT, IDENT, INT, STRING, UINT, Token, tokenize

SIZE_LIMIT: Final = 100_000
DEPTH_LIMIT: Final = 250
_REPORT_LIMIT: Final = 100
_RECOVERY_LIMIT: Final = 30
_LOOKAHEAD_LIMIT: Final = 256

#: Tokens in the order in which sets of them are shown.
_ORDER: Final = (
    *("==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":"),
    *("+", "*", "/", "%", "true", "false", "null", FLOAT, INT, UINT, STRING, BYTES, IDENT, ESCAPED, EOF),
)
_RANK: Final = {kind: rank for rank, kind in enumerate(_ORDER)}
_CLASSES: Final = frozenset((FLOAT, INT, UINT, STRING, BYTES, IDENT, ESCAPED, EOF))

EXPRESSION: Final = frozenset(
    ("[", "{", "(", ".", "-", "!", "true", "false", "null", FLOAT, INT, UINT, STRING, BYTES, IDENT)
)
OPERATORS: Final = frozenset(("==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "+", "-", "*", "/", "%"))


class MismatchError(Exception):
    """A rule cannot go on; it has been reported."""


class AbortError(Exception):
    """Parsing stops here."""


def show(kinds: Iterable[str]) -> str:
    names = [kind if kind in _CLASSES else f"'{kind}'" for kind in sorted(kinds, key=_RANK.__getitem__)]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _quote(text: str) -> str:
    shown = text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"'{shown}'"


class Cursor:
    """The tokens of one expression, and the recovery from what does not fit."""

    def __init__(self, text: str) -> None:
        self.text = text
        #: Found by lexer and parser; `later` is what the tree gives away, which comes after these at the same place.
        self.issues: list[Issue] = []
        self.later: list[Issue] = []
        self.tokens: list[Token]
        self.tokens, self.issues = tokenize(text)
        self.index = 0
        self.token = self.tokens[0]
        #: What may follow each open rule.
        self.follow: list[frozenset[str]] = []
        self._recovering = False
        self._recoveries = 0
        self._last_index = -1
        self._last_sites: set[str] = set()

    def advance(self) -> Token:
        token = self.token
        if self.index < len(self.tokens) - 1:
            self.index += 1
            self.token = self.tokens[self.index]
        return token

    def peek(self) -> Token:
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def accept(self) -> Token:
        """Take the current token, known to fit."""
        self._recovering = False
        self._last_index = -1
        self._last_sites.clear()
        return self.advance()

    def report(self, message: str, token: Token) -> None:
        if self._recovering:
            return
        self._recovering = True
        if len(self.issues) >= _REPORT_LIMIT:
            self.issues.append(Issue(f"Syntax error: More than {_REPORT_LIMIT} syntax errors", token.offset))
            raise AbortError
        self.issues.append(Issue(f"Syntax error: {message}", token.offset))

    def sync(self, expected: frozenset[str], site: str) -> None:
        """Before a choice: the current token must be one of `expected`, or one too many."""
        if self._recovering and self.token.kind not in expected:
            raise MismatchError
        if self.token.kind in expected:
            return
        if self.peek().kind in expected:
            self.report(f"extraneous input {_quote(self.token.text)} expecting {show(expected)}", self.token)
            self.advance()
            self._recovering = False
            return
        self.mismatch(expected)

    def mismatch(self, expected: frozenset[str]) -> None:
        self.report(f"mismatched input {_quote(self.token.text)} expecting {show(expected)}", self.token)
        raise MismatchError

    def no_choice(self, start: int) -> None:
        """No alternative goes on from the token at index `start` to the current one."""
        last = self.token
        text = self._tokens_text(start)
        if text in (".true", ".false", ".null"):
            self.report(f"mismatched input {_quote(text[1:])} expecting {IDENT}", last)
        else:
            self.report(f"no viable alternative at input {_quote(text)}", last)
        raise MismatchError

    def _tokens_text(self, start: int) -> str:
        """The text of tokens and of the space between them, without what is no token."""
        parts: list[str] = []
        at = self.tokens[start].offset
        for token in self.tokens[start : self.index + 1]:
            parts.extend(character for character in self.text[at : token.offset] if character.isspace())
            if token.kind != EOF:
                parts.append(token.text)
            at = token.offset + len(token.text)
        return "".join(parts)

    def match(self, kind: str, after: frozenset[str]) -> Token:
        """Take a token of this kind; `after` is what may come next, should it be missing."""
        if self.token.kind == kind:
            return self.accept()
        self._count()
        if self.peek().kind == kind and self.token.kind != EOF:
            self.report(f"extraneous input {_quote(self.token.text)} expecting {show((kind,))}", self.token)
            self.advance()
            return self.accept()
        if self.token.kind in after:
            self.report(f"missing {show((kind,))} at {_quote(self.token.text)}", self.token)
            return Token(kind, "", self.token.offset)
        self.mismatch(frozenset((kind,)))
        raise MismatchError

    def recover(self, site: str) -> None:
        """Skip to a token that an open rule can go on with."""
        self._count()
        if self._last_index == self.index and site in self._last_sites:
            self.advance()
        self._last_index = self.index
        self._last_sites.add(site)
        wanted = frozenset().union(*self.follow)
        skipped = 0
        while self.token.kind != EOF and self.token.kind not in wanted:
            skipped += 1
            if skipped > _LOOKAHEAD_LIMIT:
                self.issues.append(Issue(f"error recovery token lookahead limit exceeded: {_LOOKAHEAD_LIMIT}", NOWHERE))
                raise AbortError
            self.advance()

    def _count(self) -> None:
        self._recoveries += 1
        if self._recoveries > _RECOVERY_LIMIT:
            self.issues.append(
                Issue(f"Syntax error: error recovery attempt limit exceeded: {_RECOVERY_LIMIT}", self.token.offset)
            )
            raise AbortError

    def open_follow(self) -> frozenset[str]:
        return frozenset().union(*self.follow) | {EOF}
