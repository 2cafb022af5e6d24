"""YAML in and out."""

from itertools import pairwise
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.codec import yaml, yaml_print
from fastapi_core.codec import yaml_scalars as scalars
from fastapi_core.codec.json import MAX_DEPTH, DecodeError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True),
        ("Yes", True),
        ("on", True),
        ("OFF", False),
        ("n", False),
        ("nO", "nO"),
        ("~", None),
        ("", None),
        ("Null", None),
        ("010", 8),
        ("0o10", 8),
        ("08", 8),
        ("0x1F", 31),
        ("-0x1F", -31),
        ("0b101", 5),
        ("1_000", 1000),
        ("+1", 1),
        ("1e3", 1000),
        ("4.037206770687546e+16", 40372067706875460),
        ("9.3e18", 9.3e18),
        ("1.0", 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1),
        ("0.", 0),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("1e", "1e"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("9223372036854775807", 2**63 - 1),
        ("1.2.3", "1.2.3"),
        ("-", None),
        ("9223372036854775808", 2.0**63),
        ("-9223372036854775808", -(2**63)),
        ("'1'", "1"),
        ('"yes"', "yes"),
        ("!!str 1", "1"),
        ("!!float 1", 1),
        ("!!int '3'", 3),
        ("! 1", "1"),
        ("!foo 1", "1"),
        ("!!binary YQ==", "a"),
        ("0x", "0x"),
        ("--1", "--1"),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    parsed = yaml.parse(f"a: {text}".encode()).tree["a"] if text != "-" else None
    assert (parsed, type(parsed)) == (value, type(value))


def test_documents() -> None:
    body = (
        b'spec:\n  on: yes\n  s: "yes"\n  n: 010\n  f: 1.0\n  d: 2020-01-01\n  nul: ~\n'
        b"  multi: |\n    a\n    b\n  1.5: x\n"
    )
    assert yaml.parse(body).tree == {
        "spec": {
            "true": True,
            "s": "yes",
            "false": 8,
            "f": 1,
            "d": "2020-01-01",
            "nul": None,
            "multi": "a\nb\n",
            "1.5": "x",
        }
    }
    assert yaml.parse(b"---\na: 1\n---\nb: [\n").tree == {"a": 1}
    assert yaml.parse(b"").tree is None
    assert yaml.parse(b'{"a": [1, "x"]}').tree == {"a": [1, "x"]}
    assert yaml.parse(b"\xef\xbb\xbfa: 1").tree == {"a": 1}


def test_json_is_read_as_yaml_reads_it() -> None:
    assert yaml.parse(b'{"a": 1.0, "b": 1e3, "c": 1.5, "d": "<yes>", "e": 9223372036854775807, "f": -0.0}').tree == {
        "a": 1,
        "b": 1000,
        "c": 1.5,
        "d": "<yes>",
        "e": 2**63 - 1,
        "f": 0,
    }
    assert isinstance(yaml.parse(b'{"a": 1.0}').tree["a"], int)
    assert yaml.parse(b'{"a": 1, "a": 2}').complaints == [
        'yaml: unmarshal errors:\n  line 1: key "a" already set in map'
    ]
    assert yaml.parse(b"{a: yes}").tree == {"a": True}
    assert yaml.parse(b'{"a": 1e999}').tree == {"a": "1e999"}


def test_anchors_and_merges() -> None:
    body = b"l: &l {a: b, c: x}\nm:\n  <<: *l\n  c: d\np: [*l, *l]\no:\n  <<: [{a: 1}, {a: 2, z: 3}]\n"
    tree = yaml.parse(body).tree
    assert tree == {
        "l": {"a": "b", "c": "x"},
        "m": {"a": "b", "c": "d"},
        "p": [{"a": "b", "c": "x"}, {"a": "b", "c": "x"}],
        "o": {"a": 1, "z": 3},
    }
    assert tree["p"][0] is not tree["p"][1]


def bomb(levels: int) -> bytes:
    lines = ["data:", "  a: &a [x,x,x,x,x,x,x,x,x]"]
    for i in range(1, levels):
        lines.append(f"  {chr(97 + i)}: &{chr(97 + i)} [{','.join(['*' + chr(96 + i)] * 9)}]")
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (bomb(9), "yaml: document contains excessive aliasing"),
        (b"a: &a [*a]", "yaml: anchor 'a' value contains itself"),
        (b"a: *b", "yaml: unknown anchor 'b' referenced"),
        (b"a: .inf", "json: unsupported value: +Inf"),
        (b"? [a]\n: b", "unsupported map key of type: slice"),
        (b"~: b", "unsupported map key of type: <nil>"),
        (b"a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
        (b"a: {<<: 1}", "yaml: map merge requires map or sequence of maps as the value"),
        (b"a: !!binary '*'", "yaml: !!binary value contains invalid base64 data"),
    ],
)
def test_refused(body: bytes, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        yaml.parse(body)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "body", [b"a: [", b"a: b: c", b"\x00", b"a:\n\t- b", b"- a\nb: c", b"[" * 3000, b"%YAML 9\n---"]
)
def test_broken(body: bytes) -> None:
    with pytest.raises(DecodeError, match=r"^yaml: "):
        yaml.parse(body)


