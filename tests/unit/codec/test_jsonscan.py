"""The scans over JSON texts against their oracles."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core._ext.jsonscan import decode_key, duplicate_keys, go_style, inspect
from tests.oracles import jsonscan as oracle

KEYS = st.sampled_from(["a", "b", "\u00e9", 'q"', "a\\", "\n", "", "a.b", "k<"])


class Document:
    """A JSON text with repeated keys, random spaces and random escapes."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def string(self, text: str) -> str:
        if self.draw(st.booleans()):
            return json.dumps(text, ensure_ascii=self.draw(st.booleans()))
        return '"' + "".join(f"\\u{ord(char):04x}" for char in text) + '"'

    def value(self, depth: int) -> str:
        kind = self.draw(st.integers(0, 5 if depth else 2))
        space = self.draw(st.sampled_from(["", " ", "\n\t"]))
        if kind == 0:
            return self.draw(st.sampled_from(["1", "-2.5e3", "true", "null", '"{,["', '"a\\"}"', "{}", "[]"]))
        if kind <= 2:
            return self.string(self.draw(KEYS))
        if kind == 3:
            items = [self.value(depth - 1) for _ in range(self.draw(st.integers(0, 3)))]
            return "[" + f"{space},".join(items) + space + "]"
        members = []
        for _ in range(self.draw(st.integers(0, 4))):
            members.append(f"{space}{self.string(self.draw(KEYS))}{space}:{space}{self.value(depth - 1)}")
        return "{" + ",".join(members) + "}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    return Document(draw).value(4)


@given(documents())
def test_duplicates_equal_the_oracle(text: str) -> None:
    assert duplicate_keys(text.encode(), 100) == oracle.duplicate_keys(text)


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=120))
def test_large_objects_equal_the_oracle(keys: list[tuple[int, bool]]) -> None:
    members = [f'"k{n}":' + ('{"x":1,"x":2}' if nested else "1") for n, nested in keys]
    text = '{"o":{' + ",".join(members) + '},"o":[{"p":1,"p":1}]}'
    assert duplicate_keys(text.encode(), 100) == oracle.duplicate_keys(text)


def test_paths() -> None:
    assert duplicate_keys(b'[{"op":1,"value":1,"value":{}}]', 10) == ["[0].value"]
    assert duplicate_keys(b'{"a":{"b":[1,{"c":1,"c":2}]}}', 10) == ["a.b[1].c"]
    assert duplicate_keys(b'{"a":1,"\\u0061":2,"a":3}', 10) == ["a"]
    assert duplicate_keys(b'{"a":{"x":1},"b":{"x":1}}', 10) == []
    assert len(duplicate_keys(b"{" + b",".join(b'"k%d":1,"k%d":1' % (i, i) for i in range(500)) + b"}", 10)) == 100


@pytest.mark.parametrize(
    ("text", "care"),
    [
        (b"[1.5,-2,123456789012345678]", False),
        (b"[1e2]", True),
        (b"[1E2]", True),
        (b"[1234567890123456789]", True),
        (b'["1234567890123456789","1e5",true,false,{"e1e":1}]', False),
    ],
)
def test_numbers_that_need_care(text: bytes, care: bool) -> None:
    assert inspect(text, 10) == ([], care)


@given(st.recursive(st.none(), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2)))
def test_depth_is_limited(tree: Any) -> None:
    text = json.dumps(tree).encode()
    depth = oracle.depth(tree)
    assert duplicate_keys(text, depth) == []
    if depth:
        with pytest.raises(ValueError, match="exceeded max depth"):
            duplicate_keys(text, depth - 1)


@given(st.one_of(st.binary(max_size=60), st.text(alphabet='{}[]",:\\a1 ', max_size=60).map(str.encode)))
def test_any_bytes_are_scanned(body: bytes) -> None:
    assert all(isinstance(path, str) for path in duplicate_keys(body, 100))
    assert isinstance(decode_key(body), str)
    with suppress(ValueError):  # no encoder writes "1e" or "-."
        assert isinstance(go_style(body, lambda number: b"0"), bytes)


@given(st.text())
def test_strings_are_spelled_as_go_does(text: str) -> None:
    plain = json.dumps({text: [text]}, ensure_ascii=False, separators=(",", ":"))
    if any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        return
    expected = f"{{{oracle.go_text(text)}:[{oracle.go_text(text)}]}}"
    assert go_style(plain.encode(), lambda number: b"0").decode() == expected


def test_untouched_output_is_not_copied() -> None:
    text = b'{"a":["x",1,true,null,"e.E"],"seven":-7}'
    assert go_style(text, lambda number: b"0") is text


def test_numbers_are_written_by_the_callback() -> None:
    seen: list[float] = []

    def write(number: float) -> bytes:
        seen.append(number)
        return b"#"

    assert go_style(b'[1,-2,1.5,{"a":-2e+21},3e2,"4.5",0.0]', write) == b'[1,-2,#,{"a":#},#,"4.5",#]'
    assert seen == [1.5, -2e21, 300.0, 0.0]
