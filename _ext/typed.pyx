"""Type-table driven normalisation of decoded JSON trees.

A `Plan` is one struct, a `FieldPlan` one member of it. They are made from the type tables by
`fastapi_core/schema/normalize.py`, which also says what the rules are; here they are only carried out. Unknown members
and mismatches are located on the way back up, so that a good object pays nothing for paths.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem, PyDict_Next, PyDict_SetItem
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_1BYTE_DATA, PyUnicode_GET_LENGTH

cdef extern from "Python.h":
    int PyUnicode_IS_ASCII(object text)


cpdef enum:
    STRING = 0
    BOOL = 1
    INT32 = 2
    INT64 = 3
    DOUBLE = 4
    BYTES = 5
    STRUCT = 6
    TIME = 7
    QUANTITY = 8
    INT_OR_STRING = 9
    CONVERT = 10
    RAW = 11
    STRINGS = 12
    SCHEMA_OR_BOOL = 13
    SCHEMA_OR_SCHEMAS = 14
    SCHEMA_OR_STRINGS = 15
    MICROTIME = 16


cpdef enum:
    SINGLE = 0
    LIST = 1
    MAP = 2


cdef enum:
    MAX_DEPTH = 2000
    MOST_UNKNOWN = 100  # the reference reports no more, and each costs on every level above it

#: Days that a month has in every year.
cdef int[12] DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

cdef object DROP = object()
cdef double EXACT = 9007199254740992.0  # 2**53: beyond it a float has digits of its own, and keeps them


class Mismatch(Exception):
    """A JSON value that does not fit: what it is, the Go type wanted, and its field (innermost first)."""

    def __init__(self, value, wanted):
        super().__init__(value, wanted)
        self.value = value
        self.wanted = wanted
        self.struct = None
        self.path = []


def describe(value):
    """A JSON value as the reference's decoder names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    return "number"


@cython.final
cdef class _Run:
    """State of one normalisation."""

    cdef list unknown
    cdef int silent
    cdef int depth
    cdef bint share
    cdef dict known  # what stood in the normal tree where the next struct stands, taken by whoever decodes that

    def __cinit__(self, bint share, dict known):
        self.share = share
        self.known = known
        self.unknown = None
        self.silent = 0
        self.depth = 0

    cdef Py_ssize_t seen(self):
        return 0 if self.unknown is None else PyList_GET_SIZE(self.unknown)

    cdef int found(self, str name) except -1:
        if self.silent:
            return 0
        if self.unknown is None:
            self.unknown = []
        if PyList_GET_SIZE(self.unknown) < MOST_UNKNOWN:
            self.unknown.append(name)
        return 0

    cdef int prefix(self, Py_ssize_t since, str text) except -1:
        cdef Py_ssize_t i
        for i in range(since, PyList_GET_SIZE(self.unknown)):
            self.unknown[i] = f"{text}.{self.unknown[i]}"
        return 0


@cython.final
cdef class FieldPlan:
    """One member of a struct.

    `op` and `card` say what it holds, `pointer` and `omit` (0 never, 1 empty, 2 also zero) when it is printed, `wanted`
    and `container` are the Go types of elements and whole, `convert` canonicalises a special form, `zero` is what a
    special form prints when unset, `make` gives the plan of a struct when it is first needed.
    """

    cdef readonly str name
    cdef readonly int index
    cdef int op
    cdef int card
    cdef bint pointer
    cdef int omit
    cdef int keep_empty
    cdef str wanted
    cdef str container
    cdef object convert
    cdef object text
    cdef object zero
    cdef object make
    cdef Plan _child

    def __init__(
        self,
        str name,
        int index,
        int op,
        int card,
        bint pointer,
        int omit,
        *,
        int keep_empty=0,
        str wanted="",
        str container="",
        object convert=None,
        object text=None,
        object zero=None,
        object make=None,
    ):
        self.name = name
        self.index = index
        self.op = op
        self.card = card
        self.pointer = pointer
        self.omit = omit
        self.keep_empty = keep_empty
        self.wanted = wanted
        self.container = container or wanted
        self.convert = convert
        self.text = text
        self.zero = zero
        self.make = make
        self._child = None

    cdef Plan child(self):
        if self._child is None:
            self._child = self.make()
        return self._child

    cdef bint droppable(self) noexcept:
        """Whether an unset member is left out."""
        if self.pointer or self.card != SINGLE or self.op <= BYTES or self.op == STRINGS:
            return self.omit != 0
        return self.omit == 2

    cdef object unset(self):
        """What an unset member prints, DROP for nothing."""
        if self.droppable():
            return DROP
        return None if self.pointer or self.card != SINGLE else self.zero_value()

    cdef object zero_value(self):
        """What an unset single value or a null element prints."""
        return self.child().zero_tree() if self.op == STRUCT else self.zero