def test_repeated_keys() -> None:
    parsed = yaml.parse(b"a: 1\nb: {x: 1, x: 2}\na: 2\n")
    assert parsed.tree == {"a": 2, "b": {"x": 2}}
    assert parsed.complaints == [
        'yaml: unmarshal errors:\n  line 2: key "x" already set in map\n  line 3: key "a" already set in map'
    ]


def test_dump() -> None:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": 404,
        "reason": "NotFound",
        "message": 'configmaps "none" not found',
        "details": {"name": "none", "kind": "configmaps"},
    }
    assert yaml.dump(status).decode() == (
        "apiVersion: v1\ncode: 404\ndetails:\n  kind: configmaps\n  name: none\nkind: Status\n"
        'message: configmaps "none" not found\nmetadata: {}\nreason: NotFound\nstatus: Failure\n'
    )
    resources = {
        "resources": [{"storageVersionHash": "gqkMMb/YqFM=", "verbs": ["create", "delete"], "namespaced": True}]
    }
    assert yaml.dump(resources).decode() == (
        "resources:\n- namespaced: true\n  storageVersionHash: gqkMMb/YqFM=\n  verbs:\n  - create\n  - delete\n"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("yes", '"yes"'),
        ("n", '"n"'),
        ("", '""'),
        ("1", '"1"'),
        ("1.5", '"1.5"'),
        ("0x1", '"0x1"'),
        ("~", '"~"'),
        ("<<", '"<<"'),
        ("2020-01-01T00:00:00Z", '"2020-01-01T00:00:00Z"'),
        ("2020-01-01", '"2020-01-01"'),
        ("1:30", '"1:30"'),
        ("1:99", "1:99"),
        ("a: b", "'a: b'"),
        ("# x", "'# x'"),
        ("a\nb\n", "|\n  a\n  b"),
        ("a\nb", "|-\n  a\n  b"),
        ("v1", "v1"),
        ("100m", "100m"),
        ("1Gi", "1Gi"),
        ("- a", "'- a'"),
        ("it's", "it's"),
        ("\u00e9", "\u00e9"),
        ("10.0.0.1", "10.0.0.1"),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (1e21, "1e+21"),
        ([], "[]"),
        ({}, "{}"),
        (1234567.5, "1.2345675e+06"),
        (0.0001, "0.0001"),
        (1e-5, "1e-05"),
        ("2020-13-01", "2020-13-01"),
        ("true", '"true"'),
        ("null", '"null"'),
        ("0o7", '"0o7"'),
        ("a\tb", '"a\\tb"'),
    ],
)
def test_dumped_values(value: Any, text: str) -> None:
    assert yaml.dump({"k": value}).decode() == f"k: {text}\n"
    assert yaml.parse(yaml.dump({"k": value})).tree == {"k": value}


def test_an_open_end_has_no_mark() -> None:
    assert yaml.dump({"a": "x\n\n"}) == b"a: |+\n  x\n\n"


