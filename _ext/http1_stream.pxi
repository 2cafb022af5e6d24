# The writing end of answers of unknown length.

@cython.final
cdef class ChunkWriter:
    """The `StreamWriter` of an answer under way."""

    cdef HTTP1Protocol _protocol     # None once the stream has ended
    cdef bint _chunked
    cdef list _corked                # what start() writes, sent together with the head
    cdef list _callbacks
    cdef object _on_drain            # called when the client has caught up
    cdef object _on_data             # takes what the client sends after a switch of protocols

    @property
    def buffered(self):
        if self._protocol is None:
            return 0
        return self._protocol._transport.get_write_buffer_size()

    @property
    def closed(self):
        return self._protocol is None

    @property
    def congested(self):
        return self._protocol is not None and self._protocol._write_paused

    def on_drain(self, callback):
        self._on_drain = callback

    def write(self, bytes data not None):
        if self._protocol is not None and data:
            self._send(_chunk(data) if self._chunked else data)

    def write_framed(self, bytes frames not None):
        if self._protocol is not None and frames:
            self._send(frames if self._chunked else unframed(frames))

    def finish(self, trailers=()):
        cdef HTTP1Protocol protocol = self._protocol
        if protocol is not None:
            if self._chunked:
                self._send(_last_chunk(trailers) if trailers else b"0\r\n\r\n")
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

    def on_data(self, callback):
        cdef HTTP1Protocol protocol = self._protocol
        if protocol is None:
            return
        if not protocol._tunnel:
            raise RuntimeError("the connection still speaks HTTP")
        self._on_data = callback
        data = protocol._parser._take_rest()
        if data:
            callback(data)

    def pause_reading(self):
        if self._protocol is not None and not self._protocol._read_paused:
            self._protocol._read_paused = True
            self._protocol._transport.pause_reading()

    def resume_reading(self):
        if self._protocol is not None and self._protocol._read_paused:
            self._protocol._resume_reading()

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
        self._on_data = None
        self._on_drain = None
        _run_callbacks(callbacks)

    cdef void _drained(self):
        if self._on_drain is not None:
            _run_callbacks([self._on_drain])


cdef bytes _last_chunk(trailers):
    return b"0\r\n%s\r\n" % b"".join([b"%s: %s\r\n" % (name, value) for name, value in trailers])
