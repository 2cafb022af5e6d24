"""Walks along structural schemas that most objects pass without a finding (`fastapi_core/structural/`).

`Clean` says whether there is anything to prune, `Defaults` fills in what is missing, `Members`, `Items` and `All` are the
checks of containers. What they find out to be rare is left to Python.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem, PyDict_Next, PyDict_SetItem
from cpython.object cimport PyObject

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where)
    void Py_LeaveRecursiveCall()
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow)


cdef object fresh(object value):
    """A copy that shares nothing mutable."""
    if type(value) is dict:
        return {key: fresh(item) for key, item in (<dict>value).items()}
    if type(value) is list:
        return [fresh(item) for item in <list>value]
    return value


cdef bint is_meta(object name):
    return name == "metadata" or name == "apiVersion" or name == "kind"


@cython.final
cdef class Clean:
    """Whether pruning would leave a value as it is. `make` gives the tables (members, extra, items) when it is first
    asked."""

    cdef object make
    cdef dict members
    cdef Clean extra
    cdef Clean items
    cdef readonly bint embedded
    cdef bint preserve
    cdef bint drops_null

    def __init__(self, object make, *, bint embedded, bint preserve, bint drops_null):
        self.make = make
        self.embedded = embedded
        self.preserve = preserve
        self.drops_null = drops_null

    cdef int resolve(self) except -1:
        if self.make is not None:
            self.members, self.extra, self.items = self.make()
            self.make = None
        return 0

    def of_object(self, dict tree not None, bint embedded):
        """Nothing to prune in an object; `embedded`: it has metadata of its own."""
        return self.in_object(tree, embedded)

    cdef bint in_object(self, dict tree, bint embedded) except -1:
        cdef Py_ssize_t position = 0
        cdef PyObject* key
        cdef PyObject* value
        cdef PyObject* found
        cdef Clean member
        cdef bint good = True
        self.resolve()
        if Py_EnterRecursiveCall(b" while looking for unknown members"):
            raise RecursionError
        try:
            while PyDict_Next(tree, &position, &key, &value):
                found = PyDict_GetItem(self.members, <object>key)
                if found is not NULL:
                    member = <Clean>found
                elif embedded and is_meta(<object>key):
                    continue
                elif self.extra is not None:
                    member = self.extra
                elif self.preserve:
                    continue
                else:
                    good = False
                    break
                if <object>value is None:
                    good = not member.drops_null
                elif type(<object>value) is dict:
                    if not (embedded and is_meta(<object>key)):
                        good = member.in_object(<dict>value, member.embedded)
                elif type(<object>value) is list:
                    if not (embedded and is_meta(<object>key)):
                        good = member.in_list(<list>value)
                if not good:
                    break
        finally:
            Py_LeaveRecursiveCall()
        return good

    cdef bint in_list(self, list values) except -1:
        cdef object value
        self.resolve()
        if self.items is None and self.preserve:
            return True
        for value in values:
            if type(value) is dict:
                if self.items is None or self.preserve or not self.items.in_object(<dict>value, self.items.embedded):
                    return False
            elif type(value) is list:
                if self.items is None or self.preserve or not self.items.in_list(<list>value):
                    return False
        return True


@cython.final
cdef class Defaults:
    """Fills in defaults: `make` gives those of members (name, value, keeps null), the walks below by name, that of items,
    and a function for what is not told so (or None)."""

    cdef object make
    cdef tuple own
    cdef tuple below
    cdef Defaults items
    cdef object rest

    def __init__(self, object make):
        self.make = make

    cdef int resolve(self) except -1:
        if self.make is not None:
            self.own, self.below, self.items, self.rest = self.make()
            self.make = None
        return 0

    def __call__(self, object value):
        self.run(value)

    cdef int run(self, object value) except -1:
        if type(value) is dict:
            if Py_EnterRecursiveCall(b" while filling in defaults"):
                raise RecursionError
            try:
                self.in_object(<dict>value)
            finally:
                Py_LeaveRecursiveCall()
        elif type(value) is list:
            self.in_list(<list>value)
        return 0

    cdef int in_object(self, dict tree) except -1:
        cdef tuple entry
        cdef PyObject* found
        self.resolve()
        for entry in self.own:
            found = PyDict_GetItem(tree, entry[0])
            if found is NULL or (<object>found is None and entry[2] is False):
                PyDict_SetItem(tree, entry[0], fresh(entry[1]))
        for entry in self.below:
            found = PyDict_GetItem(tree, entry[0])
            if found is not NULL:
                (<Defaults>entry[1]).run(<object>found)
        if self.rest is not None:
            self.rest(tree)
        return 0

    cdef int in_list(self, list values) except -1:
        cdef object value
        self.resolve()
        if self.rest is not None:
            self.rest(values)
        if self.items is not None:
            for value in values:
                self.items.run(value)
        return 0


@cython.final
cdef class Entry:
    """How values with one schema are checked: those of type `kind` by `own` (None: all are good), integers must besides
    lie between `low` and `high`; all others by `full`."""

    cdef object kind
    cdef object own
    cdef object full
    cdef bint whole
    cdef long long low
    cdef long long high

    def __init__(self, object kind, object own, object full, *, object low=None, object high=None):
        self.kind = kind
        self.own = own
        self.full = full
        self.whole = low is not None
        if self.whole:
            self.low, self.high = low, high


cdef bint asked(object check, object value) except -1:
    if type(check) is Members:
        return (<Members>check).run(value)
    if type(check) is All:
        return (<All>check).run(value)
    if type(check) is Items:
        return (<Items>check).run(value)
    return True if check(value) else False


cdef bint passes(Entry entry, object value) except -1:
    cdef int overflow = 0
    cdef long long number
    if type(value) is not entry.kind:
        return True if entry.full(value) else False
    if entry.whole:
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow or number < entry.low or number > entry.high:
            return False
    if entry.own is None:
        return True
    return asked(entry.own, value)


@cython.final
cdef class Members:
    """The members of an object. `find` gives the entry of a name, None when it may be anything; it is asked once for each
    that is declared, and once for all others. `needed` are names that must be there."""

    cdef dict declared
    cdef dict known
    cdef object find
    cdef tuple needed
    cdef object rest
    cdef bint has_rest

    def __init__(self, dict declared not None, object find, tuple needed not None):
        self.declared = declared
        self.known = {}
        self.find = find
        self.needed = needed

    def __call__(self, object value):
        return self.run(value)

    cdef object entry(self, object name):
        if name in self.declared:
            found = self.known[name] = self.find(name)
            return found
        if not self.has_rest:
            self.rest = self.find(name)
            self.has_rest = True
        return self.rest

    cdef bint run(self, dict tree) except -1:
        cdef Py_ssize_t position = 0
        cdef PyObject* key
        cdef PyObject* value
        cdef PyObject* found
        cdef object entry
        cdef bint good = True
        for entry in self.needed:
            if PyDict_GetItem(tree, entry) is NULL:
                return False
        if Py_EnterRecursiveCall(b" while validating"):
            raise RecursionError
        try:
            while PyDict_Next(tree, &position, &key, &value):
                found = PyDict_GetItem(self.known, <object>key)
                if found is not NULL:
                    good = passes(<Entry>found, <object>value)
                else:
                    entry = self.entry(<object>key)
                    if entry is not None:
                        good = passes(<Entry>entry, <object>value)
                if not good:
                    break
        finally:
            Py_LeaveRecursiveCall()
        return good


@cython.final
cdef class Items:
    """The items of a list; `make` gives their entry when there is a first one."""

    cdef Entry entry
    cdef object make

    def __init__(self, object make):
        self.make = make

    def __call__(self, object value):
        return self.run(value)

    cdef bint run(self, list values) except -1:
        cdef object value
        if not values:
            return True
        if self.entry is None:
            self.entry = self.make()
        for value in values:
            if not passes(self.entry, value):
                return False
        return True


@cython.final
cdef class All:
    """Several checks of one value."""

    cdef tuple checks

    def __init__(self, *checks):
        self.checks = checks

    def __call__(self, object value):
        return self.run(value)

    cdef bint run(self, object value) except -1:
        cdef object check
        for check in self.checks:
            if not asked(check, value):
                return False
        return True


cpdef bint are_different(list values, str name) except -1:
    """Whether the strings of a list, or those that its objects have at a name (if it is not empty), are all different.
    False also where something else stands."""
    cdef set seen = set()
    cdef object value
    cdef PyObject* found
    for value in values:
        if name:
            if type(value) is not dict:
                return False
            found = PyDict_GetItem(<dict>value, name)
            if found is NULL:
                return False
            value = <object>found
        if type(value) is not str:
            return False
        seen.add(value)
    return len(seen) == len(values)
