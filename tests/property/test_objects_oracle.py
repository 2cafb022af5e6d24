"""The compiled objects equal the oracle on stored values, and survive any other bytes."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext.objects import CachedObject, list_document, split_head, watch_frame
from tests.oracles import objects as oracle

KEYS = st.one_of(
    st.sampled_from(["a", "metadata", "labels", "name", "uid", "resourceVersion", "kind", "zz", 'q"', "b\\", "é", ""]),
    st.text(max_size=4),
)
VALUES = st.recursive(
    st.sampled_from([None, True, -1, 2**53, '"}', "{[", "\\"]) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
LABELS = st.dictionaries(st.sampled_from(["app", "tier", "é", 'q"']), st.text(max_size=3), max_size=3)
REVISIONS = st.integers(0, 2**63 - 1)
FIRST = ["name", "generateName", "namespace", "uid"]
LATER = ["annotations", "creationTimestamp", "generation", "labels", "managedFields", "zone"]


@st.composite
def metadata(draw: st.DrawFn) -> dict[str, Any]:
    first = [k for k in FIRST if draw(st.booleans())]
    later = draw(st.lists(st.sampled_from(LATER), unique=True))
    return {k: draw(LABELS | st.none() | VALUES) if k == "labels" else draw(VALUES) for k in first + later}


@st.composite
def typed(draw: st.DrawFn) -> dict[str, Any]:
    tree: dict[str, Any] = {"kind": draw(st.text(max_size=5)), "apiVersion": "v1", "metadata": draw(metadata())}
    for key in draw(st.lists(st.sampled_from(["spec", "status", "data", "é"]), unique=True)):
        tree[key] = draw(VALUES)
    return tree


@st.composite
def custom(draw: st.DrawFn) -> dict[str, Any]:
    tree = {"apiVersion": "g/v1", "kind": "Widget", "metadata": dict(sorted(draw(metadata()).items()))}
    for key in draw(st.lists(st.sampled_from(["aaa", "data", "spec", "kinda", "l", "é", "Z"]), unique=True)):
        tree[key] = draw(VALUES)
    return dict(sorted(tree.items()))


TREES = typed() | custom()
DAMAGE = [b"", b'"', b"{", b"}", b"\\", b",", b":", b"\0", b"\xff", b"\n"]


def cached(value: bytes, revision: int = 7) -> CachedObject:
    return CachedObject("/registry/pods/ns/a", "ns", "a", value, revision, 3)


@settings(max_examples=100, deadline=None)
@given(TREES, REVISIONS, REVISIONS)
def test_stored_values(tree: dict[str, Any], revision: int, later: int) -> None:
    value = orjson.dumps(tree)
    obj = cached(value, revision)
    want = orjson.dumps(oracle.with_revision(tree, revision))
    assert obj.head == oracle.head(tree)
    assert obj.json() == obj.head + obj.body == want
    assert obj.tree() == orjson.loads(want)
    assert obj.stored() == value
    assert obj.metadata() == orjson.dumps(oracle.with_revision(tree, revision)["metadata"])
    assert obj.labels() == oracle.labels(tree)
    assert obj.labels() is obj.labels()
    head, at = split_head(value)
    assert head == obj.head
    assert want.startswith(value[:at])
    assert want.endswith(value[at:])
    moved = obj.at_revision(later)
    assert moved.json() == orjson.dumps(oracle.with_revision(tree, later))
    assert (moved.revision, moved.created, moved.labels()) == (later, 3, obj.labels())
    assert moved.stored() == value
    assert moved.at_revision(revision).json() == want


NAMED = st.recursive(
    st.sampled_from([None, 1, '"named":', ',"named":{', '"', "\\"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["named", 'x"named', '"named":', ',"named', "other"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(NAMED)
def test_trees_without_a_member(value: Any) -> None:
    tree = {"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": value}
    obj = cached(orjson.dumps(tree))
    assert obj.tree_without(b"named") == oracle.without(oracle.with_revision(tree, 7), "named")


@settings(max_examples=100, deadline=None)
@given(st.lists(TREES, max_size=4), st.binary(max_size=8), st.binary(max_size=8), st.booleans())
def test_list_document(trees: list[dict[str, Any]], head: bytes, tail: bytes, whole: bool) -> None:
    objects = [cached(orjson.dumps(tree)) for tree in trees]
    want = oracle.list_document(head, [oracle.with_revision(tree, 7) for tree in trees], tail, whole=whole)
    assert list_document(head, objects, tail, whole=whole) == want
    assert list_document(head, tuple(objects), tail, whole=whole) == want


@settings(max_examples=100, deadline=None)
@given(TREES, st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]), st.booleans())
def test_watch_frame(tree: dict[str, Any], event: str, chunked: bool) -> None:
    obj = cached(orjson.dumps(tree))
    want = oracle.watch_frame(event, oracle.with_revision(tree, 7), chunked=chunked)
    assert watch_frame(event, obj.head, obj.body, chunked=chunked) == want


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def check_damaged(value: bytes) -> None:
    """Refused, or taken with nothing lost."""
    try:
        obj = cached(value)
    except ValueError:
        with pytest.raises(ValueError, match="not a stored object"):
            split_head(value)
        return
    assert obj.stored() == value.rstrip(b"\n")
    assert split_head(value)[0] == obj.head
    assert obj.at_revision(7).body == obj.body
    try:
        tree = json.loads(value, object_pairs_hook=no_duplicates)
    except ValueError:
        # Not JSON beyond the part that was scanned; reading more must still be safe.
        for read in (obj.labels, obj.metadata):
            try:
                read()
            except ValueError:
                pass
        return
    assert obj.tree()["metadata"].pop("resourceVersion") == "7"
    try:
        labels = obj.labels()
    except ValueError:
        # JSON, but not as the store writes it: white space between tokens, for one.
        assert json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass") != value
    else:
        assert labels == oracle.labels(tree)


def test_white_space_where_no_value_has_any() -> None:
    check_damaged(b'{"kind":"A","apiVersion":"v1","metadata":{"uid":"u","labels":{"a":"",\n"b":""}}}')


@settings(max_examples=100, deadline=None)
@given(TREES, st.data())
def test_damaged_values(tree: dict[str, Any], data: st.DataObject) -> None:
    value = orjson.dumps(tree)
    start = data.draw(st.integers(0, len(value)))
    end = data.draw(st.integers(start, min(len(value), start + 6)))
    check_damaged(value[:start] + data.draw(st.sampled_from(DAMAGE)) + value[end:])


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_every_truncation(tree: dict[str, Any]) -> None:
    value = orjson.dumps(tree)
    for size in range(min(len(value), 200)):
        check_damaged(value[:size])


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.text('{}[]":,\\ametkind\n', max_size=60).map(str.encode))
def test_any_bytes(value: bytes) -> None:
    check_damaged(value)
