"""Selector grammar and the texts of its errors, as the reference prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.meta.selectors import (
    MEMO_TEXT,
    FieldRequirement,
    Requirement,
    SelectorError,
    format_selector,
    from_object,
    parse_fields,
    parse_labels,
)

GOLDEN = Path(__file__).resolve().parents[3].parent / "shared" / "golden"
RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
INTEGER = "for 'Gt', 'Lt' operators, the value must be an integer"
PART = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", []),
        (" \t\r\n ", []),
        ("a", [("a", "exists", ())]),
        ("!a", [("a", "!", ())]),
        (" ! a ", [("a", "!", ())]),
        ("a=b", [("a", "in", ("b",))]),
        ("a==b", [("a", "in", ("b",))]),
        ("a!=b", [("a", "notin", ("b",))]),
        ("a=", [("a", "in", ("",))]),
        ("a=,b", [("a", "in", ("",)), ("b", "exists", ())]),
        ("a in (b)", [("a", "in", ("b",))]),
        ("a in(c,b)", [("a", "in", ("b", "c"))]),
        ("a notin ( c , b , b )", [("a", "notin", ("b", "c"))]),
        ("app in ()", [("app", "in", ("",))]),
        ("app in (,)", [("app", "in", ("",))]),
        ("app in (,a)", [("app", "in", ("", "a"))]),
        ("app in (a,)", [("app", "in", ("", "a"))]),
        ("app in (a,,b)", [("app", "in", ("", "a", "b"))]),
        ("in in (in,notin)", [("in", "in", ("in", "notin"))]),
        ("notin", [("notin", "exists", ())]),
        ("a=in", [("a", "in", ("in",))]),
        ("n>5", [("n", "gt", ("5",))]),
        ("n < 05", [("n", "lt", ("05",))]),
        ("z=1,a=2", [("a", "in", ("2",)), ("z", "in", ("1",))]),
        ("example.com/a=b", [("example.com/a", "in", ("b",))]),
        ("a=b\0c", None),
        ("a\0", [("a", "exists", ())]),
        ("\0a", []),
    ],
)
def test_labels(text: str, want: list[tuple[str, str, tuple[str, ...]]] | None) -> None:
    if want is None:
        with pytest.raises(SelectorError):
            parse_labels(text)
    else:
        assert list(parse_labels(text)) == want


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,", "found '', expected: identifier after ','"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
        ("a>=5", "unable to parse requirement: found '=', expected: identifier"),
        ("a(b)", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt"),
        ("a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("n>", f'unable to parse requirement: values[0]: Invalid value: "": {INTEGER}'),
        (
            "n>9223372036854775808",
            f'unable to parse requirement: values[0]: Invalid value: "9223372036854775808": {INTEGER}',
        ),
        ("n>-5", f'unable to parse requirement: values[0][n]: Invalid value: "-5": {RULE}'),
        (
            "n>-x",
            f'unable to parse requirement: [values[0]: Invalid value: "-x": {INTEGER}, '
            f'values[0][n]: Invalid value: "-x": {RULE}]',
        ),
        (
            "a in (_x,ok,-y)",
            f'unable to parse requirement: [values[0][a]: Invalid value: "-y": {RULE}, '
            f'values[1][a]: Invalid value: "_x": {RULE}]',
        ),
        ("-a", f'unable to parse requirement: <nil>: Invalid value: "-a": name part {PART}'),
        (
            "/",
            'unable to parse requirement: <nil>: Invalid value: "/": prefix part must be non-empty; '
            f"name part must be non-empty; name part {PART}",
        ),
        (
            "a/b/c",
            f'unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key {PART} '
            "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        ),
        (
            "k=" + "v" * 64,
            f'unable to parse requirement: values[0][k]: Invalid value: "{"v" * 64}": must be no more than 63 bytes',
        ),
    ],
)
def test_label_errors(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_labels(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", []),
        (",,", []),
        ("a=b", [("a", "=", "b")]),
        ("a==b", [("a", "=", "b")]),
        ("a!=b", [("a", "!=", "b")]),
        ("z=1,a=2,", [("a", "=", "2"), ("z", "=", "1")]),
        ("a=", [("a", "=", "")]),
        ("=x", [("", "=", "x")]),
        (" a = b ", [(" a ", "=", " b ")]),
        (r"a=b\,c\=d\\", [("a", "=", "b,c=d\\")]),
        ("a!b=c", [("a!b", "=", "c")]),
        ("a in (b)=c", [("a in (b)", "=", "c")]),
    ],
)
def test_fields(text: str, want: list[tuple[str, str, str]]) -> None:
    assert list(parse_fields(text)) == want


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a===b", "invalid field selector: unescaped character in value: 61"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=\\é", "invalid field selector: invalid escape sequence: \\é"),
        (r"a\,b", r"invalid selector: 'a\,b'; can't understand 'a\,b'"),
    ],
)
def test_field_errors(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_fields(text)
    assert str(caught.value) == message


def recorded() -> list[tuple[str, str, str]]:
    """(parameter, selector, message) of the recorded refusals that a parser alone decides."""
    found = []
    for path in sorted(GOLDEN.glob("*/*.json")):
        for step in json.loads(path.read_text()).get("steps", ()):
            body = step.get("expect", {}).get("body")
            if not isinstance(body, dict) or body.get("reason") != "BadRequest" or "message" not in body:
                continue
            for parameter in ("labelSelector", "fieldSelector"):
                text = step.get("query", {}).get(parameter)
                if isinstance(text, str) and not body["message"].startswith(("field label not", '"')):
                    found.append((parameter, text, body["message"]))
    return found


@pytest.mark.golden
@pytest.mark.skipif(not GOLDEN.is_dir(), reason="the recordings are not here")
def test_recorded_errors() -> None:
    cases = recorded()
    assert len(cases) > 10
    for parameter, text, message in cases:
        with pytest.raises(SelectorError) as caught:
            (parse_labels if parameter == "labelSelector" else parse_fields)(text)
        assert str(caught.value) == message


def test_memo_is_bounded_by_the_length_of_the_text() -> None:
    short, long = "a=b", "a in (" + ",".join(f"v{n}" for n in range(MEMO_TEXT)) + ")"
    assert parse_labels(short) is parse_labels(short)
    assert parse_labels(long) is not parse_labels(long)
    assert len(parse_labels(long)[0].values) == MEMO_TEXT
    assert parse_fields(short) is parse_fields(short)


NAMES = st.text("ab1", min_size=1, max_size=3)
VALUE_SETS = st.sets(st.just("") | NAMES, min_size=1).map(lambda values: tuple(sorted(values)))
REQUIREMENTS = st.one_of(
    st.builds(Requirement, NAMES, st.sampled_from(["in", "notin"]), VALUE_SETS),
    st.builds(Requirement, NAMES, st.sampled_from(["exists", "!"]), st.just(())),
    st.builds(Requirement, NAMES, st.sampled_from(["gt", "lt"]), st.tuples(st.integers(0, 2**63 - 1).map(str))),
)


@st.composite
def written(draw: st.DrawFn) -> tuple[str, list[Requirement]]:
    """A selector text with the requirements it means."""
    requirements = draw(st.lists(REQUIREMENTS, max_size=4))
    space = st.sampled_from(["", " ", "\t ", "\n"])
    texts = []
    for key, operator, values in requirements:
        if operator in ("in", "notin") and (len(values) > 1 or draw(st.booleans())):
            commas = f"{draw(space)},{draw(space)}"
            text = f"{key} {draw(space)}{operator}{draw(space)}({draw(space)}{commas.join(values)}{draw(space)})"
        elif operator in ("exists", "!"):
            text = ("!" + draw(space) if operator == "!" else "") + key
        else:
            symbol = {"in": draw(st.sampled_from(["=", "=="])), "notin": "!=", "gt": ">", "lt": "<"}[operator]
            text = f"{key}{draw(space)}{symbol}{draw(space)}{values[0]}"
        texts.append(draw(space) + text + draw(space))
    return ",".join(texts), sorted(requirements, key=lambda requirement: requirement.key)


@settings(max_examples=100, deadline=None)
@given(written())
def test_what_is_written_is_read(case: tuple[str, list[Requirement]]) -> None:
    text, requirements = case
    assert list(parse_labels(text)) == requirements


@settings(max_examples=200, deadline=None)
@given(st.text() | st.text("ab=!,()<> \\\0inot", max_size=12))
def test_any_text_is_taken_or_refused(text: str) -> None:
    for parse in (parse_labels, parse_fields):
        try:
            found = parse(text)
        except SelectorError:
            continue
        assert all(isinstance(r, Requirement | FieldRequirement) for r in found)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b.c"]), st.text("xy,=\\", max_size=4), max_size=2))
def test_escaped_field_values(fields: dict[str, str]) -> None:
    def escape(value: str) -> str:
        return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")

    text = ",".join(f"{field}={escape(value)}" for field, value in fields.items())
    assert sorted(parse_fields(text)) == sorted((field, "=", value) for field, value in fields.items())


def test_selector_objects() -> None:
    selector = {
        "matchLabels": {"z": "1", "a": "2"},
        "matchExpressions": [
            {"key": "m", "operator": "In", "values": ["y", "x"]},
            {"key": "b", "operator": "NotIn", "values": ["q"]},
            {"key": "e", "operator": "Exists"},
            {"key": "d", "operator": "DoesNotExist"},
        ],
    }
    text = format_selector(selector)
    assert text == "a=2,b notin (q),!d,e,m in (x,y),z=1"
    assert from_object(selector) == parse_labels(text)
    assert format_selector({}) == ""
    with pytest.raises(KeyError):
        from_object({"matchExpressions": [{"key": "m", "operator": "Gt", "values": ["1"]}]})
