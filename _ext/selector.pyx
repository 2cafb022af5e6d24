"""Label and field requirements compiled for matching many cached objects.

A requirement is one small object with its operator as a number; a matcher walks its requirements per object without
calling back into Python, except to extract the selectable fields of an object it sees for the first time.
"""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject

from fastapi_core._ext.objects cimport CachedObject

from sys import intern

cdef enum:
    IN = 0
    NOT_IN = 1
    EXISTS = 2
    ABSENT = 3
    GREATER = 4
    LESS = 5

cdef enum:
    NAME = 0
    NAMESPACE = 1
    EXTRACTED = 2

# Live matchers, so that a test can see a leak.
cdef Py_ssize_t _live_matchers = 0


def live():
    """How many matchers exist now."""
    return {"Matcher": _live_matchers}


cdef dict OPERATORS = {"in": IN, "notin": NOT_IN, "exists": EXISTS, "!": ABSENT, "gt": GREATER, "lt": LESS}
cdef dict FIELDS = {"metadata.name": NAME, "metadata.namespace": NAMESPACE}


cdef bint integer(str text, long long* out) noexcept:
    """Decimal 64-bit integer with optional sign; False for any other text."""
    cdef Py_ssize_t size = len(text)
    cdef Py_ssize_t i = 0
    cdef bint negative = False
    cdef unsigned long long value = 0
    cdef unsigned long long limit = 0x7FFFFFFFFFFFFFFFULL
    cdef unsigned int digit
    cdef Py_UCS4 ch
    if size and (text[0] == u"-" or text[0] == u"+"):
        negative = text[0] == u"-"
        i = 1
    if negative:
        limit += 1
    # Twenty digits are beyond the range whatever they are, leading zeros aside.
    if i == size:
        return False
    while i < size:
        ch = text[i]
        if ch < u"0" or ch > u"9":
            return False
        digit = <unsigned int>ch - 48
        if value > (limit - digit) // 10:
            return False
        value = value * 10 + digit
        i += 1
    out[0] = <long long>(0 - value) if negative else <long long>value
    return True


@cython.final
@cython.internal
cdef class LabelRequirement:
    cdef int operator
    cdef str key
    cdef str single
    cdef frozenset values
    cdef long long bound

    cdef bint holds(self, dict labels) except -1:
        cdef PyObject* found = PyDict_GetItemWithError(labels, self.key)
        cdef long long number = 0
        cdef str value
        if found == NULL:
            return self.operator == NOT_IN or self.operator == ABSENT
        if self.operator == EXISTS:
            return True
        if self.operator == ABSENT:
            return False
        if self.operator <= NOT_IN and self.single is not None:
            # Both are interned, so equal texts are one object and the label itself need not be touched.
            return (found == <PyObject*>self.single) == (self.operator == IN)
        value = <str>found
        if self.operator <= NOT_IN:
            return (value in self.values) == (self.operator == IN)
        if not integer(value, &number):
            return False
        return number > self.bound if self.operator == GREATER else number < self.bound


@cython.final
@cython.internal
cdef class FieldRequirement:
    cdef int kind
    cdef bint equal
    cdef str field
    cdef str value


cdef LabelRequirement label_requirement(str key, str operator, values):
    cdef LabelRequirement requirement = LabelRequirement.__new__(LabelRequirement)
    cdef tuple texts = tuple(values)
    requirement.key = intern(key)
    requirement.operator = OPERATORS[operator]
    for text in texts:
        if not isinstance(text, str):
            raise TypeError("label values are strings")
    if requirement.operator <= NOT_IN:
        if len(texts) == 1:
            requirement.single = intern(texts[0])
        requirement.values = frozenset(texts)
    elif requirement.operator >= GREATER:
        if len(texts) != 1 or not integer(texts[0], &requirement.bound):
            raise ValueError(f"{operator} takes one integer")
    return requirement


cdef dict fields_of(CachedObject obj, extract):
    """Selectable fields of an object, extracted once and kept in its memo."""
    cdef dict memo = obj.memo_map()
    found = memo.get(extract)
    if found is None:
        found = extract(obj)
        if not isinstance(found, dict):
            raise TypeError("an extract function answers a dict")
        memo[extract] = found
    return <dict>found


def selectable_fields(CachedObject obj not None, extract not None):
    return fields_of(obj, extract)


@cython.final
cdef class Matcher:
    """A conjunction of requirements over labels and selectable fields."""

    cdef list _labels
    cdef list _fields
    cdef object _extract

    def __cinit__(self):
        global _live_matchers
        _live_matchers += 1

    def __dealloc__(self):
        global _live_matchers
        _live_matchers -= 1

    def __init__(self, labels, fields, extract=None):
        cdef FieldRequirement requirement
        self._labels = [label_requirement(key, operator, values) for key, operator, values in labels]
        self._fields = []
        self._extract = extract
        for field, operator, value in fields:
            requirement = FieldRequirement.__new__(FieldRequirement)
            requirement.field = field
            if operator not in ("=", "!="):
                raise KeyError(operator)
            requirement.equal = operator == "="
            requirement.value = value
            requirement.kind = FIELDS.get(field, EXTRACTED)
            # Whoever mistypes a field finds out here, not at the first object.
            if requirement.field is None or requirement.value is None:
                raise TypeError("field and value are strings")
            # Comparing names is cheaper than fetching fields.
            if requirement.kind == EXTRACTED:
                self._fields.append(requirement)
            else:
                self._fields.insert(0, requirement)

    cdef bint test(self, CachedObject obj) except -1:
        cdef FieldRequirement requirement
        cdef dict extracted = None
        cdef dict labels
        cdef str value
        if self._labels is None or self._fields is None:
            raise ValueError("a matcher that was never initialised")
        if self._labels:
            labels = obj.label_map()
            for entry in self._labels:
                if not (<LabelRequirement>entry).holds(labels):
                    return False
        for entry in self._fields:
            requirement = <FieldRequirement>entry
            if requirement.kind == NAME:
                value = obj.name
            elif requirement.kind == NAMESPACE:
                value = obj.namespace
            elif self._extract is None:
                value = ""
            else:
                if extracted is None:
                    extracted = fields_of(obj, self._extract)
                value = extracted.get(requirement.field, "")
            if (value == requirement.value) != requirement.equal:
                return False
        return True

    def matches(self, CachedObject obj not None):
        return self.test(obj)

    def select(self, objects):
        return self.select_page(objects, 0)[0]

    def select_page(self, objects, Py_ssize_t limit):
        cdef list items = objects if type(objects) is list else list(objects)
        cdef list selected = []
        cdef Py_ssize_t seen = 0
        for entry in items:
            seen += 1
            if self.test(<CachedObject?>entry):
                selected.append(entry)
                if limit > 0 and len(selected) == limit:
                    break
        return selected, seen

    def required(self, str field not None):
        cdef FieldRequirement requirement
        for entry in self._fields:
            requirement = <FieldRequirement>entry
            if requirement.equal and requirement.field == field:
                return requirement.value
        return None
