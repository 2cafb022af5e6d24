# cython: language_level=3, autotestdict=False
"""HTTP/1.1 server protocol on httptools; see `fastapi_core/_ext/http1.pyi` for the contract.

One message at a time: bytes behind the request being answered wait unparsed, so answers are in order by construction
and a client that pipelines cannot pile up requests, only bytes, and those stop being read.
"""

import asyncio
import logging
import re
import time
import zlib
from types import CoroutineType
from _ssl import ENCODING_DER as _DER
from collections import deque

from httptools import HttpParserError, HttpRequestParser

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.object cimport PyObject
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeLatin1, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp, memcpy
from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec

logger = logging.getLogger("fastapi_core.http")

# Live objects, so that a test can see a leak.
cdef Py_ssize_t _live_requests = 0
cdef Py_ssize_t _live_connections = 0
cdef Py_ssize_t _live_protocols = 0


def live():
    """How many requests, connections and protocols exist now."""
    return {"Request": _live_requests, "Connection": _live_connections, "HTTP1Protocol": _live_protocols}


cdef inline double _clock(int which) noexcept:
    cdef timespec now
    clock_gettime(which, &now)
    return <double>now.tv_sec + <double>now.tv_nsec * 1e-9


cdef inline double _wall() noexcept:
    return _clock(CLOCK_REALTIME)


def monotonic():
    """The clock of deadlines and of `Registry.sweep`."""
    return _clock(CLOCK_MONOTONIC)


@cython.final
cdef class Limits:
    cdef readonly Py_ssize_t header
    cdef readonly Py_ssize_t body
    cdef readonly double header_timeout
    cdef readonly double body_timeout
    cdef readonly double idle_timeout
    cdef readonly double write_timeout
    cdef readonly double linger
    cdef readonly Py_ssize_t write_buffer

    def __init__(
        self,
        *,
        Py_ssize_t header=1 << 20,
        Py_ssize_t body=3 << 20,
        double header_timeout=32.0,
        double body_timeout=60.0,
        double idle_timeout=90.0,
        double write_timeout=60.0,
        double linger=1.0,
        Py_ssize_t write_buffer=1 << 18,
    ):
        self.header = header
        self.body = body
        self.header_timeout = header_timeout
        self.body_timeout = body_timeout
        self.idle_timeout = idle_timeout
        self.write_timeout = write_timeout
        self.linger = linger
        self.write_buffer = write_buffer


@cython.final
cdef class Connection:
    cdef readonly str peer
    cdef readonly bint tls
    cdef object _ssl
    cdef tuple _chain
    cdef dict _memo

    def __cinit__(self):
        global _live_connections
        _live_connections += 1
        self.peer = ""
        self._chain = ()

    def __dealloc__(self):
        global _live_connections
        _live_connections -= 1

    @property
    def memo(self):
        if self._memo is None:
            self._memo = {}
        return self._memo

    @property
    def peer_certificate(self):
        chain = self.peer_chain
        return chain[0] if chain else None

    @property
    def peer_chain(self):
        if self._ssl is not None:
            self._chain = _verified_chain(self._ssl)
            self._ssl = None
        return self._chain


cdef tuple _verified_chain(ssl_object):
    """What the handshake verified, as DER; Python tells it in public from 3.13 on, before that one layer down."""
    public = getattr(ssl_object, "get_verified_chain", None)
    if public is not None:
        return tuple(public())
    return tuple([certificate.public_bytes(_DER) for certificate in ssl_object._sslobj.get_verified_chain() or ()])


cdef Connection _connection(transport):
    cdef Connection connection = Connection.__new__(Connection)
    peer = transport.get_extra_info("peername")
    if isinstance(peer, tuple):
        connection.peer = f"[{peer[0]}]:{peer[1]}" if ":" in peer[0] else f"{peer[0]}:{peer[1]}"
    connection._ssl = transport.get_extra_info("ssl_object")
    connection.tls = connection._ssl is not None
    return connection


@cython.final
@cython.freelist(64)
cdef class Request:
    cdef readonly str method
    cdef readonly str target
    cdef readonly str path
    cdef readonly str query
    cdef readonly list headers
    cdef readonly bytes body
    cdef readonly Connection connection
    cdef readonly double received
    cdef readonly bint upgrade
    cdef readonly int minor
    cdef readonly BodyReader reader
    cdef bint expects
    cdef list _callbacks

    def __cinit__(self):
        global _live_requests
        _live_requests += 1

    def __dealloc__(self):
        global _live_requests
        _live_requests -= 1

    cdef bytes _header(self, bytes name):
        for item in self.headers:
            if <bytes>(<tuple>item)[0] == name:
                return <bytes>(<tuple>item)[1]
        return None

    def header(self, bytes name not None):
        return self._header(name)

    def header_all(self, bytes name not None):
        return [item[1] for item in self.headers if <bytes>(<tuple>item)[0] == name]

    def on_disconnect(self, callback):
        if self._callbacks is None:
            self._callbacks = []
        self._callbacks.append(callback)


cdef void _run_callbacks(list callbacks):
    if callbacks is not None:
        for callback in callbacks:
            try:
                callback()
            except Exception:
                logger.exception("a callback on the end of a connection failed")


include "http1_grammar.pxi"
include "http1_parser.pxi"
include "http1_answer.pxi"
include "http1_registry.pxi"
include "http1_backlog.pxi"
include "http1_stream.pxi"
include "http1_upload.pxi"
include "http1_protocol.pxi"
