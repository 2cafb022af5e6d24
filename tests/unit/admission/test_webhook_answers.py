"""What webhooks send back, whatever it is: a response, or an error in the words clients know."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.admission.webhooks import review
from fastapi_core.admission.webhooks.answers import RequestError, answered
from fastapi_core.admission.webhooks.caller import CallError
from fastapi_core.admission.webhooks.patching import apply, operations, owners_problem
from fastapi_core.admission.webhooks.review import ReviewError
from fastapi_core.errors import APIError

Tree = dict[str, Any]

TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 700) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
MEMBERS = ("uid", "allowed", "patch", "patchType", "status", "warnings", "auditAnnotations")
RESPONSES = st.dictionaries(st.sampled_from(MEMBERS), TREES | st.just("u") | st.just("eyJ9"), max_size=7)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(("AdmissionReview", "Pod", "", 7)),
        "apiVersion": st.sampled_from(("admission.k8s.io/v1", "admission.k8s.io/v1beta1", "v1", "", None)),
        "response": RESPONSES | TREES,
    },
)


def tried(call: Callable[[], Any], *expected: type[Exception]) -> Any:
    """The result, or the error when it is one of the expected ones."""
    try:
        return call()
    except expected as error:
        return error


@given(DOCUMENTS, st.sampled_from(review.VERSIONS), st.booleans())
def test_any_document_is_understood_or_refused(tree: Tree, version: str, mutating: bool) -> None:
    response = tried(lambda: review.understood(version, "u", tree, mutating=mutating), RequestError, ReviewError)
    if isinstance(response, Exception):
        assert str(response)
        return
    assert isinstance(response.allowed, bool)
    if response.patch:
        assert mutating
        assert response.patch_type
    if version == "v1":
        assert tree["response"]["uid"] == "u"
    if not response.allowed:
        refusal = review.refusal("n", response.status)
        assert 400 <= refusal.code <= 999
        json.dumps(refusal.to_status())


@given(st.integers(100, 999), st.sampled_from(("", "text/plain", "application/json")), st.binary(max_size=40))
def test_any_body_is_a_document_or_an_error(status: int, kind: str, body: bytes) -> None:
    found = tried(lambda: answered(status, kind, body), RequestError)
    if isinstance(found, RequestError):
        # Of some statuses the text is what the server says, even nothing.
        assert str(found) or status in (403, 406, 415)
    else:
        assert isinstance(found, dict)
        assert 200 <= status <= 206


@pytest.mark.parametrize(
    ("status", "kind", "body", "text"),
    [
        (500, "", b"went wrong\n", 'an error on the server ("went wrong") has prevented the request from succeeding'),
        (502, "text/html", b"<", 'an error on the server ("<") has prevented the request from succeeding'),
        (
            500,
            "application/json",
            b"{}",
            'an error on the server ("unknown") has prevented the request from succeeding',
        ),
        (400, "", b"which", "the server rejected our request for an unknown reason"),
        (401, "", b"", "the server has asked for the client to provide credentials"),
        (403, "", b"go away", "go away"),
        (404, "", b"x", "the server could not find the requested resource"),
        (302, "", b"", "the server responded with the status code 302 but did not return more information"),
        (409, "", b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"theirs"}', "theirs"),
        (200, "a/b", b"", "0-length response with status code: 200 and content type: a/b"),
        (
            200,
            "",
            b"<",
            "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct "
            r'{ APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }',
        ),
    ],
)
def test_texts_of_http_failures(status: int, kind: str, body: bytes, text: str) -> None:
    with pytest.raises(RequestError) as raised:
        answered(status, kind, body)
    assert str(raised.value) == text


def test_a_status_becomes_the_client_s_error() -> None:
    status = {"code": 429, "reason": "TooManyRequests", "message": "later", "details": {"retryAfterSeconds": 3}}
    refusal = review.refusal("w", status)
    assert (refusal.code, refusal.reason, refusal.retry_after) == (429, "TooManyRequests", 3)
    assert refusal.message == 'admission webhook "w" denied the request: later'
    assert review.refusal("w", {"reason": "Gone", "code": 410}).message.endswith("denied the request: Gone")
    plain = review.refusal("w", {"code": 200, "status": "Success"})
    assert (plain.code, plain.message) == (400, 'admission webhook "w" denied the request without explanation')


@given(st.binary(max_size=60) | TREES.map(lambda tree: json.dumps(tree).encode()))
def test_any_patch_applies_or_fails(patch: bytes) -> None:
    steps = tried(lambda: operations(patch), CallError)
    if isinstance(steps, CallError):
        assert str(steps).startswith("received undecodable patch in webhook response: ")
        return
    found = tried(lambda: apply({"a": {"b": [1]}}, steps), APIError)
    assert isinstance(found, dict) or found.code == 500


STEPS = st.fixed_dictionaries(
    {"op": st.sampled_from(("add", "remove", "replace", "move", "copy", "test", "x"))},
    optional={
        "path": st.sampled_from(("/a", "/a/b/0", "/a/b/-", "/z/y", "", "z")),
        "from": st.sampled_from(("/a", "/q/r", "")),
        "value": TREES,
    },
)


@given(st.lists(STEPS, max_size=5))
def test_any_operations_apply_or_fail(steps: list[Tree]) -> None:
    tree = {"a": {"b": [1]}}
    found = tried(lambda: apply(tree, steps), APIError)
    assert isinstance(found, dict) or found.message.startswith("Internal error occurred: ")
    assert tree == {"a": {"b": [1]}}


@given(TREES | st.lists(TREES))
def test_any_owners_are_judged(entries: Any) -> None:
    assert isinstance(owners_problem(entries), str)
