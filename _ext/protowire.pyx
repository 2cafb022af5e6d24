"""Protobuf messages of API types, to and from the trees their JSON has.

A `Message` is one message type, a `Member` one field of it. They are made from the type tables by
`fastapi_core/codec/protobuf.py`; here their rules are carried out. Reading follows the reference's generated code: the
last value of a field wins, messages are merged, unknown fields are skipped, packed numbers are understood. Writing goes
backwards from the end of a buffer, so that a length is known when it has to be written.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem, PyDict_SetItem
from cpython.list cimport PyList_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_1BYTE_DATA, PyUnicode_DecodeUTF8, PyUnicode_GET_LENGTH
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from base64 import b64encode as to_base64
from binascii import a2b_base64 as from_base64

cdef extern from "Python.h":
    int PyUnicode_IS_ASCII(object text)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cpdef enum:
    STRING = 0
    BOOL = 1
    INT32 = 2
    INT64 = 3
    DOUBLE = 4
    BYTES = 5  # base64 text
    OCTETS = 6  # bytes as they are
    STRUCT = 7
    INLINE = 8  # a message whose members are those of its parent
    TIME = 9
    MICROTIME = 10
    DURATION = 11
    QUANTITY = 12
    INT_OR_STRING = 13
    RAW = 14  # a message around a JSON text
    STRINGS = 15  # a message around a list of texts
    SCHEMA_OR_BOOL = 16
    SCHEMA_OR_SCHEMAS = 17
    SCHEMA_OR_STRINGS = 18


cpdef enum:
    SINGLE = 0
    LIST = 1
    MAP = 2


cdef enum:
    VARINT = 0
    FIXED64 = 1
    LENGTH = 2
    START_GROUP = 3
    END_GROUP = 4
    FIXED32 = 5


cdef enum:
    MAX_NUMBER = 65535  # of a field: plans look numbers up in a table
    FIRST_SIZE = 4096


# Years 0 to 9999, which have four digits, in seconds around 1970.
cdef long long FIRST_SECOND = -62167219200
cdef long long LAST_SECOND = 253402300799
cdef long long ZERO_SECOND = -62135596800  # year 1: Go's zero time

ctypedef const unsigned char* Bytes


cdef int cut_short() except -1:
    raise ValueError("unexpected EOF")


# --- reading -----------------------------------------------------------------------------------------------------

cdef struct Cursor:
    Bytes at
    Bytes end


cdef inline int varint(Cursor* c, unsigned long long* value) except -1:
    cdef unsigned long long result = 0
    cdef int shift = 0
    cdef unsigned char byte
    if c.at < c.end and c.at[0] < 0x80:
        value[0] = c.at[0]
        c.at += 1
        return 0
    while True:
        if shift >= 64:
            raise ValueError("proto: integer overflow")
        if c.at >= c.end:
            cut_short()
        byte = c.at[0]
        c.at += 1
        result |= (<unsigned long long>(byte & 0x7F)) << shift
        if byte < 0x80:
            break
        shift += 7
    value[0] = result
    return 0


cdef inline int span(Cursor* c, Cursor* inner) except -1:
    """The bytes of a length-delimited value, which are stepped over."""
    cdef unsigned long long size = 0
    varint(c, &size)
    if size > <unsigned long long>0x7FFFFFFFFFFFFFFF:
        raise ValueError("proto: negative length found during unmarshaling")
    if size > <unsigned long long>(c.end - c.at):
        cut_short()
    inner.at = c.at
    inner.end = c.at + <Py_ssize_t>size
    c.at = inner.end
    return 0


cdef int tag(Cursor* c, str message, unsigned int* number) except -1:
    """Field number and wire type of the next field."""
    cdef unsigned long long value = 0
    cdef int wire
    varint(c, &value)
    wire = <int>(value & 7)
    number[0] = <unsigned int>((value >> 3) & 0xFFFFFFFF)
    if wire == END_GROUP:
        raise ValueError(f"proto: {message}: wiretype end group for non-group")
    if number[0] == 0 or number[0] > 0x7FFFFFFF:
        raise ValueError(f"proto: {message}: illegal tag {<int>number[0]} (wire type {value})")
    return wire


cdef int skip(Cursor* c, int wire) except -1:
    """Step over the value of a field nobody knows."""
    cdef unsigned long long value = 0
    cdef Cursor inner
    cdef long long groups = 0
    while True:
        if wire == VARINT:
            varint(c, &value)
        elif wire == FIXED64 or wire == FIXED32:
            if c.end - c.at < (8 if wire == FIXED64 else 4):
                cut_short()
            c.at += 8 if wire == FIXED64 else 4
        elif wire == LENGTH:
            span(c, &inner)
        elif wire == START_GROUP:
            groups += 1
        elif wire == END_GROUP:
            if groups == 0:
                raise ValueError("proto: unexpected end of group")
            groups -= 1
        else:
            raise ValueError(f"proto: illegal wireType {wire}")
        if groups == 0:
            return 0
        varint(c, &value)
        wire = <int>(value & 7)


cdef inline str text_of(Cursor* c):
    return PyUnicode_DecodeUTF8(<const char*>c.at, c.end - c.at, b"fastapi_core_go")


cdef inline bytes bytes_of(Cursor* c):
    return PyBytes_FromStringAndSize(<const char*>c.at, c.end - c.at)


cdef int pair(Cursor* c, str message, long long* first, long long* second) except -1:
    """The two numbers of a time or the one of a duration."""
    cdef unsigned int number = 0
    cdef unsigned long long value = 0
    cdef int wire
    while c.at < c.end:
        wire = tag(c, message, &number)
        if number > 2:
            skip(c, wire)
            continue
        if wire != VARINT:
            raise ValueError(f"proto: wrong wireType = {wire} for field {'Seconds' if number == 1 else 'Nanos'}")
        varint(c, &value)
        if number == 1:
            first[0] = <long long>value
        else:
            second[0] = <int>value
    return 0


cdef str time_text(long long seconds, int micros):
    """RFC 3339 of seconds since 1970, with six digits of fraction unless `micros` is negative."""
    cdef long long days, rest, era, year_of_era, day_of_year, day_of_era, month
    cdef long long year
    cdef char out[32]
    cdef int size
    if seconds < FIRST_SECOND or seconds > LAST_SECOND:
        raise ValueError("Time.UnmarshalJSON: year outside of range [0,9999]")
    # Days since 0000-03-01, in eras of 400 years; kept positive by an era more.
    rest = (seconds - FIRST_SECOND) % 86400
    days = (seconds - FIRST_SECOND) // 86400 + 146097 - 60
    era = days // 146097
    day_of_era = days - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    days = day_of_year - (153 * month + 2) // 5 + 1
    year = year_of_era + (era - 1) * 400
    month += 3
    if month > 12:
        month -= 12
        year += 1
    size = snprintf(
        out, 32, b"%04d-%02d-%02dT%02d:%02d:%02d",
        <int>year, <int>month, <int>days, <int>(rest // 3600), <int>(rest // 60 % 60), <int>(rest % 60),
    )
    if micros >= 0:
        size += snprintf(out + size, <size_t>(32 - size), b".%06d", micros)
    out[size] = c"Z"
    return PyUnicode_DecodeUTF8(out, size + 1, NULL)


@cython.final
cdef class Member:
    """One field of a message: its JSON name, number, and how its values are written.

    `pointer`: zero is written only when the tree has the member. `convert` of a duration or RAW reads (nanoseconds to
    text; bytes and levels left to tree), `revert` writes (text to nanoseconds; tree to bytes); of a time, `revert` gives
    seconds and microseconds of a text of unusual form. `make` gives the message of a STRUCT, INLINE or schema when it
    is first needed.
    """

    cdef readonly str name
    cdef readonly int number
    cdef int op
    cdef int card
    cdef bint pointer
    cdef object convert
    cdef object revert
    cdef object make
    cdef Message _child

    def __init__(
        self,
        str name not None,
        int number,
        int op,
        int card=SINGLE,
        bint pointer=False,
        *,
        object convert=None,
        object revert=None,
        object make=None,
    ):
        if not 0 < number <= MAX_NUMBER:
            raise ValueError(f"{name}: no field number: {number}")
        self.name = name
        self.number = number
        self.op = op
        self.card = card
        self.pointer = pointer
        self.convert = convert
        self.revert = revert
        self.make = make
        self._child = None

    cdef Message child(self):
        if self._child is None:
            self._child = <Message?>self.make()
        return self._child

    cdef int expect(self, int wire, int wanted) except -1:
        if wire != wanted:
            raise ValueError(f"proto: wrong wireType = {wire} for field {self.name[:1].upper()}{self.name[1:]}")
        return 0


@cython.final
cdef class Message:
    """One message type. `limit` of `decode` is the number of levels of containers a tree may have."""

    cdef readonly str name
    cdef tuple members
    cdef tuple by_number
    cdef Py_ssize_t highest
    cdef bytes _zero

    def __init__(self, str name not None, members):
        self.name = name
        self.members = tuple(sorted(members, key=_number))
        self.highest = self.members[-1].number if self.members else 0
        table = [None] * (self.highest + 1)
        for member in self.members:
            if table[member.number] is not None:
                raise ValueError(f"{name}: two fields have the number {member.number}")
            table[member.number] = <Member?>member
        self.by_number = tuple(table)
        self._zero = None

    def decode(self, bytes data not None, int limit):
        """The tree of a message: members that are set, in the order of the wire; ValueError with the reference's text."""
        cdef Cursor c
        cdef dict out = {}
        c.at = <Bytes>PyBytes_AS_STRING(data)
        c.end = c.at + PyBytes_GET_SIZE(data)
        self.read(&c, out, limit)
        return out

    def encode(self, dict tree not None):
        """The message of a tree; ValueError or TypeError when a value does not fit its field."""
        cdef Writer writer = Writer()
        self.write(writer, tree)
        return writer.taken()

    cdef int read(self, Cursor* c, dict out, int limit) except -1:
        cdef unsigned int number = 0
        cdef int wire
        cdef Member member
        if limit <= 0:
            raise ValueError("exceeded max depth")
        while c.at < c.end:
            wire = tag(c, self.name, &number)
            found = self.by_number[number] if number <= <unsigned int>self.highest else None
            if found is None:
                skip(c, wire)
                continue
            member = <Member>found
            if member.card == SINGLE:
                read_single(member, c, wire, out, limit)
            elif member.card == LIST:
                read_item(member, c, wire, out, limit)
            else:
                read_entry(member, c, wire, out, limit)
        return 0

    cdef int write(self, Writer writer, dict tree) except -1:
        cdef Py_ssize_t i
        for i in range(PyTuple_GET_SIZE(self.members) - 1, -1, -1):
            write_member(<Member>self.members[i], writer, tree)
        return 0

    cdef bytes zero(self):
        """The message of an object with nothing set."""
        if self._zero is None:
            self._zero = self.encode({})
        return self._zero