def test_keys_are_sorted_naturally() -> None:
    keys = ["a10", "a2", "b", "B", "a", "1", "10", "9", "a-1", "ab", "a1b", "_x"]
    assert list(yaml.parse(yaml.dump(dict.fromkeys(keys, 1))).tree) == [
        "_x",
        "1",
        "9",
        "10",
        "B",
        "a",
        "a-1",
        "a1b",
        "a2",
        "a10",
        "ab",
        "b",
    ]


TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufeff\u2028\u2029\x85")),
    st.sampled_from(
        [
            "y",
            "no",
            "~",
            "1",
            "0x1",
            "1e3",
            "<<",
            "a: b",
            " x",
            "x ",
            "-",
            "? a",
            "2020-01-01",
            "a\nb\n",
            "\n",
            ".5",
            "+",
            "0b1",
            "1_0",
        ]
    ),
    st.text(alphabet="+-.0123456789eExXob_:nN~", max_size=8),
)
TREES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(-(2**53), 2**53),
        TEXTS,
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@given(TREES)
def test_trees_survive(tree: Any) -> None:
    parsed = yaml.parse(yaml.dump(tree))
    assert parsed.tree == tree
    assert not parsed.complaints


@given(st.lists(st.text(alphabet="ab019.-", max_size=6), max_size=8, unique=True))
def test_key_order_is_an_order_on_what_it_sorts(keys: list[str]) -> None:
    dumped = list(yaml.parse(yaml.dump(dict.fromkeys(keys, 1))).tree)
    assert sorted(dumped) == sorted(keys)
    for left, right in pairwise(dumped):
        assert yaml.natural_order(left, right) == -yaml.natural_order(right, left) or left == right


@settings(max_examples=200)
@given(st.one_of(st.binary(max_size=60), st.text(alphabet="a1:-&*<![]{}\"'|>?%~,. \n#", max_size=60).map(str.encode)))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        yaml.parse(body)
    except DecodeError:
        return


@given(st.text(alphabet="+-.0123456789eExXobnNyY_:~", max_size=10))
def test_plain_texts_are_read_back(text: str) -> None:
    if scalars.plain_is_text(text):
        assert scalars.resolve(text) == text


def test_depth_is_limited() -> None:
    body = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert yaml.parse(yaml.dump(yaml.parse(body).tree)).tree is not None
    with pytest.raises(DecodeError, match="yaml: exceeded max depth"):
        yaml.parse(b"[" + body + b"]")


def test_the_parser_of_libyaml_is_used_where_there_is_one() -> None:
    assert yaml._Parser is (pyyaml.CSafeLoader if pyyaml.__with_libyaml__ else pyyaml.SafeLoader)


LONG = st.lists(
    st.sampled_from(
        ["word", "a-longer-one", "12", ": ", "#", "'", '"', "\n", "\n\n", " ", "\u00e9", "\U0001f600", "-", "yes"]
    ),
    max_size=40,
).map(" ".join)
PRINTED = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), TEXTS, LONG, st.sampled_from(["Always", "10.0.0.1", "f:a:b", "a:"])
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXTS | LONG | st.sampled_from(["f:a", "f:a:", "k:{}", "."]), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=200)
@given(PRINTED)
def test_documents_are_what_libyaml_prints(tree: Any) -> None:
    assert yaml.dump(tree) == yaml_print.emitted(tree)
    deep = tree
    for number in range(14):
        deep = {"a": deep} if number % 3 else [deep]
    assert yaml.dump(deep) == yaml_print.emitted(deep)


@given(st.lists(st.text(alphabet="ab01_.-", max_size=5), min_size=17, max_size=60, unique=True))
def test_many_keys_are_all_there_and_those_alike_in_order(keys: list[str]) -> None:
    found = yaml_print.sorted_keys(dict.fromkeys(keys))
    assert sorted(found) == sorted(keys)
    numbered = [f"key-{n:04}-x" for n in range(200)]
    assert yaml_print.sorted_keys(dict.fromkeys(reversed(numbered))) == numbered


def test_both_halves_of_libyaml_are_used_where_there_is_one() -> None:
    assert yaml_print._Emitter is (pyyaml.cyaml.CEmitter if pyyaml.__with_libyaml__ else pyyaml.SafeDumper)