@cython.final
cdef class Plan:
    """One struct: its members by name, and those that are printed even when unset."""

    cdef readonly str name
    cdef tuple fields
    cdef dict by_name
    cdef list always

    def __init__(self, str name, object fields):
        """`name` is the Go name of the struct; `fields` are its members in the order JSON prints them."""
        cdef FieldPlan field
        self.name = name
        self.fields = tuple(fields)
        self.by_name = {}
        self.always = []
        for field in self.fields:
            self.by_name[field.name] = field
            if not field.droppable():
                self.always.append(field)

    def run(self, object tree, bint share=False, dict known=None):
        """(normalised tree, paths of unknown members); raises Mismatch, or ValueError for a text of the wrong form.

        With `share` the parts that are normal already are those of `tree`, for a caller to whom it belongs. Members of
        `tree` that are the very objects which `known`, a normal tree, has in their place are not looked at but shared
        (copied on the first level, unless `share` is set).
        """
        cdef _Run run = _Run(share, known)
        if not isinstance(tree, dict):
            raise Mismatch(describe(tree), self.name)
        out = self.decode(<dict>tree, run)
        return out, (run.unknown if run.unknown is not None else [])

    cdef dict zero_tree(self):
        cdef FieldPlan field
        cdef dict out = {}
        for field in self.always:
            out[field.name] = field.unset()
        return out

    cdef dict decode(self, dict tree, _Run run):
        cdef FieldPlan field = None
        cdef dict out = None if run.share else {}  # None as long as the tree itself will do
        cdef Py_ssize_t kept = 0
        cdef Py_ssize_t pos = 0
        cdef PyObject* key
        cdef PyObject* value
        cdef PyObject* hit
        cdef PyObject* prior = NULL
        cdef dict known = run.known
        cdef int last = -1
        cdef bint ordered = True
        run.known = None
        run.depth += 1
        if run.depth > MAX_DEPTH:
            raise ValueError("exceeded max depth")
        try:
            while PyDict_Next(tree, &pos, &key, &value):
                hit = PyDict_GetItem(self.by_name, <object>key)
                if hit is NULL:
                    run.found(<object>key)
                    if out is None:
                        out = beginning(tree, kept)
                    continue
                field = <FieldPlan>hit
                if known is not None:
                    prior = PyDict_GetItem(known, <object>key)
                if prior is value:
                    # The first level is the caller's own, to change as it likes.
                    result = <object>value if run.depth > 1 or run.share or type(<object>value) is not dict else (
                        (<dict>value).copy()
                    )
                elif <object>value is None:
                    result = field.unset()
                elif field.card == SINGLE:
                    if field.op == STRING and type(<object>value) is str:
                        result = DROP if field.omit and not field.pointer and not <object>value else <object>value
                    else:
                        if field.op == STRUCT and prior is not NULL and type(<object>prior) is dict:
                            run.known = <dict>prior
                        result = single(field, <object>value, run)
                        run.known = None
                elif field.card == LIST:
                    result = items(field, <object>value, run)
                else:
                    result = entries(field, <object>value, run)
                if out is None:
                    if result is <object>value and field.index > last:
                        last = field.index
                        kept += 1
                        continue
                    out = beginning(tree, kept)
                if result is DROP:
                    continue
                if field.index < last:
                    ordered = False
                else:
                    last = field.index
                PyDict_SetItem(out, field.name, result)
        except Mismatch as error:
            if error.struct is None:
                error.struct = self.name
            error.path.append(field.name)
            raise
        for field in self.always:
            if PyDict_GetItem(tree if out is None else out, field.name) is NULL:
                if out is None:
                    out = tree.copy()
                out[field.name] = field.unset()
                if field.index < last:
                    ordered = False
                else:
                    last = field.index
        run.depth -= 1
        if out is None:
            return tree
        return out if ordered else self.sorted(out)

    cdef dict sorted(self, dict members):
        cdef FieldPlan field
        cdef PyObject* hit
        cdef dict out = {}
        for field in self.fields:
            hit = PyDict_GetItem(members, field.name)
            if hit is not NULL:
                PyDict_SetItem(out, field.name, <object>hit)
        return out