def _number(Member member):
    return member.number


cdef int read_single(Member member, Cursor* c, int wire, dict out, int limit) except -1:
    cdef Cursor inner
    cdef PyObject* before
    if member.op == INLINE:
        member.expect(wire, LENGTH)
        span(c, &inner)
        # An inlined message is no level of the tree, and no type inlines itself.
        member.child().read(&inner, out, limit)
        return 0
    if member.op == STRUCT:
        member.expect(wire, LENGTH)
        span(c, &inner)
        before = PyDict_GetItem(out, member.name)
        value = {} if before is NULL else <object>before
        member.child().read(&inner, <dict>value, limit - 1)
        PyDict_SetItem(out, member.name, value)
        return 0
    PyDict_SetItem(out, member.name, read_value(member, c, wire, limit))
    return 0


cdef int read_item(Member member, Cursor* c, int wire, dict out, int limit) except -1:
    cdef Cursor inner
    cdef PyObject* before = PyDict_GetItem(out, member.name)
    cdef list items
    if before is NULL:
        items = []
        PyDict_SetItem(out, member.name, items)
    else:
        items = <list>before
    if wire == LENGTH and BOOL <= member.op <= DOUBLE:
        span(c, &inner)
        wire = FIXED64 if member.op == DOUBLE else VARINT
        while inner.at < inner.end:
            items.append(read_value(member, &inner, wire, limit))
        return 0
    items.append(read_value(member, c, wire, limit - 1))
    return 0


