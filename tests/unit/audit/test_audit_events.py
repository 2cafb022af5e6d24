from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.audit import event as events
from fastapi_core.audit.event import Deferred, Subject
from fastapi_core.audit.policy import Level, Ruling
from fastapi_core.codec import json as codec
from fastapi_core.codec import protobuf
from fastapi_core.request.context import User

INFO: Any = SimpleNamespace(
    is_resource_request=True,
    verb="get",
    api_group="apps",
    api_version="v1",
    namespace="default",
    resource="deployments",
    subresource="status",
    name="web",
)


def test_stamps_have_microseconds() -> None:
    assert events.stamp(0.0) == b"1970-01-01T00:00:00.000000Z"
    assert events.stamp(1_700_000_000.000_25) == b"2023-11-14T22:13:20.000250Z"
    assert events.stamp(1_700_000_000.999_999_2) == b"2023-11-14T22:13:20.999999Z"


@pytest.mark.parametrize(
    ("forwarded", "real", "peer", "found"),
    [
        (None, None, "10.0.0.1", ["10.0.0.1"]),
        (b"1.2.3.4, 5.6.7.8", None, "10.0.0.1", ["1.2.3.4", "5.6.7.8", "10.0.0.1"]),
        (b"1.2.3.4, nonsense,, 10.0.0.1", None, "10.0.0.1", ["1.2.3.4", "10.0.0.1"]),
        (b"1.2.3.4", b"1.2.3.4", "10.0.0.1", ["1.2.3.4", "10.0.0.1"]),
        (b"1.2.3.4", b"9.9.9.9", "9.9.9.9", ["1.2.3.4", "9.9.9.9"]),
        (b"001.02.3.4", b"::ffff:1.2.3.4", "::1", ["1.2.3.4", "::1"]),
        (b"2001:DB8::0:1", b"fe80::1%eth0", "", ["2001:db8::1"]),
        (b"\xff\xfe", b"1.2.3", "", []),
    ],
)
def test_source_addresses(forwarded: bytes | None, real: bytes | None, peer: str, found: list[str]) -> None:
    assert events.source_ips(forwarded, real, peer) == found


@given(st.binary(max_size=40), st.binary(max_size=20))
@settings(max_examples=100, deadline=None)
def test_any_header_is_read_as_addresses(forwarded: bytes, real: bytes) -> None:
    assert events.source_ips(forwarded, real, "127.0.0.1")[-1] == "127.0.0.1"


def test_what_repeats_is_encoded_in_the_order_of_the_type() -> None:
    user = User("alice", "7", ("a", "b"), {"z": ("1",), "k": ("2", "3")})
    subject = Subject(Ruling(Level.METADATA), user, "/apis/<x>?a=1&b", INFO, ["1.2.3.4"], "x" * 2000)
    text = b"{" + subject.complete[1:] + b"}"
    tree = json.loads(text)
    assert list(tree) == ["stage", "requestURI", "verb", "user", "sourceIPs", "userAgent", "objectRef"]
    assert tree["user"] == {
        "username": "alice",
        "uid": "7",
        "groups": ["a", "b"],
        "extra": {"k": ["2", "3"], "z": ["1"]},
    }
    assert tree["userAgent"] == "x" * 1024 + "...TRUNCATED"
    assert list(tree["objectRef"].items()) == [
        ("resource", "deployments"),
        ("namespace", "default"),
        ("name", "web"),
        ("apiGroup", "apps"),
        ("apiVersion", "v1"),
        ("subresource", "status"),
    ]
    assert b"\\u003cx\\u003e?a=1\\u0026b" in text


def test_a_target_that_is_no_text_is_kept_as_far_as_it_is() -> None:
    subject = Subject(Ruling(Level.METADATA), None, "/a\udcff", INFO, [], "")
    assert json.loads(b"{" + subject.complete[1:] + b"}")["requestURI"] in ("/a?", "/a\ufffd")


def deferred(request: bytes = b"", response: Any = b"", form: str = "json", *, omit: bool = False) -> Deferred:
    before = events.PREFIX + b'"level":"RequestResponse"'
    return Deferred(before, b',"stageTimestamp":"x"', {"b": "2", "a": "1"}, request, response, form, omit=omit)


MANAGED = {"metadata": {"name": "x", "managedFields": [{"manager": "m"}]}}


