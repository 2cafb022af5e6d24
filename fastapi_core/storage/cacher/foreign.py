"""Values that a server of another make has stored: protobuf in its envelope, where we store JSON.

The reference writes so unless it is told otherwise (`--storage-media-type`), and reads JSON as well, so a value is read here
as it is and is JSON after the next write.
"""

from __future__ import annotations

from fastapi_core.codec import decode, json, protobuf
from fastapi_core.schema.errors import DecodeError
from fastapi_core.schema.tables import type_for

MAGIC = protobuf.MAGIC


def as_json(value: bytes) -> bytes:
    """The stored form of an object in protobuf. ValueError for what is none, or of a kind that is not built in."""
    try:
        envelope = protobuf.open_envelope(value)
        group, _, version = envelope.api_version.rpartition("/")
        type_ = type_for(group, version, envelope.kind)
        if type_ is None:
            raise ValueError(f"{envelope.kind} of {envelope.api_version} is not known")
        tree = decode.from_protobuf(type_, envelope.message)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    tree.pop("kind", None)
    tree.pop("apiVersion", None)
    tree.get("metadata", {}).pop("resourceVersion", None)
    return json.encode({"kind": envelope.kind, "apiVersion": envelope.api_version, **tree})