cdef int read_entry(Member member, Cursor* c, int wire, dict out, int limit) except -1:
    cdef Cursor entry
    cdef Cursor inner
    cdef PyObject* before = PyDict_GetItem(out, member.name)
    cdef dict entries
    cdef unsigned int number = 0
    cdef str key = ""
    cdef object value = None
    member.expect(wire, LENGTH)
    span(c, &entry)
    if before is NULL:
        entries = {}
        PyDict_SetItem(out, member.name, entries)
    else:
        entries = <dict>before
    while entry.at < entry.end:
        wire = tag(&entry, "Entry", &number)
        if number == 1:
            if wire != LENGTH:
                raise ValueError(f"proto: wrong wireType = {wire} for field Key")
            span(&entry, &inner)
            key = text_of(&inner)
        elif number == 2:
            value = read_value(member, &entry, wire, limit - 1)
        else:
            skip(&entry, wire)
    PyDict_SetItem(entries, key, empty_value(member) if value is None else value)
    return 0


cdef object empty_value(Member member):
    """What an entry without a value holds."""
    if member.op == STRING or member.op == BYTES:
        return ""
    if member.op == BOOL:
        return False
    if member.op == STRUCT:
        return {}
    if member.op == STRINGS:
        return []
    if member.op == QUANTITY:
        return "0"
    return 0 if INT32 <= member.op <= DOUBLE or member.op == INT_OR_STRING else None


