"""Why a text is not JSON, in the words of Go's decoder. Only used once a fast decoder has refused the text."""

from __future__ import annotations

from typing import Final

END: Final = "unexpected end of JSON input"
_SPACE: Final = " \t\r\n"
_LITERALS: Final = ("true", "false", "null")


class _SyntaxError(Exception):
    """The text of the first fault."""


def explain(text: str) -> str:
    """The complaint about the first fault of a text, empty when there is none."""
    try:
        at = _value(text, _space(text, 0), "looking for beginning of value", 0)
        at = _space(text, at)
        if at < len(text):
            raise _bad(text, at, "after top-level value")
    except _SyntaxError as fault:
        return str(fault)
    except RecursionError:
        return "exceeded max depth"
    return ""


def _bad(text: str, at: int, context: str) -> _SyntaxError:
    if at >= len(text):
        return _SyntaxError(END)
    return _SyntaxError(f"invalid character {_quoted(text[at])} {context}")


def _quoted(char: str) -> str:
    """A character as Go quotes the first byte of it in these messages."""
    if char == "'":
        return r"'\''"
    if char == '"':
        return "'\"'"
    code = ord(char)
    if code >= 0x80:
        code = char.encode("utf-8", "replace")[0]
        return f"'{chr(code)}'" if chr(code).isprintable() else f"'\\u{code:04x}'"
    names = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\\": "\\\\"}
    if char in names:
        return f"'{names[char]}'"
    return f"'{char}'" if char.isprintable() else f"'\\x{code:02x}'"


def _space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _value(text: str, at: int, context: str, depth: int) -> int:
    if at >= len(text):
        raise _SyntaxError(END)
    char = text[at]
    if char == "{":
        return _object(text, at + 1, depth + 1)
    if char == "[":
        return _array(text, at + 1, depth + 1)
    if char == '"':
        return _string(text, at + 1)
    if char in "-0123456789":
        return _number(text, at)
    for literal in _LITERALS:
        if char == literal[0]:
            return _literal(text, at, literal)
    raise _bad(text, at, context)


def _literal(text: str, at: int, literal: str) -> int:
    for i, wanted in enumerate(literal):
        if at + i >= len(text) or text[at + i] != wanted:
            raise _bad(text, at + i, f"in literal {literal} (expecting '{wanted}')")
    return at + len(literal)


def _object(text: str, at: int, depth: int) -> int:
    at = _space(text, at)
    if at < len(text) and text[at] == "}":
        return at + 1
    while True:
        if at >= len(text) or text[at] != '"':
            raise _bad(text, at, "looking for beginning of object key string")
        at = _space(text, _string(text, at + 1))
        if at >= len(text) or text[at] != ":":
            raise _bad(text, at, "after object key")
        at = _value(text, _space(text, at + 1), "looking for beginning of value", depth)
        at = _space(text, at)
        if at < len(text) and text[at] == "}":
            return at + 1
        if at >= len(text) or text[at] != ",":
            raise _bad(text, at, "after object key:value pair")
        at = _space(text, at + 1)


def _array(text: str, at: int, depth: int) -> int:
    at = _space(text, at)
    if at < len(text) and text[at] == "]":
        return at + 1
    while True:
        at = _space(text, _value(text, at, "looking for beginning of value", depth))
        if at < len(text) and text[at] == "]":
            return at + 1
        if at >= len(text) or text[at] != ",":
            raise _bad(text, at, "after array element")
        at = _space(text, at + 1)


def _string(text: str, at: int) -> int:
    while at < len(text):
        char = text[at]
        if char == '"':
            return at + 1
        if char < " ":
            raise _bad(text, at, "in string literal")
        at += 1
        if char == "\\":
            if at < len(text) and text[at] == "u":
                for i in range(1, 5):
                    if at + i >= len(text) or text[at + i] not in "0123456789abcdefABCDEF":
                        raise _bad(text, at + i, "in \\u hexadecimal character escape")
                at += 4
            elif at >= len(text) or text[at] not in '"\\/bfnrt':
                raise _bad(text, at, "in string escape code")
            at += 1
    raise _SyntaxError(END)


def _digits(text: str, at: int) -> int:
    while at < len(text) and text[at] in "0123456789":
        at += 1
    return at


def _number(text: str, at: int) -> int:
    if text[at] == "-":
        at += 1
        if at >= len(text) or text[at] not in "0123456789":
            raise _bad(text, at, "in numeric literal")
    at = at + 1 if text[at] == "0" else _digits(text, at)
    if at < len(text) and text[at] == ".":
        at += 1
        if at >= len(text) or text[at] not in "0123456789":
            raise _bad(text, at, "after decimal point in numeric literal")
        at = _digits(text, at)
    if at < len(text) and text[at] in "eE":
        at += 1
        if at < len(text) and text[at] in "+-":
            at += 1
        if at >= len(text) or text[at] not in "0123456789":
            raise _bad(text, at, "in exponent of numeric literal")
        at = _digits(text, at)
    return at
