from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.codec import json as json_codec
from fastapi_core.patch import fieldset


def _support() -> Any:
    spec = importlib.util.spec_from_file_location("ownership_support", Path(__file__).parent / "ownership_support.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


support = _support()
oracle = support.oracle
sets = support.path_sets


def made(paths: frozenset[tuple[str, ...]]) -> fieldset.FieldSet:
    return fieldset.of(*paths)


def canonical(fields: fieldset.FieldSet) -> bool:
    """Elements in order, no node that is nothing but itself."""
    return list(fields) == sorted(fields, key=fieldset.rank) and all(
        set(node) != {"."} and canonical(node) for node in fields.values()
    )


@given(sets)
@settings(max_examples=200)
def test_a_set_is_its_paths(paths: frozenset[tuple[str, ...]]) -> None:
    fields = made(paths)
    assert oracle.paths_of(fields) == paths
    assert frozenset(fieldset.paths(fields)) == paths
    assert canonical(fields)
    assert fieldset.parse(oracle.document_of(paths)) == fields
    assert all(fieldset.has(fields, path) for path in paths)


@given(sets, sets)
@settings(max_examples=200)
def test_algebra_is_that_of_sets_of_paths(left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]) -> None:
    one, other = made(left), made(right)
    before = json_codec.encode([one, other])
    results = {
        "union": (fieldset.union(one, other), left | right),
        "intersection": (fieldset.intersection(one, other), left & right),
        "difference": (fieldset.difference(one, other), left - right),
    }
    for name, (got, wanted) in results.items():
        assert oracle.paths_of(got) == wanted, name
        assert canonical(got), name
    assert json_codec.encode([one, other]) == before


@given(sets, sets, sets)
@settings(max_examples=100)
def test_laws(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]], c: frozenset[tuple[str, ...]]) -> None:
    x, y, z = made(a), made(b), made(c)
    assert fieldset.union(x, y) == fieldset.union(y, x)
    assert fieldset.union(x, fieldset.union(y, z)) == fieldset.union(fieldset.union(x, y), z)
    assert fieldset.union(fieldset.intersection(x, y), fieldset.difference(x, y)) == x
    assert fieldset.difference(x, x) == {}
    assert fieldset.intersection(x, x) == x
    assert fieldset.difference(fieldset.union(x, y), y) == fieldset.difference(x, y)
    assert fieldset.covers(x, y) == (b <= a)
    assert fieldset.covers(fieldset.union(x, y), y)


@given(sets, st.frozensets(support.elements, max_size=3))
@settings(max_examples=100)
def test_has_knows_only_members(paths: frozenset[tuple[str, ...]], extra: frozenset[str]) -> None:
    fields = made(paths)
    for element in extra:
        assert fieldset.has(fields, (element,)) == ((element,) in paths)


def test_elements_are_ordered_by_content() -> None:
    fields = fieldset.of(
        ("f:ports", 'k:{"containerPort":8080,"protocol":"TCP"}'),
        ("f:ports", 'k:{"containerPort":80,"protocol":"UDP"}'),
        ("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'),
        ("f:b",),
        ("f:a",),
    )
    assert list(fields) == ["f:a", "f:b", "f:ports"]
    assert list(fields["f:ports"]) == [
        'k:{"containerPort":80,"protocol":"TCP"}',
        'k:{"containerPort":80,"protocol":"UDP"}',
        'k:{"containerPort":8080,"protocol":"TCP"}',
    ]
    assert list(fieldset.ordered({"v:true": {}, 'v:"10"': {}, "v:9": {}, "v:10": {}})) == [
        "v:9",
        "v:10",
        'v:"10"',
        "v:true",
    ]


def test_paths_of_a_node_come_before_those_below() -> None:
    fields = fieldset.of(("f:status", "f:replicas"), ("f:status", "f:conditions", 'k:{"type":"A"}'), ("f:spec",))
    assert ["".join(map(fieldset.shown, path)) for path in fieldset.paths(fields)] == [
        ".spec",
        ".status.replicas",
        '.status.conditions[type="A"]',
    ]


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("f:a.b", ".a.b"),
        ('k:{"b":2,"a":"x"}', '[a="x",b=2]'),
        ('v:"q\\"uote"', '[="q\\"uote"]'),
        ("v:1", "[=1]"),
        ("i:3", "[3]"),
    ],
)
def test_elements_as_conflicts_show_them(element: str, text: str) -> None:
    assert fieldset.shown(element) == text


def test_what_a_client_writes_is_brought_into_form() -> None:
    given_: Any = {"f:b": {".": {}}, 'k:{"b": 1, "a":"x"}': {"f:z": {}, "f:y": {}}, ".": {}, "z:later": {}, "i:07": {}}
    assert fieldset.parse(given_) == {
        "f:b": {},
        'k:{"a":"x","b":1}': {"f:y": {}, "f:z": {}},
        "i:7": {},
    }
    assert list(fieldset.parse(given_)['k:{"a":"x","b":1}']) == ["f:y", "f:z"]


@pytest.mark.parametrize(
    "document",
    [
        [],
        "x",
        {"nonsense": {}},
        {"f": {}},
        {"f:a": []},
        {"f:a": None},
        {"k:[]": {}},
        {"k:{": {}},
        {"v:": {}},
        {"i:x": {}},
    ],
)
def test_what_is_no_set_is_refused(document: Any) -> None:
    with pytest.raises(fieldset.FieldsError):
        fieldset.parse(document)


def test_deep_documents_are_refused() -> None:
    document: dict[str, Any] = {}
    for _ in range(1000):
        document = {"f:a": document}
    with pytest.raises(fieldset.FieldsError):
        fieldset.parse(document)


_keys = st.one_of(
    st.text(max_size=6), st.sampled_from(["f:a", "k:{}", "k:1", "v:null", ".", "i:1", "i:-1", 'v:"\ud7ff"'])
)


@given(
    st.recursive(
        st.one_of(st.none(), st.integers(), st.text(max_size=3)), lambda x: st.dictionaries(_keys, x, max_size=3)
    )
)
@settings(max_examples=200)
def test_any_document_is_read_or_refused(document: Any) -> None:
    try:
        fields = fieldset.parse(document)
    except fieldset.FieldsError:
        return
    assert canonical(fields)
    assert fieldset.parse(fields) == fields
