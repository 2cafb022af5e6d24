# Objects merged with, and freed of, what an applied configuration says, along their shape.


cpdef dict merge(Shape shape, dict current, dict config):
    """The object with everything the configuration says: members merged, list items matched, single values replaced."""
    cdef Py_ssize_t pos = 0
    cdef PyObject* name
    cdef PyObject* value
    cdef PyObject* known
    cdef Shape inner
    cdef dict out = None
    enter(" in a merge of objects")
    try:
        while PyDict_Next(config, &pos, &name, &value):
            known = PyDict_GetItem(current, <object>name)
            if known is value:
                continue
            result = <object>value
            if known is not NULL:
                inner = shape.inner(<object>name)
                if inner is not None:
                    result = merged(inner, <object>known, <object>value)
                    if result is <object>known:
                        continue
            if out is None:
                out = current.copy()
            PyDict_SetItem(out, <object>name, result)
    finally:
        Py_LeaveRecursiveCall()
    return current if out is None else out


cdef object merged(Shape shape, object known, object value):
    cdef int op = shape.op
    if op == DEDUCED:
        op = OBJECT if type(known if value is None else value) is dict else LEAF_KIND
    if op == LEAF_KIND or not known:
        return known if identical(known, value) else value
    if op == OBJECT:
        if type(known) is not dict:
            return value
        if not value:
            return known
        return merge(shape, <dict>known, <dict?>value)
    if type(known) is not list:
        return value
    return merge_lists(shape, <list>known, <list?>value) if value else known


cdef bint identical(object left, object right) except -1:
    """Equality down to the classes of numbers: 1.0 takes the place of 1."""
    cdef Py_ssize_t pos = 0
    cdef Py_ssize_t i
    cdef PyObject* name
    cdef PyObject* value
    cdef PyObject* other
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if type(left) is dict:
        if len(<dict>left) != len(<dict>right):
            return False
        enter(" in a comparison of values")
        try:
            while PyDict_Next(<dict>left, &pos, &name, &value):
                other = PyDict_GetItem(<dict>right, <object>name)
                if other is NULL or not identical(<object>value, <object>other):
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
                if not identical((<list>left)[i], (<list>right)[i]):
                    return False
        finally:
            Py_LeaveRecursiveCall()
        return True
    return left == right


@cython.final
cdef class _Matching:
    """Two lists of items on the way to one.

    The order is the configuration's; items it does not name stay in front of the named item they preceded. Items the
    object has more than once are not merged: the configuration's takes their place.
    """

    cdef Shape inner
    cdef list known
    cdef list elements
    cdef list current
    cdef dict wanted
    cdef dict single
    cdef set done
    cdef list out
    cdef Py_ssize_t next_shared

    def __cinit__(self, Shape shape not None, list known not None, list given not None):
        cdef str element
        self.inner = shape.of_item()
        self.known = known
        self.elements = [shape.element(item) for item in given]
        self.wanted = dict(zip(self.elements, given))
        self.current = [shape.element(item) for item in known]
        self.single = {}
        for element, item in zip(self.current, known):
            self.single[element] = None if element in self.single else item
        self.done = set()
        self.out = []
        self.next_shared = -1

    cdef str shared(self):
        """The next element of the configuration that the object has as well, None at the end."""
        self.next_shared += 1
        while self.next_shared < PyList_GET_SIZE(self.elements):
            if self.elements[self.next_shared] in self.single:
                return <str>self.elements[self.next_shared]
            self.next_shared += 1
        return None

    cdef int take(self, str element) except -1:
        before, item = self.single.get(element), self.wanted[element]
        self.out.append(item if before is None else merged(self.inner, before, item))
        self.done.add(element)
        return 0

    cdef list run(self):
        cdef str element
        cdef str upcoming = self.shared()
        cdef Py_ssize_t left = 0
        cdef Py_ssize_t right = 0
        cdef Py_ssize_t have = PyList_GET_SIZE(self.current)
        cdef Py_ssize_t want = PyList_GET_SIZE(self.elements)
        while left < have or right < want:
            if left < have:
                element = <str>self.current[left]
                if element not in self.wanted:
                    self.out.append(self.known[left])
                    left += 1
                    continue
                if right < want:
                    if element == <str>self.elements[right]:
                        self.take(element)
                        left += 1
                        right += 1
                        upcoming = self.shared()
                        continue
                    if upcoming is not None and upcoming != element:
                        left += 1
                        continue
                if element in self.done:
                    left += 1
            if right < want:
                element = <str>self.elements[right]
                self.take(element)
                right += 1
                if upcoming is not None and upcoming == element:
                    upcoming = self.shared()
        return self.out