def test_bodies_are_compact_json_whatever_form_they_had() -> None:
    tree = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}, "data": {"a": "<1>"}}
    expected = codec.encode(tree)
    forms = {
        "json": codec.encode(tree) + b"\n",
        "yaml": b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\ndata: {a: <1>}\n",
        "protobuf": protobuf.answer(tree),
    }
    for form, body in [*forms.items(), ("json", codec.encode_pretty(tree))]:
        line = deferred(b'{"r":1}', [body[:9], body[9:]], form).line()
        event = json.loads(line)
        assert line.endswith(b"}\n")
        assert b'"requestObject":{"r":1},"responseObject":' in line
        assert event["annotations"] == {"a": "1", "b": "2"}
        if form == "protobuf":
            assert event["responseObject"] == tree
        else:
            assert expected in line


@given(st.binary(max_size=30), st.sampled_from(["json", "yaml"]))
@settings(max_examples=100, deadline=None)
def test_what_clients_send_becomes_json_or_nothing(body: bytes, form: str) -> None:
    found = events.compact(body, form, omit=False)
    assert b"\n" not in found
    if found:
        json.loads(found)


@pytest.mark.parametrize("body", [b"not json", b"k8s\x00\x01", b"[" * 300, b"\xff"])
@pytest.mark.parametrize("form", ["json", "yaml", "protobuf"])
def test_a_body_that_cannot_be_read_never_breaks_a_line(body: bytes, form: str) -> None:
    line = deferred(response=body + b"\n\n", form=form, omit=True).line()
    assert json.loads(line)["level"] == "RequestResponse"
    assert line.count(b"\n") == 1


def test_managed_fields_are_left_out_of_objects_lists_and_tables() -> None:
    table = {"kind": "Table", "rows": [{"object": MANAGED}, {"cells": []}]}
    for tree in (MANAGED, {"kind": "PodList", "metadata": {}, "items": [MANAGED]}, table):
        body = codec.encode(tree)
        assert b"managedFields" in deferred(response=body).line()
        line = deferred(response=body, omit=True).line()
        assert b"managedFields" not in line
        assert b'{"name":"x"}' in line


def test_too_large_events_lose_their_bodies_first() -> None:
    render = events.limited(300)
    small = deferred(b'{"a":1}').line()
    assert render(deferred(b'{"a":1}')) == small
    cut = render(deferred(b'"' + b"x" * 400 + b'"'))
    assert cut is not None
    assert json.loads(cut)["annotations"] == {"a": "1", "audit.k8s.io/truncated": "true", "b": "2"}
    assert b"requestObject" not in cut
    assert render(b"x" * 301) is None
    assert events.limited(20)(deferred()) is None


def test_the_legacy_line() -> None:
    event = {
        "auditID": "1-2",
        "stage": "ResponseComplete",
        "requestURI": '/api/v1/x"y',
        "verb": "get",
        "user": {"username": "alice", "groups": ["a", "b"]},
        "impersonatedUser": {"username": "bob", "groups": ["c"]},
        "sourceIPs": ["1.2.3.4"],
        "userAgent": "kubectl",
        "objectRef": {"namespace": "default"},
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-01-02T03:04:05.120000Z",
    }
    assert events.legacy(json.dumps(event).encode()) == (
        b'2026-01-02T03:04:05.12Z AUDIT: id="1-2" stage="ResponseComplete" ip="1.2.3.4" method="get" user="alice" '
        b'groups="\\"a\\",\\"b\\"" as="bob" asgroups="\\"c\\"" user-agent="kubectl" namespace="default" uri="/api/v1/x\\"y" '
        b'response="200"\n'
    )
    bare = {key: event[key] for key in ("auditID", "stage", "requestURI", "verb")}
    bare |= {"user": {}, "requestReceivedTimestamp": "2026-01-02T03:04:05.000000Z"}
    assert events.legacy(json.dumps(bare).encode()) == (
        b'2026-01-02T03:04:05Z AUDIT: id="1-2" stage="ResponseComplete" ip="<unknown>" method="get" user="<none>" '
        b'groups="<none>" as="<self>" asgroups="<lookup>" user-agent="" namespace="<none>" uri="/api/v1/x\\"y" '
        b'response="<deferred>"\n'
    )
