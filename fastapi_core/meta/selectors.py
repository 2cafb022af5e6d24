"""Label and field selector texts to requirements.

Grammar and texts follow apimachinery's `labels` and `fields` packages: clients show the texts, and the grammar has
corners that are relied upon (`app in ()` means the empty value, `!k=v` is an error behind the key, a field's first
operator wins). Results are shared and memoised by text; whether a field is supported is the registry's business.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from fastapi_core.errors import FieldError

#: Longer texts are parsed each time: the memo must stay small whatever clients send.
MEMO_TEXT: Final = 1024
MEMO_SIZE: Final = 2048


class SelectorError(ValueError):
    """A selector that does not parse; `str()` is the text for the client (400)."""


class Requirement(NamedTuple):
    """One label requirement in the form `Matcher` takes; operator is in, notin, exists, !, gt or lt."""

    key: str
    operator: str
    values: tuple[str, ...]


class FieldRequirement(NamedTuple):
    """One field requirement; `operator` is "=" or "!=" ("==" is "=")."""

    field: str
    operator: str
    value: str


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Requirements of a label selector sorted by key; empty for a selector that takes everything."""
    return _labels_memo(text) if len(text) <= MEMO_TEXT else _parse_labels(text)


def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """Requirements of a field selector in order of their texts; empty for a selector that takes everything."""
    return _fields_memo(text) if len(text) <= MEMO_TEXT else _parse_fields(text)


# --- labels: lexer -----------------------------------------------------------------------------------------------