cdef list merge_lists(Shape shape, list known, list given):
    cdef list out = pairwise(shape, known, given)
    cdef Py_ssize_t i
    if out is None:
        out = _Matching(shape, known, given).run()
    if PyList_GET_SIZE(out) != PyList_GET_SIZE(known):
        return out
    for i in range(PyList_GET_SIZE(out)):
        if out[i] is not known[i]:
            return out
    return known


cdef list pairwise(Shape shape, list known, list given):
    """Lists of the same items in the same order, each once, as they mostly are; None for others."""
    cdef Py_ssize_t i
    cdef Py_ssize_t count = PyList_GET_SIZE(given)
    cdef Shape inner = shape.of_item()
    cdef set seen = None
    cdef list out
    cdef str element
    if PyList_GET_SIZE(known) != count:
        return None
    for i in range(count):
        element = shape.element(given[i])
        if element != shape.element(known[i]):
            return None
        if count > 1:
            if seen is None:
                seen = set()
            elif element in seen:
                return None
            seen.add(element)
    return [merged(inner, known[i], given[i]) for i in range(count)]


# Removing


cpdef dict remove(Shape shape, dict tree, dict gone):
    """The object without the values at some paths. An object or list that loses everything stays, empty."""
    cdef Py_ssize_t pos = 0
    cdef PyObject* name
    cdef PyObject* value
    cdef PyObject* node
    cdef Shape inner
    cdef dict out = None
    enter(" in the removal of paths")
    try:
        while PyDict_Next(tree, &pos, &name, &value):
            node = PyDict_GetItem(gone, field_of(<str>name))
            if node is NULL:
                continue
            if member(<dict?>node):
                if out is None:
                    out = tree.copy()
                del out[<object>name]
                continue
            inner = shape.inner(<object>name)
            if inner is None:
                continue
            left = removed_from(inner, <object>value, <dict>node)
            if left is not <object>value:
                if out is None:
                    out = tree.copy()
                PyDict_SetItem(out, <object>name, left)
    finally:
        Py_LeaveRecursiveCall()
    return tree if out is None else out


cdef object removed_from(Shape shape, object value, dict gone):
    cdef int op = shape.op
    cdef PyObject* node
    cdef list out
    if type(value) is not dict and type(value) is not list:
        return value
    if op == DEDUCED:
        op = OBJECT if type(value) is dict else LEAF_KIND
    if not value or op == LEAF_KIND:
        return type(value)()
    if op == OBJECT:
        return remove(shape, <dict>value, gone) if type(value) is dict else value
    if type(value) is not list:
        return value
    out = []
    for item in <list>value:
        node = PyDict_GetItem(gone, shape.element(item))
        if node is NULL:
            out.append(item)
        elif not member(<dict?>node):
            out.append(removed_from(shape.of_item(), item, <dict>node))
    return out


# Sets seen through a shape


def with_named(Shape shape not None, dict fields not None):
    """The set with every struct member on the way to a path of it; keys of maps are left as they are."""
    return named_within(shape, fields)