cdef object read_value(Member member, Cursor* c, int wire, int limit):
    cdef int op = member.op
    cdef unsigned long long number = 0
    cdef double real = 0
    cdef Cursor inner
    cdef dict tree
    if BOOL <= op <= INT64:
        member.expect(wire, VARINT)
        varint(c, &number)
        if op == BOOL:
            return number != 0
        return <int>number if op == INT32 else <long long>number
    if op == DOUBLE:
        member.expect(wire, FIXED64)
        if c.end - c.at < 8:
            cut_short()
        memcpy(&real, c.at, 8)
        c.at += 8
        if not real - real == 0:  # JSON has no word for it
            raise ValueError("json: unsupported value: " + ("NaN" if real != real else "+Inf" if real > 0 else "-Inf"))
        return real
    member.expect(wire, LENGTH)
    span(c, &inner)
    if op == STRING:
        return text_of(&inner)
    if op == STRUCT:
        tree = {}
        member.child().read(&inner, tree, limit - 1)
        return tree
    if op == BYTES:
        return to_base64(bytes_of(&inner)).decode("ascii")
    if op == OCTETS:
        return bytes_of(&inner)
    return read_special(member, &inner, limit)


cdef object read_special(Member member, Cursor* c, int limit):
    cdef int op = member.op
    cdef long long first = 0
    cdef long long second = 0
    if op == TIME or op == MICROTIME:
        if c.at == c.end:
            return None
        pair(c, "Timestamp", &first, &second)
        if op == TIME:
            return None if first == ZERO_SECOND else time_text(first, -1)
        # Nanoseconds are cut towards zero to whole microseconds; negative ones reach back.
        second = second // 1000 if second >= 0 else -(-second // 1000)
        first = max(min(first, LAST_SECOND + 10), FIRST_SECOND - 10)
        first += second // 1000000 if second >= 0 else -((999999 - second) // 1000000)
        second = second % 1000000 if second >= 0 else (1000000 - (-second) % 1000000) % 1000000
        return None if first == ZERO_SECOND and second == 0 else time_text(first, <int>second)
    if op == DURATION:
        pair(c, "Duration", &first, &second)
        return member.convert(first)
    if op == INT_OR_STRING:
        return read_int_or_string(c)
    return read_form(member, c, limit)


cdef object read_int_or_string(Cursor* c):
    cdef unsigned int number = 0
    cdef unsigned long long value = 0
    cdef unsigned long long kind = 0
    cdef int wire, integer = 0
    cdef str text = ""
    cdef Cursor inner
    while c.at < c.end:
        wire = tag(c, "IntOrString", &number)
        if number > 3:
            skip(c, wire)
        elif wire != (LENGTH if number == 3 else VARINT):
            raise ValueError(f"proto: wrong wireType = {wire} for field {('Type', 'IntVal', 'StrVal')[number - 1]}")
        elif number == 3:
            span(c, &inner)
            text = text_of(&inner)
        else:
            varint(c, &value)
            if number == 1:
                kind = value
            else:
                integer = <int>value
    if kind > 1:
        raise ValueError("impossible IntOrString.Type")
    return text if kind else integer


