# Walks over objects: the paths an object has, and those two objects differ in.
#
# Members the shape does not know are not looked at. Trees are the normalised ones the server works on; struct members
# the reference would print although they are unset may be missing (see `Member`).


@cython.final
cdef class _Repeated:
    """Items of a list that have the same element."""

    cdef list items

    def __cinit__(self):
        self.items = []


cdef list sorted_names(dict tree):
    cdef list names = list(tree)
    if PyList_GET_SIZE(names) > 1:
        names.sort()
    return names


cdef object misfit(object value):
    return ItemError(f"an object or list was expected, not {type(value).__name__}")


cdef dict by_element(Shape shape, list items):
    """Items by path element, a `_Repeated` for elements given more than once."""
    cdef dict found = {}
    cdef PyObject* hit
    cdef _Repeated repeated
    cdef str element
    for item in items:
        element = shape.element(item)
        hit = PyDict_GetItem(found, element)
        if hit is NULL:
            found[element] = item
        elif type(<object>hit) is _Repeated:
            (<_Repeated>hit).items.append(item)
        else:
            repeated = _Repeated()
            repeated.items.append(<object>hit)
            repeated.items.append(item)
            found[element] = repeated
    return found


# Paths of a whole value


cpdef dict field_set(Shape shape, dict tree):
    """The paths of an object as an applied configuration owns them: leaves, items and empty objects."""
    cdef dict named = shape.named()
    cdef PyObject* hit
    cdef Member each
    cdef dict out = {}
    cdef dict below
    enter(" in the paths of an object")
    try:
        for name in sorted_names(tree):
            value = tree[name]
            hit = PyDict_GetItem(named, name)
            if hit is not NULL:
                each = <Member>hit
                below = paths_below(each.shape, value)
                if value is None or (not value and type(value) is dict):
                    PyDict_SetItem(out, each.element, EMPTY)
                elif below is not None:
                    PyDict_SetItem(out, each.element, below)
            elif shape.rest is not None and name not in shape.hidden:
                PyDict_SetItem(out, field_of(name), with_self(paths_below(shape.rest, value)))
    finally:
        Py_LeaveRecursiveCall()
    return out


cdef dict paths_below(Shape shape, object value):
    """Node of a value without its own membership; None for no paths at all."""
    cdef int op = shape.op
    cdef dict out
    if op == DEDUCED:
        op = OBJECT if type(value) is dict else LEAF_KIND
    if op == LEAF_KIND:
        return EMPTY
    if not value:
        return None
    if op == OBJECT:
        if type(value) is not dict:
            raise misfit(value)
        return field_set(shape, <dict>value) or None
    if type(value) is not list:
        raise misfit(value)
    out = {}
    for element, item in by_element(shape, <list>value).items():
        out[element] = EMPTY if type(item) is _Repeated else with_self(paths_below(shape.of_item(), item))
    return ordered(out)


cpdef bint names_just(Shape shape, dict tree, dict fields) except -1:
    """Whether `field_set(shape, tree)` equals `fields`, found without making it: what is applied again names what it
    named before. Not found for lists that repeat an item."""
    return names(shape, tree, fields, 0)


cdef bint names(Shape shape, dict tree, dict fields, Py_ssize_t count) except -1:
    """The same with `count` elements of `fields` accounted for already."""
    cdef Py_ssize_t pos = 0
    cdef PyObject* name
    cdef PyObject* value
    cdef PyObject* hit
    cdef PyObject* node
    cdef Member each
    cdef dict named = shape.named()
    enter(" in the paths of an object")
    try:
        while PyDict_Next(tree, &pos, &name, &value):
            hit = PyDict_GetItem(named, <object>name)
            if hit is not NULL:
                each = <Member>hit
                node = PyDict_GetItem(fields, each.element)
                if <object>value is None or (type(<object>value) is dict and not <dict>value):
                    if node is NULL or <object>node:
                        return False
                elif not names_below(each.shape, <object>value, node, False):
                    return False
                if node is not NULL:
                    count += 1
            elif shape.rest is not None and <object>name not in shape.hidden:
                if not names_below(shape.rest, <object>value, PyDict_GetItem(fields, field_of(<str>name)), True):
                    return False
                count += 1
    finally:
        Py_LeaveRecursiveCall()
    return count == len(fields)


