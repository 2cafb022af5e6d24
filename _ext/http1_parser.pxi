# Bytes to requests. Message boundaries are found here, strictly; fields and bodies are decoded by httptools (llhttp).
# The request line stays out of llhttp, which knows a fixed list of methods: any other one is the handler's to refuse.

cdef enum Phase:
    REQUEST_LINE
    FIELDS
    BODY_LENGTH
    CHUNK_SIZE
    CHUNK_DATA
    CHUNK_END
    TRAILER

cdef enum Event:
    MORE         # all bytes are used up
    HEAD         # the head is complete and a body follows
    COMPLETE     # `request` is whole
    TOO_LARGE    # `request` has a head; its body is over the limit and was not kept

cdef enum:
    CHUNK_LINE_LIMIT = 4096
    FIELD_LIMIT = 1000         # field lines of one head; a megabyte of empty ones would cost more than it carries

cdef bytes _PREFIX_1_0 = b"POST / HTTP/1.0\r\n"
cdef bytes _PREFIX_1_1 = b"POST / HTTP/1.1\r\n"


class RefusedError(ValueError):
    """The bytes are not a request this server takes: `status` and `text` of the answer; the connection ends."""

    def __init__(self, int status, str text=""):
        super().__init__(status, text)
        self.status = status
        self.text = text


