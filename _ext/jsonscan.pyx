"""Passes over JSON texts that build no tree: duplicate keys and depth on the way in, Go's spelling on the way out.

Neither pass checks that the text is JSON. On the way in the decoder proper does; on the way out the text comes from an
encoder. Every read stays inside the buffer whatever the text holds.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stdint cimport uint64_t
from libc.string cimport memcmp

import json


cdef enum:
    FIRST_FRAMES = 32
    FIRST_KEYS = 64
    SCAN_KEYS = 24  # objects with more members remember their keys in a set
    MOST_PATHS = 100
    INT64_DIGITS = 19  # a number with as many may not fit


cdef struct Key:
    const char* at
    Py_ssize_t size
    uint64_t hash


cdef struct Frame:
    bint is_object
    bint wants_key
    Py_ssize_t index  # of an array: position of the current element
    Py_ssize_t first  # of an object: where its keys begin on the stack of keys
    Key current  # key of the current member


@cython.final
cdef class _Scan:
    """The stacks of one scan; freed with it."""

    cdef Frame* frames
    cdef Py_ssize_t depth
    cdef Py_ssize_t frame_room
    cdef Key* keys
    cdef Py_ssize_t key_count
    cdef Py_ssize_t key_room
    cdef dict large  # depth -> set of keys
    cdef list paths

    def __cinit__(self):
        self.frame_room = FIRST_FRAMES
        self.key_room = FIRST_KEYS
        self.frames = <Frame*>PyMem_Malloc(FIRST_FRAMES * sizeof(Frame))
        self.keys = <Key*>PyMem_Malloc(FIRST_KEYS * sizeof(Key))
        if self.frames is NULL or self.keys is NULL:
            raise MemoryError
        self.depth = 0
        self.key_count = 0
        self.large = None
        self.paths = []

    def __dealloc__(self):
        PyMem_Free(self.frames)
        PyMem_Free(self.keys)

    cdef int push(self, bint is_object) except -1:
        cdef Frame* frame
        cdef Frame* grown
        if self.depth == self.frame_room:
            grown = <Frame*>PyMem_Realloc(self.frames, 2 * self.frame_room * sizeof(Frame))
            if grown is NULL:
                raise MemoryError
            self.frames = grown
            self.frame_room *= 2
        frame = &self.frames[self.depth]
        frame.is_object = is_object
        frame.wants_key = is_object
        frame.index = 0
        frame.first = self.key_count
        frame.current.at = NULL
        frame.current.size = 0
        self.depth += 1
        return 0

    cdef int pop(self) except -1:
        if self.depth:
            self.depth -= 1
            self.key_count = self.frames[self.depth].first
            if self.large is not None:
                self.large.pop(self.depth + 1, None)
        return 0

    cdef int key(self, const char* at, Py_ssize_t size, uint64_t hash) except -1:
        """Take note of a member's key, and of its path when it was there before."""
        cdef Frame* frame = &self.frames[self.depth - 1]
        cdef Py_ssize_t i
        cdef Key* grown
        cdef bint seen = False
        frame.wants_key = False
        frame.current.at = at
        frame.current.size = size
        frame.current.hash = hash
        if self.key_count - frame.first >= SCAN_KEYS:
            seen = self.seen_in_set(frame, at[:size])
        else:
            for i in range(frame.first, self.key_count):
                if (
                    self.keys[i].hash == hash
                    and self.keys[i].size == size
                    and memcmp(self.keys[i].at, at, <size_t>size) == 0
                ):
                    seen = True
                    break
        if seen:
            if len(self.paths) < MOST_PATHS:
                self.paths.append(self.path())
            return 0
        if self.key_count - frame.first >= SCAN_KEYS:
            return 0
        if self.key_count == self.key_room:
            grown = <Key*>PyMem_Realloc(self.keys, 2 * self.key_room * sizeof(Key))
            if grown is NULL:
                raise MemoryError
            self.keys = grown
            self.key_room *= 2
        self.keys[self.key_count] = frame.current
        self.key_count += 1
        return 0

    cdef bint seen_in_set(self, Frame* frame, bytes key) except -1:
        cdef Py_ssize_t i
        cdef set keys
        if self.large is None:
            self.large = {}
        keys = self.large.get(self.depth)
        if keys is None:
            keys = {self.keys[i].at[: self.keys[i].size] for i in range(frame.first, self.key_count)}
            self.large[self.depth] = keys
        if key in keys:
            return True
        keys.add(key)
        return False

    cdef str path(self):
        """Path of the current member, from the root."""
        cdef Py_ssize_t i
        cdef str out = ""
        for i in range(self.depth):
            if not self.frames[i].is_object:
                out += f"[{self.frames[i].index}]"
            elif self.frames[i].current.at is not NULL:
                name = decode_key(self.frames[i].current.at[: self.frames[i].current.size])
                out += f".{name}" if out else name
        return out


def decode_key(bytes raw):
    """The text of a key, escapes resolved."""
    if b"\\" in raw:
        try:
            return json.loads(b'"' + raw + b'"')
        except ValueError:
            pass
    return raw.decode("utf-8", "replace")


def duplicate_keys(bytes body, Py_ssize_t max_depth):
    """Paths of keys that stand twice in one object; see the stub."""
    return inspect(body, max_depth)[0]