cdef object read_form(Member member, Cursor* c, int limit):
    """The forms with one JSON value in the place of a message with one or two members."""
    cdef unsigned int number = 0
    cdef unsigned long long value = 0
    cdef int op = member.op
    cdef int wire
    cdef Cursor inner
    cdef bint allows = False
    cdef object whole = None
    cdef object schema = None
    cdef list items = []
    cdef dict tree
    while c.at < c.end:
        wire = tag(c, member.name, &number)
        if number > (2 if op >= SCHEMA_OR_BOOL else 1):
            skip(c, wire)
            continue
        if op == SCHEMA_OR_BOOL and number == 1:
            member.expect(wire, VARINT)
            varint(c, &value)
            allows = value != 0
            continue
        member.expect(wire, LENGTH)
        span(c, &inner)
        if op == RAW:
            whole = bytes_of(&inner)
        elif op == QUANTITY:
            whole = text_of(&inner)
        elif op == STRINGS or (op == SCHEMA_OR_STRINGS and number == 2):
            items.append(text_of(&inner))
        elif op == SCHEMA_OR_SCHEMAS and number == 2:
            tree = {}
            member.child().read(&inner, tree, limit - 2)
            items.append(tree)
        else:
            if schema is None:
                schema = {}
            member.child().read(&inner, <dict>schema, limit - 1)
    if op == RAW:
        return member.convert(whole, limit) if whole else None
    if op == QUANTITY:
        return "0" if whole is None else whole
    if op == STRINGS:
        return items
    if op == SCHEMA_OR_BOOL:
        return allows if schema is None else schema
    return items if items else schema


# --- writing -----------------------------------------------------------------------------------------------------

