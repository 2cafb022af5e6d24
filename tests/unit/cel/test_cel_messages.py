"""What is said about expressions that are refused."""

from __future__ import annotations

import pytest

from fastapi_core import cel
from fastapi_core.cel.decls import INT_DECL, STRING_DECL, list_decl, object_decl
from fastapi_core.cel.types import BOOL, DYN, STRING

OBJECT = object_decl("selfType", {"n": INT_DECL, "s": STRING_DECL, "l": list_decl(STRING_DECL)})
ENVIRONMENT = cel.Environment({"self": OBJECT, "d": DYN})
EXPRESSION = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
IN_MAP = (
    "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES,"
    " IDENTIFIER}"
)
IN_MESSAGE = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"

#: Expression -> (line, column, message) of every finding.
FINDINGS: dict[str, list[tuple[int, int, str]]] = {
    "Bad_!@ x": [
        (1, 5, "Syntax error: mismatched input '!' expecting <EOF>"),
        (1, 6, "Syntax error: token recognition error at: '@'"),
    ],
    "object.": [(1, 8, "Syntax error: no viable alternative at input '.'")],
    "1 + $": [
        (1, 5, "Syntax error: token recognition error at: '$'"),
        (1, 6, f"Syntax error: mismatched input '<EOF>' expecting {EXPRESSION}"),
    ],
    "1 + +": [
        (1, 5, f"Syntax error: mismatched input '+' expecting {EXPRESSION}"),
        (1, 6, f"Syntax error: mismatched input '<EOF>' expecting {EXPRESSION}"),
    ],
    "*@a | b": [
        (1, 1, f"Syntax error: extraneous input '*' expecting {EXPRESSION}"),
        (1, 2, "Syntax error: token recognition error at: '@'"),
        (1, 5, "Syntax error: token recognition error at: '| '"),
        (1, 7, "Syntax error: extraneous input 'b' expecting <EOF>"),
    ],
    "{": [(1, 2, f"Syntax error: mismatched input '<EOF>' expecting {IN_MAP}")],
    "TestAllTypes(){}": [(1, 15, "Syntax error: mismatched input '{' expecting <EOF>")],
    "TestAllTypes{}()": [(1, 15, "Syntax error: mismatched input '(' expecting <EOF>")],
    "1 + 2\n3 +": [(2, 1, "Syntax error: mismatched input '3' expecting <EOF>")],
    '{"a": 1}."a"': [(1, 10, "Syntax error: no viable alternative at input '.\"a\"'")],
    '"\\xFh"': [
        (1, 1, "Syntax error: token recognition error at: '\"\\xFh'"),
        (1, 6, "Syntax error: token recognition error at: '\"'"),
        (1, 7, f"Syntax error: mismatched input '<EOF>' expecting {EXPRESSION}"),
    ],
    "in": [
        (1, 1, f"Syntax error: mismatched input 'in' expecting {EXPRESSION}"),
        (1, 3, f"Syntax error: mismatched input '<EOF>' expecting {EXPRESSION}"),
    ],
    "if": [(1, 1, "reserved identifier: if")],
    "func{{a}}": [
        (1, 6, f"Syntax error: extraneous input '{{' expecting {IN_MESSAGE}"),
        (1, 8, "Syntax error: mismatched input '}' expecting ':'"),
        (1, 9, "Syntax error: extraneous input '}' expecting <EOF>"),
    ],
    "msg{:a}": [
        (1, 5, f"Syntax error: extraneous input ':' expecting {IN_MESSAGE}"),
        (1, 7, "Syntax error: mismatched input '}' expecting ':'"),
    ],
    "{:a}": [
        (1, 2, f"Syntax error: extraneous input ':' expecting {IN_MAP}"),
        (1, 4, "Syntax error: mismatched input '}' expecting ':'"),
    ],
    "ind[a{b}]": [(1, 8, "Syntax error: mismatched input '}' expecting ':'")],
    "--": [
        (1, 3, "Syntax error: no viable alternative at input '-'"),
        (1, 3, f"Syntax error: mismatched input '<EOF>' expecting {EXPRESSION}"),
    ],
    "?": [
        (1, 1, f"Syntax error: mismatched input '?' expecting {EXPRESSION}"),
        (1, 2, f"Syntax error: mismatched input '<EOF>' expecting {EXPRESSION}"),
    ],
    "has(self": [
        (1, 5, "invalid argument to has() macro"),
        (1, 9, "Syntax error: missing ')' at '<EOF>'"),
    ],
    "a.true": [(1, 3, "Syntax error: mismatched input 'true' expecting IDENTIFIER")],
    "9223372036854775808": [(1, 1, "invalid int literal")],
    "0xFFFFFFFFFFFFFFFFFu": [(1, 1, "invalid uint literal")],
    "1.99e90000009": [(1, 1, "invalid double literal")],
    "[1].map(1 + 1, true)": [(1, 11, "argument is not an identifier")],
    "[1].all(1, true)": [(1, 9, "argument must be a simple name")],
    "[1].all(__result__, true)": [(1, 9, "iteration variable overwrites accumulator variable")],
    "[1].all(a, a, true)": [(1, 12, "duplicate variable name: a")],
    "zz": [(1, 1, "undeclared reference to 'zz' (in container '')")],
    "self.zz": [(1, 5, "undefined field 'zz'")],
    "self.n.zz": [(1, 7, "type 'int' does not support field selection")],
    "self.n.foo()": [(1, 11, "undeclared reference to 'foo' (in container '')")],
    "foo(1)": [(1, 4, "undeclared reference to 'foo' (in container '')")],
    "Foo{}": [(1, 4, "undeclared reference to 'Foo' (in container '')")],
    "int{}": [(1, 4, "'int' is not a message type")],
    "1 + 'a'": [(1, 3, "found no matching overload for '_+_' applied to '(int, string)'")],
    "self.s.startsWith(1)": [(1, 18, "found no matching overload for 'startsWith' applied to 'string.(int)'")],
    "size(1)": [(1, 5, "found no matching overload for 'size' applied to '(int)'")],
    "self.n && true": [(1, 5, "expected type 'bool' but found 'int'")],
    "self.n.all(x, x)": [
        (1, 5, "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)")
    ],
    "self.l.all(x, 1)": [(1, 15, "expected type 'bool' but found 'int'")],
    "[1, 'a']": [(1, 5, "expected type 'int' but found 'string'")],
    "{'a': 1, 2: 'b'}": [
        (1, 10, "expected type 'string' but found 'int'"),
        (1, 13, "expected type 'int' but found 'string'"),
    ],
    "[?1]": [(1, 3, "expected type 'optional_type(int)' but found 'int'")],
    "self == 1": [(1, 6, "found no matching overload for '_==_' applied to '(selfType, int)'")],
    "duration('x')": [(1, 10, "invalid duration argument")],
    "timestamp('x')": [(1, 11, "invalid timestamp argument")],
    "self.s.matches('(')": [(1, 16, "invalid matches argument")],
    "'%d'.format(['a'])": [
        (1, 14, "error during formatting: decimal clause can only be used on integers, was given string")
    ],
    "'%s'.format([])": [(1, 12, "index 0 out of range")],
    "'a'.format([1])": [(1, 11, "too many arguments supplied to string.format (expected 0, got 1)")],
    "aa + bb": [
        (1, 1, "undeclared reference to 'aa' (in container '')"),
        (1, 6, "undeclared reference to 'bb' (in container '')"),
    ],
    "cel.bind(x, 1, x)": [
        (1, 1, "undeclared reference to 'cel' (in container '')"),
        (1, 9, "undeclared reference to 'bind' (in container '')"),
        (1, 10, "undeclared reference to 'x' (in container '')"),
        (1, 16, "undeclared reference to 'x' (in container '')"),
    ],
}


