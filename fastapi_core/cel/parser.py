"""Tokens to a syntax tree, with macros expanded.

Trees are shaped as the reference's: chains of `&&` and `||` are balanced, positions are those of the operator, the
opening bracket or the token itself. A tree is only handed out when nothing was found wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastapi_core.cel import macros
from fastapi_core.cel.errors import NOWHERE, CompileError, Issue, Source
from fastapi_core.cel.grammar import (
    DEPTH_LIMIT,
    EXPRESSION,
    OPERATORS,
    SIZE_LIMIT,
    AbortError,
    Cursor,
    MismatchError,
    show,
)
from fastapi_core.cel.lexer import BYTES, EOF, ESCAPED, FLOAT, IDENT, INT, STRING, UINT, Token
from fastapi_core.cel.literals import number, unescape
from fastapi_core.cel.names import RESERVED
from fastapi_core.cel.syntax import Call, Entry, Ident, ListNode, Literal, MapNode, Message, Node, Select

_PRECEDENCE: Final = {"<": 1, "<=": 1, ">": 1, ">=": 1, "==": 1, "!=": 1, "in": 1} | {
    "+": 2,
    "-": 2,
    "*": 3,
    "/": 3,
    "%": 3,
}
_NAMES: Final = {
    "<": "_<_",
    "<=": "_<=_",
    ">": "_>_",
    ">=": "_>=_",
    "==": "_==_",
    "!=": "_!=_",
    "in": "@in",
    "+": "_+_",
    "-": "_-_",
    "*": "_*_",
    "/": "_/_",
    "%": "_%_",
}
_IN_EXPR: Final = OPERATORS | {"?"}
_MEMBER: Final = frozenset((".", "["))
_LIST_START: Final = EXPRESSION | {"]", ",", "?"}
_MAP_START: Final = EXPRESSION | {"}", ",", "?"}
_ARGS_START: Final = EXPRESSION | {")"}
_FIELD: Final = frozenset((IDENT, ESCAPED))
_FIELD_START: Final = _FIELD | {"}", ",", "?"}
_ENDS: Final = {"(": frozenset((",", ")")), "[": frozenset((",", "]")), "{": frozenset((",", "}"))}


class Parser:
    """Parses one expression; `parse` is the way in."""

    def __init__(self, text: str, bindings: bool) -> None:
        self.source = Source(text)
        self._bindings = bindings
        self.cursor = Cursor(text)
        self._chain = {1: 0, 2: 0, 4: 0}

    def parse(self) -> Node:
        cursor = self.cursor
        node = self._error(0)
        try:
            node = self._within(frozenset((EOF,)), self._expr)
            if cursor.token.kind != EOF:
                cursor.match(EOF, frozenset())
        except (AbortError, MismatchError):
            pass
        return node

    # Rules. Each catches what fails in itself, as generated parsers do.

    def _within(self, follow: frozenset[str], rule: Callable[[], Node]) -> Node:
        self.cursor.follow.append(follow)
        try:
            return rule()
        finally:
            self.cursor.follow.pop()

    def _error(self, offset: int) -> Node:
        return Literal(offset, "<<error>>")

    def _expr(self) -> Node:
        cursor = self.cursor
        cursor.follow.append(_IN_EXPR)
        condition = self._logic()
        cursor.follow.pop()
        if cursor.token.kind != "?":
            return condition
        op = cursor.accept()
        try:
            cursor.follow.append(OPERATORS | {":"})
            first = self._logic()
            cursor.follow.pop()
            cursor.match(":", EXPRESSION)
            second = self._expr()
        except MismatchError:
            cursor.recover("expr")
            return self._error(op.offset)
        return Call(op.offset, "_?_:_", [condition, first, second])

    def _logic(self) -> Node:
        cursor = self.cursor
        alternatives: list[Node] = []
        ors: list[Token] = []
        while True:
            terms = [self._binary(1)]
            ands: list[Token] = []
            while cursor.token.kind == "&&":
                ands.append(cursor.accept())
                terms.append(self._binary(1))
            alternatives.append(_balance("_&&_", terms, ands, 0, len(ands) - 1) if ands else terms[0])
            if cursor.token.kind != "||":
                break
            ors.append(cursor.accept())
        return _balance("_||_", alternatives, ors, 0, len(ors) - 1) if ors else alternatives[0]

    def _binary(self, lowest: int) -> Node:
        cursor = self.cursor
        node = self._unary()
        start = dict(self._chain)
        while True:
            precedence = _PRECEDENCE.get(cursor.token.kind, 0)
            if precedence < lowest:
                break
            self._deeper(1 if precedence == 1 else 2)
            op = cursor.accept()
            right = self._binary(precedence + 1)
            node = Call(op.offset, _NAMES[op.kind], [node, right])
        self._chain = start
        return node

    def _deeper(self, rule: int) -> None:
        self._chain[rule] += 1
        if self._chain[rule] >= DEPTH_LIMIT:
            self.cursor.issues.append(Issue(f"expression recursion limit exceeded: {DEPTH_LIMIT}", NOWHERE))
            raise AbortError

    def _unary(self) -> Node:
        cursor = self.cursor
        try:
            if cursor.token.kind not in EXPRESSION:
                cursor.sync(EXPRESSION, "unary")
            kind = cursor.token.kind
            if kind == "!" or (kind == "-" and cursor.peek().kind not in (INT, FLOAT)):
                return self._prefixed(kind)
            return self._member()
        except MismatchError:
            cursor.recover("unary")
            return self._error(cursor.token.offset)

    def _prefixed(self, kind: str) -> Node:
        cursor = self.cursor
        first = cursor.index
        op = cursor.accept()
        count = 1
        while cursor.token.kind == kind and not (kind == "-" and cursor.peek().kind in (INT, FLOAT)):
            cursor.accept()
            count += 1
        if cursor.token.kind not in EXPRESSION:
            if kind == "-":
                self._no_operand(count)
            cursor.sync(EXPRESSION - {"-", "!"}, f"prefix{first}")
        operand = self._member()
        if count % 2 == 0:
            return operand
        return Call(op.offset, "!_" if kind == "!" else "-_", [operand])

    def _no_operand(self, count: int) -> None:
        """Signs that nothing follows; after several of them the reference complains twice."""
        cursor = self.cursor
        try:
            cursor.no_choice(cursor.index - 1)
        except MismatchError:
            if count > 1:
                wanted = show(EXPRESSION)
                shown = f"Syntax error: mismatched input '{cursor.token.text}' expecting {wanted}"
                cursor.issues.append(Issue(shown, cursor.token.offset))
            raise

    def _member(self) -> Node:
        cursor = self.cursor
        cursor.follow.append(_MEMBER)
        try:
            node = self._primary()
        finally:
            cursor.follow.pop()
        before = self._chain[4]
        while True:
            kind = cursor.token.kind
            if kind != "." and kind != "[":
                break
            self._deeper(4)
            try:
                node = self._index(node) if kind == "[" else self._dot(node)
            except MismatchError:
                cursor.recover("member")
                break
        self._chain[4] = before
        return node

    def _dot(self, operand: Node) -> Node:
        cursor = self.cursor
        start = cursor.index
        op = cursor.accept()
        optional = cursor.token.kind == "?"
        if optional:
            cursor.accept()
        if cursor.token.kind not in _FIELD:
            if optional:
                cursor.sync(_FIELD, "field")
            cursor.no_choice(start)
        name = cursor.accept()
        if not optional and name.kind == IDENT and cursor.token.kind == "(":
            opening = cursor.accept()
            args = self._arguments()
            return self._call(opening.offset, name.text, args, operand)
        return Select(op.offset, operand, self._field_name(name), optional=optional)

    def _field_name(self, token: Token) -> str:
        if token.kind != ESCAPED:
            return token.text
        self.cursor.later.append(Issue("unsupported syntax: '`'", token.offset))
        return token.text[1:-1]

    def _index(self, operand: Node) -> Node:
        cursor = self.cursor
        op = cursor.accept()
        optional = cursor.token.kind == "?"
        if optional:
            cursor.accept()
        index = self._within(frozenset(("]",)), self._expr)
        cursor.match("]", self._after())
        return Call(op.offset, "_[?_]" if optional else "_[_]", [operand, index])

    def _after(self) -> frozenset[str]:
        return self.cursor.open_follow() | _MEMBER | OPERATORS

    def _arguments(self) -> list[Node]:
        """Arguments and the closing parenthesis."""
        cursor = self.cursor
        args: list[Node] = []
        if cursor.token.kind != ")":
            cursor.sync(_ARGS_START, "arguments")
            while cursor.token.kind != ")":
                args.append(self._within(_ENDS["("], self._expr))
                if cursor.token.kind != ",":
                    break
                cursor.accept()
                if cursor.token.kind == ")":
                    args.append(self._within(_ENDS["("], self._expr))
        cursor.match(")", self._after())
        return args

    def _call(self, offset: int, function: str, args: list[Node], target: Node | None) -> Node:
        try:
            expanded = macros.expand(offset, function, target, args, self._bindings)
        except macros.MacroError as error:
            self.cursor.later.append(Issue(str(error), error.offset))
            return self._error(offset)
        return expanded if expanded is not None else Call(offset, function, args, target)

    def _primary(self) -> Node:
        cursor = self.cursor
        token = cursor.token
        try:
            match token.kind:
                case "(":
                    cursor.accept()
                    node = self._within(frozenset((")",)), self._expr)
                    cursor.match(")", self._after())
                    return node
                case "[":
                    return self._list()
                case "{":
                    return self._map()
                case "." | "IDENTIFIER":
                    return self._named()
                case _:
                    return self._literal()
        except MismatchError:
            cursor.recover("primary")
            return self._error(token.offset)

    def _named(self) -> Node:
        cursor = self.cursor
        start = cursor.index
        leading = ""
        first = cursor.token
        if first.kind == ".":
            leading = "."
            cursor.accept()
            if cursor.token.kind != IDENT:
                cursor.no_choice(start)
        ident = cursor.accept()
        if cursor.token.kind in (".", "{"):
            message = self._message(leading, ident)
            if message is not None:
                return message
        if ident.text in RESERVED:
            self.cursor.later.append(Issue(f"reserved identifier: {ident.text}", first.offset))
        if cursor.token.kind == "(":
            opening = cursor.accept()
            args = self._arguments()
            if ident.text in RESERVED:
                return self._error(first.offset)
            return self._call(opening.offset, leading + ident.text, args, None)
        if ident.text in RESERVED:
            return self._error(first.offset)
        return Ident(ident.offset, leading + ident.text)

    def _message(self, leading: str, ident: Token) -> Node | None:
        """`a.b.C{...}` when that is what comes."""
        cursor = self.cursor
        tokens = cursor.tokens
        index = cursor.index
        names = [ident.text]
        while tokens[index].kind == "." and tokens[index + 1].kind == IDENT:
            names.append(tokens[index + 1].text)
            index += 2
        if tokens[index].kind != "{":
            return None
        while cursor.index < index:
            cursor.accept()
        opening = cursor.accept()
        entries = self._fields()
        return Message(opening.offset, leading + ".".join(names), entries)

    def _fields(self) -> list[Entry]:
        cursor = self.cursor
        entries: list[Entry] = []
        if cursor.token.kind != "}":
            cursor.sync(_FIELD_START, "fields")
        while cursor.token.kind not in ("}", ","):
            try:
                optional = cursor.token.kind == "?"
                if optional:
                    cursor.accept()
                if cursor.token.kind not in _FIELD:
                    cursor.sync(_FIELD, "field name")
                name = cursor.accept()
                colon = cursor.match(":", EXPRESSION)
                value = self._within(_ENDS["{"], self._expr)
            except MismatchError:
                cursor.follow.append(_ENDS["{"])
                cursor.recover("fields")
                cursor.follow.pop()
                break
            entries.append(Entry(colon.offset, None, self._field_name(name), value, optional))
            if cursor.token.kind != "," or cursor.peek().kind == "}":
                break
            cursor.accept()
        self._close("}")
        return entries

    def _close(self, kind: str) -> None:
        cursor = self.cursor
        if cursor.token.kind == ",":
            cursor.accept()
            cursor.match(kind, self._after())
        elif cursor.token.kind == kind:
            cursor.accept()
        else:
            cursor.sync(frozenset((kind, ",")), "close")
            self._close(kind)

    def _list(self) -> Node:
        cursor = self.cursor
        opening = cursor.accept()
        elements: list[Node] = []
        optionals: set[int] = set()
        if cursor.token.kind != "]":
            cursor.sync(_LIST_START, "list")
        while cursor.token.kind not in ("]", ","):
            if cursor.token.kind == "?":
                cursor.accept()
                optionals.add(len(elements))
            elements.append(self._within(_ENDS["["], self._expr))
            if cursor.token.kind != "," or cursor.peek().kind == "]":
                break
            cursor.accept()
        self._close("]")
        return ListNode(opening.offset, elements, frozenset(optionals))

    def _map(self) -> Node:
        cursor = self.cursor
        opening = cursor.accept()
        entries: list[Entry] = []
        if cursor.token.kind != "}":
            cursor.sync(_MAP_START, "map")
        while cursor.token.kind not in ("}", ","):
            try:
                optional = cursor.token.kind == "?"
                if optional:
                    cursor.accept()
                key = self._within(frozenset((":",)) | _ENDS["{"], self._expr)
                colon = cursor.match(":", EXPRESSION)
                value = self._within(_ENDS["{"], self._expr)
            except MismatchError:
                cursor.follow.append(_ENDS["{"])
                cursor.recover("entries")
                cursor.follow.pop()
                break
            entries.append(Entry(colon.offset, key, "", value, optional))
            if cursor.token.kind != "," or cursor.peek().kind == "}":
                break
            cursor.accept()
        self._close("}")
        return MapNode(opening.offset, entries)

    def _literal(self) -> Node:
        cursor = self.cursor
        first = cursor.accept()
        token = first
        sign = ""
        if first.kind == "-":
            sign = "-"
            token = cursor.accept()
        if token.kind in (STRING, BYTES):
            return self._text(token)
        if token.kind in (INT, UINT, FLOAT):
            try:
                return Literal(first.offset, number(token.kind, sign + token.text))
            except ValueError as error:
                self.cursor.later.append(Issue(str(error), first.offset))
                return self._error(first.offset)
        return Literal(first.offset, None if token.kind == "null" else token.kind == "true")

    def _text(self, token: Token) -> Node:
        try:
            if token.kind == BYTES:
                return Literal(token.offset, unescape(token.text[1:], as_bytes=True))
            return Literal(token.offset, unescape(token.text, as_bytes=False))
        except ValueError as error:
            self.cursor.later.append(Issue(str(error), token.offset))
            return self._error(token.offset)


def _balance(function: str, terms: list[Node], ops: list[Token], low: int, high: int) -> Node:
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balance(function, terms, ops, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balance(function, terms, ops, middle + 1, high)
    return Call(ops[middle].offset, function, [left, right])


def parse(text: str, *, bindings: bool = False) -> Node:
    """The syntax tree of an expression, `bindings` with the macro `cel.bind`; CompileError when it has none."""
    if len(text) > SIZE_LIMIT:
        issue = Issue(f"expression code point size exceeds limit: size: {len(text)}, limit {SIZE_LIMIT}", NOWHERE)
        raise CompileError(Source(text), [issue])
    parser = Parser(text, bindings)
    try:
        node = parser.parse()
    except RecursionError:
        issue = Issue(f"expression recursion limit exceeded: {DEPTH_LIMIT}", NOWHERE)
        raise CompileError(parser.source, [issue]) from None
    issues = [*parser.cursor.issues, *parser.cursor.later]
    if issues:
        raise CompileError(parser.source, issues)
    return node
