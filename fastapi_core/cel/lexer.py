"""Characters to tokens; what is no token is reported and left out, as the reference's lexer does."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from fastapi_core.cel.errors import Issue


class Token(NamedTuple):
    """`kind` is the text of an operator or keyword, or the name of a class of tokens; `offset` in characters."""

    kind: str
    text: str
    offset: int


EOF: Final = "<EOF>"
INT: Final = "NUM_INT"
UINT: Final = "NUM_UINT"
FLOAT: Final = "NUM_FLOAT"
STRING: Final = "STRING"
BYTES: Final = "BYTES"
IDENT: Final = "IDENTIFIER"
ESCAPED: Final = "ESC_IDENTIFIER"

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_TEXT: Final = (
    rf'"""(?:{_ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
    r'|[rR]"""(?:.|\n)*?"""'
    r"|[rR]'''(?:.|\n)*?'''"
    r'|[rR]"[^"\n\r]*"'
    r"|[rR]'[^'\n\r]*'"
)
_TOKEN: Final = re.compile(
    r"(?P<SPACE>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<BYTES>[bB](?:{_TEXT}))"
    rf"|(?P<STRING>{_TEXT})"
    r"|(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])"
    r"|(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<OPERATOR>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])"
)
_KEYWORDS: Final = frozenset(("in", "true", "false", "null"))
_PART: Final = r"(?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?)?"
#: What a text that is not closed, or has a bad escape, takes with it before the lexer gives up.
_BROKEN: Final = re.compile(
    rf'[bB]?[rR]?(?:"(?:{_ESCAPE}|[^\\"\n\r])*{_PART}.?|\'(?:{_ESCAPE}|[^\\\'\n\r])*{_PART}.?)'
    r"|[|&=].?|`[A-Za-z0-9_.\-/ ]*.?|.",
    re.DOTALL,
)


def tokenize(text: str) -> tuple[list[Token], list[Issue]]:
    """The tokens, closed by one of kind `EOF`, and what could not be read."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    offset = 0
    match_at = _TOKEN.match
    end = len(text)
    while offset < end:
        match = match_at(text, offset)
        if match is None:
            offset = _skip(text, offset, issues)
            continue
        kind = match.lastgroup or ""
        word = match.group()
        if (kind == "IDENTIFIER" and word in _KEYWORDS) or kind == "OPERATOR":
            tokens.append(Token(word, word, offset))
        elif kind != "SPACE":
            tokens.append(Token(kind, word, offset))
        offset = match.end()
    tokens.append(Token(EOF, EOF, end))
    return tokens, issues


def _skip(text: str, offset: int, issues: list[Issue]) -> int:
    match = _BROKEN.match(text, offset)
    end = match.end() if match is not None else offset + 1
    shown = text[offset:end].replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    issues.append(Issue(f"Syntax error: token recognition error at: '{shown}'", offset))
    return end
