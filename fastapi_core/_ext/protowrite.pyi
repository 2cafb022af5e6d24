"""Protobuf messages from the trees of their JSON (see `fastapi_core/codec/protobuf.py`)."""

from typing import Any

from fastapi_core._ext.protowire import Message

def encode(message: Message, tree: dict[str, Any]) -> bytes:
    """The message of a tree; ValueError, TypeError or OverflowError when a value does not fit its field."""

def opening(number: int, size: int) -> bytes:
    """Tag and length of a length-delimited field whose `size` bytes follow."""
