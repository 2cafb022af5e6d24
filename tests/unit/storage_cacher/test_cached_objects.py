"""Cached objects by example: the member orders of the reference, what is shared, what is refused."""

from __future__ import annotations

import pickle
import sys

import pytest

from fastapi_core._ext.objects import CachedObject, list_document, split_head, watch_frame
from fastapi_core._ext.selector import Matcher

TYPED = (
    b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"x","uid":"u","generation":1,'
    b'"labels":{"app":"web"}},"spec":{"metadata":{"uid":"no"}}}'
)
CUSTOM = (
    b'{"apiVersion":"g.io/v1","kind":"Widget","metadata":{"creationTimestamp":"t","labels":{"app":"web"},"name":"a",'
    b'"namespace":"x","uid":"u"},"spec":{}}'
)


def cached(value: bytes, revision: int = 9) -> CachedObject:
    return CachedObject("/registry/pods/x/a", "x", "a", value, revision, 5)


@pytest.mark.parametrize(
    ("value", "head", "body"),
    [
        (
            TYPED,
            b'{"kind":"Pod","apiVersion":"v1",',
            b'"metadata":{"name":"a","namespace":"x","uid":"u","resourceVersion":"9","generation":1,'
            b'"labels":{"app":"web"}},"spec":{"metadata":{"uid":"no"}}}',
        ),
        (
            CUSTOM,
            b'{"apiVersion":"g.io/v1","kind":"Widget",',
            b'"metadata":{"creationTimestamp":"t","labels":{"app":"web"},"name":"a","namespace":"x",'
            b'"resourceVersion":"9","uid":"u"},"spec":{}}',
        ),
        (
            b'{"apiVersion":"v1","kind":"K","data":{"metadata":{}},"metadata":{"uid":"u"}}',
            b'{"apiVersion":"v1","kind":"K",',
            b'"data":{"metadata":{}},"metadata":{"resourceVersion":"9","uid":"u"}}',
        ),
        (
            b'{"aaa":"}","apiVersion":"v1","data":1,"kind":"K","metadata":{"name":"a"}}',
            b"{",
            b'"aaa":"}","apiVersion":"v1","data":1,"kind":"K","metadata":{"name":"a","resourceVersion":"9"}}',
        ),
        (b'{"metadata":{}}', b"{", b'"metadata":{"resourceVersion":"9"}}'),
        (
            b'{"kind":"K","apiVersion":"v1","metadata":{"creationTimestamp":null}}\n',
            b'{"kind":"K","apiVersion":"v1",',
            b'"metadata":{"resourceVersion":"9","creationTimestamp":null}}',
        ),
    ],
)
def test_layout(value: bytes, head: bytes, body: bytes) -> None:
    obj = cached(value)
    assert (obj.head, obj.body, obj.json()) == (head, body, head + body)
    assert obj.stored() == value.rstrip()
    assert obj.at_revision(12345).json() == (head + body).replace(b'"9"', b'"12345"')
    assert split_head(value) == (
        head,
        len(head) + body.index(b'"resourceVersion"') - (b',"resourceVersion":"9"}' in body),
    )


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"metadata":[]}',
        b'{"metadata":{}',
        b'{"metadata":{"name":"a"}',
        b'{"kind":"K","apiVersion":"v1"}',
        b'{"kind":"K","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}',
        b'{"kind": "K", "metadata": {}}',
        b'{"kind":"K","spec":{"metadata":{}}}',
        b"k8s\x00\n\x0f",
    ],
)
def test_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="not a stored object"):
        cached(value)
    with pytest.raises(ValueError, match="not a stored object"):
        split_head(value)


def test_labels() -> None:
    assert cached(TYPED).labels() == cached(CUSTOM).labels() == {"app": "web"}
    none = cached(b'{"metadata":{}}').labels()
    for labels in (b"null", b"{}", b"[]", b'"text"'):
        assert cached(b'{"metadata":{"labels":%s}}' % labels).labels() is none
    odd = cached(b'{"metadata":{"labels":{"a":1,"b":{"c":"d"},"e":"\\u00e9","f":null}}}')
    assert odd.labels() == {"e": "é"}
    for broken in (b'{"a":}', b'{"a" "b"}', b'{"a":"\xff"}', b'{"a":"\\x"}', b'{"a":"b'):
        obj = cached(b'{"metadata":{"labels":%s}}' % broken)
        for _ in range(2):
            with pytest.raises(ValueError, match="labels cannot be read"):
                obj.labels()


def test_what_is_shared() -> None:
    """One run of bytes an object: ten thousand pods of 5 KB cost little more than their JSON."""
    value = TYPED[:-1] + b',"status":"' + b"x" * 5000 + b'"}'
    objects = [CachedObject(f"/registry/pods/x/{n}", "x", str(n), value, n, n) for n in range(100)]
    assert len({id(obj.head) for obj in objects}) == 1
    assert sum(sys.getsizeof(obj) + sys.getsizeof(obj.body) for obj in objects) < 100 * (len(value) + 250)
    assert objects[0].memo is objects[0].memo
    assert objects[0].at_revision(3).memo == {}


def test_an_object_survives_misuse() -> None:
    empty = CachedObject.__new__(CachedObject)
    assert (empty.json(), empty.stored(), empty.labels()) == (b"", b"", {})
    with pytest.raises(ValueError, match="not closed"):
        empty.metadata()
    with pytest.raises(ValueError, match="without a value"):
        empty.at_revision(1)
    with pytest.raises(ValueError, match="never initialised"):
        Matcher.__new__(Matcher).matches(empty)
    with pytest.raises(TypeError):
        list_document(b"", [object()], b"", whole=True)  # type: ignore[list-item]
    with pytest.raises(TypeError):
        cached(None)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        cached(TYPED).body = b""
    copied = pickle.loads(pickle.dumps(cached(CUSTOM)))
    assert (copied.json(), copied.revision, copied.created) == (cached(CUSTOM).json(), 9, 5)


@pytest.mark.parametrize(
    ("labels", "fields", "error"),
    [
        ([("a", "like", ("b",))], [], KeyError),
        ([("a", "gt", ("b",))], [], ValueError),
        ([("a", "gt", ())], [], ValueError),
        ([("a", "in", (1,))], [], TypeError),
        ([(None, "in", ("b",))], [], TypeError),
        ([], [("a", "~", "b")], KeyError),
        ([], [("a", "=", None)], TypeError),
        ([], [(None, "=", "b")], TypeError),
    ],
)
def test_requirements_that_make_no_matcher(labels: list, fields: list, error: type[Exception]) -> None:  # type: ignore[type-arg]
    with pytest.raises(error):
        Matcher(labels, fields)


def test_an_extract_that_answers_no_dict() -> None:
    matcher = Matcher([], [("spec.x", "=", "")], lambda obj: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="extract"):
        matcher.matches(cached(TYPED))
    assert Matcher([], [("spec.x", "=", "")]).matches(cached(TYPED))


def test_frames_and_documents() -> None:
    obj = cached(b'{"kind":"K","apiVersion":"v1","metadata":{"name":"a"}}')
    text = b'{"type":"ADDED","object":{"kind":"K","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"9"}}}\n'
    assert watch_frame("ADDED", obj.head, obj.body, chunked=False) == text
    assert watch_frame("ADDED", obj.head, obj.body) == b"67\r\n" + text + b"\r\n"
    assert list_document(b"[", [], b"]", whole=True) == b"[]"
    item = b'{"metadata":{"name":"a","resourceVersion":"9"}}'
    assert list_document(b"[", [obj, obj], b"]", whole=False) == b"[" + item + b"," + item + b"]"