cdef dict beginning(dict tree, Py_ssize_t count):
    """The first members of an object."""
    cdef Py_ssize_t pos = 0
    cdef PyObject* key
    cdef PyObject* value
    cdef dict out = {}
    while count and PyDict_Next(tree, &pos, &key, &value):
        PyDict_SetItem(out, <object>key, <object>value)
        count -= 1
    return out


cdef object single(FieldPlan field, object value, _Run run):
    cdef Py_ssize_t before = run.seen()
    result = element(field, value, run)
    if run.unknown is not None and PyList_GET_SIZE(run.unknown) > before:
        run.prefix(before, field.name)
    if field.pointer:
        return result
    if field.op <= BYTES or field.op == STRINGS:
        if field.omit:
            return result if result else DROP
        if field.op >= BYTES and not result and not field.keep_empty:
            return None
    elif field.omit == 2 and result is None:
        return DROP
    return result


cdef inline object empty(FieldPlan field, object value):
    """What a list or map without members becomes."""
    if field.omit:
        return value if field.keep_empty == 2 else DROP
    return value if field.keep_empty else None


cdef object items(FieldPlan field, object value, _Run run):
    cdef list out
    cdef Py_ssize_t i, before
    cdef bint normal = run.share
    if type(value) is not list:
        raise Mismatch(describe(value), field.container)
    if not value:
        return empty(field, value)
    out = []
    for i in range(PyList_GET_SIZE(value)):
        before = run.seen()
        item = (<list>value)[i]
        result = field.zero_value() if item is None else element(field, item, run)
        if result is not item:
            normal = False
        out.append(result)
        if run.unknown is not None and PyList_GET_SIZE(run.unknown) > before:
            run.prefix(before, f"{field.name}[{i}]")
    return value if normal else out


cdef object entries(FieldPlan field, object value, _Run run):
    cdef dict out = {}
    cdef Py_ssize_t before
    cdef bint ordered = True
    cdef bint normal = run.share
    cdef str last = None
    if type(value) is not dict:
        raise Mismatch(describe(value), field.container)
    if not value:
        return empty(field, value)
    for key, item in (<dict>value).items():
        if last is not None and key < last:
            ordered = False
        last = key
        before = run.seen()
        result = field.zero_value() if item is None else element(field, item, run)
        if result is not item:
            normal = False
        out[key] = result
        if run.unknown is not None and PyList_GET_SIZE(run.unknown) > before:
            run.prefix(before, f"{field.name}.{key}")
    if normal and ordered:
        return value
    if not ordered:
        out = {key: out[key] for key in sorted(out)}
    return out


cdef object element(FieldPlan field, object value, _Run run):
    """One value that is not null."""
    cdef int op = field.op
    if op == STRING:
        if type(value) is str:
            return value
    elif op == STRUCT:
        if type(value) is dict:
            return field.child().decode(<dict>value, run)
    elif op == BOOL:
        if value is True or value is False:
            return value
    elif op == INT32 or op == INT64:
        return integer(field, value)
    elif op == TIME:
        if type(value) is str and canonical_time(value):
            return value
        return field.convert(value)
    elif op == MICROTIME:
        if type(value) is str and canonical_micro(value):
            return value
        return field.convert(value)
    elif op == QUANTITY:
        return field.text(value) if type(value) is str else field.convert(value)
    elif op == INT_OR_STRING:
        if type(value) is str or (type(value) is int and -0x80000000 <= value <= 0x7FFFFFFF):
            return value
        return field.convert(value)
    elif op == CONVERT:
        return field.convert(value)
    elif op == DOUBLE:
        if type(value) is int:
            return value
        if type(value) is float:
            return int(value) if value.is_integer() and -EXACT < value < EXACT else value
    elif op == BYTES:
        if type(value) is str:
            return value if canonical_base64(value) else field.convert(value)
    elif op == RAW:
        return value
    elif op == STRINGS:
        if type(value) is list:
            return strings(<list>value, field)
    else:
        return schema(field, value, run)
    raise Mismatch(describe(value), field.wanted)


