# Answers to bytes: heads, chunk framing, compression.

cdef enum:
    JOIN_LIMIT = 65536         # below it head and body go out in one buffer; also the least size of a later write
    SLICE = 262144             # most that is handed to the transport at once
    GZIP_LIMIT = 131072        # bodies above it are compressed when the client accepts it

# Names as Go's net/http prints them; Python's differ from version to version.
cdef dict _STATUS_LINES = {
    code: b"HTTP/1.1 %d %s\r\n" % (code, name)
    for code, name in {
        100: b"Continue", 101: b"Switching Protocols", 200: b"OK", 201: b"Created", 202: b"Accepted",
        203: b"Non-Authoritative Information", 204: b"No Content", 205: b"Reset Content", 206: b"Partial Content",
        207: b"Multi-Status", 300: b"Multiple Choices", 301: b"Moved Permanently", 302: b"Found", 303: b"See Other",
        304: b"Not Modified", 307: b"Temporary Redirect", 308: b"Permanent Redirect", 400: b"Bad Request",
        401: b"Unauthorized", 402: b"Payment Required", 403: b"Forbidden", 404: b"Not Found",
        405: b"Method Not Allowed", 406: b"Not Acceptable", 407: b"Proxy Authentication Required",
        408: b"Request Timeout", 409: b"Conflict",
        410: b"Gone", 411: b"Length Required", 412: b"Precondition Failed", 413: b"Request Entity Too Large",
        414: b"Request URI Too Long", 415: b"Unsupported Media Type", 416: b"Requested Range Not Satisfiable",
        417: b"Expectation Failed", 421: b"Misdirected Request", 422: b"Unprocessable Entity", 423: b"Locked",
        424: b"Failed Dependency", 425: b"Too Early", 426: b"Upgrade Required", 428: b"Precondition Required",
        429: b"Too Many Requests", 431: b"Request Header Fields Too Large", 451: b"Unavailable For Legal Reasons",
        500: b"Internal Server Error", 501: b"Not Implemented", 502: b"Bad Gateway", 503: b"Service Unavailable",
        504: b"Gateway Timeout", 505: b"HTTP Version Not Supported", 507: b"Insufficient Storage",
        508: b"Loop Detected", 511: b"Network Authentication Required",
    }.items()
}
cdef tuple _DAYS = (b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun")
cdef tuple _MONTHS = (
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"
)


def http_date(int64_t second):
    """A Unix time as RFC 9110 wants it, without the weight (and the locale) of the library's ways."""
    at = time.gmtime(second)
    return b"%s, %02d %s %d %02d:%02d:%02d GMT" % (
        _DAYS[at.tm_wday], at.tm_mday, _MONTHS[at.tm_mon - 1], at.tm_year, at.tm_hour, at.tm_min, at.tm_sec
    )


cdef bytes _status_line(int status):
    line = _STATUS_LINES.get(status)
    return <bytes>line if line is not None else b"HTTP/1.1 %d \r\n" % status


cdef bytes _plain_answer(int status, str text):
    """An answer the server gives itself, before any handler: plain text, then the connection ends."""
    line = _status_line(status)
    body = line[9:-2]
    if text:
        body += b": " + text.encode()
    return b"%sContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
        line, len(body), body
    )


cdef inline int _own_field(bytes name) noexcept:
    """Which of the server's own fields this is: 0 none, 1 Date, 2 Connection, 3 Content-Length, 4 another."""
    cdef Py_ssize_t n = len(name)
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(name)
    if n == 4 and _is(p, "date", n):
        return 1
    if n == 10 and _is(p, "connection", n):
        return 2
    if n == 14 and _is(p, "content-length", n):
        return 3
    if n == 17 and _is(p, "transfer-encoding", n) or n == 10 and _is(p, "keep-alive", n):
        return 4
    return 0


cdef char* _put(char* out, bytes data) noexcept:
    memcpy(out, PyBytes_AS_STRING(data), len(data))
    return out + len(data)


cdef char* _put_value(char* out, bytes value) noexcept:
    """A field value; a line break in it, which would forge fields, becomes a space."""
    cdef Py_ssize_t i, n = len(value)
    memcpy(out, PyBytes_AS_STRING(value), n)
    if memchr(out, c'\n', n) != NULL or memchr(out, c'\r', n) != NULL:
        for i in range(n):
            if out[i] == c'\n' or out[i] == c'\r':
                out[i] = c' '
    return out + n


