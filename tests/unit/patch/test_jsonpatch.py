from __future__ import annotations

import copy
import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.patch.errors import PatchError
from fastapi_core.patch.jsonpatch import MAX_COPY_BYTES, MAX_OPERATIONS, apply_json_patch

_spec = importlib.util.spec_from_file_location(
    "jsonpatch_oracle", Path(__file__).parents[2] / "oracles" / "jsonpatch_oracle.py"
)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

# RFC 6902, appendix A (A.9 and A.14 are below: they do not apply or need the escapes)
RFC = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    ({"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "qux"}], {"foo": ["bar", "qux", "baz"]}),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
    ({"baz": "qux", "foo": "bar"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo", "foo": "bar"}),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    (
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    (
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        {"foo": "bar", "child": {"grandchild": {}}},
    ),
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}], {"foo": "bar", "baz": "qux"}),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}], {"foo": ["bar", ["abc", "def"]]}),
]


@pytest.mark.parametrize(("document", "patch", "expected"), RFC)
def test_rfc_examples(document: Any, patch: Any, expected: Any) -> None:
    assert apply_json_patch(document, patch) == expected


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({}, [{"op": "replace", "path": "/a", "value": 1}], {"a": 1}),
        ({"a": {}}, [{"op": "copy", "from": "/a/b", "path": "/c"}], {"a": {}, "c": None}),
        ({}, [{"op": "test", "path": "/a", "value": None}], {}),
        ({}, [{"op": "test", "path": "/a"}], {}),
        ({"a": [1, 2]}, [{"op": "replace", "path": "/a/-1", "value": 3}], {"a": [1, 3]}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-2"}], {"a": [2]}),
        ({"a": [1, 2]}, [{"op": "add", "path": "/a/-1", "value": 3}], {"a": [1, 2, 3]}),
        ({"a": 1}, [{"op": "add", "path": "ignored/a", "value": 2}], {"a": 2}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
        ({"a": 1}, [{"op": "add", "path": "/a"}], {"a": None}),
        ({"a": 1}, None, {"a": 1}),
    ],
)
def test_where_the_reference_differs_from_the_rfc(document: Any, patch: Any, expected: Any) -> None:
    assert apply_json_patch(document, patch) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/baz", "value": "bar"},
        {"op": "test", "path": "/n", "value": 1.0},
        {"op": "test", "path": "/n", "value": True},
        {"op": "test", "path": "/n"},
        {"op": "add", "path": "/baz/bat", "value": "qux"},
        {"op": "remove", "path": "/missing"},
        {"op": "remove", "path": "/list/2"},
        {"op": "remove", "path": "/list/-"},
        {"op": "remove", "path": "/list/-3"},
        {"op": "replace", "path": "/list/x", "value": 1},
        {"op": "replace", "path": "/list/-", "value": 1},
        {"op": "add", "path": "/list/3", "value": 1},
        {"op": "test", "path": "/list/7", "value": 1},
        {"op": "move", "from": "/missing", "path": "/b"},
        {"op": "copy", "from": "/missing/x", "path": "/b"},
        {"op": "add", "path": "nope", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "add"},
        {"op": "move", "path": "/a"},
        {"op": "increase", "path": "/n"},
        {},
        None,
        {"op": "replace", "path": "", "value": 1},
    ],
)
def test_operations_that_do_not_apply(operation: Any) -> None:
    with pytest.raises(PatchError) as caught:
        apply_json_patch({"n": 1, "list": [1, 2], "baz": "qux"}, [operation])
    error = caught.value
    assert error.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }


@pytest.mark.parametrize("body", [{"op": "add"}, "x", 1, ["add"], [1], [{"op": 1}], [{"op": "add", "path": []}]])
def test_documents_that_are_no_list_of_operations(body: Any) -> None:
    with pytest.raises(PatchError) as caught:
        apply_json_patch({}, body)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


def test_a_list_as_result_is_a_client_error() -> None:
    with pytest.raises(PatchError) as caught:
        apply_json_patch({}, [{"op": "replace", "path": "", "value": []}])
    status = caught.value.to_status()
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in status["details"]["causes"]] == ["patch"]


def test_too_many_operations() -> None:
    apply_json_patch({"a": 1}, [{"op": "test", "path": "/a", "value": 1}] * MAX_OPERATIONS)
    with pytest.raises(PatchError) as caught:
        apply_json_patch({}, [{}] * (MAX_OPERATIONS + 1))
    assert (caught.value.code, caught.value.reason) == (413, "RequestEntityTooLarge")
    assert (
        caught.value.message
        == "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


def test_copies_are_limited_together() -> None:
    document = {"a": "x" * (MAX_COPY_BYTES // 2 - 10)}
    copies = [{"op": "copy", "from": "/a", "path": f"/b{index}"} for index in range(3)]
    assert len(apply_json_patch(document, copies[:2])) == 3
    with pytest.raises(PatchError) as caught:
        apply_json_patch(document, copies)
    assert caught.value.code == 422


def test_a_copy_is_independent_of_its_source() -> None:
    patch = [
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/a/y", "value": 2},
        {"op": "add", "path": "/b/z", "value": 3},
    ]
    assert apply_json_patch({"a": {}}, patch) == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "z": 3}}


words = st.sampled_from(["a", "b", "c"])
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([1.0, 0.5]), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=10,
)
objects = st.dictionaries(words, values, max_size=3)
pointers = st.lists(st.one_of(words, st.sampled_from(["0", "1", "-1", "-", "01", "~0", "~1"])), max_size=3).map(
    lambda parts: "".join("/" + part for part in parts)
)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": pointers, "from": pointers},
    optional={"value": values},
)


@settings(max_examples=200, deadline=None)
@given(objects, st.lists(operations, max_size=4))
def test_engine_agrees_with_the_oracle(document: Any, patch: Any) -> None:
    kept, kept_patch = copy.deepcopy(document), copy.deepcopy(patch)
    try:
        expected = _module.oracle(document, patch)
    except _module.DoesNotApplyError:
        expected = None
    if isinstance(expected, dict):
        assert apply_json_patch(document, patch) == expected
    else:
        with pytest.raises(PatchError):
            apply_json_patch(document, patch)
    assert (document, patch) == (kept, kept_patch)


@settings(max_examples=100, deadline=None)
@given(objects, values)
def test_any_document_gives_an_object_or_a_patch_error(document: Any, patch: Any) -> None:
    try:
        code = 200 if isinstance(apply_json_patch(document, patch), dict) else 0
    except PatchError as error:
        code = error.code
    assert code in (200, 400, 422)
