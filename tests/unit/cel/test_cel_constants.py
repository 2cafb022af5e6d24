"""Constants that make no program, and values whose spelling the reference keeps."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core import cel
from fastapi_core.cel.decls import INT_DECL, STRING_DECL, list_decl, object_decl
from fastapi_core.cel.errors import InstantiationError
from fastapi_core.cel.rules import compile_rules
from fastapi_core.cel.schemas import from_schema

OBJECT = object_decl("selfType", {"n": INT_DECL, "s": STRING_DECL, "l": list_decl(STRING_DECL)})
ENVIRONMENT = cel.Environment({"self": OBJECT})


def evaluate(text: str) -> Any:
    return cel.compile_expression(text, ENVIRONMENT).evaluate({"self": {"n": 3, "s": "x", "l": ["a"]}})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("true || int('a') == 1", "type conversion error from 'string' to 'int'"),
        ("int(string(b'a')) == 1", "type conversion error from 'string' to 'int'"),
        ("self.l.all(x, bool('yes'))", "type conversion error from 'string' to 'bool'"),
        ("uint(-1) == 1u", "unsigned integer overflow"),
        ("self.s.find('[') == ''", "error parsing regexp: missing closing ]: `[`"),
    ],
)
def test_constants_that_cannot_be_converted_are_told_when_the_program_is_made(text: str, reason: str) -> None:
    with pytest.raises(InstantiationError) as failure:
        cel.compile_expression(text, ENVIRONMENT)
    assert failure.value.told == f"program instantiation failed: {reason}"


def test_a_rule_tells_the_step() -> None:
    schema = {
        "type": "object",
        "x-kubernetes-validations": [
            {"rule": "int('a') == 1"},
            {"rule": "true", "messageExpression": "string(int('a'))"},
        ],
    }
    decl = from_schema(schema, root=True)
    assert decl is not None
    first, second = compile_rules(schema, decl).rules
    reason = "instantiation failed: type conversion error from 'string' to 'int'"
    assert (first.error, second.message_error) == (f"program {reason}", f"messageExpression {reason}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("string(timestamp('2020-01-02T03:04:05-05:30'))", "2020-01-02T03:04:05-05:30"),
        ("string(timestamp('2020-01-02T03:04:05+01:00') + duration('1h'))", "2020-01-02T04:04:05+01:00"),
        ("timestamp('2020-01-02T03:04:05+01:00') == timestamp('2020-01-02T02:04:05Z')", True),
        ("timestamp('2020-01-02T03:04:05+01:00').getHours()", 2),
        ("'%.2e'.format([12345.678])", "1.234568×10⁰⁴"),
        ("{1.5: 'a'}[1.5]", "a"),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert evaluate(text) == value


def test_what_cannot_be_an_address_is_no_argument() -> None:
    with pytest.raises(cel.EvalError, match="no such overload"):
        evaluate("cidr('10.0.0.0/8').containsIP(self.s)")


def test_exists_one_has_one_spelling_with_one_variable() -> None:
    with pytest.raises(cel.CompileError, match="undeclared reference to 'existsOne'"):
        evaluate("self.l.existsOne(x, x == 'a')")
