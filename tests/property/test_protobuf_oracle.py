"""The compiled protobuf codec equals the oracle for generated objects, broken messages and noise."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastapi_core.codec import protobuf
from fastapi_core.schema.errors import DecodeError
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_of
from fastapi_core.schema.types import Field, Type
from tests.oracles import protobuf as oracle

KINDS = [
    type_of(ref)
    for ref in (
        "core/v1.ConfigMap",
        "core/v1.Pod",
        "core/v1.Service",
        "core/v1.Event",
        "core/v1.Node",
        "apps/v1.DaemonSet",
        "autoscaling/v2.HorizontalPodAutoscaler",
        "authorization.k8s.io/v1.SubjectAccessReview",
        "apiextensions.k8s.io/v1.CustomResourceDefinition",
        "coordination.k8s.io/v1.Lease",
        "resource.k8s.io/v1.ResourceSlice",
        "meta/v1.DeleteOptions",
        "meta/v1.Status",
        "meta/v1.APIResourceList",
    )
]
kinds = st.sampled_from(KINDS)
texts = st.one_of(
    st.sampled_from(["", "a", "web", "é", "x" * 200]), st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
)
moments = st.sampled_from(
    ["1970-01-01T00:00:00Z", "2024-02-29T23:59:59Z", "0003-01-02T03:04:05Z", "9999-12-31T23:59:59Z"]
)
FORMS: dict[str, st.SearchStrategy[Any]] = {
    "time": st.one_of(st.none(), moments),
    "microtime": st.one_of(st.none(), moments.map(lambda text: text[:-1] + ".012345Z")),
    "duration": st.sampled_from(["0s", "1.5s", "-1h2m3s"]),
    "quantity": st.sampled_from(["0", "1500m", "1Gi", "12"]),
    "intOrString": st.one_of(st.integers(-(2**31), 2**31 - 1), texts),
    "rawObject": st.sampled_from([None, {"kind": "X", "a": [1, None, "é"]}, {}]),
    "rawAny": st.sampled_from([None, True, 3, "é", {"a": []}]),
    "fields": st.sampled_from([None, {"f:metadata": {"f:labels": {".": {}}}}]),
    "list": st.lists(texts, max_size=2),
}
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": texts,
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "double": st.sampled_from([0, 1, -2.5, 1e300]),
    "bytes": st.binary(max_size=4).map(lambda data: base64.b64encode(data).decode()),
}


def value_of(draw: Any, field: Field, depth: int) -> Any:
    if field.type is None:
        return draw(SCALARS[field.scalar])
    form = field.type.json
    if not form:
        return tree_of(draw, field.type, depth - 1)
    if form in FORMS:
        return draw(FORMS[form])
    schema = next(f.type for f in field.type.declared if f.type is not None)
    if form == "schemaOrBool":
        short: Any = draw(st.booleans())
    elif form == "schemaOrStringList":
        short = draw(st.lists(texts, min_size=1, max_size=2))
    else:
        short = [tree_of(draw, schema, depth - 1)]
    return short if draw(st.booleans()) else tree_of(draw, schema, depth - 1)


def tree_of(draw: Any, type_: Type, depth: int) -> dict[str, Any]:
    fields = list(type_.fields.values())
    chosen = draw(st.lists(st.sampled_from(fields), max_size=6 if depth > 0 else 0)) if fields else []
    out: dict[str, Any] = {}
    for field in chosen:
        if field.card == "list":
            out[field.name] = [value_of(draw, field, depth) for _ in range(draw(st.integers(0, 2)))]
        elif field.card == "map":
            keys = draw(st.lists(texts, max_size=2, unique=True))
            out[field.name] = {key: value_of(draw, field, depth) for key in keys}
        else:
            out[field.name] = value_of(draw, field, depth)
    return out


@st.composite
def objects(draw: Any) -> tuple[Type, dict[str, Any]]:
    type_ = draw(kinds)
    return type_, normalize(type_, tree_of(draw, type_, 5)).tree


@st.composite
def damaged(draw: Any) -> tuple[Type, bytes]:
    """A message with bytes changed, dropped or put in."""
    type_, tree = draw(objects())
    data = bytearray(protobuf.encode(type_, tree))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        how = draw(st.sampled_from("cdi"))
        if how == "i":
            data[at:at] = draw(st.binary(min_size=1, max_size=3))
        elif how == "d":
            del data[at : at + draw(st.integers(1, 4))]
        elif at < len(data):
            data[at] = draw(st.integers(0, 255))
    return type_, bytes(data)


def both(type_: Type, data: bytes) -> tuple[Any, Any]:
    try:
        expected = oracle.read(type_, data)
    except oracle.BrokenError:
        expected = None
    try:
        found = protobuf.decode(type_, data)
    except DecodeError:
        found = None
    return found, expected


def without_empty(value: Any) -> Any:
    """Without what only JSON can say: that a list or a text is empty and not unset."""
    if isinstance(value, dict):
        kept = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, [], {}, "")}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


slow = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@slow
@given(objects())
def test_written_as_the_oracle_writes(case: tuple[Type, dict[str, Any]]) -> None:
    type_, tree = case
    assert protobuf.encode(type_, tree) == oracle.message(type_, tree)


@slow
@given(objects())
def test_read_back(case: tuple[Type, dict[str, Any]]) -> None:
    type_, tree = case
    back = normalize(type_, protobuf.decode(type_, protobuf.encode(type_, tree))).tree
    assert without_empty(back) == without_empty(tree)


@slow
@given(damaged())
def test_damaged_messages_are_read_as_the_oracle_reads(case: tuple[Type, bytes]) -> None:
    found, expected = both(*case)
    assert found == expected


@slow
@given(kinds, st.binary(max_size=60))
def test_noise(type_: Type, data: bytes) -> None:
    found, expected = both(type_, data)
    assert found == expected


@slow
@given(st.binary(max_size=40))
def test_noise_in_an_envelope(data: bytes) -> None:
    for body in (data, protobuf.MAGIC + data):
        try:
            protobuf.open_envelope(body)
        except DecodeError:
            continue


@pytest.mark.parametrize("type_", KINDS, ids=lambda type_: type_.ref)
def test_every_cut_is_noticed_or_read(type_: Type) -> None:
    tree = {"metadata": {"name": "a", "labels": {"x": "y"}, "creationTimestamp": "2024-01-02T03:04:05Z"}}
    data = protobuf.encode(type_, normalize(type_, tree).tree)
    for end in range(len(data)):
        found, expected = both(type_, data[:end])
        assert found == expected