@cython.final
@cython.internal
cdef class Head:
    """What the head of one answer says besides the handler's fields."""

    cdef int status
    cdef bint close               # the connection ends after this answer
    cdef bint http10              # so Keep-Alive has to be said
    cdef bint chunked
    cdef int64_t length           # Content-Length, -1 for none
    cdef bytes length_given       # the handler's Content-Length, for HEAD
    cdef bytes date
    cdef list fields

    cdef void set_fields(self, list fields):
        """Take the handler's fields; those that belong to the server are judged here and left out."""
        cdef list kept = None
        cdef Py_ssize_t i
        cdef int own
        for i in range(len(fields)):
            name, value = fields[i]
            own = _own_field(<bytes?>name)
            if own and not (own == 2 and self.status == 101):
                if kept is None:
                    kept = fields[:i]
                if own == 1:
                    self.date = b"Date: " + <bytes?>value + b"\r\n"
                elif own == 2 and b"close" in (<bytes?>value).lower():
                    self.close = True
                elif own == 3:
                    self.length_given = value
            elif kept is not None:
                kept.append(fields[i])
        self.fields = fields if kept is None else kept

    cdef bytes encode(self, bytes body):
        """The head, followed by `body`."""
        cdef bytes line = _status_line(self.status)
        cdef bytes length = b""
        cdef bytes ending = b"\r\n"
        cdef bytes name, value, result
        cdef Py_ssize_t size
        cdef char* out
        if self.length >= 0:
            length = b"Content-Length: %d\r\n" % self.length
        if self.close:
            ending = b"Connection: close\r\n\r\n"
        elif self.http10:
            ending = b"Connection: keep-alive\r\n\r\n"
        if self.chunked:
            ending = b"Transfer-Encoding: chunked\r\n" + ending
        size = len(line) + len(self.date) + len(length) + len(ending) + len(body)
        for field in self.fields:
            name = <bytes?>(<tuple?>field)[0]
            value = <bytes?>(<tuple?>field)[1]
            size += len(name) + len(value) + 4
        result = PyBytes_FromStringAndSize(NULL, size)
        out = _put(PyBytes_AS_STRING(result), line)
        for field in self.fields:
            out = _put(out, <bytes>(<tuple>field)[0])
            out[0] = c':'
            out[1] = c' '
            out = _put_value(out + 2, <bytes>(<tuple>field)[1])
            out[0] = c'\r'
            out[1] = c'\n'
            out += 2
        out = _put(out, self.date)
        out = _put(out, length)
        out = _put(out, ending)
        _put(out, body)
        return result


cdef bytes _chunk(bytes data):
    """One chunk with its framing."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def unframed(bytes frames not None):
    """The data of whole chunks, for clients that do not know chunks."""
    cdef list pieces = []
    cdef Py_ssize_t at = 0, end
    cdef Py_ssize_t size
    while at < len(frames):
        end = frames.index(b"\r\n", at)
        size = int(frames[at:end], 16)
        pieces.append(frames[end + 2:end + 2 + size])
        at = end + 4 + size
    return b"".join(pieces)


cdef bint _accepts_gzip(Request request):
    """As the reference reads it: the bare word, quality values are not understood."""
    cdef bytes accepted = request._header(b"accept-encoding")
    if accepted is None or b"gzip" not in accepted:
        return False
    return any([token.strip() == b"gzip" for token in accepted.split(b",")])


def compressed(body):
    """gzip at level 1 of bytes or a sequence of bytes."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    if isinstance(body, bytes):
        return packer.compress(body) + packer.flush()
    pieces = [packer.compress(piece) for piece in body]
    pieces.append(packer.flush())
    return b"".join(pieces)


@cython.final
@cython.internal
cdef class Output:
    """Bytes of one answer that the transport has not been given yet, handed out in pieces of a good size."""

    cdef object _chunks
    cdef Py_ssize_t _index
    cdef Py_ssize_t _offset
    cdef bytes _head

    cdef object take(self):
        """The next piece to write, None at the end. Small chunks are joined, large ones sliced without a copy."""
        cdef list pieces = []
        cdef Py_ssize_t size = 0, left
        if self._head is not None:
            pieces.append(self._head)
            size = len(self._head)
            self._head = None
        while self._index < len(self._chunks):
            chunk = <bytes?>self._chunks[self._index]
            left = len(<bytes>chunk) - self._offset
            if size == 0 and left >= JOIN_LIMIT:
                return self._slice(<bytes>chunk, left, SLICE)
            if size + left > JOIN_LIMIT:
                pieces.append(self._slice(<bytes>chunk, left, JOIN_LIMIT - size))
                size = JOIN_LIMIT
            else:
                pieces.append(self._slice(<bytes>chunk, left, left))
                size += left
            if size >= JOIN_LIMIT:
                break
        if not size:
            return None
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    cdef object _slice(self, bytes chunk, Py_ssize_t left, Py_ssize_t most):
        cdef Py_ssize_t start = self._offset
        if left <= most:
            self._index += 1
            self._offset = 0
            return chunk if start == 0 else memoryview(chunk)[start:]
        self._offset += most
        return memoryview(chunk)[start:self._offset]

    cdef bint done(self):
        return self._head is None and self._index >= len(self._chunks)


cdef Output _output(bytes head, chunks):
    cdef Output output = Output.__new__(Output)
    output._head = head
    output._chunks = chunks
    return output
