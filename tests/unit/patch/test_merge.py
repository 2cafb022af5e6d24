from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.patch.errors import PatchError
from fastapi_core.patch.merge import merge

# RFC 7386, appendix A: the rows whose target and patch are objects
RFC = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), RFC)
def test_rfc_examples(target: Any, patch: Any, expected: Any) -> None:
    assert merge(target, patch) == expected


@pytest.mark.parametrize("patch", [None, [], ["a"], "x", 1, True])
def test_a_patch_must_be_an_object(patch: Any) -> None:
    with pytest.raises(PatchError) as caught:
        merge({"a": "b"}, patch)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


def test_nulls_in_objects_of_a_list_are_dropped_unless_it_replaces_an_object() -> None:
    items = [{"a": None, "b": 1}, None]
    assert merge({}, {"x": items}) == {"x": [{"b": 1}, None]}
    assert merge({"x": [1]}, {"x": items}) == {"x": [{"b": 1}, None]}
    assert merge({"x": {"y": 1}}, {"x": items}) == {"x": items}


words = st.sampled_from(["a", "b", "c"])
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=12,
)
objects = st.dictionaries(words, values, max_size=3)


def _rfc(target: Any, patch: Any) -> Any:
    """The RFC's pseudo code."""
    if not isinstance(patch, dict):
        return patch
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _rfc(result.get(name), value)
    return result


def _without_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_lists(item) for key, item in value.items() if not isinstance(item, list)}
    return value


@settings(max_examples=200, deadline=None)
@given(objects, objects)
def test_equals_the_rfc_where_no_list_is_involved(target: Any, patch: Any) -> None:
    target, patch = _without_lists(target), _without_lists(patch)
    assert merge(target, patch) == _rfc(target, patch)


@settings(max_examples=100, deadline=None)
@given(objects, objects)
def test_nothing_given_is_changed_and_applying_twice_is_applying_once(target: Any, patch: Any) -> None:
    kept, kept_patch = copy.deepcopy(target), copy.deepcopy(patch)
    once = merge(target, patch)
    assert (target, patch) == (kept, kept_patch)
    assert _without_lists(merge(once, patch)) == _without_lists(once)
