# Layout of the plans, and the codes in them.

cimport cython


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


# Wire types.
cdef enum:
    VARINT = 0
    FIXED64 = 1
    LENGTH = 2
    START_GROUP = 3
    END_GROUP = 4
    FIXED32 = 5


@cython.final
cdef class Member:
    cdef readonly str name
    cdef readonly int number
    cdef int op
    cdef int card
    cdef bint pointer
    cdef object convert
    cdef object revert
    cdef object make
    cdef Message _child

    cdef Message child(self)


@cython.final
cdef class Message:
    cdef readonly str name
    cdef tuple members  # by number
    cdef tuple by_number  # None for a number no field has
    cdef Py_ssize_t highest
    cdef bytes zero  # the message of an object with nothing set, kept by the writer
