"""Protobuf messages into the trees their JSON has (see `fastapi_core/codec/protobuf.py`)."""

from typing import Any

from fastapi_core._ext.protowire import Message

def decode(message: Message, data: bytes, limit: int) -> dict[str, Any]:
    """The tree of a message: members that are set, in the order of the wire, `limit` levels of containers at most.

    Zero values of scalars that are no pointers are left out. ValueError with the reference's text for bytes that are
    no such message.
    """