def shown(text: str, findings: list[tuple[int, int, str]]) -> str:
    lines = text.split("\n")
    return "\n".join(
        f"ERROR: <input>:{line}:{column}: {message}\n | {lines[line - 1]}\n | {'.' * (column - 1)}^"
        for line, column, message in findings
    )


def refused(text: str) -> str:
    with pytest.raises(cel.CompileError) as failure:
        cel.compile_expression(text, ENVIRONMENT)
    return str(failure.value)


@pytest.mark.parametrize("text", FINDINGS)
def test_findings(text: str) -> None:
    assert refused(text) == shown(text, FINDINGS[text])


def test_nothing_at_all_has_no_line_to_show() -> None:
    assert refused("") == f"ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {EXPRESSION}"


def test_wide_characters_get_wide_marks() -> None:
    assert refused("'\U0001f600' + zz").endswith("\n | .\uff0e....^")


def test_a_tab_is_shown_as_a_space() -> None:
    assert "\n |  zz\n | .^" in refused("\tzz")


def test_too_long_or_too_deep() -> None:
    assert refused("a" * 100_001) == (
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    )
    assert refused("(" * 2000 + "1" + ")" * 2000) == "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"
    assert refused("1" + "+1" * 300) == "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"


def test_more_than_a_hundred_findings_are_counted() -> None:
    text = refused("[" + ", ".join(f"u{number}" for number in range(120)) + "]")
    assert text.endswith("\n20 more errors were truncated")
    assert text.count("ERROR") == 100


def test_output_types() -> None:
    with pytest.raises(cel.OutputTypeError, match=r"^must evaluate to bool but got int$"):
        cel.compile_expression("self.n", ENVIRONMENT, [BOOL])
    with pytest.raises(cel.OutputTypeError, match=r"^must evaluate to one of \[bool string\] but got dyn$"):
        cel.compile_expression("d", ENVIRONMENT, [BOOL, STRING])
    assert cel.compile_expression("self.n > 1", ENVIRONMENT, [BOOL]).type == BOOL
