"""Protobuf messages into the trees their JSON has.

Like the reference's generated code: the last value of a field wins, messages are merged, unknown fields are skipped,
packed numbers are understood. Zero values of plain scalars are left out, as the tables decide what an unset field is.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_DelItem, PyDict_GetItem, PyDict_SetItem
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcpy

from fastapi_core._ext.protowire cimport (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    END_GROUP,
    FIXED32,
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
    START_GROUP,
    STRING,
    STRINGS,
    STRUCT,
    TIME,
    VARINT,
    Member,
    Message,
)

from base64 import b64encode as to_base64

# Years 0 to 9999, which have four digits, in seconds around 1970.
cdef long long FIRST_SECOND = -62167219200
cdef long long LAST_SECOND = 253402300799
cdef long long ZERO_SECOND = -62135596800  # year 1: Go's zero time

ctypedef const unsigned char* Bytes


cdef int cut_short() except -1:
    raise ValueError("unexpected EOF")

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
    if size > 0x7FFFFFFFFFFFFFFFULL:
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
    number[0] = <unsigned int>((value >> 3) & 0xFFFFFFFFULL)
    if wire == END_GROUP:
        raise ValueError(f"proto: {message}: wiretype end group for non-group")
    if number[0] == 0 or number[0] > 0x7FFFFFFFU:
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


cdef inline void put_digits(char* out, int count, long long value) noexcept:
    cdef int i
    for i in range(count - 1, -1, -1):
        out[i] = <char>(48 + value % 10)
        value //= 10


cdef str time_text(long long seconds, int micros):
    """RFC 3339 of seconds since 1970, with six digits of fraction unless `micros` is negative."""
    cdef long long days, rest, era, year_of_era, day_of_year, day_of_era, month
    cdef long long year
    cdef char out[27]
    cdef int size = 19
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
    put_digits(out, 4, year)
    out[4] = c"-"
    put_digits(out + 5, 2, month)
    out[7] = c"-"
    put_digits(out + 8, 2, days)
    out[10] = c"T"
    put_digits(out + 11, 2, rest // 3600)
    out[13] = c":"
    put_digits(out + 14, 2, rest // 60 % 60)
    out[16] = c":"
    put_digits(out + 17, 2, rest % 60)
    if micros >= 0:
        out[19] = c"."
        put_digits(out + 20, 6, micros)
        size = 26
    out[size] = c"Z"
    return PyUnicode_DecodeUTF8(out, size + 1, NULL)

def decode(Message message not None, bytes data not None, int limit):
    cdef Cursor c
    cdef dict out = {}
    c.at = <Bytes>PyBytes_AS_STRING(data)
    c.end = c.at + PyBytes_GET_SIZE(data)
    read(message, &c, out, limit)
    return out


cdef int read(Message message, Cursor* c, dict out, int limit) except -1:
    cdef unsigned int number = 0
    cdef int wire
    cdef Member member
    if limit <= 0:
        raise ValueError("exceeded max depth")
    while c.at < c.end:
        wire = tag(c, message.name, &number)
        found = message.by_number[number] if number <= <unsigned int>message.highest else None
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


cdef int wrong(Member member, int wire) except -1:
    raise ValueError(f"proto: wrong wireType = {wire} for field {member.name[:1].upper()}{member.name[1:]}")


cdef int read_single(Member member, Cursor* c, int wire, dict out, int limit) except -1:
    cdef Cursor inner
    cdef PyObject* before
    cdef bint zero
    if member.op == STRUCT or member.op == INLINE:
        if wire != LENGTH:
            wrong(member, wire)
        span(c, &inner)
        if member.op == INLINE:
            # No level of the tree, and no type inlines itself.
            return read(member.child(), &inner, out, limit)
        before = PyDict_GetItem(out, member.name)
        value = {} if before is NULL else <object>before
        if before is NULL:
            PyDict_SetItem(out, member.name, value)
        return read(member.child(), &inner, <dict>value, limit - 1)
    if member.op == STRING:
        if wire != LENGTH:
            wrong(member, wire)
        span(c, &inner)
        zero = inner.at == inner.end
        if member.pointer or not zero:
            PyDict_SetItem(out, member.name, text_of(&inner))
            return 0
    else:
        value = read_value(member, c, wire, limit)
        zero = member.op <= DOUBLE and not value
        if member.pointer or not zero:
            PyDict_SetItem(out, member.name, value)
            return 0
    if PyDict_GetItem(out, member.name) is not NULL:
        PyDict_DelItem(out, member.name)
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
    if wire != LENGTH:
        wrong(member, wire)
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
        if wire != VARINT:
            wrong(member, wire)
        varint(c, &number)
        if op == BOOL:
            return number != 0
        return <int>number if op == INT32 else <long long>number
    if op == DOUBLE:
        if wire != FIXED64:
            wrong(member, wire)
        if c.end - c.at < 8:
            cut_short()
        memcpy(&real, c.at, 8)
        c.at += 8
        if not real - real == 0:  # JSON has no word for it
            raise ValueError("json: unsupported value: " + ("NaN" if real != real else "+Inf" if real > 0 else "-Inf"))
        return real
    if wire != LENGTH:
        wrong(member, wire)
    span(c, &inner)
    if op == STRING:
        return text_of(&inner)
    if op == STRUCT:
        tree = {}
        read(member.child(), &inner, tree, limit - 1)
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
            if wire != VARINT:
                wrong(member, wire)
            varint(c, &value)
            allows = value != 0
            continue
        if wire != LENGTH:
            wrong(member, wire)
        span(c, &inner)
        if op == RAW:
            whole = bytes_of(&inner)
        elif op == QUANTITY:
            whole = text_of(&inner)
        elif op == STRINGS or (op == SCHEMA_OR_STRINGS and number == 2):
            items.append(text_of(&inner))
        elif op == SCHEMA_OR_SCHEMAS and number == 2:
            tree = {}
            read(member.child(), &inner, tree, limit - 2)
            items.append(tree)
        else:
            if schema is None:
                schema = {}
            read(member.child(), &inner, <dict>schema, limit - 1)
    if op == RAW:
        return member.convert(whole, limit) if whole else None
    if op == QUANTITY:
        return "0" if whole is None else whole
    if op == STRINGS:
        return items
    if op == SCHEMA_OR_BOOL:
        return allows if schema is None else schema
    return items if items else schema
