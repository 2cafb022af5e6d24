# Grammar of RFC 9112, byte by byte: what may stand in a request line, a field line and a chunk-size line.
# llhttp decides again on everything it is given; a message is accepted only when both agree.

cdef enum:
    TOKEN = 1      # method and field name
    TARGET = 2     # request target: visible ASCII and bytes above it
    VALUE = 4      # field value
    HEX = 8
    HOST = 16      # value of Host

cdef unsigned char[256] CLASS


cdef void _fill_classes() noexcept:
    cdef int c
    cdef unsigned char letter
    for c in range(256):
        CLASS[c] = 0
        if c > 32 and c != 127:
            CLASS[c] |= TARGET | VALUE
    CLASS[9] |= VALUE
    CLASS[32] |= VALUE
    for letter in b"0123456789ABCDEFabcdef":
        CLASS[letter] |= HEX
    for letter in b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ":
        CLASS[letter] |= TOKEN | HOST
    for letter in b"!#$%&'*+-.^_`|~":
        CLASS[letter] |= TOKEN
    for letter in b"!$%&()*+,-.:;=['_~]":
        CLASS[letter] |= HOST

_fill_classes()

# A chunk extension is rare enough for a regular expression: ;name, ;name=token, ;name="quoted".
_extensions = re.compile(
    rb"(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
    rb"(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|\"(?:[\t !#-\[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*\"))?)*"
).fullmatch


cdef inline bint _all(const unsigned char* p, Py_ssize_t n, int kind) noexcept:
    cdef Py_ssize_t i
    for i in range(n):
        if not CLASS[p[i]] & kind:
            return False
    return True


cdef inline bint _is(const unsigned char* p, const char* lower, Py_ssize_t n) noexcept:
    """Case-insensitive equality with a lower-case name; the caller has compared the lengths."""
    cdef Py_ssize_t i
    for i in range(n):
        if (p[i] | 32) != <unsigned char>lower[i]:
            return False
    return True


cdef inline Py_ssize_t _field_name(const unsigned char* p, Py_ssize_t n) noexcept:
    """Length of the name when the line (without CRLF) is a field line, else -1.

    A line that begins with white space (obs-fold) or has some before its colon is not one.
    """
    cdef Py_ssize_t name = 0
    while name < n and CLASS[p[name]] & TOKEN:
        name += 1
    if name == 0 or name == n or p[name] != c':' or not _all(p + name + 1, n - name - 1, VALUE):
        return -1
    return name


cdef bint _escapes_whole(const unsigned char* p, Py_ssize_t n) noexcept:
    """Every `%` is followed by two hexadecimal digits."""
    cdef Py_ssize_t i = 0
    while i < n:
        if p[i] == c'%':
            if i + 2 >= n or not CLASS[p[i + 1]] & HEX or not CLASS[p[i + 2]] & HEX:
                return False
            i += 2
        i += 1
    return True


cdef int64_t _decimal(bytes text) noexcept:
    """A Content-Length, or -1."""
    cdef int64_t value = 0
    cdef int c
    if not 0 < len(text) <= 18:
        return -1
    for c in text:
        if not c'0' <= c <= c'9':
            return -1
        value = value * 10 + c - c'0'
    return value


cdef int64_t _chunk_size(const unsigned char* p, Py_ssize_t n) except -2:
    """Size in a chunk-size line (without CRLF), or -1."""
    cdef Py_ssize_t i = 0
    cdef int64_t value = 0
    cdef int c
    while i < n and CLASS[p[i]] & HEX:
        c = p[i]
        value = value * 16 + (c - 48 if c < 58 else (c | 32) - 87)
        i += 1
        if i > 15:
            return -1
    if i == 0:
        return -1
    if i < n and _extensions(p[i:n]) is None:
        return -1
    return value
