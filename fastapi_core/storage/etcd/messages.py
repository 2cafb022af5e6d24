"""The messages of etcd's API that the store sends and reads: plans for the compiled protobuf codec.

Only the fields that are used are named; what else a server sends is stepped over. A member is written when the tree has
it. Names are those of the protocol.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi_core._ext import protoread, protowrite
from fastapi_core._ext.protowire import BOOL, INT64, LIST, OCTETS, SINGLE, STRING, STRUCT, Member, Message

Tree = dict[str, Any]

#: Compare.CompareTarget
VERSION: Final = 0
MOD: Final = 2
#: Event.EventType
DELETE: Final = 1

#: Deepest message of an answer: a response in a transaction's response, a key value in it, and some room.
_LEVELS = 16


def _field(name: str, number: int, op: int) -> Member:
    return Member(name, number, op, SINGLE, True)


def _part(name: str, number: int, message: Message, card: int = SINGLE) -> Member:
    return Member(name, number, STRUCT, card, True, make=lambda: message)


_HEADER = Message("ResponseHeader", [_field("revision", 3, INT64)])
_HEAD = _part("header", 1, _HEADER)
_KEY_VALUE = Message(
    "KeyValue",
    [
        _field("key", 1, OCTETS),
        _field("create_revision", 2, INT64),
        _field("mod_revision", 3, INT64),
        _field("version", 4, INT64),
        _field("value", 5, OCTETS),
    ],
)
RANGE_REQUEST: Final = Message(
    "RangeRequest",
    [
        _field("key", 1, OCTETS),
        _field("range_end", 2, OCTETS),
        _field("limit", 3, INT64),
        _field("revision", 4, INT64),
        _field("keys_only", 8, BOOL),
        _field("count_only", 9, BOOL),
    ],
)
RANGE_RESPONSE: Final = Message("RangeResponse", [_HEAD, _part("kvs", 2, _KEY_VALUE, LIST), _field("count", 4, INT64)])
_PUT_REQUEST = Message("PutRequest", [_field("key", 1, OCTETS), _field("value", 2, OCTETS), _field("lease", 3, INT64)])
_DELETE_REQUEST = Message("DeleteRangeRequest", [_field("key", 1, OCTETS)])
_REQUEST_OP = Message(
    "RequestOp",
    [
        _part("request_range", 1, RANGE_REQUEST),
        _part("request_put", 2, _PUT_REQUEST),
        _part("request_delete_range", 3, _DELETE_REQUEST),
    ],
)
_RESPONSE_OP = Message("ResponseOp", [_part("response_range", 1, RANGE_RESPONSE)])
_COMPARE = Message(
    "Compare",
    [
        _field("target", 2, INT64),
        _field("key", 3, OCTETS),
        _field("version", 4, INT64),
        _field("mod_revision", 6, INT64),
    ],
)
TXN_REQUEST: Final = Message(
    "TxnRequest",
    [
        _part("compare", 1, _COMPARE, LIST),
        _part("success", 2, _REQUEST_OP, LIST),
        _part("failure", 3, _REQUEST_OP, LIST),
    ],
)
TXN_RESPONSE: Final = Message(
    "TxnResponse", [_HEAD, _field("succeeded", 2, BOOL), _part("responses", 3, _RESPONSE_OP, LIST)]
)
COMPACTION_REQUEST: Final = Message("CompactionRequest", [_field("revision", 1, INT64)])
_WATCH_CREATE = Message(
    "WatchCreateRequest",
    [
        _field("key", 1, OCTETS),
        _field("range_end", 2, OCTETS),
        _field("start_revision", 3, INT64),
        _field("progress_notify", 4, BOOL),
        _field("prev_kv", 6, BOOL),
        _field("fragment", 8, BOOL),
    ],
)
_WATCH_PROGRESS = Message("WatchProgressRequest", [])
WATCH_REQUEST: Final = Message(
    "WatchRequest", [_part("create_request", 1, _WATCH_CREATE), _part("progress_request", 3, _WATCH_PROGRESS)]
)
_EVENT = Message("Event", [_field("type", 1, INT64), _part("kv", 2, _KEY_VALUE), _part("prev_kv", 3, _KEY_VALUE)])
WATCH_RESPONSE: Final = Message(
    "WatchResponse",
    [
        _HEAD,
        _field("created", 3, BOOL),
        _field("canceled", 4, BOOL),
        _field("compact_revision", 5, INT64),
        _field("cancel_reason", 6, STRING),
        _field("fragment", 7, BOOL),
        _part("events", 11, _EVENT, LIST),
    ],
)
LEASE_REQUEST: Final = Message("LeaseGrantRequest", [_field("TTL", 1, INT64)])
LEASE_RESPONSE: Final = Message("LeaseGrantResponse", [_HEAD, _field("ID", 2, INT64), _field("error", 4, STRING)])
STATUS_RESPONSE: Final = Message("StatusResponse", [_HEAD, _field("version", 2, STRING), _field("dbSize", 3, INT64)])


def encode(message: Message, tree: Tree) -> bytes:
    """The bytes of a request."""
    return protowrite.encode(message, tree)


def decode(message: Message, data: bytes) -> Tree:
    """An answer; members that are zero may be missing. ValueError for bytes that are no such message."""
    return protoread.decode(message, data, _LEVELS)


def revision_of(answer: Tree) -> int:
    """The store's revision when it was answered."""
    header: Tree = answer.get("header") or {}
    return int(header.get("revision", 0))


def compare_mod(key: bytes, revision: int) -> Tree:
    """Holds when the last change of a key has that revision; 0: when there is no such key."""
    return {"target": MOD, "key": key, "mod_revision": revision}


def put(key: bytes, value: bytes, lease: int = 0) -> Tree:
    """An operation of a transaction."""
    return {"request_put": {"key": key, "value": value, "lease": lease} if lease else {"key": key, "value": value}}


def delete(key: bytes) -> Tree:
    """An operation of a transaction."""
    return {"request_delete_range": {"key": key}}


def look(key: bytes) -> Tree:
    """An operation of a transaction: the revisions of a key."""
    return {"request_range": {"key": key, "keys_only": True}}


def watch(key: bytes, range_end: bytes, start_revision: int) -> bytes:
    """The request for a watch with previous values and word of progress, in as many pieces as it takes."""
    create: Tree = {
        "key": key,
        "start_revision": start_revision,
        "progress_notify": True,
        "prev_kv": True,
        "fragment": True,
    }
    if range_end:
        create["range_end"] = range_end
    return encode(WATCH_REQUEST, {"create_request": create})


def looked(answer: Tree) -> Tree | None:
    """What a transaction that did not succeed has found at the key it looked at; None when there is no such key."""
    for response in answer.get("responses", ()):
        found: list[Tree] = response.get("response_range", {}).get("kvs", [])
        if found:
            return found[0]
    return None


PROGRESS: Final = encode(WATCH_REQUEST, {"progress_request": {}})
"""The question how far a stream is."""


def range_end(prefix: bytes) -> bytes:
    """The end of the range of keys with a prefix: the smallest bytes above all of them, or no end."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b"\0"
