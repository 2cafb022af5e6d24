"""The language: values of expressions, from the specification and from what the reference does."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fastapi_core import cel
from fastapi_core.cel.decls import INT_DECL, STRING_DECL, list_decl, map_decl, object_decl
from fastapi_core.cel.errors import InstantiationError
from fastapi_core.cel.types import DYN, optional_of
from fastapi_core.cel.values import NONE, Duration, Optional, Timestamp, TypeValue, UInt

OBJECT = object_decl(
    "selfType",
    {"n": INT_DECL, "s": STRING_DECL, "l": list_decl(STRING_DECL), "m": map_decl(INT_DECL), "missing": INT_DECL},
)
ENVIRONMENT = cel.Environment({"self": OBJECT, "d": DYN, "o": optional_of(DYN), "a.b.c": DYN})
VALUES: dict[str, Any] = {
    "self": {"n": 3, "s": "text", "l": ["a", "b"], "m": {"k": 1, "z": 26}},
    "d": {"x": None, "n": 1, "f": 1.5, "s": "str", "l": [1, "a", True], "deep": {"k": {"v": 7}}, "true": 1},
    "o": NONE,
    "a.b.c": 42,
}


def evaluate(text: str) -> Any:
    return cel.compile_expression(text, ENVIRONMENT).evaluate(VALUES)


LITERALS = {
    "1": 1,
    "-1": -1,
    "0x1F": 31,
    "-0x1": -1,
    "9223372036854775807": 2**63 - 1,
    "-9223372036854775808": -(2**63),
    "18446744073709551615u": UInt(2**64 - 1),
    "1.5": 1.5,
    ".5": 0.5,
    "1e3": 1000.0,
    "-1.5e-2": -0.015,
    "true": True,
    "null": None,
    "'a'": "a",
    '"\\u00e9\\x41\\101\\n"': "\u00e9AA\n",
    r"r'\n'": "\\n",
    "'''a\n'b'''": "a\n'b",
    "b'ab\\xff'": b"ab\xff",
    "b'\\303\\277'": b"\xc3\xbf",
    "b'\u00ff'": b"\xc3\xbf",
    "[1, 2,]": [1, 2],
    "{'a': 1, 'b': 2,}": {"a": 1, "b": 2},
    "'\\U0001F600'": "\U0001f600",
    "1 // a comment\n + 1": 2,
}
OPERATORS = {
    "1 + 2 * 3": 7,
    "(1 + 2) * 3": 9,
    "7 / 2": 3,
    "-7 / 2": -3,
    "7 % -3": 1,
    "-7 % 3": -1,
    "7u / 2u": UInt(3),
    "1.0 / 0.0": math.inf,
    "-1.0 / 0.0": -math.inf,
    "'a' + 'b'": "ab",
    "[1] + [2]": [1, 2],
    "b'a' + b'b'": b"ab",
    "!true": False,
    "!!true": True,
    "--1": 1,
    "-(1)": -1,
    "1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3": True,
    "1 == 1 && 1 != 2": True,
    "'a' < 'b'": True,
    "false < true": True,
    "b'a' < b'b'": True,
    "1 < 2u && 1u < 1.5 && 1 < 1.5": True,
    "dyn(1) == 1.0 && dyn(1u) == 1": True,
    "dyn(true) == 1": False,
    "[1, 2] == [1, 2]": True,
    "{'a': [1]} == {'a': [1]}": True,
    "dyn([1]) == [1.0]": True,
    "2 in [1, 2]": True,
    "'k' in self.m": True,
    "'q' in self.l": False,
    "dyn('a') in [1, 2]": False,
    "true ? 1 : 2": 1,
    "false ? 1 : true ? 2 : 3": 2,
    "1 in {1: 'a'} && dyn(1.0) in {1: 'a'}": True,
    "d.l.map(x, x).size() == 3 && dyn({true: 'a'}) != dyn({1: 'a'})": True,
    "{true: 'a'}[true]": "a",
    "{true: 1}.map(k, k)": [True],
    "timestamp('2020-01-01T00:00:00Z') - timestamp('2019-12-31T00:00:00Z') == duration('24h')": True,
    "timestamp('2020-01-01T00:00:00Z') + duration('1h') > timestamp('2020-01-01T00:30:00Z')": True,
    "duration('1h') - duration('30m') == duration('1800s')": True,
}
LOGIC = {
    "true || 1 / 0 > 0": True,
    "1 / 0 > 0 || true": True,
    "false && 1 / 0 > 0": False,
    "1 / 0 > 0 && false": False,
    "(1 / 0 > 0 || true) && true": True,
    "[1, 0].exists(x, 1 / x == 1)": True,
    "[0, 1].exists(x, 1 / x == 1)": True,
    "[0, 2].all(x, 1 / x > 0)": False,
}
FIELDS = {
    "self.n": 3,
    "self.m['k']": 1,
    "self.m.z": 26,
    "self.l[1]": "b",
    "has(self.n)": True,
    "has(self.missing)": False,
    "has(self.m.k)": True,
    "has(d.x)": True,
    "has(d.nope)": False,
    "d.x == null": True,
    "d.deep.k.v": 7,
    "d['deep']['k']['v']": 7,
    "d.l[0]": 1,
    "d.l[1.0]": "a",
    "a.b.c": 42,
    "a.b.c + 1": 43,
    ".d.n": 1,
    "self.?missing": NONE,
    "self.?missing.orValue(9)": 9,
    "self.?n.orValue(9)": 3,
    "d.?deep.?k.?v.value()": 7,
    "d.?deep.k.v.value()": 7,
    "d.?nope.k.v.hasValue()": False,
    "self.l[?7].orValue('none')": "none",
    "self.m[?'k'].value()": 1,
    "o.hasValue()": False,
}
MACROS = {
    "self.l.all(x, x != 'z')": True,
    "self.l.exists(x, x == 'b')": True,
    "self.l.exists_one(x, x == 'b')": True,
    "self.l.map(x, x + '!')": ["a!", "b!"],
    "[1, 2, 3].map(x, x > 1, x * 2)": [4, 6],
    "[1, 2, 3].filter(x, x > 1)": [2, 3],
    "self.m.all(k, self.m[k] > 0)": True,
    "self.m.map(k, k)": ["k", "z"],
    "[1, 2].map(x, [3, 4].map(y, x * y))": [[3, 4], [6, 8]],
    "[[1], [2]].all(x, x.all(x, x > 0))": True,
    "[].all(x, x > 0) && ![].exists(x, x > 0)": True,
    "self.l.all(i, v, v == self.l[i])": True,
    "self.m.exists(k, v, k == 'z' && v == 26)": True,
    "self.m.existsOne(k, v, v == 1)": True,
    "[5, 6].transformList(i, v, i * v)": [0, 6],
    "[5, 6].transformList(i, v, i > 0, v)": [6],
    "self.m.transformMap(k, v, v + 1)": {"k": 2, "z": 27},
    "self.m.transformMap(k, v, v > 1, v)": {"z": 26},
    "self.m.transformMapEntry(k, v, {v: k})": {1: "k", 26: "z"},
    "[1, 2].exists(i, v, i == 1 && v == 2)": True,
    "d.l.filter(x, type(x) == int)": [1],
}
OPTIONALS = {
    "optional.of(1).value()": 1,
    "optional.none().hasValue()": False,
    "optional.ofNonZeroValue('').hasValue()": False,
    "optional.ofNonZeroValue(1).hasValue()": True,
    "optional.ofNonZeroValue([]).hasValue()": False,
    "optional.none().or(optional.of(2)).value()": 2,
    "optional.of(1).or(optional.of(1 / 0)).value()": 1,
    "optional.of(1).optMap(x, x + 1).value()": 2,
    "optional.none().optMap(x, x + 1).hasValue()": False,
    "optional.of({'a': 1}).optFlatMap(m, m.?a).value()": 1,
    "[?optional.of(1), ?optional.none(), 2]": [1, 2],
    "{?'a': optional.of(1), ?'b': optional.none()}": {"a": 1},
    "optional.of(1) == optional.of(1)": True,
    "optional.none() == optional.none()": True,
    "[1, 2].first().value() + [1, 2].last().value()": 3,
    "[optional.of(1), optional.none()].unwrapOpt()": [1],
}
CONVERSIONS = {
    "int('12')": 12,
    "int(3.9)": 3,
    "int(-3.9)": -3,
    "int(5u)": 5,
    "int(timestamp('1970-01-01T00:00:10Z'))": 10,
    "uint(3)": UInt(3),
    "uint('3')": UInt(3),
    "double('1.5')": 1.5,
    "double(3)": 3.0,
    "string(3)": "3",
    "string(3u)": "3",
    "string(true)": "true",
    "string(1.0)": "1",
    "string(0.1)": "0.1",
    "string(1e21)": "1e+21",
    "string(123456789.0)": "1.23456789e+08",
    "string(1e-5)": "1e-05",
    "string(b'ab')": "ab",
    "string(duration('90s'))": "90s",
    "string(duration('1500ms'))": "1.5s",
    "string(timestamp('2020-01-01T01:00:00.5+01:00'))": "2020-01-01T01:00:00.5+01:00",
    "bytes('a')": b"a",
    "bool('true') && !bool('f')": True,
    "type(1) == int && type('a') == string && type(1u) == uint && type(1.0) == double": True,
    "type(null) == null_type && type([]) == list && type({}) == map && type(b'') == bytes": True,
    "type(type(1)) == type": True,
    "type(duration('1s')) == google.protobuf.Duration": True,
    "type(d.l) == list": True,
    "type(self.n)": TypeValue("int"),
    "dyn(1)": 1,
    "duration('1h30m')": Duration(5400 * 10**9),
    "duration('-1.5s')": Duration(-1500 * 10**6),
    "timestamp('1970-01-01T00:00:01Z')": Timestamp(10**9),
    "timestamp(10)": Timestamp(10 * 10**9),
    "size('\u00e9\U0001f600')": 2,
    "size(b'\u00e9')": 2,
    "[1, 2].size() + {'a': 1}.size()": 3,
}
TIMES = {
    "getFullYear()": 2023,
    "getMonth()": 1,
    "getDate()": 5,
    "getDayOfMonth()": 4,
    "getDayOfWeek()": 0,
    "getDayOfYear()": 35,
    "getHours()": 23,
    "getMinutes()": 4,
    "getSeconds()": 5,
    "getMilliseconds()": 678,
    "getHours('+02:00')": 1,
    "getDate('Asia/Tokyo')": 6,
    "getHours('-02:30')": 20,
    "getMinutes('-02:30')": 34,
}
TIME_VALUES = {f"timestamp('2023-02-05T23:04:05.678Z').{call}": value for call, value in TIMES.items()}
DURATIONS = {
    "duration('3730s').getHours()": 1,
    "duration('3730s').getMinutes()": 62,
    "duration('3730s').getSeconds()": 3730,
    "duration('1.5s').getMilliseconds()": 1500,
    "duration('-90m').getHours()": -1,
}
TEXTS = {
    "'hello'.contains('ell')": True,
    "'hello'.startsWith('he') && 'hello'.endsWith('lo')": True,
    "'hello'.matches('^h.*o$')": True,
    "matches('hello', 'l+')": True,
    "'a\\n'.matches('^a$')": False,
    "'\u00e9'.matches('^.$')": True,
}
TABLE = {
    **LITERALS,
    **OPERATORS,
    **LOGIC,
    **FIELDS,
    **MACROS,
    **OPTIONALS,
    **CONVERSIONS,
    **TIME_VALUES,
    **DURATIONS,
    **TEXTS,
}


@pytest.mark.parametrize("text", TABLE)
def test_value(text: str) -> None:
    wanted = TABLE[text]
    found = evaluate(text)
    if isinstance(wanted, Optional):
        assert found is wanted
    else:
        assert found == wanted
        assert type(found) is type(wanted)


ERRORS = {
    "1 / 0": "division by zero",
    "1 % 0": "modulus by zero",
    "1u / 0u": "division by zero",
    "9223372036854775807 + 1": "integer overflow",
    "-9223372036854775808 - 1": "integer overflow",
    "-(-9223372036854775808)": "integer overflow",
    "-9223372036854775808 / -1": "integer overflow",
    "4611686018427387904 * 2": "integer overflow",
    "0u - 1u": "unsigned integer overflow",
    "18446744073709551615u + 1u": "unsigned integer overflow",
    "uint(-1)": "unsigned integer overflow",
    "int(1e300)": "integer overflow",
    "int(18446744073709551615u)": "integer overflow",
    "int('x')": "type conversion error from 'string' to 'int'",
    "double('x')": "type conversion error from 'string' to 'double'",
    "bool('x')": "type conversion error from 'string' to 'bool'",
    "string(b'\\xff')": "invalid UTF-8 in bytes, cannot convert to string",
    "self.missing": "no such key: missing",
    "self.m['q']": "no such key: q",
    "self.m.q": "no such key: q",
    "self.l[2]": "index out of bounds: 2",
    "self.l[-1]": "index out of bounds: -1",
    "d.nope": "no such key: nope",
    "d.n.x": "no such key: x",
    "d.s.x": "no such key: x",
    "d.l['a']": "unsupported index type 'string' in list",
    "d.n + 'a'": "no such overload",
    "d.s + 1": "no such overload",
    "d.deep + 1": "no such overload: _+_",
    "d.s > 1": "no such overload",
    "!d.s": "no such overload",
    "d.n && true": "no such overload",
    "d.n ? 1 : 2": "no such overload",
    "1 / 0 > 0 || false": "division by zero",
    "1 / 0 > 0 && true": "division by zero",
    "[0].all(x, 1 / x > 0)": "division by zero",
    "[1, 2].map(x, x / 0)": "division by zero",
    "optional.none().value()": "optional.none() dereference",
    "d.n.all(x, x)": "got 'types.Int', expected iterable type",
    "d.s.all(i, x, true)": "unsupported comprehension range type: types.String",
    "d.n.startsWith('a')": "no such overload",
    "d.n.contains('a')": "no such overload",
    "d.l.contains('a')": "no such overload",
    "d.n.lowerAscii()": "no such overload: lowerAscii(int)",
    "timestamp('9999-12-31T23:59:59Z') + duration('1h')": "timestamp overflow",
    "duration('2562047h') + duration('2562047h')": "integer overflow",
    "[1].transformMap(i, v, v)[9]": "no such key: 9",
    "[1, 2].transformMapEntry(i, v, {'a': v})": "insert failed: key a already exists",
    "timestamp('2020-01-01T00:00:00Z').getHours('Nowhere/City')": "unknown time zone Nowhere/City",
    "dyn(0.0 / 0.0) < 1.0": "NaN values cannot be ordered",
}


@pytest.mark.parametrize("text", ERRORS)
def test_error(text: str) -> None:
    with pytest.raises((cel.EvalError, InstantiationError)) as failure:
        evaluate(text)
    assert str(failure.value) == ERRORS[text]


def test_a_missing_variable_is_an_error() -> None:
    program = cel.compile_expression("d.x", ENVIRONMENT)
    with pytest.raises(cel.EvalError, match="no such attribute"):
        program.evaluate({})


def test_programs_leave_values_alone() -> None:
    tree = {"l": [1, 2], "m": {"a": 1}}
    program = cel.compile_expression("(d.l + [3]).size() + d.m.transformMap(k, v, v + 1).size()", ENVIRONMENT)
    assert program.evaluate({"d": tree}) == 4
    assert tree == {"l": [1, 2], "m": {"a": 1}}