cdef bint names_below(Shape shape, object value, PyObject* node, bint itself) except -1:
    """Whether a node is that of a value (NULL: has none), `itself` being a member of the set too."""
    cdef int op = shape.op
    cdef Py_ssize_t count = itself
    cdef PyObject* below
    cdef Shape inner
    if node is NULL:
        return not itself and paths_below(shape, value) is None
    if type(<object>node) is not dict:
        return False
    if op == DEDUCED:
        op = OBJECT if type(value) is dict else LEAF_KIND
    if op == LEAF_KIND or not value:
        return not <dict>node and (itself or op == LEAF_KIND)
    if not <dict>node:
        return itself and paths_below(shape, value) is None
    if itself and PyDict_GetItem(<dict>node, DOT) is NULL:
        return False
    if op == OBJECT:
        if type(value) is not dict:
            raise misfit(value)
        return names(shape, <dict>value, <dict>node, count)
    if type(value) is not list:
        raise misfit(value)
    inner = shape.of_item()
    for item in <list>value:
        below = PyDict_GetItem(<dict>node, shape.element(item))
        if below is NULL or not names_below(inner, item, below, True):
            return False
        count += 1
    return count == len(<dict>node)


cdef dict whole(Shape shape, object value):
    """Node of a value that appears or goes as a whole: its own path and all below."""
    cdef int op = shape.op
    cdef dict out
    if op == LEAF_KIND or not value:
        return EMPTY
    if op == KEYED or op == SET:
        if type(value) is not list:
            raise misfit(value)
        return whole_list(shape, <list>value)
    if type(value) is not dict:
        if op == DEDUCED:
            return EMPTY
        raise misfit(value)
    enter(" in the paths of an object")
    try:
        out = whole_object(shape, <dict>value)
    finally:
        Py_LeaveRecursiveCall()
    return out if len(out) > 1 else EMPTY


cdef dict whole_object(Shape shape, dict value):
    cdef dict named = shape.named()
    cdef PyObject* hit
    cdef Member each
    cdef dict out = {DOT: EMPTY}
    if shape.plain_map:
        for name in sorted_names(value):
            PyDict_SetItem(out, field_of(name), EMPTY)
        return out
    for name in sorted_names(value):
        hit = PyDict_GetItem(named, name)
        if hit is not NULL:
            each = <Member>hit
            if each.shape.op == LEAF_KIND:
                PyDict_SetItem(out, each.element, EMPTY)
            else:
                PyDict_SetItem(out, each.element, whole(each.shape, value[name]))
        elif shape.rest is not None and name not in shape.hidden:
            PyDict_SetItem(out, field_of(name), whole(shape.rest, value[name]))
    return out


cdef dict whole_list(Shape shape, list value):
    cdef dict out = {DOT: EMPTY}
    cdef Shape inner = shape.of_item()
    for element, item in by_element(shape, value).items():
        out[element] = EMPTY if type(item) is _Repeated else whole(inner, item)
    return ordered(out) if len(out) > 2 else out


# Equality


cpdef bint same(object left, object right) except -1:
    """Equality of JSON values, to which true is not 1."""
    cdef Py_ssize_t pos = 0
    cdef Py_ssize_t i
    cdef PyObject* name
    cdef PyObject* value
    cdef PyObject* other
    if left is right:
        return True
    if type(left) is not type(right):
        return is_number(left) and is_number(right) and left == right
    if type(left) is str:
        return left == right
    if type(left) is dict:
        if len(<dict>left) != len(<dict>right):
            return False
        enter(" in a comparison of values")
        try:
            while PyDict_Next(<dict>left, &pos, &name, &value):
                other = PyDict_GetItem(<dict>right, <object>name)
                if other is NULL or not same(<object>value, <object>other):
                    return False
        finally:
            Py_LeaveRecursiveCall()
        return True
    if type(left) is list:
        if PyList_GET_SIZE(left) != PyList_GET_SIZE(right):
            return False
        enter(" in a comparison of values")
        try:
            for i in range(PyList_GET_SIZE(left)):
                if not same((<list>left)[i], (<list>right)[i]):
                    return False
        finally:
            Py_LeaveRecursiveCall()
        return True
    return left == right


cdef inline bint is_number(object value) noexcept:
    return type(value) is int or type(value) is float


# Differences


def compare(Shape shape not None, dict old not None, dict new not None):
    """(paths added or changed, paths removed) on the way from one object to another."""
    cdef dict touched = {}
    cdef dict removed = {}
    members(shape, old, new, touched, removed)
    return touched, removed


cdef list differing(dict old, dict new):
    """Names of the members that two objects may differ in, sorted."""
    cdef Py_ssize_t pos = 0
    cdef PyObject* name
    cdef PyObject* after
    cdef PyObject* before
    cdef Py_ssize_t common = 0
    cdef list names
    if not old:
        return sorted_names(new)
    names = []
    while PyDict_Next(new, &pos, &name, &after):
        before = PyDict_GetItem(old, <object>name)
        if before is not NULL:
            common += 1
            if before is after or simply_equal(<object>before, <object>after):
                continue
        names.append(<object>name)
    if common < len(old):
        pos = 0
        while PyDict_Next(old, &pos, &name, NULL):
            if PyDict_GetItem(new, <object>name) is NULL:
                names.append(<object>name)
    if PyList_GET_SIZE(names) > 1:
        names.sort()
    return names