_IDENTIFIER = "identifier"
_END = "end"
#: An operator, or a run of anything that is neither operator nor white space. A NUL ends what stands before it.
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<> \t\r\n\0]+))\0?")
_WORDS = frozenset({"in", "notin"})
_OPERATORS = {"in": "in", "=": "in", "==": "in", "notin": "notin", "!=": "notin", ">": "gt", "<": "lt"}


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, literal): kind is the literal for operators and words. The last one is the end."""
    tokens = []
    position = 0
    while match := _TOKEN.match(text, position):
        operator, word = match.groups()
        if operator:
            tokens.append((operator, operator))
        else:
            tokens.append((word if word in _WORDS else _IDENTIFIER, word))
        position = match.end()
    tokens.append((_END, ""))
    return tokens


# --- labels: parser ----------------------------------------------------------------------------------------------


class _Parser:
    """Recursive descent over the tokens of one selector."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def _peek(self) -> tuple[str, str]:
        """The next token where in and notin are plain words."""
        kind, literal = self._tokens[self._position]
        return (_IDENTIFIER if kind in _WORDS else kind), literal

    def _take(self) -> tuple[str, str]:
        token = self._peek()
        self._position += 1
        return token

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            kind, literal = self._peek()
            if kind == _END:
                return requirements
            if kind not in (_IDENTIFIER, "!"):
                raise SelectorError(f"found '{literal}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, literal = self._take()
            if kind == _END:
                return requirements
            if kind != ",":
                raise SelectorError(f"found '{literal}', expected: ',' or 'end of string'")
            kind, literal = self._peek()
            if kind not in (_IDENTIFIER, "!"):
                raise SelectorError(f"found '{literal}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        kind, key = self._take()
        absent = kind == "!"
        if absent:
            kind, key = self._take()
        if kind != _IDENTIFIER:
            raise SelectorError(f"found '{key}', expected: identifier")
        if errors := label_key_errors(key):
            raise SelectorError(str(FieldError("Invalid value", "<nil>", "; ".join(errors), key)))
        if absent:
            return Requirement(key, "!", ())
        if self._peek()[0] in (_END, ","):
            return Requirement(key, "exists", ())
        symbol, literal = self._tokens[self._position]
        self._position += 1
        operator = _OPERATORS.get(symbol)
        if operator is None:
            raise SelectorError(f"found '{literal}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if symbol in _WORDS else {self._value()}
        return _checked(Requirement(key, operator, tuple(sorted(values))))

    def _value(self) -> str:
        if self._peek()[0] in (_END, ","):
            return ""
        kind, literal = self._take()
        if kind != _IDENTIFIER:
            raise SelectorError(f"found '{literal}', expected: identifier")
        return literal

    def _values(self) -> set[str]:
        kind, literal = self._take()
        if kind != "(":
            raise SelectorError(f"found '{literal}' expected: '('")
        kind, literal = self._peek()
        if kind == ")":
            self._take()
            return {""}
        if kind not in (_IDENTIFIER, ","):
            raise SelectorError(f"found '{literal}', expected: ',', ')' or identifier")
        values = self._list()
        self._take()
        return values

    def _list(self) -> set[str]:
        """Values up to the closing parenthesis; nothing between two commas is the empty value."""
        values: set[str] = set()
        while True:
            kind, literal = self._take()
            if kind not in (_IDENTIFIER, ","):
                raise SelectorError(f"found '{literal}', expected: ',', or identifier")
            following, text = self._peek()
            if kind == _IDENTIFIER:
                values.add(literal)
                if following == ")":
                    return values
                if following != ",":
                    raise SelectorError(f"found '{text}', expected: ',' or ')'")
                continue
            if not values or following in (",", ")"):
                values.add("")
            if following == ")":
                return values


_INTEGER = re.compile(r"[+-]?[0-9]+")


def _checked(requirement: Requirement) -> Requirement:
    """The requirement, or the error with everything wrong with its values."""
    key, operator, values = requirement
    errors: list[FieldError] = []
    if operator in ("gt", "lt") and not _is_int64(values[0]):
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors.append(FieldError("Invalid value", "values[0]", detail, values[0]))
    for index, value in enumerate(values):
        if texts := label_value_errors(value):
            errors.append(FieldError("Invalid value", f"values[{index}][{key}]", "; ".join(texts), value))
    if not errors:
        return requirement
    texts = list(dict.fromkeys(str(error) for error in errors))
    raise SelectorError(texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]")


def _is_int64(text: str) -> bool:
    # The length first: turning a very long digit string into an integer is slow, or refused.
    return bool(_INTEGER.fullmatch(text)) and len(text.lstrip("+-0")) < 20 and -(1 << 63) <= int(text) < 1 << 63


def _parse_labels(text: str) -> tuple[Requirement, ...]:
    return tuple(sorted(_Parser(text).parse(), key=lambda requirement: requirement.key))


# --- labels: names -----------------------------------------------------------------------------------------------

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_NAME_PATTERN = re.compile(_NAME)
_SUBDOMAIN_PATTERN = re.compile(_SUBDOMAIN)
_NAME_MAX: Final = 63
_SUBDOMAIN_MAX: Final = 253
_NAME_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'({_NAME})?')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)


def label_key_errors(key: str) -> list[str]:
    """What is wrong with a label key (optional DNS prefix, slash, name); empty when nothing is."""
    errors: list[str] = []
    *prefixes, name = key.split("/")
    if len(prefixes) > 1:
        return [
            f"a valid label key {_NAME_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if prefixes:
        (prefix,) = prefixes
        if not prefix:
            errors.append("prefix part must be non-empty")
        else:
            if _size(prefix) > _SUBDOMAIN_MAX:
                errors.append(f"prefix part must be no more than {_SUBDOMAIN_MAX} bytes")
            if not _SUBDOMAIN_PATTERN.fullmatch(prefix):
                errors.append(f"prefix part {_SUBDOMAIN_TEXT}")
    if not name:
        errors.append("name part must be non-empty")
    elif _size(name) > _NAME_MAX:
        errors.append(f"name part must be no more than {_NAME_MAX} bytes")
    if not _NAME_PATTERN.fullmatch(name):
        errors.append(f"name part {_NAME_TEXT}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """What is wrong with a label value; empty when nothing is."""
    errors: list[str] = []
    if _size(value) > _NAME_MAX:
        errors.append(f"must be no more than {_NAME_MAX} bytes")
    if value and not _NAME_PATTERN.fullmatch(value):
        errors.append(_VALUE_TEXT)
    return errors


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


# --- fields ------------------------------------------------------------------------------------------------------

_FIELD_OPERATOR = re.compile("!=|==|=")
_SPECIAL = re.compile(r"[\\,=]")


def _terms(text: str) -> list[str]:
    """The parts between commas that no backslash precedes; backslashes stay."""
    terms = []
    start = 0
    escaped = False
    for index, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            terms.append(text[start:index])
            start = index + 1
    terms.append(text[start:])
    return terms


def _unescape(value: str) -> str:
    if not _SPECIAL.search(value):
        return value
    plain = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", ",", "="):
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            plain.append(escaped)
        elif character in ",=":
            # The reference prints the number of the character.
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            plain.append(character)
    return "".join(plain)


def _parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    requirements = []
    for term in sorted(_terms(text)):
        if not term:
            continue
        match = _FIELD_OPERATOR.search(term)
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        operator = "!=" if match.group() == "!=" else "="
        requirements.append(FieldRequirement(term[: match.start()], operator, _unescape(term[match.end() :])))
    return tuple(requirements)


_labels_memo = lru_cache(MEMO_SIZE)(_parse_labels)
_fields_memo = lru_cache(MEMO_SIZE)(_parse_fields)
