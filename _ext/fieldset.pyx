"""Sets of field paths and the walks along shapes that make and use them.

`fastapi_core/patch/fieldset.py` says what a set looks like, `fastapi_core/patch/shapes.py` what a shape is; here they are
only carried out: the algebra and the shapes in this file, what an object has and what two objects differ in in
`fieldset_walk.pxi`, merging and removing in `fieldset_merge.pxi`.

Nothing given is changed, and a result that equals what was given is the very object that was given: most writes change
next to nothing, and whoever comes next finds that out by identity.
"""

cimport cython
from cpython.dict cimport PyDict_GetItem, PyDict_Next, PyDict_SetItem
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_GET_LENGTH

from orjson import dumps, loads

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where)
    void Py_LeaveRecursiveCall()
    int PyUnicode_Compare(object left, object right) except? -1
    unsigned int PyUnicode_READ_CHAR(object text, Py_ssize_t index)


cdef enum:
    LEAF_KIND = 0
    OBJECT = 1
    KEYED = 2
    SET = 3
    DEDUCED = 4

cdef enum:
    MOST_ELEMENTS = 8192  # of texts kept because they come again and again
    MOST_ITEMS = 1024  # the same for the items of one list
    LONGEST_KEPT = 256

LEAF = {}
SELF = "."
cdef dict EMPTY = LEAF
cdef str DOT = SELF


@cython.final
cdef class _Absent:
    """Marks what is not there, null being a value."""

    def __bool__(self):
        return False

    def __repr__(self):
        return "ABSENT"


ABSENT = _Absent()
cdef object NOTHING = ABSENT


class ItemError(ValueError):
    """A value that has no paths: a list item that cannot be told apart from the others, or one of the wrong kind."""


cdef inline int enter(const char* where) except -1:
    """One level deeper; RecursionError where Python would raise it."""
    return -1 if Py_EnterRecursiveCall(where) else 0


# Path elements


cdef dict NAMES = {}
cdef dict RANKS = {}


cdef str field_of(str name):
    """The element of a member."""
    cdef PyObject* hit = PyDict_GetItem(NAMES, name)
    if hit is not NULL:
        return <str>hit
    cdef str element = "f:" + name
    if PyUnicode_GET_LENGTH(name) <= LONGEST_KEPT:
        if len(NAMES) >= MOST_ELEMENTS:
            NAMES.clear()
        NAMES[name] = element
    return element


cpdef tuple rank(str element):
    """Sort key of an element: `.`, then fields, keys, values and places, each by content."""
    cdef PyObject* hit = PyDict_GetItem(RANKS, element)
    if hit is not NULL:
        return <tuple>hit
    cdef tuple found = read_rank(element)
    if PyUnicode_GET_LENGTH(element) <= LONGEST_KEPT:
        if len(RANKS) >= MOST_ELEMENTS:
            RANKS.clear()
        RANKS[element] = found
    return found


cdef tuple read_rank(str element):
    cdef str kind = element[:2]
    cdef list parts = []
    if kind == "f:":
        return (1, element)
    if kind == "k:":
        key = loads(element[2:])
        for name in sorted(key):
            parts.append((name, *rank_of_value(key[name])))
        return (2, *parts)
    if kind == "v:":
        return (3, *rank_of_value(loads(element[2:])))
    return (4, int(element[2:])) if kind == "i:" else (0,)


cdef tuple rank_of_value(object value):
    """Order of JSON values: numbers, texts, truth values, then the rest."""
    if value is True or value is False:
        return (2, value)
    if isinstance(value, (int, float)):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (5, "") if value is None else (3, dumps(value).decode())


cpdef dict ordered(dict node):
    """The node with its elements in order."""
    cdef Py_ssize_t pos = 0
    cdef PyObject* key
    cdef PyObject* last = NULL
    cdef bint rising = True
    cdef list elements
    if len(node) < 2:
        return node
    while PyDict_Next(node, &pos, &key, NULL):
        if is_item(<object>key):
            elements = sorted(node, key=rank)
            return node if elements == list(node) else {element: node[element] for element in elements}
        if last is not NULL and PyUnicode_Compare(<object>last, <object>key) > 0:
            rising = False
        last = key
    return node if rising else {element: node[element] for element in sorted(node)}


cdef inline bint is_item(object element) noexcept:
    """Whether an element stands for an item of a list."""
    if PyUnicode_GET_LENGTH(element) == 0:
        return True
    cdef unsigned int first = PyUnicode_READ_CHAR(element, 0)
    return first == c"k" or first == c"v" or first == c"i"


