# What the connections of one server share: counters, the Date line, the read buffer, the sweep over deadlines.

cdef enum:
    READ_BUFFER = 262144


@cython.final
cdef class Registry:
    cdef readonly object loop
    cdef readonly Py_ssize_t max_connections
    cdef readonly Py_ssize_t active
    """Requests whose answer is not complete."""
    cdef readonly bint draining
    cdef object _response_type
    cdef object _stream_type
    cdef object _too_large
    cdef object _on_idle
    cdef set _connections
    cdef Debts _debts
    cdef bytearray _read_buffer
    cdef object _read_view
    cdef bytes _date
    cdef int64_t _date_second
    cdef int64_t _accepted, _refused, _requests, _malformed, _timeouts

    def __init__(self, loop, response_type, stream_type, *, Py_ssize_t max_connections=0, too_large=None,
                 Py_ssize_t max_backlog=0):
        self.loop = loop
        self._response_type = response_type
        self._stream_type = stream_type
        self._too_large = too_large
        self.max_connections = max_connections
        self._connections = set()
        self._debts = Debts()
        self._debts.limit = max_backlog
        self._read_buffer = bytearray(READ_BUFFER)
        self._read_view = memoryview(self._read_buffer)
        self._date_second = -1

    @property
    def connections(self):
        return len(self._connections)

    def statistics(self):
        return {
            "connections": len(self._connections),
            "active": self.active,
            "accepted": self._accepted,
            "refused": self._refused,
            "requests": self._requests,
            "malformed": self._malformed,
            "timeouts": self._timeouts,
            "backlog": self._debts.total,
            "cut": self._debts.cuts,
        }

    def sweep(self, double now):
        """Act on every deadline before `now` (`monotonic()`); called by the server from time to time."""
        for protocol in list(self._connections):
            (<HTTP1Protocol>protocol)._check(now)

    def drain(self):
        """From now on each answer ends its connection."""
        self.draining = True
        for protocol in list(self._connections):
            (<HTTP1Protocol>protocol)._hurry()

    def when_idle(self, callback):
        """Call back once, as soon as no request is being answered."""
        if self.active == 0:
            callback()
        else:
            self._on_idle = callback

    def close_idle(self):
        """Close the connections that are not answering a request; what they have been given is still sent."""
        for protocol in list(self._connections):
            (<HTTP1Protocol>protocol)._close_if_idle()

    def abort(self):
        """Cut every connection."""
        for protocol in list(self._connections):
            (<HTTP1Protocol>protocol)._abort()

    cdef bytes _date_line(self):
        cdef double now = _wall()
        if <int64_t>now != self._date_second:
            self._date_second = <int64_t>now
            self._date = b"Date: %s\r\n" % http_date(self._date_second)
        return self._date

    cdef void _begin(self):
        self.active += 1
        self._requests += 1

    cdef void _end(self):
        self.active -= 1
        if self.active == 0 and self._on_idle is not None:
            callback = self._on_idle
            self._on_idle = None
            callback()
