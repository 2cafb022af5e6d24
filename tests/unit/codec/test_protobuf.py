"""Envelopes, errors and limits of protobuf bodies; documents, lists and events."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastapi_core._ext import protoread, protowire, protowrite
from fastapi_core.codec import protobuf
from fastapi_core.schema.errors import DecodeError
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_of

CONFIG_MAP = type_of("core/v1.ConfigMap")
#: A ConfigMap with a label, `data` and `binaryData`, as recorded.
RECORDED = base64.b64decode("azhzAAoPCgJ2MRIJQ29uZmlnTWFwEiUKDwoDcGIxWggKA2FwcBIBeBIICgFrEgN2w6kaCAoBYhIDAAH/GgAiAA==")


def test_recorded_body() -> None:
    envelope = protobuf.open_envelope(RECORDED)
    assert envelope[:2] == ("v1", "ConfigMap")
    assert protobuf.decode(CONFIG_MAP, envelope.message) == {
        "metadata": {"name": "pb1", "labels": {"app": "x"}},
        "data": {"k": "vé"},
        "binaryData": {"b": "AAH/"},
    }


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "empty data"),
        (b"hello world", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\x00", "empty body"),
        (b"k8s\x00\x0a\x0f\x0a\x02v1", "unexpected EOF"),
        (b"k8s\x00\x08\x01", "proto: wrong wireType = 0 for field TypeMeta"),
        (b"k8s\x00\x0c", "proto: Unknown: wiretype end group for non-group"),
        (b"k8s\x00\x02\x00", "proto: Unknown: illegal tag 0 (wire type 2)"),
    ],
)
def test_broken_envelopes(body: bytes, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        protobuf.open_envelope(body)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"\x0a\x05", "unexpected EOF"),
        (b"\x0a\xff\xff\xff", "unexpected EOF"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
        (b"\x0a" + b"\xff" * 10, "proto: integer overflow"),
        (b"\x0d\x00\x00\x00\x00", "proto: wrong wireType = 5 for field Metadata"),
        (b"\x0a\x02\x08\x01", "proto: wrong wireType = 0 for field Name"),
        (b"\x7f", "proto: illegal wireType 7"),
        (b"\x7b\x7b\x7c", "unexpected EOF"),
        (b"\x12\x03\x0a\x05a", "unexpected EOF"),
    ],
)
def test_broken_messages(message: bytes, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        protobuf.decode(CONFIG_MAP, message)
    assert str(caught.value) == text


def test_unknown_fields_are_stepped_over() -> None:
    unknown = b"\x78\x01" + b"\x79" + b"\x00" * 8 + b"\x7a\x02ab" + b"\x7d" + b"\x00" * 4 + b"\x7b\x7b\x78\x01\x7c\x7c"
    assert protobuf.decode(CONFIG_MAP, unknown + b"\x0a\x03\x0a\x01a" + unknown) == {"metadata": {"name": "a"}}
    assert protobuf.decode(CONFIG_MAP, b"\xfa\xff\xff\xff\x3f\x00") == {}


def test_parts_of_a_message_are_merged() -> None:
    parts = b"\x0a\x03\x0a\x01a" + b"\x0a\x03\x1a\x01b" + b"\x12\x06\x0a\x01k\x12\x01v" + b"\x12\x06\x0a\x01k\x12\x01w"
    assert protobuf.decode(CONFIG_MAP, parts) == {"metadata": {"name": "a", "namespace": "b"}, "data": {"k": "w"}}
    assert protobuf.decode(CONFIG_MAP, b"\x0a\x03\x0a\x01a" + b"\x0a\x02\x0a\x00") == {"metadata": {}}


def test_text_that_is_no_utf8_is_mended_as_in_json() -> None:
    assert protobuf.decode(CONFIG_MAP, b"\x0a\x05\x0a\x03\xe2\x82a") == {"metadata": {"name": "\ufffd\ufffda"}}


def test_packed_numbers() -> None:
    context = type_of("core/v1.PodSecurityContext")
    assert protobuf.decode(context, b"\x22\x03\x01\x96\x01" + b"\x20\x05") == {"supplementalGroups": [1, 150, 5]}
    with pytest.raises(DecodeError):
        protobuf.decode(context, b"\x22\x02\x01\x96")


def test_nesting_is_limited() -> None:
    schema = type_of("apiextensions.k8s.io/v1.JSONSchemaProps")
    number = next(field.number for field in schema.declared if field.name == "not")
    message = b""
    for _ in range(100):
        message = protobuf.chunk(message, number)
    assert protobuf.encode(schema, normalize(schema, protobuf.decode(schema, message)).tree)
    for _ in range(100_000 // 100):
        message = protobuf.chunk(message, number)
    with pytest.raises(DecodeError, match="exceeded max depth"):
        protobuf.decode(schema, message)


def test_nesting_counts_json_inside() -> None:
    revision = type_of("apps/v1.ControllerRevision")
    deep = b"[" * 200 + b"]" * 200
    assert protobuf.decode(revision, protobuf.chunk(protobuf.chunk(deep, 1)))["data"]
    with pytest.raises(DecodeError):
        protobuf.decode(revision, protobuf.chunk(protobuf.chunk(b"[" * 250 + b"]" * 250, 1)))
    with pytest.raises(DecodeError):
        protobuf.decode(revision, protobuf.chunk(protobuf.chunk(b"{", 1)))


@pytest.mark.parametrize("seconds", [253402300800, -62167219201, 2**63 - 1, -(2**63)])
def test_years_json_cannot_write(seconds: int) -> None:
    for name in ("meta/v1.ObjectMeta", "coordination.k8s.io/v1.LeaseSpec"):
        type_ = type_of(name)
        field = next(f for f in type_.declared if f.type is not None and f.type.json in ("time", "microtime"))
        timestamp = protowrite.encode(
            protowire.Message("Timestamp", [protowire.Member("s", 1, protowire.INT64)]), {"s": seconds}
        )
        with pytest.raises(DecodeError):
            protobuf.decode(type_, protobuf.chunk(timestamp, field.number))


def test_times_of_other_spellings_are_written() -> None:
    meta = type_of("meta/v1.ObjectMeta")
    plain = protobuf.encode(meta, {"creationTimestamp": "2024-01-02T03:04:05Z"})
    assert protobuf.encode(meta, {"creationTimestamp": "2024-01-02T04:04:05+01:00"}) == plain
    assert protobuf.encode(meta, {"creationTimestamp": "2024-01-02T03:04:05.25Z"}) == plain


@pytest.mark.parametrize(
    "tree",
    [
        {"metadata": {"name": 3}},
        {"metadata": []},
        {"data": ["a"]},
        {"data": {"a": 1}},
        {"immutable": 1},
        {"metadata": {"generation": "x"}},
        {"metadata": {"generation": 2**64}},
        {"metadata": {"creationTimestamp": "yesterday"}},
        {"metadata": {"finalizers": "x"}},
        {"metadata": {"name": "\ud800"}},
        {"binaryData": {"a": 1}},
    ],
)
def test_trees_that_do_not_fit_are_errors(tree: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        protobuf.encode(CONFIG_MAP, tree)


def test_message_larger_than_the_first_buffer() -> None:
    tree = {"data": {f"k{i:03}": "é" * i for i in range(300)}}
    assert protobuf.decode(CONFIG_MAP, protobuf.encode(CONFIG_MAP, tree))["data"] == tree["data"]


def test_list_document() -> None:
    items = [protobuf.chunk(protobuf.encode(CONFIG_MAP, {"metadata": {"name": name}})) for name in ("a", "b")]
    metadata = {"resourceVersion": "7", "continue": "t", "remainingItemCount": 2}
    envelope = protobuf.open_envelope(protobuf.list_document("v1", "ConfigMapList", metadata, items))
    assert envelope[:2] == ("v1", "ConfigMapList")
    listed = normalize(
        type_of("core/v1.ConfigMapList"), protobuf.decode(type_of("core/v1.ConfigMapList"), envelope.message)
    )
    assert listed.tree == {
        "metadata": metadata,
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    }


def test_watch_frame() -> None:
    body = protobuf.answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": 410})
    frame = protobuf.watch_frame("ERROR", body)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame[4:11] == b"\x0a\x05ERROR"
    assert frame.endswith(body)


def test_answers_need_a_known_kind() -> None:
    with pytest.raises(LookupError):
        protobuf.answer({"kind": "Widget", "apiVersion": "example.com/v1"})


def test_opening() -> None:
    assert protowrite.opening(1, 0) == b"\x0a\x00"
    assert protowrite.opening(16, 300) == b"\x82\x01\xac\x02"
    assert protowrite.opening(65535, 2**62) == b"\xfa\xff\x1f" + b"\x80" * 8 + b"\x40"
    for number, size in ((0, 1), (-1, 1), (1, -1)):
        with pytest.raises(ValueError, match="no field"):
            protowrite.opening(number, size)


def test_plans_refuse_nonsense() -> None:
    for number in (0, -1, 65536):
        with pytest.raises(ValueError, match="no field number"):
            protowire.Member("a", number, protowire.STRING)
    twice = [protowire.Member(name, 1, protowire.STRING) for name in "ab"]
    with pytest.raises(ValueError, match="two fields"):
        protowire.Message("M", twice)
    assert protoread.decode(protowire.Message("Empty", []), b"\x08\x01", 1) == {}
