"""JSON in and out, and the complaints about broken texts."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.codec import go_syntax
from fastapi_core.codec import json as codec

BROKEN = [
    (b"", "unexpected end of JSON input"),
    (b'{"a":1', "unexpected end of JSON input"),
    (b'{"a":1} x', "invalid character 'x' after top-level value"),
    (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
    (b"{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
    (b'{"n":NaN}', "invalid character 'N' looking for beginning of value"),
    (b"\xef\xbb\xbf{}", "invalid character '\u00ef' looking for beginning of value"),
    (b"tru", "unexpected end of JSON input"),
    (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
    (b"[1,]", "invalid character ']' looking for beginning of value"),
    (b"[1 2]", "invalid character '2' after array element"),
    (b'{"a" 1}', "invalid character '1' after object key"),
    (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
    (b'{"a":01}', "invalid character '1' after object key:value pair"),
    (b'"\n"', "invalid character '\\n' in string literal"),
    (b'"\\x"', "invalid character 'x' in string escape code"),
    (b'"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
    (b"-", "unexpected end of JSON input"),
    (b"-a", "invalid character 'a' in numeric literal"),
    (b"1.a", "invalid character 'a' after decimal point in numeric literal"),
    (b"1ea", "invalid character 'a' in exponent of numeric literal"),
    (b"[" * 2000, "exceeded max depth"),
    (b"[1E400]", "json: cannot unmarshal number 1E400 into Go value of type float64"),
    (b"[" + b"9" * 400 + b"]", "json: cannot unmarshal number " + "9" * 400 + " into Go value of type float64"),
]


@pytest.mark.parametrize(("body", "text"), BROKEN)
def test_broken_texts(body: bytes, text: str) -> None:
    with pytest.raises(codec.DecodeError) as caught:
        codec.parse(body)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("body", "tree"),
    [
        (b" null ", None),
        (b"[1e2, 9223372036854775808, -9223372036854775808, 1E+2]", [100.0, 2.0**63, -(2**63), 100.0]),
        (b'{"a":9223372036854775807}', {"a": 2**63 - 1}),
        (b'{"a":"\xff\xc3("}', {"a": "\ufffd\ufffd("}),
        (b'{"a":"\\ud800","\\udc00":[1,"\\ud83d\\ude00"]}', {"a": "\ufffd", "\ufffd": [1, "\U0001f600"]}),
        (b'{"a":123456789012345678901234567890}', {"a": 1.2345678901234568e29}),
        (b'["\xff",1,12345678901234567890,-5,1.5]', ["\ufffd", 1, 12345678901234567890.0, -5, 1.5]),
    ],
)
def test_forgiven_texts(body: bytes, tree: Any) -> None:
    assert codec.parse(body).tree == tree


def test_duplicates_are_reported() -> None:
    parsed = codec.parse(b'{"a":1,"b":{"c":1,"c":2},"a":3}')
    assert parsed.tree == {"a": 3, "b": {"c": 2}}
    assert parsed.duplicates == ["b.c", "a"]
    assert parsed.complaints == ['duplicate field "b.c"', 'duplicate field "a"']


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "-0"),
        (0.0, "0"),
        (1e16, "10000000000000000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (12345678901234567890.0, "12345678901234567000"),
        (1.5e-5, "0.000015"),
        (1e-6, "0.000001"),
        (9.5e-7, "9.5e-7"),
        (1e-10, "1e-10"),
        (123.456, "123.456"),
        (1e300, "1e+300"),
        (-2.5, "-2.5"),
        (-1.25e-5, "-0.0000125"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ],
)
def test_floats(value: float, text: str) -> None:
    assert codec.encode([value]) == f"[{text}]".encode()


def test_escapes_and_indentation() -> None:
    assert (
        codec.encode({"<&>": "\u2028\u2029\b\f\x7f"}) == b'{"\\u003c\\u0026\\u003e":"\\u2028\\u2029\\u0008\\u000c\x7f"}'
    )
    assert codec.encode_pretty({"a": [], "b": {}, "c": [1, {"d": "<"}]}) == (
        b'{\n  "a": [],\n  "b": {},\n  "c": [\n    1,\n    {\n      "d": "\\u003c"\n    }\n  ]\n}'
    )


TREES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(-(2**53), 2**53),  # larger ones are spelled with fewer digits than they have
        st.floats(1e21, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(TREES)
def test_trees_survive(tree: Any) -> None:
    for body in (codec.encode(tree), codec.encode_pretty(tree)):
        assert json.loads(body) == tree
        assert codec.parse(body).tree == tree
        assert go_syntax.explain(body.decode()) == ""


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_survive(value: float) -> None:
    text = codec.number(value).decode()
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)


@given(st.one_of(st.binary(max_size=40), st.text(alphabet='{}[]",:\\u0tre1.- ', max_size=40).map(str.encode)))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        text = body.decode()
        expected = json.loads(text, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        expected = codec
    try:
        tree = codec.parse(body).tree
    except codec.DecodeError:
        assert expected is codec
        return
    if expected is not codec and "\\u" not in text and "e" not in text:
        assert tree == expected


@given(st.text(alphabet='{}[]",:\\u0true1.-e ', max_size=30))
def test_explanations_agree_with_a_decoder(text: str) -> None:
    try:
        json.loads(text, parse_constant=lambda name: 1 / 0)
        good = True
    except (ValueError, ZeroDivisionError):
        good = False
    assert (go_syntax.explain(text) == "") == good


def test_summaries() -> None:
    assert codec.summary(b"") == "<empty>"
    assert codec.summary(b'{"metadata": {"name": "w1"}}') == '{"metadata": {"name": "w1"}}'
    assert codec.summary(b'{"apiVersion": "x12345678901234567890"}') == '{"apiVersion": "x1234567890123 ...'
    assert codec.summary(b"[]") == "5b5d"
    text = codec.unrecognized("Pod", codec.DecodeError("oops"), b"[]")
    assert text == (
        "the object provided is unrecognized (must be of type Pod): "
        "couldn't get version/kind; json parse error: oops (5b5d)"
    )


def test_what_is_read_can_be_written() -> None:
    body = b'{"a":[' * (codec.MAX_DEPTH // 2) + b"1.5" + b"]}" * (codec.MAX_DEPTH // 2)
    tree = codec.parse(body).tree
    assert codec.encode(tree) == body
    assert json.loads(codec.encode_pretty(tree)) == tree
    with pytest.raises(codec.DecodeError, match="exceeded max depth"):
        codec.parse(b"[" + body + b"]")
