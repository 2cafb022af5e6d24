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
    cdef object _backlog             # deque of pieces and of iterators of pieces that wait for the client
    cdef Py_ssize_t _owed            # bytes of the pieces
    cdef double _moved               # when the client last took something of it
    cdef Py_ssize_t _sliced          # bytes of the first piece that are out
    cdef Py_ssize_t _sources         # how many are iterators
    cdef bint _finishing             # the producer is done, the backlog is not
    cdef readonly bint cut
    """Ended by the server because all streams together owed too much."""

    @property
    def buffered(self):
        if self._protocol is None:
            return 0
        return self._protocol._transport.get_write_buffer_size() + self._owed

    @property
    def closed(self):
        return self._protocol is None or self._finishing

    @property
    def congested(self):
        return self._protocol is not None and (self._protocol._write_paused or self._waits())

    def on_drain(self, callback):
        self._on_drain = callback

    def write(self, bytes data not None):
        if self._protocol is not None and data and not self._finishing:
            self._send(_chunk(data) if self._chunked else data)

    def write_framed(self, bytes frames not None):
        if self._protocol is not None and frames and not self._finishing:
            self._send(frames if self._chunked else unframed(frames))

    def write_later(self, pieces):
        if self._protocol is None or self._finishing:
            return
        self._new_backlog().append(iter(pieces))
        self._sources += 1
        if self._corked is not None:
            if self._sources == 1 and len(self._backlog) == 1:
                self._corked += self._taken(PUMPED)
        else:
            self._pump()

    def finish(self, trailers=()):
        cdef HTTP1Protocol protocol = self._protocol
        if protocol is not None and not self._finishing:
            if self._chunked:
                self._send(_last_chunk(trailers) if trailers else b"0\r\n\r\n")
            if self._waits():
                self._finishing = True
                callbacks = self._callbacks
                self._callbacks = None
                self._uncork()
                protocol._stall = _clock(CLOCK_MONOTONIC) + protocol._limits.write_timeout
                protocol._hurry()
                _run_callbacks(callbacks)
            else:
                self._uncork()
                self._complete()

    def abort(self):
        cdef HTTP1Protocol protocol = self._protocol
        if protocol is not None:
            self._forget()
            self._uncork()
            protocol._abort()

    def on_close(self, callback):
        if self.closed:
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

    cdef inline bint _waits(self):
        return self._backlog is not None and len(self._backlog) > 0

    cdef void _send(self, bytes data) except *:
        cdef HTTP1Protocol protocol = self._protocol
        if self._corked is not None and not self._waits():
            self._corked.append(data)
        elif protocol._write_paused or self._waits():
            self._keep(data)
        elif len(data) > LARGE:
            self._keep(data)
            self._pump()
        else:
            protocol._put(data)

    cdef object _new_backlog(self):
        if self._backlog is None:
            self._backlog = deque()
        return self._backlog

    cdef void _keep(self, bytes data) except *:
        """Let a piece wait until the client has taken what came before."""
        cdef Debts debts = self._protocol._server._debts
        if self._protocol._state != OPEN:
            return
        self._new_backlog().append(data)
        self._owed += len(data)
        debts._take(data)
        debts._joined(self)
        debts._relieve()

    cdef list _taken(self, Py_ssize_t size):
        """The next pieces of the backlog, `size` bytes or a little more."""
        cdef list taken = []
        self._moved = _clock(CLOCK_MONOTONIC)
        cdef object backlog = self._backlog
        while size > 0 and backlog:
            entry = backlog[0]
            if type(entry) is bytes:
                piece = self._slice(<bytes>entry)
            else:
                piece = next(entry, None)
                if piece is None:
                    backlog.popleft()
                    self._sources -= 1
                    continue
                if not self._chunked:
                    piece = unframed(piece)
                if len(<bytes?>piece) > PUMPED:
                    self._owed += len(<bytes>piece)
                    self._protocol._server._debts._take(<bytes>piece)
                    backlog.appendleft(piece)
                    continue
            size -= len(<bytes?>piece)
            taken.append(piece)
        return taken

    cdef bytes _slice(self, bytes entry):
        """The next bytes of the first piece: never more than a little, for a transport keeps them for itself."""
        cdef Py_ssize_t begin = self._sliced
        cdef bytes piece = entry
        if len(entry) > PUMPED:
            piece = entry[begin : begin + PUMPED]
        self._sliced = begin + len(piece)
        self._owed -= len(piece)
        if self._sliced == len(entry):
            self._sliced = 0
            self._backlog.popleft()
            self._protocol._server._debts._release(entry)
        return piece

    cdef void _pump(self) except *:
        """Give the transport what it takes of the backlog."""
        cdef HTTP1Protocol protocol = self._protocol
        cdef list taken
        try:
            while self._protocol is not None and not protocol._write_paused and self._backlog:
                taken = self._taken(PUMPED)
                if taken:
                    protocol._put(taken[0] if len(taken) == 1 else b"".join(taken))
        except Exception:
            logger.exception("what a stream was to send could not be made")
            self._forget()
            protocol._abort()
            return
        if self._protocol is not None and not self._waits():
            if not protocol._write_paused:
                protocol._server._debts._left(self)
            if self._finishing:
                self._complete()

    cdef void _forget(self) except *:
        """Owe nothing any more."""
        cdef Debts debts
        if self._protocol is not None:
            debts = self._protocol._server._debts
            debts._left(self)
            if self._backlog is not None:
                for entry in self._backlog:
                    if type(entry) is bytes:
                        debts._release(<bytes>entry)
        self._backlog = None
        self._owed = self._sources = self._sliced = 0

    cdef void _cut(self) except *:
        self.cut = True
        self.abort()

    cdef void _uncork(self) except *:
        cdef list corked = self._corked
        if corked is not None:
            self._corked = None
            if self._protocol is not None:
                self._protocol._put(b"".join(corked))
                if self._waits():
                    self._pump()

    cdef void _complete(self) except *:
        cdef HTTP1Protocol protocol = self._protocol
        self._end()
        protocol._answered()

    cdef void _end(self):
        cdef list callbacks = self._callbacks
        try:
            self._forget()
        except Exception:
            logger.exception("a backlog could not be given up")
        self._protocol = None
        self._callbacks = None
        self._on_data = None
        self._on_drain = None
        _run_callbacks(callbacks)

    cdef void _stalled(self) except *:
        self._protocol._server._debts._joined(self)

    cdef void _drained(self) except *:
        if self._waits():
            self._pump()
        if self._protocol is None or self._protocol._write_paused:
            return
        self._protocol._server._debts._left(self)
        if self._on_drain is not None and not self._finishing:
            _run_callbacks([self._on_drain])


cdef bytes _last_chunk(trailers):
    return b"0\r\n%s\r\n" % b"".join([b"%s: %s\r\n" % (name, value) for name, value in trailers])
