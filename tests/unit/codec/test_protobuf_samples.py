"""The reference's own sample objects: JSON and protobuf of each say the same, byte for byte."""

from pathlib import Path

import orjson
import pytest

from fastapi_core.codec import protobuf
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_for, type_of

SAMPLES = Path(__file__).parents[4] / "shared" / "facts" / "samples"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.pb"))

pytestmark = pytest.mark.skipif(not NAMES, reason="the samples are not here")


def sample(name):
    return orjson.loads((SAMPLES / f"{name}.json").read_bytes()), (SAMPLES / f"{name}.pb").read_bytes()


def type_named(api_version, kind):
    if not kind:  # the one sample that is no object
        return type_of("meta/v1.WatchEvent")
    group, _, version = api_version.rpartition("/")
    found = type_for(group, version, kind)
    assert found is not None, (api_version, kind)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_sample_is_read_from_protobuf(name):
    tree, wire = sample(name)
    envelope = protobuf.open_envelope(wire)
    type_ = type_named(envelope.api_version, envelope.kind)
    assert (envelope.api_version, envelope.kind) == (tree.get("apiVersion", ""), tree.get("kind", ""))
    decoded = normalize(type_, protobuf.decode(type_, envelope.message))
    expected = normalize(type_, {k: v for k, v in tree.items() if k not in ("kind", "apiVersion")})
    assert decoded == expected
    assert orjson.dumps(decoded.tree) == orjson.dumps(expected.tree)


@pytest.mark.parametrize("name", NAMES)
def test_sample_is_written_to_the_same_bytes(name):
    tree, wire = sample(name)
    type_ = type_named(tree.get("apiVersion", ""), tree.get("kind", ""))
    assert protobuf.document(type_, tree) == wire
