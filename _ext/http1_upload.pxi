# Request bodies over the limit, for handlers that pass them on as they come.

@cython.final
cdef class BodyReader:
    """The body of a request that is too large to be kept. Who does not open it leaves it to be dropped."""

    cdef HTTP1Protocol _protocol     # None once the body or the connection has ended
    cdef object _on_data
    cdef object _on_end

    def open(self, on_data not None, on_end not None):
        cdef HTTP1Protocol protocol = self._protocol
        if protocol is None or self._on_data is not None:
            raise RuntimeError("the body cannot be read any more")
        self._on_data = on_data
        self._on_end = on_end
        protocol._begin_upload(self)

    def pause(self):
        if self._protocol is not None and not self._protocol._read_paused:
            self._protocol._read_paused = True
            self._protocol._transport.pause_reading()

    def resume(self):
        if self._protocol is not None and self._protocol._read_paused:
            self._protocol._resume_reading()

    cdef void _close(self):
        self._protocol = None
        self._on_data = self._on_end = None