@cython.final
cdef class RequestParser:
    """Incremental parser of one connection's bytes; one message at a time, the rest waits."""

    cdef Limits _limits
    cdef object _http
    cdef object _buffer              # bytes, bytearray once a message spans reads, or None
    cdef Py_ssize_t _at              # start of what is not consumed
    cdef Py_ssize_t _line            # start of the line under scan, from _at
    cdef Py_ssize_t _seek            # where the search for its end goes on, from _at
    cdef Py_ssize_t _fields          # start of the field lines, from _at
    cdef dict _upgrades              # Upgrade field lines: ordinal -> start from _at; or None
    cdef Py_ssize_t _count           # field lines so far
    cdef Phase _phase
    cdef int _minor
    cdef str _method
    cdef str _target
    cdef str _path
    cdef str _query
    cdef Request _request
    cdef bint _complete              # llhttp has seen the end of the message
    cdef bint _chunked
    cdef int _codings                # Transfer-Encoding lines
    cdef int _hosts
    cdef int64_t _length
    cdef bytes _host
    cdef bytes _expect
    cdef int64_t _left
    cdef Py_ssize_t _size
    cdef list _pieces
    cdef bint _keep_alive
    cdef bint _unlimited             # the body goes to a reader as it comes, whatever its size

    def __init__(self, Limits limits not None):
        self._limits = limits
        self._http = HttpRequestParser(self)
        self._reset()

    # Python-visible form, for tests.

    def feed(self, bytes data not None):
        self._feed(data)

    def next(self):
        """The next whole request, or None; raises RefusedError (413 when the body is too large)."""
        cdef Event event = HEAD
        while event == HEAD:
            event = self._advance()
        if event == MORE:
            return None
        if event == TOO_LARGE:
            raise RefusedError(413)
        return self._request

    @property
    def keep_alive(self):
        return self._keep_alive

    cdef void _close(self):
        """Break the cycle with llhttp's callbacks."""
        self._http = None
        self._buffer = None
        self._request = None
        self._pieces = None

    cdef void _reset(self):
        self._line = self._seek = self._fields = self._count = 0
        self._upgrades = None
        self._codings = 0
        self._unlimited = False
        self._phase = REQUEST_LINE

    cdef void _feed(self, bytes data):
        if self._buffer is None:
            self._buffer = data
            self._at = 0
            return
        if self._at:
            if type(self._buffer) is bytes:
                self._buffer = bytearray(memoryview(self._buffer)[self._at:])
            else:
                del (<bytearray>self._buffer)[:self._at]
            self._at = 0
        elif type(self._buffer) is bytes:
            self._buffer = bytearray(<bytes>self._buffer)
        (<bytearray>self._buffer).extend(data)

    cdef inline Py_ssize_t _buffered(self):
        return 0 if self._buffer is None else len(self._buffer) - self._at

    cdef bytes _take_rest(self):
        """What has come behind the last message; the parser does not see it."""
        cdef bytes rest = b"" if self._buffer is None else bytes(self._buffer[self._at:])
        self._buffer = None
        self._at = 0
        return rest

    cdef inline const unsigned char* _bytes(self) noexcept:
        if type(self._buffer) is bytes:
            return <const unsigned char*>PyBytes_AS_STRING(self._buffer) + self._at
        return <const unsigned char*>PyByteArray_AS_STRING(self._buffer) + self._at

    cdef inline void _consume(self, Py_ssize_t count):
        self._at += count
        self._line = self._seek = 0
        if self._at == len(self._buffer):
            self._buffer = None
            self._at = 0

    cdef Event _advance(self) except *:
        cdef Event event
        while self._buffer is not None:
            if self._phase <= FIELDS:
                if not self._scan_head():
                    return MORE
                return self._take_head()
            elif self._phase == BODY_LENGTH or self._phase == CHUNK_DATA:
                if self._take_data():
                    return self._finish()
            elif self._phase == CHUNK_END:
                if not self._take_chunk_end():
                    return MORE
            else:
                event = self._take_body_line()
                if event != HEAD:
                    return event
        return MORE

    # Head

    cdef Py_ssize_t _find_line(self, Py_ssize_t limit, int status) except -2:
        """Length of the line under scan without its CRLF, or -1 when its end has not come yet."""
        cdef const unsigned char* p = self._bytes()
        cdef Py_ssize_t n = self._buffered()
        cdef Py_ssize_t end
        cdef const unsigned char* found = <const unsigned char*>memchr(p + self._seek, c'\n', n - self._seek)
        if found == NULL:
            if n > limit:
                raise RefusedError(status)
            self._seek = n
            return -1
        end = found - p
        if end >= limit:
            raise RefusedError(status)
        if end == self._line or p[end - 1] != c'\r':
            raise RefusedError(400)
        self._seek = end + 1
        return end - 1 - self._line

    cdef bint _scan_head(self) except -1:
        cdef const unsigned char* p = self._bytes()
        cdef const unsigned char* line
        cdef Py_ssize_t length, name
        if not CLASS[p[0]] & TOKEN:
            raise RefusedError(400)
        while True:
            length = self._find_line(self._limits.header, 431)
            if length < 0:
                return False
            line = p + self._line
            if self._phase == REQUEST_LINE:
                self._request_line(line, length)
                self._phase = FIELDS
                self._fields = self._seek
                self._chunked = False
            elif length == 0:
                return True
            else:
                name = _field_name(line, length)
                if name < 0:
                    raise RefusedError(400)
                if name == 7 and _is(line, "upgrade", 7):
                    if self._upgrades is None:
                        self._upgrades = {}
                    self._upgrades[self._count] = self._line
                elif name == 17 and _is(line, "transfer-encoding", 17):
                    self._codings += 1
                    self._chunked = self._codings == 1 and line[18:length].strip(b" \t").lower() == b"chunked"
                self._count += 1
                if self._count > FIELD_LIMIT:
                    raise RefusedError(431)
            self._line = self._seek

    cdef int _request_line(self, const unsigned char* p, Py_ssize_t n) except -1:
        cdef Py_ssize_t method = 0, end, target, path, mark
        while method < n and CLASS[p[method]] & TOKEN:
            method += 1
        target = method + 1
        end = n - 9                            # " HTTP/1.1"
        if method == 0 or end <= target or p[method] != c' ' or memcmp(p + end, b" HTTP/", 6) != 0:
            raise RefusedError(400)
        if not c'0' <= p[n - 3] <= c'9' or p[n - 2] != c'.' or not c'0' <= p[n - 1] <= c'9':
            raise RefusedError(400)
        if not _all(p + target, end - target, TARGET):
            raise RefusedError(400)
        if p[n - 3] != c'1':
            raise RefusedError(505, "unsupported protocol version")
        self._minor = p[n - 1] - c'0'
        self._method = PyUnicode_DecodeLatin1(<const char*>p, method, NULL)
        self._target = _text(p + target, end - target)
        path = self._origin(p, target, end)
        mark = path
        while mark < end and p[mark] != c'?':
            mark += 1
        if not _escapes_whole(p + path, mark - path):
            raise RefusedError(400)
        if path == target and mark == end:
            self._path = self._target
        elif path == mark:
            self._path = "/"
        else:
            self._path = _text(p + path, mark - path)
        self._query = "" if mark == end else _text(p + mark + 1, end - mark - 1)
        return 0

    cdef Py_ssize_t _origin(self, const unsigned char* p, Py_ssize_t target, Py_ssize_t end) except -1:
        """Where the path begins: at once, or behind the authority of an absolute form."""
        cdef Py_ssize_t at = target
        if p[target] == c'/' or end - target == 1 and p[target] == c'*' and self._method == "OPTIONS":
            return target
        if end - target > 8 and _is(p + target, "https://", 8):
            at = target + 8
        elif end - target > 7 and _is(p + target, "http://", 7):
            at = target + 7
        if at == target or p[at] == c'/' or p[at] == c'?':
            raise RefusedError(400)
        while at < end and p[at] != c'/' and p[at] != c'?':
            at += 1
        return at

    cdef Event _take_head(self) except *:
        cdef Request request = Request.__new__(Request)
        cdef Py_ssize_t size = self._seek
        cdef object fields = PyBytes_FromStringAndSize(<const char*>self._bytes() + self._fields, size - self._fields)
        if self._upgrades is not None:
            # llhttp would end the message here and leave its body to another protocol; it must not see the name.
            fields = bytearray(fields)
            for line in self._upgrades.values():
                (<bytearray>fields)[<Py_ssize_t>line - self._fields] = c'_'
        request.method = self._method
        request.target = self._target
        request.path = self._path
        request.query = self._query
        request.headers = []
        request.body = b""
        request.upgrade = self._upgrades is not None
        request.minor = self._minor
        request.received = _wall()
        self._request = request
        self._complete = False
        self._hosts = 0
        self._length = 0
        self._host = self._expect = None
        self._pieces = None
        self._size = 0
        self._left = 0
        if self._codings:
            if self._minor == 0:
                raise RefusedError(400)
            if not self._chunked:
                raise RefusedError(501, "unsupported transfer encoding")
        try:
            self._http.feed_data(_PREFIX_1_1 if self._minor else _PREFIX_1_0)
            self._http.feed_data(fields)
        except HttpParserError:
            raise RefusedError(400) from None
        self._check_head()
        self._reset()
        self._consume(size)
        if self._chunked:
            self._phase = CHUNK_SIZE
            self._left = 1
            return HEAD
        if self._length:
            self._phase = BODY_LENGTH
            self._left = self._length
            return TOO_LARGE if self._length > self._limits.body else HEAD
        return self._finish()

    cdef int _check_head(self) except -1:
        cdef Request request = self._request
        cdef bytes host = self._host
        if self._length < 0:
            raise RefusedError(400)
        if self._hosts != 1 and (self._hosts or self._minor):
            raise RefusedError(400, "too many Host headers" if self._hosts else "missing required Host header")
        if host is not None and not _all(<const unsigned char*>PyBytes_AS_STRING(host), len(host), HOST):
            raise RefusedError(400, "malformed Host header")
        if self._expect is not None and self._minor:
            if self._expect.lower() != b"100-continue":
                raise RefusedError(417)
            request.expects = True
        return 0

    # Callbacks of httptools

    def on_header(self, bytes name not None, bytes value not None):
        cdef Py_ssize_t n
        cdef const unsigned char* p
        name = name.lower()
        n = len(name)
        p = <const unsigned char*>PyBytes_AS_STRING(name)
        if len(value) and (value[len(value) - 1] == c' ' or value[len(value) - 1] == c'\t'):
            value = value.rstrip(b" \t")
        if self._phase != FIELDS:                     # a trailer: checked, not kept
            if n == 14 and _is(p, "content-length", n) or n == 17 and _is(p, "transfer-encoding", n):
                raise ValueError("framing field in a trailer")
            return
        if n == 4 and _is(p, "host", n):
            self._hosts += 1
            self._host = value
        elif n == 6 and _is(p, "expect", n):
            self._expect = value
        elif n == 7 and self._upgrades is not None and len(self._request.headers) in self._upgrades:
            name = b"upgrade"
        elif n == 14 and _is(p, "content-length", n):
            self._length = _decimal(value)
        self._request.headers.append((name, value))

    def on_headers_complete(self):
        self._keep_alive = self._http.should_keep_alive()

    def on_body(self, bytes data not None):
        self._size += len(data)
        if self._pieces is None:
            self._pieces = [data]
        else:
            self._pieces.append(data)

    def on_message_complete(self):
        self._complete = True

    # Body

    cdef int _give(self, Py_ssize_t count) except -1:
        """Pass the next bytes on to llhttp and consume them."""
        try:
            if self._at == 0 and count == len(self._buffer):
                self._http.feed_data(self._buffer)
            else:
                self._http.feed_data(memoryview(self._buffer)[self._at:self._at + count])
        except HttpParserError:
            raise RefusedError(400) from None
        self._consume(count)
        return 0

    cdef bint _take_data(self) except -1:
        """Take what is there of the body or chunk; True when a body of known length is whole."""
        cdef Py_ssize_t count = min(<Py_ssize_t>self._left, self._buffered())
        self._left -= count
        self._give(count)
        if self._left:
            return False
        if self._phase == BODY_LENGTH:
            return True
        self._phase = CHUNK_END
        return False

    cdef bint _take_chunk_end(self) except -1:
        cdef const unsigned char* p = self._bytes()
        if p[0] != c'\r' or self._buffered() > 1 and p[1] != c'\n':
            raise RefusedError(400)
        if self._buffered() < 2:
            return False
        self._give(2)
        self._phase = CHUNK_SIZE
        return True

    cdef Event _take_body_line(self) except *:
        """One chunk-size or trailer line; HEAD when there is more to do."""
        cdef Py_ssize_t length
        cdef int64_t size
        cdef bint trailer = self._phase == TRAILER
        if trailer:
            length = self._find_line(self._limits.header - self._size, 431)
        else:
            length = self._find_line(CHUNK_LINE_LIMIT, 400)
        if length < 0:
            return MORE
        if trailer:
            if length and _field_name(self._bytes(), length) < 0:
                raise RefusedError(400)
            self._size += length + 2
            self._give(length + 2)
            return HEAD if length else self._finish()
        size = _chunk_size(self._bytes(), length)
        if size < 0:
            raise RefusedError(400)
        if size > self._limits.body - self._size and not self._unlimited:
            self._line = self._seek = 0           # whoever goes on meets the line again
            return TOO_LARGE
        self._give(length + 2)
        self._left = size
        if size:
            self._phase = CHUNK_DATA
        else:
            self._join()
            self._phase = TRAILER
            self._size = 0
        return HEAD

    cdef void _join(self):
        if self._pieces is not None and self._request is not None:
            self._request.body = <bytes>self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces = None

    cdef bytes _take_pieces(self):
        """What there is of the body so far; the parser keeps none of it."""
        cdef list pieces = self._pieces
        self._pieces = None
        if pieces is None:
            return b""
        return <bytes>pieces[0] if len(pieces) == 1 else b"".join(pieces)

    cdef Event _finish(self) except *:
        if not self._complete:
            raise RefusedError(400)
        self._join()
        self._reset()
        return COMPLETE


cdef inline str _text(const unsigned char* p, Py_ssize_t n):
    return PyUnicode_DecodeUTF8(<const char*>p, n, "surrogateescape")
