"""What etcd's errors are to the store."""

from __future__ import annotations

from grpc import StatusCode
from grpc.aio import AioRpcError

from fastapi_core.storage.interface import Code, StorageError

UNHEARD = "etcd does not tell of what was committed"
_COMPACTED = "required revision has been compacted"
_FUTURE = "required revision is a future revision"
_LEASE = "requested lease not found"
_TOO_LARGE = ("request is too large", "received message larger than max", "trying to send message larger than max")

#: How gRPC says that a request has not left this process.
_UNSENT = (
    "failed to connect",
    "name resolution",
    "dns resolution",
    "no healthy",
    "connections to all backends failing",
)

_NAMES = {StatusCode.UNAVAILABLE: "Unavailable", StatusCode.INTERNAL: "Internal", StatusCode.UNKNOWN: "Unknown"}


class LeaseGoneError(Exception):
    """The lease a key was to get has ended."""


def unsent(error: AioRpcError) -> bool:
    """Whether the request cannot have had an effect."""
    details = (error.details() or "").lower()
    return error.code() is StatusCode.UNAVAILABLE and any(text in details for text in _UNSENT)


def of_server(error: AioRpcError) -> bool:
    """Whether etcd itself answered so, not what lies before it."""
    return (error.details() or "").startswith("etcdserver:")


def elsewhere(error: AioRpcError) -> bool:
    """Whether another member may well answer: this one is gone, slow, or without a leader."""
    return error.code() in (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED)


def translated(error: AioRpcError, key: str) -> StorageError | LeaseGoneError:
    """The store's error. The revision that explains it is not told by etcd; the caller adds it."""
    details = error.details() or ""
    if _COMPACTED in details:
        return StorageError(Code.COMPACTED, key)
    if _FUTURE in details:
        return StorageError(Code.FUTURE_REVISION, key)
    if _LEASE in details:
        return LeaseGoneError()
    if any(text in details for text in _TOO_LARGE):
        return StorageError(Code.TOO_LARGE, key, message="etcdserver: request is too large")
    if error.code() is StatusCode.DEADLINE_EXCEEDED or unsent(error):
        return StorageError(Code.TIMEOUT, key, message=f"etcd does not answer: {details}")
    if of_server(error):
        return StorageError(Code.UNAVAILABLE, key, message=details)
    name = _NAMES.get(error.code(), error.code().name)
    return StorageError(Code.UNAVAILABLE, key, message=f"rpc error: code = {name} desc = {details}")