@cython.boundscheck(False)  # every read is guarded by a comparison with the end of the buffer
@cython.wraparound(False)
def inspect(bytes body, Py_ssize_t max_depth):
    """Repeated keys, and whether any number needs care; see the stub."""
    cdef const char* at = PyBytes_AS_STRING(body)
    cdef const char* end = at + PyBytes_GET_SIZE(body)
    cdef const char* start
    cdef _Scan scan = _Scan()
    cdef Frame* top
    cdef uint64_t hash
    cdef bint escaped
    cdef bint care = False
    cdef int digits = 0  # of the number just read
    cdef char c
    while at < end:
        c = at[0]
        at += 1
        if c == b'"':
            start = at
            if scan.depth == 0 or not scan.frames[scan.depth - 1].wants_key:
                while at < end and at[0] != b'"':
                    at += 2 if at[0] == b"\\" else 1
            else:
                hash = 0xCBF29CE484222325
                escaped = False
                while at < end and at[0] != b'"':
                    if at[0] == b"\\":
                        escaped = True
                        at += 1
                        if at == end:
                            break
                    hash = (hash ^ <unsigned char>at[0]) * <uint64_t>0x100000001B3
                    at += 1
                if escaped:
                    escaped_key(scan, start, at)
                else:
                    scan.key(start, at - start, hash)
            at += 1
        elif c == b"{" or c == b"[":
            if scan.depth >= max_depth:
                raise ValueError("exceeded max depth")
            scan.push(c == b"{")
        elif c == b"}" or c == b"]":
            scan.pop()
        elif c == b"," and scan.depth:
            top = &scan.frames[scan.depth - 1]
            if top.is_object:
                top.wants_key = True
            else:
                top.index += 1
        elif b"0" <= c <= b"9":
            digits += 1
            if digits == INT64_DIGITS:
                care = True
            continue
        elif digits and (c == b"e" or c == b"E"):
            care = True
        digits = 0
    return list(dict.fromkeys(scan.paths)), care


cdef int escaped_key(_Scan scan, const char* start, const char* at) except -1:
    """A key with escapes: spelled plainly when that is possible, so that it equals its unescaped twin."""
    cdef bytes raw = start[: at - start]
    cdef bytes plain
    cdef uint64_t hash = 0xCBF29CE484222325
    cdef unsigned char c
    cdef str text = decode_key(raw)
    plain = text.encode("utf-8", "surrogatepass")
    if b"\\" in plain:
        plain = json.dumps(text)[1:-1].encode()
    if scan.large is None:
        scan.large = {}
    scan.large.setdefault(0, []).append(plain)  # keeps the bytes alive as long as the keys point into them
    for c in plain:
        hash = (hash ^ c) * <uint64_t>0x100000001B3
    return scan.key(PyBytes_AS_STRING(plain), PyBytes_GET_SIZE(plain), hash)


cdef unsigned char SPECIAL[256]  # bytes inside a string that need a second look
cdef unsigned char c_
for c_ in b'"\\<>&\xe2':
    SPECIAL[c_] = 1


@cython.boundscheck(False)  # every read is guarded by a comparison with the end of the buffer
@cython.wraparound(False)
cdef bint needs_go_style(const unsigned char* at, const unsigned char* end) noexcept:
    """Whether anything in an encoder's output differs from Go's spelling."""
    cdef unsigned char c, before = 0
    while at < end:
        c = at[0]
        at += 1
        if c == b'"':
            while at < end:
                c = at[0]
                if SPECIAL[c]:
                    if c == b'"':
                        break
                    if c == b"\\":
                        at += 1
                        if at < end and (at[0] == b"b" or at[0] == b"f"):
                            return True
                    elif c != 0xE2 or is_separator(at, end):
                        return True
                at += 1
            at += 1
        elif c == b"." or ((c == b"e" or c == b"E") and b"0" <= before <= b"9"):
            return True
        before = c
    return False


cdef inline bint is_separator(const unsigned char* at, const unsigned char* end) noexcept:
    """U+2028 or U+2029 in UTF-8."""
    return at[0] == 0xE2 and end - at > 2 and at[1] == 0x80 and (at[2] == 0xA8 or at[2] == 0xA9)


@cython.boundscheck(False)  # every read is guarded by a comparison with the end of the buffer
@cython.wraparound(False)
def go_style(bytes text, number):
    """Encoder output in Go's spelling; see the stub."""
    cdef const unsigned char* begin = <const unsigned char*>PyBytes_AS_STRING(text)
    cdef const unsigned char* end = begin + PyBytes_GET_SIZE(text)
    cdef const unsigned char* at = begin
    cdef const unsigned char* done = begin
    cdef const unsigned char* start
    cdef bint in_string = False, real
    cdef unsigned char c
    cdef list out = []
    if not needs_go_style(begin, end):
        return text
    while at < end:
        c = at[0]
        if in_string:
            if c == b"\\":
                if end - at > 1 and (at[1] == b"b" or at[1] == b"f"):
                    out.append((<const char*>done)[: at - done])
                    out.append(b"\\u0008" if at[1] == b"b" else b"\\u000c")
                    done = at + 2
                at += 1
            elif c == b'"':
                in_string = False
            elif c == b"<" or c == b">" or c == b"&":
                out.append((<const char*>done)[: at - done])
                out.append(b"\\u003c" if c == b"<" else b"\\u003e" if c == b">" else b"\\u0026")
                done = at + 1
            elif is_separator(at, end):
                out.append((<const char*>done)[: at - done])
                out.append(b"\\u2028" if at[2] == 0xA8 else b"\\u2029")
                at += 2
                done = at + 1
            at += 1
        elif c == b'"':
            in_string = True
            at += 1
        elif c == b"-" or b"0" <= c <= b"9":
            start = at
            real = False
            while at < end and (b"0" <= at[0] <= b"9" or at[0] in b"+-.eE"):
                if at[0] in b".eE":
                    real = True
                at += 1
            if real:
                out.append((<const char*>done)[: start - done])
                out.append(number(float((<const char*>start)[: at - start])))
                done = at
        else:
            at += 1
    out.append((<const char*>done)[: end - done])
    return b"".join(out)
