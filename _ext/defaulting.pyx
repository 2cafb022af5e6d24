"""Walks that complete objects in place: rules of a type, then those of its members.

What the rules are is declared elsewhere (`fastapi_core/schema/defaults.py` from the type tables,
`fastapi_core/apis/defaulting/` by hand); here they are only carried out. Most just set members that are not there, so
these are data (`Fill`), and an object is left without entering the interpreter.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem, PyDict_Next, PyDict_SetItem
from cpython.object cimport PyObject

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where)
    void Py_LeaveRecursiveCall()


cpdef enum:
    UNSET = 0
    ZERO = 1
    EMPTY = 2


cpdef enum:
    SINGLE = 0
    LIST = 1
    MAP = 2


cdef object fresh(object value):
    """A copy that shares nothing mutable with the declaration."""
    if type(value) is dict:
        return {key: fresh(item) for key, item in (<dict>value).items()}
    if type(value) is list:
        return [fresh(item) for item in <list>value]
    return value


@cython.final
cdef class Fill:
    """Values for members: (name, value, when), where UNSET means an absent or null member, ZERO also an empty text, zero
    and false, EMPTY also an empty object or list."""

    cdef tuple pairs

    def __init__(self, *pairs):
        for name, value, when in pairs:
            if type(name) is not str or when not in (UNSET, ZERO, EMPTY):
                raise ValueError(f"no member and condition: {name!r}, {when!r}")
        self.pairs = tuple([(name, value, int(when)) for name, value, when in pairs])

    def __call__(self, dict tree not None):
        self.fill(tree)

    cdef int fill(self, dict tree) except -1:
        cdef PyObject* hit
        cdef int when
        for pair in self.pairs:
            hit = PyDict_GetItem(tree, (<tuple>pair)[0])
            if hit is not NULL and <object>hit is not None:
                when = (<tuple>pair)[2]
                if when == UNSET or <object>hit or (when == ZERO and type(<object>hit) in (dict, list)):
                    continue
            PyDict_SetItem(tree, (<tuple>pair)[0], fresh((<tuple>pair)[1]))
        return 0


@cython.final
cdef class _Into:
    """A member to look into."""

    cdef int card
    cdef Walk walk


@cython.final
cdef class Walk:
    """The rules of one type, and the walks of those of its members that have any below them."""

    cdef tuple rules
    cdef dict members

    def __cinit__(self):
        self.rules = ()
        self.members = {}

    def define(self, tuple rules not None, dict members not None):
        """`rules` are functions of an object; `members` maps names to (SINGLE, LIST or MAP, walk)."""
        cdef _Into into
        self.rules = rules
        self.members = {}
        for name, (card, walk) in members.items():
            into = _Into()
            into.card = card
            into.walk = walk
            self.members[name] = into

    @property
    def idle(self):
        """Whether there is nothing to do, here or below."""
        return not self.rules and not self.members

    def run(self, dict tree not None, dict known=None):
        """Complete the object: its own rules first, then those of its members. Members that are the very objects which
        `known`, a complete tree, has in their place are left alone."""
        self.go(tree, known)

    cdef int go(self, dict tree, dict known) except -1:
        cdef Py_ssize_t pos = 0
        cdef PyObject* name
        cdef PyObject* value
        cdef PyObject* hit
        for rule in self.rules:
            if type(rule) is Fill:
                (<Fill>rule).fill(tree)
            else:
                rule(tree)
        if not self.members or not tree:
            return 0
        if Py_EnterRecursiveCall(" in defaults"):
            return -1
        try:
            if len(tree) < len(self.members):
                while PyDict_Next(tree, &pos, &name, &value):
                    hit = PyDict_GetItem(self.members, <object>name)
                    if hit is not NULL:
                        enter(<_Into>hit, name, value, known)
            else:
                while PyDict_Next(self.members, &pos, &name, &hit):
                    value = PyDict_GetItem(tree, <object>name)
                    if value is not NULL:
                        enter(<_Into>hit, name, value, known)
        finally:
            Py_LeaveRecursiveCall()
        return 0


cdef int enter(_Into into, PyObject* name, PyObject* member, dict known) except -1:
    cdef Walk walk = into.walk
    cdef PyObject* prior = NULL
    cdef object value = <object>member
    if known is not None:
        prior = PyDict_GetItem(known, <object>name)
        if prior is member:
            return 0
    if into.card == SINGLE:
        if type(value) is dict:
            walk.go(<dict>value, <dict>prior if prior is not NULL and type(<object>prior) is dict else None)
    elif into.card == LIST:
        if type(value) is list:
            for item in <list>value:
                if type(item) is dict:
                    walk.go(<dict>item, None)
    elif type(value) is dict:
        for item in (<dict>value).values():
            if type(item) is dict:
                walk.go(<dict>item, None)
    return 0
