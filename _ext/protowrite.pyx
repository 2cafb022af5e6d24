"""Protobuf messages from the trees of their JSON.

Written backwards from the end of a buffer, so that a length is known when it has to be written.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_1BYTE_DATA, PyUnicode_GET_LENGTH
from libc.string cimport memcpy

from fastapi_core._ext.protowire cimport (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    FIXED64,
    INLINE,
    INT32,
    INT64,
    INT_OR_STRING,
    LENGTH,
    LIST,
    MICROTIME,
    OCTETS,
    QUANTITY,
    RAW,
    SCHEMA_OR_BOOL,
    SCHEMA_OR_SCHEMAS,
    SCHEMA_OR_STRINGS,
    SINGLE,
    STRING,
    STRINGS,
    STRUCT,
    TIME,
    VARINT,
    Member,
    Message,
)

from binascii import a2b_base64 as from_base64

cdef extern from "Python.h":
    int PyUnicode_IS_ASCII(object text)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef enum:
    FIRST_SIZE = 4096

ctypedef const unsigned char* Bytes


def encode(Message message not None, dict tree not None):
    cdef _Writer writer = _Writer()
    write(message, writer, tree)
    return writer.taken()


def opening(int number, Py_ssize_t size):
    """Tag and length of a length-delimited field whose `size` bytes follow."""
    cdef unsigned char out[16]
    cdef Py_ssize_t at = 15
    cdef Py_ssize_t start
    if number <= 0 or size < 0:
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


@cython.final
cdef class _Writer:
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

cdef int write(Message message, _Writer writer, dict tree) except -1:
    cdef Py_ssize_t i
    for i in range(PyTuple_GET_SIZE(message.members) - 1, -1, -1):
        write_member(<Member>message.members[i], writer, tree)
    return 0


cdef bytes zero(Message message):
    if message.zero is None:
        message.zero = encode(message, {})
    return message.zero


cdef int write_member(Member member, _Writer writer, dict tree) except -1:
    cdef PyObject* found
    cdef Py_ssize_t i, before
    cdef list items
    cdef object value
    if member.op == INLINE:
        before = writer.written()
        write(member.child(), writer, tree)
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


cdef int write_zero(Member member, _Writer writer) except -1:
    """A single value that is not set, of a field that is always written."""
    if member.op == STRUCT:
        writer.octets(member.number, zero(member.child()))
    elif member.op not in (BYTES, OCTETS, STRINGS):
        write_value(member, writer, member.number, None)
    return 0


cdef int write_value(Member member, _Writer writer, int number, object value) except -1:
    """One value under a field number; None is the zero value."""
    cdef int op = member.op
    cdef Py_ssize_t before
    cdef double real
    if op == STRING:
        return writer.text(number, "" if value is None else value)
    if op == STRUCT:
        before = writer.written()
        if value is not None:
            write(member.child(), writer, <dict?>value)
        else:
            write(member.child(), writer, {})
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


cdef unsigned long long integer_of(object value) except? 0xFFFFFFFFFFFFFFF1ULL:
    cdef long long number
    if value is None:
        return 0
    if type(value) is not int:
        raise TypeError(f"an integer is needed, not {type(value).__name__}")
    number = value
    return <unsigned long long>number


cdef int write_special(Member member, _Writer writer, object value) except -1:
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


cdef int write_strings(_Writer writer, int number, object value) except -1:
    cdef Py_ssize_t i
    cdef list items
    if value is not None:
        items = <list?>value
        for i in range(PyList_GET_SIZE(items) - 1, -1, -1):
            writer.text(number, items[i])
    return 0


cdef int write_schema(Member member, _Writer writer, object value) except -1:
    cdef Py_ssize_t before, i
    cdef list items
    cdef bint short_form = member.op == SCHEMA_OR_BOOL
    if type(value) is dict:
        before = writer.written()
        write(member.child(), writer, <dict>value)
        writer.close(2 if short_form else 1, before)
    elif type(value) is list and member.op == SCHEMA_OR_STRINGS:
        write_strings(writer, 2, value)
    elif type(value) is list and member.op == SCHEMA_OR_SCHEMAS:
        items = <list>value
        for i in range(PyList_GET_SIZE(items) - 1, -1, -1):
            before = writer.written()
            write(member.child(), writer, <dict?>items[i])
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
