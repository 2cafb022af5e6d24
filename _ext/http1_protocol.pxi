# The connection: parser events to handler calls, answers to the transport, deadlines and flow control.

cdef enum:
    PIPELINE_LIMIT = 65536     # bytes behind an unanswered request above which reading stops
    STREAM_BUFFER = 65536      # bytes of a stream given to a transport whose client is behind; the rest is in the backlog
    BURST = 16                 # pipelined requests answered before other connections have their turn

cdef enum State:
    OPEN
    LINGERING      # the last answer is out; what still comes is dropped, so that no reset overtakes the answer
    CLOSING        # closed, output still on its way
    CLOSED

cdef enum Timer:
    NOTHING
    IDLE           # between requests: closed without a word
    READING_HEAD
    READING_BODY
    ENDING         # lingering or closing


@cython.final
cdef class HTTP1Protocol:
    cdef object _handler
    cdef Registry _server
    cdef Limits _limits
    cdef object _transport
    cdef RequestParser _parser
    cdef Connection _connection
    cdef Request _request            # the one being answered
    cdef object _task                # what its answer waits for
    cdef ChunkWriter _writer
    cdef BodyReader _reader          # takes the body of the request being answered
    cdef Output _output
    cdef State _state
    cdef bint _busy, _running, _write_paused, _read_paused, _eof
    cdef bint _yielded               # the next requests are due on the loop's next turn
    cdef bint _last                  # close after the answer under way
    cdef bint _tunnel                # after a 101 the bytes are the stream's, both ways
    cdef bint _linger                # and drop what the client still sends
    cdef int64_t _linger_left        # body bytes still to come, -1 when unknown
    cdef double _linger_end          # however much still comes
    cdef Timer _timer
    cdef double _deadline
    cdef double _stall               # when a client that does not read is given up
    cdef Py_ssize_t _stalled         # bytes it had not taken when that was set

    def __cinit__(self):
        global _live_protocols
        _live_protocols += 1

    def __dealloc__(self):
        global _live_protocols
        _live_protocols -= 1

    def __init__(self, handler, Registry server not None, Limits limits not None):
        self._handler = handler
        self._server = server
        self._limits = limits
        self._linger_left = -1

    # Called by the transport

    def connection_made(self, transport):
        cdef Registry server = self._server
        self._transport = transport
        server._connections.add(self)
        server._accepted += 1
        transport.set_write_buffer_limits(high=self._limits.write_buffer)
        self._set_timer(IDLE, self._limits.header_timeout)
        if server.max_connections and len(server._connections) > server.max_connections:
            server._refused += 1
            if len(server._connections) > server.max_connections + 64:
                self._abort()
            else:
                self._refuse(503, "too many connections")
            return
        self._parser = RequestParser(self._limits)
        self._connection = _connection(transport)

    def get_buffer(self, hint):
        # One buffer for all connections: uvloop reads and reports in one go, so it is free again before the next read.
        return self._server._read_view

    def buffer_updated(self, Py_ssize_t count):
        self._received(PyBytes_FromStringAndSize(PyByteArray_AS_STRING(self._server._read_buffer), count))

    def data_received(self, data):
        self._received(bytes(data))

    def eof_received(self):
        """A half-closed client still gets the answer it waits for, except a stream, which could go on for ever."""
        self._eof = True
        if self._writer is not None:
            self._abort()
        elif self._state == OPEN and (self._busy or self._waits() and self._parser._buffered()):
            return not self._connection.tls       # TLS ends both ways at once
        return False

    def connection_lost(self, exc):
        cdef Request request = self._request
        cdef ChunkWriter writer = self._writer
        self._state = CLOSED
        self._server._connections.discard(self)
        self._timer = NOTHING
        self._output = None
        self._writer = None
        self._request = None
        self._end_upload()
        if self._parser is not None:
            self._parser._close()
        if self._task is not None:
            self._task.cancel()
        if writer is not None:
            writer._end()
        if self._busy:
            self._busy = False
            self._server._end()
            if request is not None:
                _run_callbacks(request._callbacks)
                request._callbacks = None

    def pause_writing(self):
        self._write_paused = True
        self._stalled = self._transport.get_write_buffer_size()
        self._stall = _clock(CLOCK_MONOTONIC) + self._limits.write_timeout
        cdef ChunkWriter writer = self._writer      # held: the call may end it
        if writer is not None:
            self._hurry()
            writer._stalled()

    def resume_writing(self):
        cdef ChunkWriter writer = self._writer
        self._write_paused = False
        if self._output is not None:
            self._pump()
        elif writer is not None:
            writer._drained()
        else:
            self._advance()

    # Requests

    cdef void _received(self, bytes data) except *:
        if self._state == OPEN:
            if self._tunnel and self._writer is not None and self._writer._on_data is not None:
                self._tunnelled(data)
                return
            self._parser._feed(data)
            if self._reader is not None and self._reader._on_data is not None:
                self._upload()
            if self._waits():
                self._settle()
            else:
                self._advance()
        elif self._state == LINGERING:
            self._deadline = min(_clock(CLOCK_MONOTONIC) + self._limits.linger, self._linger_end)
            if self._linger_left >= 0:
                self._dropped(len(data))

    cdef void _begin_upload(self, BodyReader reader) except *:
        self._parser._unlimited = True
        if self._request.expects and self._parser._buffered() == 0:
            self._put(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._server.loop.call_soon(self._upload_soon, reader)

    def _upload_soon(self, reader):
        if self._reader is reader:
            if self._read_paused:                 # since nobody took the body
                self._resume_reading()
            self._upload()
            if self._waits():
                self._settle()

    cdef void _upload(self) except *:
        """Give the reader what has come of the body."""
        cdef BodyReader reader = self._reader
        cdef Event event = HEAD
        cdef bytes data
        try:
            while event == HEAD:
                event = self._parser._advance()
        except RefusedError:
            self._server._malformed += 1
            self._abort()
            return
        try:
            data = self._parser._take_pieces()
            if data:
                reader._on_data(data)
            if not self._parser._chunked:
                self._linger_left = self._parser._left
            if event == COMPLETE and self._reader is reader:
                on_end = reader._on_end
                self._linger = False
                self._end_upload()
                on_end()
        except Exception:
            logger.exception("who takes a request body failed")
            self._abort()

    cdef void _end_upload(self):
        if self._reader is not None:
            self._reader._close()
            self._reader = None
            self._parser._pieces = None

    cdef void _tunnelled(self, bytes data) except *:
        try:
            self._writer._on_data(data)
        except Exception:
            logger.exception("the handler of a tunnel failed")
            self._abort()

    cdef void _dropped(self, Py_ssize_t count) except *:
        self._linger_left -= count
        if self._linger_left <= 0:
            self._close()

    cdef inline bint _waits(self) noexcept:
        """Requests that have come are not to be looked at now."""
        return self._busy or self._write_paused or self._yielded

    def _go_on(self):
        self._yielded = False
        self._advance()

    cdef void _advance(self) except *:
        """Parse and answer until bytes, the handler or the client's reading have to be waited for."""
        cdef int burst = BURST
        cdef Event event
        if self._running:
            return
        self._running = True
        try:
            while self._state == OPEN and not self._waits():
                if burst == 0:
                    self._yielded = True
                    self._server.loop.call_soon(self._go_on)
                    break
                try:
                    event = self._parser._advance()
                except RefusedError as error:
                    self._server._malformed += 1
                    self._refuse(error.status, error.text)
                    break
                if event == MORE:
                    break
                elif event == HEAD:
                    if self._parser._request.expects and self._parser._buffered() == 0:
                        self._put(b"HTTP/1.1 100 Continue\r\n\r\n")
                else:
                    burst -= 1
                    self._start(event == TOO_LARGE)
        finally:
            self._running = False
        self._settle()

    cdef void _settle(self) except *:
        """After a turn: the deadline that belongs to the state, and whether to read on."""
        cdef Py_ssize_t waiting
        if self._state != OPEN:
            return
        waiting = self._parser._buffered()
        if self._waits():
            self._timer = NOTHING
            # Unread, the client's disconnect shows only when its answer is written: the price of bounded memory.
            if waiting > PIPELINE_LIMIT and not self._read_paused:
                self._read_paused = True
                self._transport.pause_reading()
            return
        if self._eof:
            self._close()
            return
        if self._read_paused:
            self._resume_reading()
        if self._parser._phase > FIELDS:
            if self._timer != READING_BODY:
                self._set_timer(READING_BODY, self._limits.body_timeout)
        elif waiting:
            if self._timer != READING_HEAD:
                self._set_timer(READING_HEAD, self._limits.header_timeout)
        elif self._timer != IDLE:
            self._set_timer(IDLE, self._limits.idle_timeout)

    cdef void _resume_reading(self) except *:
        self._read_paused = False
        if not self._eof:
            self._transport.resume_reading()

    cdef void _start(self, bint too_large) except *:
        """Hand the parser's request to the handler."""
        cdef Request request = self._parser._request
        cdef object handler = self._handler
        self._parser._request = None
        request.connection = self._connection
        self._request = request
        self._busy = True
        self._timer = NOTHING
        self._last = not self._parser._keep_alive
        self._server._begin()
        if too_large:
            self._last = self._linger = True
            if not self._parser._chunked:
                self._linger_left = self._parser._length
            handler = self._server._too_large
            request.reader = self._reader = BodyReader.__new__(BodyReader)
            self._reader._protocol = self
            if handler is None:
                self._plain(413)
                return
        elif len(request.path) == 1 and request.path == "*":      # OPTIONS *: about the server, not a resource
            self._send(200, [], b"", 0)
            return
        try:
            answer = handler(request)
            if type(answer) is self._server._response_type:
                self._respond(answer)
            else:
                self._other_answer(answer)
        except Exception:
            self._failed()

    cdef void _other_answer(self, answer) except *:
        if isinstance(answer, self._server._stream_type):
            self._stream(answer)
        elif isinstance(answer, self._server._response_type):
            self._respond(answer)
        else:
            loop = self._server.loop
            self._task = (
                loop.create_task(answer) if type(answer) is CoroutineType else asyncio.ensure_future(answer, loop=loop)
            )
            self._task.add_done_callback(self._task_done)

    def _task_done(self, task):
        if self._task is task:
            self._task = None
        if task.cancelled():
            self._abort()
            return
        error = task.exception()
        if self._state != OPEN:
            self._answer_for_nobody(task, error)
            return
        try:
            if error is not None:
                raise error
            answer = task.result()
            if isinstance(answer, self._server._stream_type):
                self._stream(answer)
            else:
                self._respond(answer)
        except Exception:
            self._failed()

    cdef void _answer_for_nobody(self, task, error) except *:
        """The client is gone; a stream still learns that from its writer, so that it can let go of what it holds."""
        if error is not None:
            logger.error("the handler failed after its client had gone", exc_info=error)
        elif isinstance(task.result(), self._server._stream_type):
            task.result().start(ChunkWriter.__new__(ChunkWriter))

    cdef void _failed(self) except *:
        """In an except clause: log, and answer 500 unless something of the answer is out already."""
        logger.exception("the handler of %s %s failed", self._request.method if self._request else "",
                         self._request.path if self._request else "")
        if self._output is not None or self._writer is not None or not self._busy:
            self._abort()
            return
        self._last = True
        self._plain(500)

    # Answers

    cdef void _plain(self, int status) except *:
        body = _status_line(status)[9:-2]
        self._send(status, [(b"Content-Type", b"text/plain; charset=utf-8")], body, len(body))

    cdef Head _head(self, int status, list fields, int64_t length):
        cdef Head head = Head.__new__(Head)
        head.status = status
        head.date = self._server._date_line()
        head.length = length
        head.set_fields(fields)
        if self._server.draining or self._last or self._eof and not self._parser._buffered():
            head.close = True
        self._last = head.close
        head.http10 = self._request.minor == 0
        return head

    cdef void _respond(self, response) except *:
        cdef list fields = response.headers
        body = response.body
        cdef bint whole = type(body) is bytes
        cdef Py_ssize_t size = len(<bytes>body) if whole else _total(body)
        if size > GZIP_LIMIT and response.compress and self._request.method != "HEAD" and _accepts_gzip(self._request):
            self._compress(response.status, fields, body)
            return
        self._send(response.status, fields, body, size)

    cdef void _compress(self, int status, list fields, body) except *:
        cdef Request request = self._request
        future = self._server.loop.run_in_executor(None, compressed, body)
        fields = [*fields, (b"Content-Encoding", b"gzip")]
        if not any(b"Accept-Encoding" in value for name, value in fields if name == b"Vary"):
            fields.append((b"Vary", b"Accept-Encoding"))

        def done(future):
            if self._state == OPEN and self._request is request and not future.cancelled():
                try:
                    self._send(status, fields, future.result(), len(future.result()))
                except Exception:
                    self._failed()

        future.add_done_callback(done)

    cdef void _send(self, int status, list fields, body, Py_ssize_t size) except *:
        cdef Head head = self._head(status, fields, size)
        cdef bint bare = self._request.method == "HEAD"
        if status < 200 or status == 204 or status == 304:
            head.length = -1
            bare = True
        elif bare and size == 0 and head.length_given is not None:
            head.length = int(head.length_given)
        if bare or size == 0:
            self._write(head.encode(b""), None)
        elif size <= JOIN_LIMIT:
            self._write(head.encode(<bytes>body if type(body) is bytes else b"".join(body)), None)
        else:
            self._write(head.encode(b""), (body,) if type(body) is bytes else body)

    cdef void _write(self, bytes head, chunks) except *:
        if chunks is None:
            self._put(head)
            self._answered()
        else:
            self._output = _output(head, chunks)
            self._pump()

    cdef inline void _put(self, data) except *:
        # A transport that is gone but has not said so yet may raise; `connection_lost` is on its way.
        if not self._transport.is_closing():
            self._transport.write(data)

    cdef void _pump(self) except *:
        """Give the transport of the answer what it takes; `resume_writing` comes back for more."""
        cdef Output output = self._output
        while not self._write_paused and self._output is not None:
            piece = output.take()
            if piece is not None:
                self._put(piece)
            if output.done():
                self._output = None
                self._answered()
                return

    cdef void _answered(self) except *:
        """The answer is complete, as far as this side can say."""
        if not self._busy:
            return
        self._busy = False
        if self._writer is not None:
            self._writer = None
            self._transport.set_write_buffer_limits(high=self._limits.write_buffer)
        self._end_upload()
        self._request._callbacks = None
        self._request = None
        if self._linger and self._state == OPEN:
            self._begin_linger()
        elif self._last:
            self._close()
        self._server._end()
        if self._state == OPEN and not self._running:
            self._advance()

    cdef void _stream(self, stream) except *:
        cdef Head head = self._head(stream.status, stream.headers, -1)
        cdef ChunkWriter writer = ChunkWriter.__new__(ChunkWriter)
        self._tunnel = stream.status == 101
        head.chunked = self._request.minor > 0 and not self._tunnel
        if self._tunnel:
            head.close = head.http10 = False
            self._last = True
        elif not head.chunked:
            head.close = self._last = True
            head.http10 = False
        if self._request.method == "HEAD":
            self._write(head.encode(b""), None)
            stream.start(writer)
            return
        writer._chunked = head.chunked
        writer._corked = [head.encode(b"")]
        writer._protocol = self
        self._writer = writer
        self._transport.set_write_buffer_limits(high=min(self._limits.write_buffer, STREAM_BUFFER))
        try:
            stream.start(writer)
        except Exception:
            if writer._corked is not None:        # nothing is out: the client can still be told
                self._writer = None
                writer._corked = None
                writer._end()
            raise
        if writer._protocol is not None:
            writer._uncork()
            if self._eof:
                self._abort()

    # Ends and deadlines

    cdef void _refuse(self, int status, str text) except *:
        """Answer without the handler and end the connection."""
        self._put(_plain_answer(status, text))
        self._begin_linger()

    cdef void _begin_linger(self) except *:
        self._state = LINGERING
        self._set_timer(ENDING, self._limits.linger)
        self._linger_end = self._deadline + self._limits.body_timeout
        if self._eof:
            self._close()
            return
        if self._read_paused:
            self._resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        if self._linger_left >= 0:
            self._dropped(self._parser._buffered())

    cdef void _close(self) except *:
        if self._state < CLOSING:
            self._state = CLOSING
            self._set_timer(ENDING, self._limits.write_timeout)
            self._transport.close()

    cdef void _abort(self) except *:
        if self._state != CLOSED:
            self._state = CLOSING
            self._set_timer(ENDING, self._limits.write_timeout)
            self._transport.abort()

    cdef void _close_if_idle(self) except *:
        if self._state == OPEN and not self._busy and self._parser._phase == REQUEST_LINE:
            if not self._parser._buffered():
                self._close()

    cdef inline void _set_timer(self, Timer timer, double seconds) noexcept:
        self._timer = timer
        self._deadline = _clock(CLOCK_MONOTONIC) + seconds

    cdef void _hurry(self) except *:
        """A server that goes down waits for the rest of a stream only as long as the client takes it."""
        if self._server.draining and self._write_paused and self._writer is not None and self._writer._finishing:
            self._stall = min(self._stall, _clock(CLOCK_MONOTONIC) + self._limits.linger)

    cdef void _check(self, double now) except *:
        """Act when a deadline has passed."""
        cdef Py_ssize_t waiting
        if self._write_paused and now >= self._stall:
            waiting = self._transport.get_write_buffer_size()
            # Streams are their producer's to cut, but not while it waits itself for the client to take something.
            if waiting >= self._stalled and (
                self._writer is None or self._writer._finishing or self._writer._sources
            ):
                self._server._timeouts += 1
                self._abort()
                return
            self._stalled = waiting
            self._stall = now + self._limits.write_timeout
        if self._timer == NOTHING or now < self._deadline:
            return
        if self._timer == ENDING:
            if self._state == LINGERING:
                self._close()
            else:
                self._abort()
            return
        self._server._timeouts += 1
        if self._timer == IDLE:
            self._close()
        else:
            self._refuse(408, "")


cdef Py_ssize_t _total(body) except -1:
    cdef Py_ssize_t size = 0
    for chunk in body:
        size += len(<bytes?>chunk)
    return size
