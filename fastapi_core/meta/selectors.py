"""Label and field selector texts to requirements.

Grammar and texts follow apimachinery's `labels` and `fields` packages: clients show the texts, and the grammar has
corners that are relied upon (`app in ()` means the empty value, `!k=v` is an error behind the key, a field's first
operator wins). Results are shared and memoised by text; whether a field is supported is the registry's business.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from fastapi_core.errors import FieldError
from fastapi_core.meta import names
from fastapi_core.meta.patterns import Pattern

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
_TOKEN = Pattern(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<> \t\r\n\0]+))\0?")
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
        if errors := names.label_key(key):
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


_INTEGER = Pattern(r"[+-]?[0-9]+")


def _checked(requirement: Requirement) -> Requirement:
    """The requirement, or the error with everything wrong with its values."""
    key, operator, values = requirement
    errors: list[FieldError] = []
    if operator in ("gt", "lt") and not _is_int64(values[0]):
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors.append(FieldError("Invalid value", "values[0]", detail, values[0]))
    for index, value in enumerate(values):
        if texts := names.label_value(value):
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


# --- fields ------------------------------------------------------------------------------------------------------

_FIELD_OPERATOR = Pattern("!=|==|=")
_SPECIAL = Pattern(r"[\\,=]")


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
        field, value = term[: match.start()], _unescape(term[match.end() :])
        if field or value:
            # An operator between nothing and nothing takes everything.
            requirements.append(FieldRequirement(field, operator, value))
    return tuple(requirements)


# --- label selectors as objects ----------------------------------------------------------------------------------

_EXPRESSIONS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def from_object(selector: dict[str, Any]) -> tuple[Requirement, ...]:
    """Requirements of a valid `metav1.LabelSelector` tree, sorted by key. KeyError for an unknown operator."""
    labels = selector.get("matchLabels") or {}
    requirements = [Requirement(key, "in", (value,)) for key, value in labels.items()]
    for expression in selector.get("matchExpressions") or ():
        operator = _EXPRESSIONS[expression["operator"]]
        requirements.append(Requirement(expression["key"], operator, tuple(sorted(expression.get("values") or ()))))
    return tuple(sorted(requirements, key=lambda requirement: requirement.key))


def format_selector(selector: dict[str, Any]) -> str:
    """A `metav1.LabelSelector` tree as text: `a=b,c in (d,e),!f`, sorted by key."""
    labels = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression["key"], _EXPRESSIONS[expression["operator"]]
        values = ",".join(sorted(expression.get("values") or ()))
        text = {"exists": key, "!": f"!{key}"}.get(operator, f"{key} {operator} ({values})")
        labels.append((key, text))
    return ",".join(text for _, text in sorted(labels, key=lambda pair: pair[0]))


_labels_memo = lru_cache(MEMO_SIZE)(_parse_labels)
_fields_memo = lru_cache(MEMO_SIZE)(_parse_fields)
