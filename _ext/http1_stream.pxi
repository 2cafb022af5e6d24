# The writing end of answers of unknown length.

@cython.final
cdef class ChunkWriter:
    """The `StreamWriter` of an answer under way."""

    cdef HTTP1Protocol _protocol     # None once the stream has ended
    cdef bint _chunked
    cdef list _corked                # what start() writes, sent together with the head
    cdef list _callbacks

    @property
    def buffered(self):
        if self._protocol is None:
            return 0
        return self._protocol._transport.get_write_buffer_size()

    @property
    def closed(self):
        return self._protocol is None

    def write(self, bytes data not None):
        if self._protocol is not None and data:
            self._send(_chunk(data) if self._chunked else data)

    def write_framed(self, bytes frames not None):
        if self._protocol is not None and frames:
            self._send(frames if self._chunked else unframed(frames))

    def finish(self):
        cdef HTTP1Protocol protocol = self._protocol
        if protocol is not None:
            if self._chunked:
                self._send(b"0\r\n\r\n")
            self._uncork()
            self._end()
            protocol._answered()

    def abort(self):
        cdef HTTP1Protocol protocol = self._protocol
        if protocol is not None:
            self._uncork()
            protocol._abort()

    def on_close(self, callback):
        if self._protocol is None:
            _run_callbacks([callback])
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    cdef void _send(self, bytes data) except *:
        if self._corked is not None:
            self._corked.append(data)
        else:
            self._protocol._put(data)

    cdef void _uncork(self) except *:
        cdef list corked = self._corked
        if corked is not None:
            self._corked = None
            if self._protocol is not None:
                self._protocol._put(b"".join(corked))

    cdef void _end(self):
        cdef list callbacks = self._callbacks
        self._protocol = None
        self._callbacks = None
        _run_callbacks(callbacks)