cdef inline bint simply_equal(object before, object after) except -1:
    """Whether two values are equal scalars of the same class."""
    if type(before) is not type(after) or type(before) is dict or type(before) is list:
        return False
    return before == after


cdef int members(Shape shape, dict old, dict new, dict touched, dict removed) except -1:
    cdef dict named = shape.named()
    cdef PyObject* hit
    cdef PyObject* found
    cdef Member each
    cdef Shape inner
    cdef str element
    enter(" in a comparison of objects")
    try:
        for name in differing(old, new):
            found = PyDict_GetItem(old, name)
            before = NOTHING if found is NULL else <object>found
            found = PyDict_GetItem(new, name)
            after = NOTHING if found is NULL else <object>found
            hit = PyDict_GetItem(named, name)
            if hit is not NULL:
                each = <Member>hit
                element, inner = each.element, each.shape
                if before is NOTHING:
                    before = each.implied
                elif after is NOTHING:
                    after = each.implied
            elif shape.rest is not None and name not in shape.hidden:
                element, inner = field_of(name), shape.rest
            else:
                continue
            changes(inner, before, after, element, touched, removed)
    finally:
        Py_LeaveRecursiveCall()
    return 0


cdef int changes(Shape shape, object before, object after, str element, dict touched, dict removed) except -1:
    """Put what a value gained or changed, and what it lost, under its element; nothing for nothing."""
    cdef int op = shape.op
    cdef dict gained, lost
    if before is after:
        return 0
    if before is NOTHING:
        PyDict_SetItem(touched, element, whole(shape, after))
        return 0
    if after is NOTHING:
        PyDict_SetItem(removed, element, whole(shape, before))
        return 0
    if op == DEDUCED:
        return changes_deduced(shape, before, after, element, touched, removed)
    if op == OBJECT and type(before) is dict and type(after) is dict:
        if before or after:
            gained, lost = {}, {}
            members(shape, <dict>before, <dict>after, gained, lost)
            put(element, gained, lost, touched, removed)
        return 0
    if same(before, after):
        return 0
    if op == LEAF_KIND or not (before or after):
        PyDict_SetItem(touched, element, EMPTY)
        return 0
    check_fit(op, before)
    check_fit(op, after)
    gained, lost = {}, {}
    if op == OBJECT:
        members(shape, before or EMPTY, after or EMPTY, gained, lost)
    else:
        items(shape, before, after, gained, lost)
        gained, lost = ordered(gained), ordered(lost)
    put(element, gained, lost, touched, removed)
    return 0


cdef int check_fit(int op, object value) except -1:
    if value is not None and type(value) is not (dict if op == OBJECT else list):
        raise misfit(value)
    return 0


cdef int put(str element, dict gained, dict lost, dict touched, dict removed) except -1:
    if gained:
        PyDict_SetItem(touched, element, gained)
    if lost:
        PyDict_SetItem(removed, element, lost)
    return 0


cdef int changes_deduced(
    Shape shape, object before, object after, str element, dict touched, dict removed
) except -1:
    """Values of unknown shape: objects are taken apart, a change of kind replaces one by the other."""
    cdef bint was = type(before) is dict
    cdef bint now = type(after) is dict
    cdef dict gained, lost
    if not (was or now) or not (before or after):
        if not same(before, after):
            PyDict_SetItem(touched, element, EMPTY)
        return 0
    gained, lost = {}, {}
    members(shape, before if was else EMPTY, after if now else EMPTY, gained, lost)
    if not (was and now) and before is not None and after is not None:
        PyDict_SetItem(touched, element, with_self(gained))
        gained = EMPTY
    return put(element, gained, lost, touched, removed)


cdef int items(Shape shape, list before, list after, dict touched, dict removed) except -1:
    """Differences of two lists with identifiable items. Items given repeatedly count as one value."""
    cdef dict old = by_element(shape, before) if before else EMPTY
    cdef dict new = by_element(shape, after) if after else EMPTY
    cdef Shape inner = shape.of_item()
    cdef str element
    cdef bint more_before, more_after
    for element in [*old, *(element for element in new if element not in old)]:
        was, now = old.get(element, NOTHING), new.get(element, NOTHING)
        more_before, more_after = type(was) is _Repeated, type(now) is _Repeated
        if not more_before and not more_after:
            changes(inner, was, now, element, touched, removed)
        elif more_before and more_after:
            if (<_Repeated>was).items != (<_Repeated>now).items:
                touched[element] = EMPTY
        elif more_before:
            if now is not NOTHING:
                touched[element] = whole(inner, now)
            removed[element] = EMPTY
        else:
            touched[element] = EMPTY
            if was is not NOTHING:
                removed[element] = whole(inner, was)
    return 0