# Sets


cdef inline bint member(dict node):
    """Whether a node's own path is in the set."""
    return not node or PyDict_GetItem(node, DOT) is not NULL


cdef dict with_self(dict below):
    """A node that is a member itself, with what is below (None: nothing)."""
    cdef dict out
    if not below:
        return EMPTY
    if PyDict_GetItem(below, DOT) is not NULL:
        return below
    out = {DOT: EMPTY}
    out.update(below)
    return out


cdef dict without_self(dict node):
    cdef dict out = node.copy()
    del out[DOT]
    return out


cpdef dict union(dict left, dict right):
    """Paths of either set."""
    if not right:
        return left
    return joined(left, right) if left else right


cdef dict joined(dict left, dict right):
    cdef Py_ssize_t pos = 0
    cdef PyObject* element
    cdef PyObject* node
    cdef PyObject* known
    cdef dict out = None
    cdef dict both
    cdef bint grown = False
    if left is right:
        return left
    if not left:
        return with_self(right)
    if not right:
        return with_self(left)
    while PyDict_Next(right, &pos, &element, &node):
        known = PyDict_GetItem(left, <object>element)
        if known is NULL:
            both = <dict?>node
            grown = True
        elif known is node:
            continue
        else:
            both = joined(<dict?>known, <dict?>node)
            if both is <dict>known:
                continue
        if out is None:
            out = left.copy()
        PyDict_SetItem(out, <object>element, both)
    if out is None:
        return left
    return ordered(out) if grown else out


cpdef bint covers(dict left, dict right) except -1:
    """Whether every path of `right` is one of `left`."""
    cdef Py_ssize_t pos = 0
    cdef PyObject* element
    cdef PyObject* node
    cdef PyObject* mine
    cdef dict below
    if left is right:
        return True
    while PyDict_Next(right, &pos, &element, &node):
        mine = PyDict_GetItem(left, <object>element)
        if mine is NULL:
            return False
        below = <dict?>node
        if not (covers(<dict?>mine, below) if below else member(<dict?>mine)):
            return False
    return True


cpdef dict intersection(dict left, dict right):
    """Paths of both sets."""
    cdef Py_ssize_t pos = 0
    cdef PyObject* element
    cdef PyObject* node
    cdef PyObject* other
    cdef dict common
    cdef dict out = {}
    if len(right) < len(left):
        left, right = right, left
    while PyDict_Next(left, &pos, &element, &node):
        other = PyDict_GetItem(right, <object>element)
        if other is NULL or <object>element == DOT:
            continue
        common = shared(<dict?>node, <dict?>other)
        if common is not None:
            PyDict_SetItem(out, <object>element, common)
    return out


cdef dict shared(dict left, dict right):
    """Node of what two nodes have in common, None for nothing."""
    cdef dict below
    if left is right:
        return left
    below = intersection(left, right) if left and right else EMPTY
    if member(left) and member(right):
        return with_self(below)
    return below or None


cpdef dict difference(dict left, dict right):
    """Paths of the left set that are not in the right one; paths below a path of the right one stay."""
    cdef Py_ssize_t pos = 0
    cdef PyObject* element
    cdef PyObject* other
    cdef PyObject* node
    cdef dict rest
    cdef dict out = None
    if not left:
        return left
    while PyDict_Next(right, &pos, &element, &other):
        node = PyDict_GetItem(left, <object>element)
        if node is NULL or <object>element == DOT:
            continue
        rest = subtracted(<dict?>node, <dict?>other)
        if rest is <dict>node:
            continue
        if out is None:
            out = left.copy()
        if rest is None:
            del out[<object>element]
        else:
            PyDict_SetItem(out, <object>element, rest)
    return left if out is None else out


cdef dict subtracted(dict left, dict right):
    """Node of what is left of a node, None for nothing."""
    cdef dict below
    if not left:
        return None if member(right) else left
    below = difference(left, right) if right else left
    if PyDict_GetItem(left, DOT) is NULL:
        return below or None
    if not member(right):
        return below if len(below) > 1 else EMPTY
    return without_self(below) or None


# Shapes