@cython.final
cdef class Writer:
    """A buffer that is filled from its end."""

    cdef unsigned char* start
    cdef Py_ssize_t size
    cdef Py_ssize_t left

    def __cinit__(self):
        self.start = <unsigned char*>PyMem_Malloc(FIRST_SIZE)
        if self.start == NULL:
            raise MemoryError
        self.size = self.left = FIRST_SIZE

    def __dealloc__(self):
        PyMem_Free(self.start)

    cdef inline Py_ssize_t written(self) noexcept:
        return self.size - self.left

    cdef bytes taken(self):
        return PyBytes_FromStringAndSize(<const char*>self.start + self.left, self.size - self.left)

    cdef int grow(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t used = self.size - self.left
        cdef Py_ssize_t size = max(self.size * 2, used + more)
        cdef unsigned char* start = <unsigned char*>PyMem_Malloc(<size_t>size)
        if start == NULL:
            raise MemoryError
        memcpy(start + (size - used), self.start + self.left, <size_t>used)
        PyMem_Free(self.start)
        self.start = start
        self.size = size
        self.left = size - used
        return 0

    cdef inline int put(self, const void* data, Py_ssize_t size) except -1:
        if size > self.left:
            self.grow(size)
        self.left -= size
        memcpy(self.start + self.left, data, <size_t>size)
        return 0

    cdef inline int varint(self, unsigned long long value) except -1:
        cdef unsigned char out[10]
        cdef int size = 0
        if value < 0x80:
            if self.left < 1:
                self.grow(1)
            self.left -= 1
            self.start[self.left] = <unsigned char>value
            return 0
        while value >= 0x80:
            out[size] = <unsigned char>(value & 0x7F | 0x80)
            size += 1
            value >>= 7
        out[size] = <unsigned char>value
        return self.put(out, size + 1)

    cdef inline int tag(self, int number, int wire) except -1:
        return self.varint((<unsigned long long>number) << 3 | <unsigned long long>wire)

    cdef inline int close(self, int number, Py_ssize_t before) except -1:
        """Length and tag of what was written since `before`."""
        self.varint(<unsigned long long>(self.written() - before))
        return self.tag(number, LENGTH)

    cdef int text(self, int number, object value) except -1:
        cdef Py_ssize_t size = 0
        cdef const char* data
        if type(value) is not str:
            raise TypeError(f"a text is needed, not {type(value).__name__}")
        if PyUnicode_IS_ASCII(value):
            size = PyUnicode_GET_LENGTH(value)
            self.put(PyUnicode_1BYTE_DATA(value), size)
        else:
            data = PyUnicode_AsUTF8AndSize(value, &size)
            self.put(data, size)
        self.varint(<unsigned long long>size)
        return self.tag(number, LENGTH)

    cdef int octets(self, int number, bytes value) except -1:
        self.put(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
        self.varint(<unsigned long long>PyBytes_GET_SIZE(value))
        return self.tag(number, LENGTH)


cdef int write_member(Member member, Writer writer, dict tree) except -1:
    cdef PyObject* found
    cdef Py_ssize_t i, before
    cdef list items
    cdef object value
    if member.op == INLINE:
        before = writer.written()
        member.child().write(writer, tree)
        if not member.pointer or writer.written() != before:
            writer.close(member.number, before)
        return 0
    found = PyDict_GetItem(tree, member.name)
    if found is NULL or <object>found is None:
        if member.card == SINGLE and not member.pointer:
            write_zero(member, writer)
        return 0
    value = <object>found
    if member.card == SINGLE:
        return write_value(member, writer, member.number, value)
    if member.card == LIST:
        items = <list?>value
        for i in range(PyList_GET_SIZE(items) - 1, -1, -1):
            write_value(member, writer, member.number, items[i])
        return 0
    items = sorted(<dict?>value)
    for i in range(PyList_GET_SIZE(items) - 1, -1, -1):
        before = writer.written()
        write_value(member, writer, 2, (<dict>value)[items[i]])
        writer.text(1, items[i])
        writer.close(member.number, before)
    return 0


cdef int write_zero(Member member, Writer writer) except -1:
    """A single value that is not set, of a field that is always written."""
    if member.op == STRUCT:
        writer.octets(member.number, member.child().zero())
    elif member.op not in (BYTES, OCTETS, STRINGS):
        write_value(member, writer, member.number, None)
    return 0


cdef int write_value(Member member, Writer writer, int number, object value) except -1:
    """One value under a field number; None is the zero value."""
    cdef int op = member.op
    cdef Py_ssize_t before
    cdef double real
    if op == STRING:
        return writer.text(number, "" if value is None else value)
    if op == STRUCT:
        before = writer.written()
        if value is not None:
            member.child().write(writer, <dict?>value)
        else:
            member.child().write(writer, {})
        return writer.close(number, before)
    if op == BOOL:
        if value is not None and value is not True and value is not False:
            raise TypeError(f"a boolean is needed, not {type(value).__name__}")
        writer.varint(1 if value is True else 0)
        return writer.tag(number, VARINT)
    if op == INT32 or op == INT64:
        writer.varint(integer_of(value))
        return writer.tag(number, VARINT)
    if op == DOUBLE:
        real = 0.0 if value is None else value
        writer.put(&real, 8)
        return writer.tag(number, FIXED64)
    if op == BYTES:
        return 0 if value is None else writer.octets(number, from_base64(value))
    if op == OCTETS:
        return 0 if value is None else writer.octets(number, <bytes?>value)
    before = writer.written()
    write_special(member, writer, value)
    return writer.close(number, before)


cdef unsigned long long integer_of(object value) except? 0xFFFFFFFFFFFFFFF1:
    cdef long long number
    if value is None:
        return 0
    if type(value) is not int:
        raise TypeError(f"an integer is needed, not {type(value).__name__}")
    number = value
    return <unsigned long long>number


cdef int write_special(Member member, Writer writer, object value) except -1:
    """The inside of a message that stands for a value of another JSON form."""
    cdef int op = member.op
    cdef long long seconds = 0
    cdef int micros = 0
    if op == TIME or op == MICROTIME:
        if value is None:
            return 0
        if not read_time(<str?>value, &seconds, &micros):
            seconds, micros = member.revert(value)
        writer.varint(<unsigned long long>(micros * 1000) if op == MICROTIME else 0)
        writer.tag(2, VARINT)
        writer.varint(<unsigned long long>seconds)
        return writer.tag(1, VARINT)
    if op == QUANTITY:
        return writer.text(1, "0" if value is None else value)
    if op == INT_OR_STRING:
        writer.text(3, value if type(value) is str else "")
        writer.varint(0 if type(value) is str else integer_of(value))
        writer.tag(2, VARINT)
        writer.varint(1 if type(value) is str else 0)
        return writer.tag(1, VARINT)
    if op == DURATION:
        writer.varint(0 if value is None else integer_of(member.revert(value)))
        return writer.tag(1, VARINT)
    if op == RAW:
        return 0 if value is None else writer.octets(1, member.revert(value))
    if op == STRINGS:
        return write_strings(writer, 1, value)
    return write_schema(member, writer, value)


cdef int write_strings(Writer writer, int number, object value) except -1:
    cdef Py_ssize_t i
    cdef list items
    if value is not None:
        items = <list?>value
        for i in range(PyList_GET_SIZE(items) - 1, -1, -1):
            writer.text(number, items[i])
    return 0


cdef int write_schema(Member member, Writer writer, object value) except -1:
    cdef Py_ssize_t before, i
    cdef list items
    cdef bint short_form = member.op == SCHEMA_OR_BOOL
    if type(value) is dict:
        before = writer.written()
        member.child().write(writer, <dict>value)
        writer.close(2 if short_form else 1, before)
    elif type(value) is list and member.op == SCHEMA_OR_STRINGS:
        write_strings(writer, 2, value)
    elif type(value) is list and member.op == SCHEMA_OR_SCHEMAS:
        items = <list>value
        for i in range(PyList_GET_SIZE(items) - 1, -1, -1):
            before = writer.written()
            member.child().write(writer, <dict?>items[i])
            writer.close(2, before)
    elif value is not None and not (short_form and type(value) is bool):
        raise TypeError(f"a schema is needed, not {type(value).__name__}")
    if short_form:
        writer.varint(1 if value is True or type(value) is dict else 0)
        writer.tag(1, VARINT)
    return 0


cdef inline int digits(Bytes at, int count) noexcept:
    """A number of so many digits, negative when one is none."""
    cdef int i, value = 0
    for i in range(count):
        if at[i] < c"0" or at[i] > c"9":
            return -1
        value = value * 10 + at[i] - 48
    return value


cdef bint read_time(str text, long long* seconds, int* micros) except -1:
    """Seconds since 1970 and microseconds of `YYYY-MM-DDTHH:MM:SS[.ffffff]Z`; False for another form."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(text)
    cdef Bytes at
    cdef long long year, month, day, hour, minute, second, days
    if (size != 20 and size != 27) or not PyUnicode_IS_ASCII(text):
        return False
    at = <Bytes>PyUnicode_1BYTE_DATA(text)
    if at[4] != c"-" or at[7] != c"-" or at[10] != c"T" or at[13] != c":" or at[16] != c":" or at[size - 1] != c"Z":
        return False
    year, month, day = digits(at, 4), digits(at + 5, 2), digits(at + 8, 2)
    hour, minute, second = digits(at + 11, 2), digits(at + 14, 2), digits(at + 17, 2)
    if year < 0 or month < 1 or month > 12 or day < 1 or hour < 0 or minute < 0 or second < 0:
        return False
    micros[0] = 0
    if size == 27:
        micros[0] = digits(at + 20, 6) if at[19] == c"." else -1
        if micros[0] < 0:
            return False
    # Days since 0000-03-01 shifted by 400 years, so that every division is one of positive numbers.
    year = year + 400 - (1 if month <= 2 else 0)
    month = (month + 9) % 12
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1
    seconds[0] = (days - 719468 - 146097) * 86400 + hour * 3600 + minute * 60 + second
    return True


# --- documents ---------------------------------------------------------------------------------------------------

def opening(int number, Py_ssize_t size):
    """Tag and length of a length-delimited field whose `size` bytes follow."""
    cdef unsigned char out[16]
    cdef Py_ssize_t at = 15
    cdef Py_ssize_t start
    if not 0 < number <= MAX_NUMBER or size < 0:
        raise ValueError(f"no field: number {number}, {size} bytes")
    start = put_varint(out, at, <unsigned long long>size)
    start = put_varint(out, start, (<unsigned long long>number) << 3 | LENGTH)
    return PyBytes_FromStringAndSize(<const char*>out + start, at - start)


cdef inline Py_ssize_t put_varint(unsigned char* out, Py_ssize_t end, unsigned long long value) noexcept:
    """A number that ends before `end`; where it starts. Room for ten bytes is needed."""
    cdef unsigned char digits[10]
    cdef int size = 0, i
    while value >= 0x80:
        digits[size] = <unsigned char>(value & 0x7F | 0x80)
        size += 1
        value >>= 7
    digits[size] = <unsigned char>value
    size += 1
    for i in range(size):
        out[end - size + i] = digits[i]
    return end - size