cdef object integer(FieldPlan field, object value):
    if type(value) is int:
        if field.op == INT32:
            if -0x80000000 <= value <= 0x7FFFFFFF:
                return value
        elif -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
            return value
    if type(value) is int or type(value) is float:
        raise Mismatch(f"number {value}", field.wanted)
    raise Mismatch(describe(value), field.wanted)


cdef list strings(list value, FieldPlan field):
    cdef list out = []
    for item in value:
        if item is None:
            out.append("")
        elif type(item) is str:
            out.append(item)
        else:
            raise Mismatch(describe(item), "string")
    return out


cdef object schema(FieldPlan field, object value, _Run run):
    """A schema or its short form. The reference reads these apart: no unknown members, no path of its own."""
    cdef list out
    run.silent += 1
    try:
        if type(value) is dict:
            return field.child().decode(<dict>value, run)
        if field.op == SCHEMA_OR_BOOL:
            if value is True or value is False:
                return value
            raise ValueError("boolean or JSON schema expected")
        if type(value) is not list or not value:
            return None
        if field.op == SCHEMA_OR_STRINGS:
            return strings(<list>value, field)
        out = []
        for item in <list>value:
            if item is None:
                out.append(field.child().zero_tree())
            elif type(item) is dict:
                out.append(field.child().decode(<dict>item, run))
            else:
                raise Mismatch(describe(item), field.wanted)
        return out
    except Mismatch as error:
        error.struct = None
        error.path.clear()
        raise
    finally:
        run.silent -= 1


cdef bint canonical_time(str text) noexcept:
    """Whether a text is `YYYY-MM-DDTHH:MM:SSZ`, later than year 999, and a date in any year (no 29 February)."""
    if PyUnicode_GET_LENGTH(text) != 20 or not PyUnicode_IS_ASCII(text):
        return False
    cdef const unsigned char* at = <const unsigned char*>PyUnicode_1BYTE_DATA(text)
    return at[19] == b"Z" and moment(at)


cdef bint canonical_micro(str text) noexcept:
    """The same with six digits of a second: `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""
    cdef int i
    if PyUnicode_GET_LENGTH(text) != 27 or not PyUnicode_IS_ASCII(text):
        return False
    cdef const unsigned char* at = <const unsigned char*>PyUnicode_1BYTE_DATA(text)
    if at[19] != b"." or at[26] != b"Z":
        return False
    for i in range(20, 26):
        if at[i] < b"0" or at[i] > b"9":
            return False
    return moment(at)


cdef bint moment(const unsigned char* at) noexcept:
    """Whether 19 bytes are `YYYY-MM-DDTHH:MM:SS`; the caller has checked that they are there."""
    cdef int i
    for i in range(19):
        if i == 4 or i == 7:
            if at[i] != b"-":
                return False
        elif i == 10:
            if at[i] != b"T":
                return False
        elif i == 13 or i == 16:
            if at[i] != b":":
                return False
        elif at[i] < b"0" or at[i] > b"9":
            return False
    if at[0] == b"0":
        return False
    cdef int month = (at[5] - 48) * 10 + at[6] - 48
    if month < 1 or month > 12:
        return False
    i = (at[8] - 48) * 10 + at[9] - 48
    if i < 1 or i > DAYS[month - 1]:
        return False
    return (at[11] - 48) * 10 + at[12] - 48 < 24 and at[14] < b"6" and at[17] < b"6"


cdef inline int sextet(unsigned char c) noexcept:
    if b"A" <= c <= b"Z":
        return c - 65
    if b"a" <= c <= b"z":
        return c - 71
    if b"0" <= c <= b"9":
        return c + 4
    if c == b"+":
        return 62
    return 63 if c == b"/" else -1


@cython.boundscheck(False)  # indices run below the length, which is a multiple of four
@cython.wraparound(False)
cdef bint canonical_base64(str text) noexcept:
    """Whether a text is base64 exactly as an encoder writes it."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(text)
    cdef Py_ssize_t end = size, i
    cdef const unsigned char* at
    cdef int last
    if size % 4 or not PyUnicode_IS_ASCII(text):
        return False
    if size == 0:
        return True
    at = <const unsigned char*>PyUnicode_1BYTE_DATA(text)
    if at[size - 1] == b"=":
        end = size - (2 if at[size - 2] == b"=" else 1)
        last = sextet(at[end - 1])
        if last < 0 or last & (15 if size - end == 2 else 3):
            return False
    for i in range(end):
        if sextet(at[i]) < 0:
            return False
    return True
