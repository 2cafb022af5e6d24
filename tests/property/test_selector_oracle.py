"""The compiled matcher equals the oracle."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext.objects import CachedObject
from fastapi_core._ext.selector import Matcher, selectable_fields
from tests.oracles import selector as oracle

KEYS = st.sampled_from(["app", "tier", "n"])
INTEGERS = st.integers(-(2**63), 2**63 - 1).map(str) | st.sampled_from(["0", "+3", "-3", "003"])
TEXTS = st.sampled_from(["", "a", "b", "é", "9223372036854775808", "-9223372036854775809", "1e3", "1_0", "٣", "-", "+"])
VALUES = TEXTS | INTEGERS | st.integers(0, 9).map(str)
LABEL = st.one_of(
    st.tuples(KEYS, st.sampled_from(["in", "notin"]), st.lists(VALUES, min_size=1, max_size=3).map(tuple)),
    st.tuples(KEYS, st.sampled_from(["exists", "!"]), st.just(())),
    st.tuples(KEYS, st.sampled_from(["gt", "lt"]), st.tuples(INTEGERS)),
)
FIELDS = st.sampled_from(["metadata.name", "metadata.namespace", "spec.nodeName", "status.phase"])
FIELD = st.tuples(FIELDS, st.sampled_from(["=", "!="]), st.sampled_from(["", "a", "b", "ns"]))


def extract(obj: CachedObject) -> dict[str, str]:
    spec = obj.tree()["spec"]
    return {f"{part}.{key}": spec[key] for part, key in (("spec", "nodeName"), ("status", "phase")) if key in spec}


@st.composite
def objects(draw: st.DrawFn) -> CachedObject:
    name, namespace = draw(st.sampled_from(["a", "b", "c"])), draw(st.sampled_from(["", "ns", "b"]))
    labels = draw(st.none() | st.dictionaries(KEYS, VALUES, max_size=3))
    spec = draw(st.dictionaries(st.sampled_from(["nodeName", "phase"]), st.sampled_from(["", "a", "b"]), max_size=2))
    tree: dict[str, Any] = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}
    if labels is not None:
        tree["metadata"]["labels"] = labels
    return CachedObject(f"/registry/pods/{namespace}/{name}", namespace, name, orjson.dumps(tree), 1, 1)


@settings(max_examples=200, deadline=None)
@given(st.lists(LABEL, max_size=3), st.lists(FIELD, max_size=3), st.lists(objects(), max_size=6), st.integers(0, 4))
def test_matches_and_select(
    labels: list[tuple[str, str, tuple[str, ...]]],
    fields: list[tuple[str, str, str]],
    candidates: list[CachedObject],
    limit: int,
) -> None:
    matcher = Matcher(labels, fields, extract)

    def wanted(obj: CachedObject) -> bool:
        known = {"metadata.name": obj.name, "metadata.namespace": obj.namespace, **extract(obj)}
        return oracle.matches(labels, fields, obj.labels(), known)

    want = [obj for obj in candidates if wanted(obj)]
    assert [obj for obj in candidates if matcher.matches(obj)] == want
    assert matcher.select(candidates) == matcher.select(tuple(candidates)) == want
    page, seen = matcher.select_page(candidates, limit)
    assert page == (want[:limit] if limit else want)
    assert [obj for obj in candidates[:seen] if wanted(obj)] == page
    for field in ("metadata.name", "spec.nodeName"):
        values = [value for name, operator, value in fields if name == field and operator == "="]
        required = matcher.required(field)
        assert required in values if values else required is None


def test_fields_are_extracted_once() -> None:
    calls = []

    def counted(obj: CachedObject) -> dict[str, str]:
        calls.append(obj)
        return {"spec.nodeName": "n"}

    obj = CachedObject("/k", "", "k", b'{"kind":"A","apiVersion":"v1","metadata":{}}', 1, 1)
    matcher = Matcher([], [("spec.nodeName", "=", "n")], counted)
    assert matcher.matches(obj)
    assert Matcher([], [("spec.nodeName", "!=", "m")], counted).matches(obj)
    assert selectable_fields(obj, counted) == {"spec.nodeName": "n"}
    assert calls == [obj]
