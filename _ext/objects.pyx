"""Cached objects and the documents assembled from them.

The layout of a stored value is found by a scanner that reads only as far as the place of the resource version. It takes
canonical JSON (no white space between tokens, plain keys) and answers ValueError to anything else it meets; it never
reads outside the value. What lies beyond that place is not looked at: storage vouches for it.

Two member orders exist. Typed objects open with kind and apiVersion, and the members of metadata stand in the order of
the type. Custom resources have sorted keys throughout, so other members may come before metadata, even before apiVersion.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdio cimport snprintf
from libc.string cimport memchr, memcmp, memcpy

from sys import intern

from orjson import loads

cdef dict EMPTY = {}
# Openings shared by all objects of a resource. Bounded, for what a damaged disk may hold.
cdef dict HEADS = {}
cdef enum:
    HEADS_MAX = 10_000

cdef enum:
    # `,"resourceVersion":"` + 20 digits + `"` and the terminator of snprintf.
    SPLICE_MAX = 48

# Live objects, so that a test can see a leak.
cdef Py_ssize_t _live_objects = 0


def live():
    """How many cached objects exist now."""
    return {"CachedObject": _live_objects}


cdef struct Layout:
    Py_ssize_t head
    Py_ssize_t meta
    Py_ssize_t splice


# --- scanner -----------------------------------------------------------------------------------------------------
# Pointers run over [p, end); every function returns NULL where the text ends or breaks the grammar.

cdef const char* skip_string(const char* p, const char* end) noexcept nogil:
    """From the opening quote to just behind the closing one."""
    if p >= end or p[0] != c'"':
        return NULL
    p += 1
    while p < end:
        if p[0] == c'"':
            return p + 1
        if p[0] == c'\\':
            if end - p < 2:
                return NULL
            p += 1
        p += 1
    return NULL


cdef const char* skip_value(const char* p, const char* end) noexcept nogil:
    """Just behind the value that starts at `p`."""
    cdef Py_ssize_t depth = 0
    cdef const char* start
    while p < end:
        if p[0] == c'"':
            p = skip_string(p, end)
            if p == NULL:
                return NULL
        elif p[0] == c'{' or p[0] == c'[':
            depth += 1
            p += 1
        elif p[0] == c'}' or p[0] == c']':
            if depth == 0:
                return NULL
            depth -= 1
            p += 1
        elif depth:
            p += 1
        else:
            start = p
            while p < end and p[0] != c',' and p[0] != c'}' and p[0] != c']' and p[0] != c'"' and p[0] > 32:
                p += 1
            return p if p > start else NULL
        if depth == 0:
            return p
    return NULL


cdef const char* open_member(const char* p, const char* end, const char** key_end) noexcept nogil:
    """`p` is at the quote of a key; sets the end of the key (its closing quote), returns the start of the value."""
    p = skip_string(p, end)
    if p == NULL or p >= end or p[0] != c':':
        return NULL
    key_end[0] = p - 1
    p += 1
    return p if p < end else NULL


cdef inline bint is_key(const char* key, const char* key_end, const char* text, Py_ssize_t size) noexcept nogil:
    """Whether the member key that starts behind the quote at `key` is `text`."""
    return key_end - key - 1 == size and memcmp(key + 1, text, <size_t>size) == 0


cdef inline bint before_version(const char* key, const char* key_end, bint typed) noexcept nogil:
    """Whether a member of metadata stands before resourceVersion."""
    cdef Py_ssize_t size = key_end - key - 1
    cdef int order
    if typed:
        return (
            is_key(key, key_end, b"name", 4)
            or is_key(key, key_end, b"namespace", 9)
            or is_key(key, key_end, b"uid", 3)
            or is_key(key, key_end, b"generateName", 12)
            or is_key(key, key_end, b"selfLink", 8)
        )
    order = memcmp(key + 1, b"resourceVersion", <size_t>min(size, 15))
    return order < 0 or (order == 0 and size < 15)


cdef const char* find_metadata(const char* start, const char* end, Layout* layout, bint* typed) noexcept nogil:
    """The `{` of metadata in the object at `start`; fills `layout.head` and the member order."""
    cdef const char* p = start
    cdef const char* key
    cdef const char* key_end = NULL
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t heading = 0
    if end - p < 2 or p[0] != c'{':
        return NULL
    p += 1
    layout.head = 1
    while True:
        key = p
        p = open_member(p, end, &key_end)
        if p == NULL:
            return NULL
        if is_key(key, key_end, b"metadata", 8):
            if place == 0:
                typed[0] = True
            return p if p[0] == c'{' else NULL
        if is_key(key, key_end, b"kind", 4):
            heading += 1
            if place == 0:
                typed[0] = True
        elif is_key(key, key_end, b"apiVersion", 10):
            heading += 1
        p = skip_value(p, end)
        if p == NULL or p >= end or p[0] != c',':
            return NULL
        p += 1
        place += 1
        if place == 2 and heading == 2:
            layout.head = p - start


cdef int scan(const char* start, Py_ssize_t size, Layout* layout) noexcept nogil:
    """Lay out a stored value; 0 when it could be done."""
    cdef const char* end = start + size
    cdef bint typed = False
    cdef const char* p = find_metadata(start, end, layout, &typed)
    cdef const char* key
    cdef const char* key_end = NULL
    if p == NULL or end[-1] != c'}':
        return -1
    layout.meta = p - start
    p += 1
    if p >= end:
        return -1
    while p[0] != c'}':
        key = p
        p = open_member(p, end, &key_end)
        if p == NULL or is_key(key, key_end, b"resourceVersion", 15):
            return -1
        if not before_version(key, key_end, typed):
            layout.splice = key - start
            return 0
        p = skip_value(p, end)
        if p == NULL or p >= end:
            return -1
        if p[0] == c',':
            p += 1
            if p >= end or p[0] != c'"':
                return -1
        elif p[0] != c'}':
            return -1
    # The object itself must still be closed behind its metadata.
    if end - p < 2:
        return -1
    layout.splice = p - start
    return 0


cdef inline Py_ssize_t strip(const char* start, Py_ssize_t size) noexcept nogil:
    """Size without line ends at the end: other writers of a shared store leave one."""
    while size and start[size - 1] == c'\n':
        size -= 1
    return size


# --- splicing ----------------------------------------------------------------------------------------------------

cdef bytes spliced(
    const char* text, Py_ssize_t size, Py_ssize_t cut, Py_ssize_t cut_end, long long revision, Py_ssize_t* new_end
):
    """`text` with the resource version member in place of [cut, cut_end); commas as the neighbours need them.

    Revision 0 is none: what was never committed, or comes from a source without versions, has no such member."""
    cdef char member[SPLICE_MAX]
    cdef Py_ssize_t length = 0
    cdef bint first = text[cut - 1] == c'{'
    cdef bint last = text[cut_end] == c'}'
    cdef bytes result
    cdef char* out
    if revision:
        length = snprintf(
            member, SPLICE_MAX, b'%s"resourceVersion":"%lld"%s', b"," if last and not first else b"", revision, b"" if last else b","
        )
    result = PyBytes_FromStringAndSize(NULL, size - (cut_end - cut) + length)
    out = PyBytes_AS_STRING(result)
    memcpy(out, text, <size_t>cut)
    memcpy(out + cut, member, <size_t>length)
    memcpy(out + cut + length, text + cut_end, <size_t>(size - cut_end))
    new_end[0] = cut + length
    return result


cdef bytes shared_head(const char* start, Py_ssize_t size):
    cdef bytes head = PyBytes_FromStringAndSize(start, size)
    if len(HEADS) < HEADS_MAX:
        return HEADS.setdefault(head, head)
    return HEADS.get(head, head)


cdef dict parse_labels(const char* p, const char* end):
    """The map at `p`; what is not a string value is left out. Keys and values are interned: selectors rely on it."""
    cdef dict labels = {}
    cdef const char* start = p
    cdef const char* key
    cdef const char* key_end = NULL
    cdef const char* after
    if p[0] != c'{':
        return EMPTY
    after = skip_value(p, end)
    if after == NULL:
        raise ValueError("labels are not closed")
    end = after
    p += 1
    if p[0] == c'}':
        return EMPTY
    if memchr(start, c'\\', <size_t>(end - start)) != NULL:
        return {intern(k): intern(v) for k, v in loads(start[:end - start]).items() if isinstance(v, str)}
    while p < end:
        key = p
        p = open_member(p, end, &key_end)
        if p == NULL:
            raise ValueError("labels are not a JSON object")
        after = skip_value(p, end)
        if after == NULL:
            raise ValueError("a label has no value")
        if p[0] == c'"':
            labels[intern(PyUnicode_DecodeUTF8(key + 1, key_end - key - 1, NULL))] = intern(
                PyUnicode_DecodeUTF8(p + 1, after - p - 2, NULL)
            )
        p = after + 1
    return labels


@cython.final
cdef class CachedObject:
    """One committed object at one revision; immutable but for its memo slots."""

    def __cinit__(self, *args):
        global _live_objects
        _live_objects += 1
        # `__new__` alone must not leave None where C code expects bytes.
        self.head = b""
        self.body = b""

    def __dealloc__(self):
        global _live_objects
        _live_objects -= 1

    def __init__(
        self,
        str key not None,
        str namespace not None,
        str name not None,
        bytes value not None,
        long long revision,
        long long created,
    ):
        cdef Layout layout
        cdef const char* start = PyBytes_AS_STRING(value)
        cdef Py_ssize_t size = strip(start, PyBytes_GET_SIZE(value))
        if scan(start, size, &layout):
            raise ValueError(f"{key}: not a stored object with metadata")
        self.key = key
        self.namespace = namespace
        self.name = name
        self.revision = revision
        self.created = created
        self.head = shared_head(start, layout.head)
        self._meta = layout.meta - layout.head
        self._cut = layout.splice - layout.head
        self.body = spliced(
            start + layout.head, size - layout.head, self._cut, self._cut, revision, &self._cut_end
        )

    @property
    def memo(self):
        return self.memo_map()

    cdef dict memo_map(self):
        if self._memo is None:
            self._memo = {}
        return self._memo

    cdef dict label_map(self):
        cdef const char* start
        cdef const char* end
        cdef const char* p
        cdef const char* key
        cdef const char* key_end = NULL
        cdef dict labels = EMPTY
        if self._labels is not None:
            return self._labels
        start = PyBytes_AS_STRING(self.body)
        end = start + PyBytes_GET_SIZE(self.body)
        p = start + self._meta + 1
        while True:
            key = p
            p = open_member(p, end, &key_end)
            if p == NULL:
                break
            if is_key(key, key_end, b"labels", 6):
                try:
                    labels = parse_labels(p, end)
                except ValueError as error:
                    raise ValueError(f"{self.key}: labels cannot be read") from error
                break
            p = skip_value(p, end)
            if p == NULL or p >= end or p[0] != c',':
                break
            p += 1
        self._labels = labels
        return labels

    def labels(self):
        return self.label_map()

    def metadata(self):
        cdef const char* start = PyBytes_AS_STRING(self.body)
        cdef const char* end = start + PyBytes_GET_SIZE(self.body)
        cdef const char* after = skip_value(start + self._meta, end)
        if after == NULL:
            raise ValueError(f"{self.key}: metadata is not closed")
        return PyBytes_FromStringAndSize(start + self._meta, after - start - self._meta)

    def json(self):
        return self.head + self.body

    def tree(self):
        return loads(self.head + self.body)

    def tree_without(self, bytes name):
        # The key cannot be part of a string: its quotes would be escaped there, and so would those within a key.
        cdef bytes key = b'"' + name + b'":'
        cdef bytes body = self.body
        cdef const char* start = PyBytes_AS_STRING(body)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(body)
        cdef Py_ssize_t done = 0
        cdef Py_ssize_t at = body.find(key)
        cdef const char* after
        if at < 0:
            return self.tree()
        cdef list parts = [self.head]
        while at >= 0:
            if at > 0 and (start[at - 1] == c'{' or start[at - 1] == c','):
                at += len(key)
                after = skip_value(start + at, start + size)
                if after == NULL:
                    raise ValueError(f"{self.key}: a value is not closed")
                parts.append(body[done:at])
                parts.append(b"null")
                done = after - start
                at = done
            else:
                at += 1
            at = body.find(key, at)
        parts.append(body[done:])
        return loads(b"".join(parts))

    def stored(self):
        cdef Py_ssize_t head = PyBytes_GET_SIZE(self.head)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(self.body)
        cdef const char* body = PyBytes_AS_STRING(self.body)
        cdef bytes value = PyBytes_FromStringAndSize(NULL, head + size - (self._cut_end - self._cut))
        cdef char* out = PyBytes_AS_STRING(value)
        memcpy(out, PyBytes_AS_STRING(self.head), <size_t>head)
        memcpy(out + head, body, <size_t>self._cut)
        memcpy(out + head + self._cut, body + self._cut_end, <size_t>(size - self._cut_end))
        return value

    def at_revision(self, long long revision):
        cdef CachedObject other
        if not self.body:
            raise ValueError("an object without a value")
        other = CachedObject.__new__(CachedObject)
        other.key = self.key
        other.namespace = self.namespace
        other.name = self.name
        other.revision = revision
        other.created = self.created
        other.head = self.head
        other._labels = self._labels
        other._meta = self._meta
        other._cut = self._cut
        other.body = spliced(
            PyBytes_AS_STRING(self.body), PyBytes_GET_SIZE(self.body), self._cut, self._cut_end, revision, &other._cut_end
        )
        return other

    def __reduce__(self):
        return CachedObject, (self.key, self.namespace, self.name, self.stored(), self.revision, self.created)

    def __repr__(self):
        return f"<CachedObject {self.key} at {self.revision}>"


# --- documents ---------------------------------------------------------------------------------------------------

def split_head(bytes value not None):
    cdef Layout layout
    cdef const char* start = PyBytes_AS_STRING(value)
    if scan(start, strip(start, PyBytes_GET_SIZE(value)), &layout):
        raise ValueError("not a stored object with metadata")
    return shared_head(start, layout.head), layout.splice


cdef inline char* put(char* out, bytes part) noexcept:
    memcpy(out, PyBytes_AS_STRING(part), <size_t>PyBytes_GET_SIZE(part))
    return out + PyBytes_GET_SIZE(part)


def list_document(bytes head not None, objects, bytes tail not None, *, bint whole):
    # A list of our own: the sizes summed in the first pass must be those of the objects copied in the second.
    cdef list items = list(objects)
    cdef CachedObject item
    cdef Py_ssize_t size = PyBytes_GET_SIZE(head) + PyBytes_GET_SIZE(tail)
    cdef bytes document
    cdef char* out
    cdef bint first = True
    for entry in items:
        item = <CachedObject?>entry
        size += PyBytes_GET_SIZE(item.body) + (PyBytes_GET_SIZE(item.head) if whole else 1)
    if items:
        size += len(items) - 1
    document = PyBytes_FromStringAndSize(NULL, size)
    out = put(PyBytes_AS_STRING(document), head)
    for entry in items:
        item = <CachedObject>entry
        if not first:
            out[0] = c','
            out += 1
        first = False
        if whole:
            out = put(out, item.head)
        else:
            out[0] = c'{'
            out += 1
        out = put(out, item.body)
    put(out, tail)
    return document


def watch_frame(str event not None, bytes head not None, bytes body not None, *, bint chunked=True):
    cdef bytes kind = event.encode()
    # {"type":"   ","object":   }\n
    cdef Py_ssize_t payload = 9 + PyBytes_GET_SIZE(kind) + 11 + PyBytes_GET_SIZE(head) + PyBytes_GET_SIZE(body) + 2
    cdef char prefix[24]
    cdef int lead = 0
    cdef bytes frame
    cdef char* out
    if chunked:
        lead = snprintf(prefix, 24, b"%zx\r\n", payload)
    frame = PyBytes_FromStringAndSize(NULL, lead + payload + (2 if chunked else 0))
    out = PyBytes_AS_STRING(frame)
    memcpy(out, prefix, <size_t>lead)
    out += lead
    memcpy(out, b'{"type":"', 9)
    out = put(out + 9, kind)
    memcpy(out, b'","object":', 11)
    out = put(put(out + 11, head), body)
    memcpy(out, b"}\n", 2)
    if chunked:
        memcpy(out + 2, b"\r\n", 2)
    return frame