cdef dict named_within(Shape shape, dict fields):
    cdef Py_ssize_t pos = 0
    cdef PyObject* element
    cdef PyObject* node
    cdef PyObject* hit
    cdef Shape inner
    cdef bint named
    cdef dict below
    cdef dict out = None
    while PyDict_Next(fields, &pos, &element, &node):
        if not <dict?>node:
            continue
        inner = None
        named = False
        if shape is not None:
            if is_item(<object>element):
                if shape.op == KEYED and PyUnicode_READ_CHAR(<object>element, 0) == c"k":
                    inner = shape.of_item()
            else:
                hit = PyDict_GetItem(shape.by_element(), <object>element)
                named = hit is not NULL
                inner = (<Member>hit).shape if named else shape.rest
        below = named_within(inner, <dict>node)
        if named:
            below = with_self(below)
        if below is not <dict>node:
            if out is None:
                out = fields.copy()
            PyDict_SetItem(out, <object>element, below)
    return fields if out is None else out


cpdef dict reconciled(Shape shape, dict fields):
    """The set after the type has changed: who owned parts of what is one value now owns that value."""
    cdef Py_ssize_t pos = 0
    cdef PyObject* element
    cdef PyObject* node
    cdef Shape inner
    cdef dict rest
    cdef dict out = None
    while PyDict_Next(fields, &pos, &element, &node):
        if not <dict?>node:
            continue
        inner = None
        if not is_item(<object>element):
            inner = shape.below(<str>element)
        elif shape.op == KEYED:
            inner = shape.of_item()
        if inner is None or inner.op == DEDUCED:
            continue
        if inner.op == LEAF_KIND:
            if inner.scalar != "object" and inner.scalar != "list":
                continue
            rest = EMPTY
        else:
            rest = reconciled(inner, <dict>node)
            if rest is <dict>node:
                continue
        if out is None:
            out = fields.copy()
        PyDict_SetItem(out, <object>element, rest)
    return fields if out is None else out


# Conformity


cpdef bint conforms(Shape shape, dict tree) except -1:
    """Whether an applied configuration fits its shape; `patch/conform.py` finds the words when it does not."""
    cdef Py_ssize_t pos = 0
    cdef PyObject* name
    cdef PyObject* value
    cdef Shape inner
    enter(" in a configuration")
    try:
        while PyDict_Next(tree, &pos, &name, &value):
            inner = shape.inner(<object>name)
            if inner is None or not value_fits(inner, <object>value):
                return False
    finally:
        Py_LeaveRecursiveCall()
    return True


cdef bint value_fits(Shape shape, object value) except -1:
    if value is None or shape.op == DEDUCED:
        return True
    if shape.op == LEAF_KIND:
        return leaf_fits(shape.code, value) and (shape.make_item is None or content_fits(shape, value))
    if shape.op == OBJECT:
        return type(value) is dict and conforms(shape, <dict>value)
    return type(value) is list and list_fits(shape, <list>value)


cdef bint content_fits(Shape shape, object value) except -1:
    """The same inside of an object or list that is owned as a whole."""
    cdef Shape inner = shape.of_item()
    if type(value) is dict:
        return conforms(inner, <dict>value)
    for item in <list?>value:
        if not value_fits(inner, item):
            return False
    return True


cdef bint leaf_fits(int code, object value):
    if code == 1:
        return type(value) is str
    if code == 2:
        return is_number(value)
    if code == 3:
        return type(value) is bool
    if code == 4:
        return type(value) is str or is_number(value) or type(value) is bool
    if code == 5:
        return type(value) is dict
    return code == 0 or type(value) is list


cdef bint list_fits(Shape shape, list value) except -1:
    cdef set seen = set()
    cdef Shape inner = shape.of_item()
    cdef str element
    for item in value:
        try:
            element = shape.element(item)
        except ItemError:
            return False
        if element in seen or not value_fits(inner, item):
            return False
        seen.add(element)
    return True