@cython.final
cdef class Member:
    """A named member of an object: its path element, its shape, and what a missing one amounts to (`ABSENT`: nothing).

    Structs that are no pointers are always there in the reference, so are lists and maps that print null when unset.
    """

    cdef readonly str element
    cdef readonly Shape shape
    cdef readonly object implied

    def __init__(self, str name, Shape shape not None, object implied=NOTHING):
        self.element = "f:" + name
        self.shape = shape
        self.implied = implied

    def __repr__(self):
        return f"<Member {self.element} {self.shape!r}>"


cdef dict SCALARS = {"whole": 0, "string": 1, "number": 2, "boolean": 3, "any": 4, "object": 5, "list": 6}


@cython.final
cdef class Shape:
    """See `fastapi_core/patch/shapes.py`. `members` and `item` are made on first use; `identify` makes the path element
    of an item, and is asked once for each key that comes again and again."""

    cdef readonly object kind
    cdef readonly Shape rest
    cdef readonly tuple keys
    cdef readonly tuple sorted_keys
    cdef readonly dict defaults
    cdef readonly str scalar
    cdef readonly frozenset hidden
    cdef int op
    cdef int code
    cdef bint plain_map
    cdef object load
    cdef object make_item
    cdef object identify
    cdef dict _members
    cdef dict _by_element
    cdef Shape _item
    cdef dict known_items

    def __init__(
        self,
        object kind,
        *,
        object members=None,
        Shape rest=None,
        object item=None,
        tuple keys=(),
        object defaults=None,
        str scalar="whole",
        frozenset hidden=frozenset(),
        object identify=None,
    ):
        self.kind = kind
        self.op = kind
        self.load = members
        self._members = None if members is not None else {}
        self._by_element = None
        self.rest = self if self.op == DEDUCED else rest
        self.make_item = item
        self._item = None
        self.keys = keys
        self.sorted_keys = tuple(sorted(keys))
        self.defaults = dict(defaults) if defaults else {}
        self.scalar = scalar
        self.code = SCALARS[scalar]
        self.hidden = hidden
        self.identify = identify
        self.known_items = {}
        self.plain_map = members is None and rest is not None and rest.op == LEAF_KIND and not hidden

    @property
    def members(self):
        return self.named()

    @property
    def item(self):
        """Shape of the items of a list; for what is owned as a whole, of what is in it, if that is known."""
        return self.of_item() if self.make_item is not None else None

    def __repr__(self):
        return f"<Shape {self.kind!r}>"

    cdef dict named(self):
        if self._members is None:
            self._members = dict(self.load())
        return self._members

    cdef dict by_element(self):
        cdef Member each
        if self._by_element is None:
            self._by_element = {each.element: each for each in self.named().values()}
        return self._by_element

    cdef Shape of_item(self):
        if self._item is None:
            self._item = self.make_item()
        return self._item

    cdef Shape inner(self, object name):
        """Shape of a member, None for one the shape does not know."""
        cdef PyObject* hit = PyDict_GetItem(self.named(), name)
        return (<Member>hit).shape if hit is not NULL else self.rest

    cdef Shape below(self, str element):
        """The same by path element."""
        cdef PyObject* hit = PyDict_GetItem(self.by_element(), element)
        return (<Member>hit).shape if hit is not NULL else self.rest

    cdef object key_of(self, object item):
        """What an item's element depends on, None for what is not worth keeping or does not hash by content."""
        cdef tuple names = self.sorted_keys
        cdef PyObject* hit
        cdef list values
        if self.op == SET:
            return item if type(item) is str and PyUnicode_GET_LENGTH(item) <= LONGEST_KEPT else None
        if type(item) is not dict:
            return None
        values = []
        for name in names:
            hit = PyDict_GetItem(item, name)
            value = NOTHING if hit is NULL else <object>hit
            if type(value) is str:
                if PyUnicode_GET_LENGTH(value) > LONGEST_KEPT:
                    return None
            elif type(value) is not int and value is not NOTHING:
                return None
            values.append(value)
        return values[0] if PyList_GET_SIZE(values) == 1 else tuple(values)

    cpdef str element(self, object item):
        """Path element of an item; ItemError when it has none."""
        cdef PyObject* hit
        cdef str found
        key = self.key_of(item)
        if key is None:
            return self.identify(self, item)
        hit = PyDict_GetItem(self.known_items, key)
        if hit is not NULL:
            return <str>hit
        found = self.identify(self, item)
        if len(self.known_items) >= MOST_ITEMS:
            self.known_items.clear()
        self.known_items[key] = found
        return found


include "fieldset_walk.pxi"
include "fieldset_merge.pxi"
