"""Immutable path trie: literals, `{name}` for one segment, `{name...}` for the rest.

A pattern may end in `{/}`: then trailing slashes of the request path do not matter. Without it they do, and a pattern
that ends in `/` matches exactly that slash. An empty segment inside a path matches nothing but a rest, so no doubled
or encoded slash can turn one route into another.
"""

from types import GenericAlias

cimport cython

from fastapi_core._ext.reqinfo cimport unquote


@cython.final
@cython.freelist(32)
cdef class Match:
    """A route and what its parameters stand for."""

    cdef readonly object methods
    cdef readonly dict params

    @classmethod
    def __class_getitem__(cls, item):
        return GenericAlias(cls, item)


@cython.final
cdef class _Leaf:
    cdef dict methods
    cdef tuple names
    cdef bint any_slashes


@cython.final
cdef class _Node:
    cdef dict literals
    cdef _Node param
    cdef _Leaf leaf
    """The path ends here."""
    cdef _Leaf slash
    """The path ends here with exactly one slash."""
    cdef _Leaf rest

    def __cinit__(self):
        self.literals = {}


@cython.final
cdef class Router:
    """Built once from all routes, swapped as a whole; a literal wins over a parameter, a longer route over a rest."""

    cdef _Node _root
    cdef list _patterns

    def __init__(self, routes):
        cdef set patterns = set()
        self._root = _Node()
        for pattern, methods in routes:
            self._add(pattern, methods)
            patterns.add(pattern.removesuffix("{/}"))
        self._patterns = sorted(patterns)

    @classmethod
    def __class_getitem__(cls, item):
        return GenericAlias(cls, item)

    def paths(self):
        """Every registered pattern without its `{/}`, sorted."""
        return list(self._patterns)

    cdef int _add(self, str pattern, object methods) except -1:
        cdef bint any_slashes = pattern.endswith("{/}")
        cdef str body = pattern[:-3] if any_slashes else pattern
        cdef _Node node = self._root
        cdef list names = []
        cdef list segments
        cdef str segment
        cdef Py_ssize_t i
        if not body.startswith("/") or (any_slashes and body == "/"):
            raise ValueError(f"a pattern begins with a slash: {pattern!r}")
        segments = body[1:].split("/") if body != "/" else []
        for i, segment in enumerate(segments):
            if segment == "" and i == len(segments) - 1 and i > 0:
                node.slash = self._leaf(node.slash, pattern, methods, names, False)
                return 0
            if segment[:1] != "{":
                if segment == "" or "{" in segment or "}" in segment:
                    raise ValueError(f"bad segment {segment!r} in pattern {pattern!r}")
                if segment not in node.literals:
                    node.literals[segment] = _Node()
                node = node.literals[segment]
            elif segment.endswith("...}"):
                if i != len(segments) - 1 or any_slashes or not segment[1:-4].isidentifier():
                    raise ValueError(f"bad rest in pattern {pattern!r}")
                names.append(segment[1:-4])
                node.rest = self._leaf(node.rest, pattern, methods, names, False)
                return 0
            else:
                if not segment.endswith("}") or not segment[1:-1].isidentifier():
                    raise ValueError(f"bad parameter {segment!r} in pattern {pattern!r}")
                names.append(segment[1:-1])
                if node.param is None:
                    node.param = _Node()
                node = node.param
        node.leaf = self._leaf(node.leaf, pattern, methods, names, any_slashes)
        return 0

    cdef _Leaf _leaf(self, _Leaf known, str pattern, object methods, list names, bint any_slashes):
        """A new leaf, or the known one with the methods of one more route for the same path."""
        cdef _Leaf leaf
        if len(set(names)) != len(names):
            raise ValueError(f"a parameter appears twice in pattern {pattern!r}")
        leaf = _Leaf()
        leaf.names = tuple(names)
        leaf.any_slashes = any_slashes
        leaf.methods = dict(methods)
        if known is not None:
            if known.names != leaf.names or known.any_slashes != any_slashes:
                raise ValueError(f"pattern {pattern!r} contradicts an earlier one")
            if not known.methods.keys().isdisjoint(leaf.methods.keys()):
                raise ValueError(f"pattern {pattern!r} is given twice for a method")
            leaf.methods = {**known.methods, **leaf.methods}
        return leaf

    def lookup(self, str path not None):
        """Route of a raw (still percent-encoded) path, or None."""
        cdef Py_ssize_t size = len(path)
        cdef Py_ssize_t end = size
        cdef str body = path
        cdef list values = []
        cdef list segments
        cdef _Leaf leaf
        cdef Match match
        cdef Py_ssize_t i
        if size == 0 or path[0] != u'/':
            return None
        # Only slashes that were sent as slashes are trailing; an encoded one stays part of the path.
        while end > 1 and path[end - 1] == u'/':
            end -= 1
        if end != size:
            body = path[:end]
        if u'%' in body:
            body = unquote(body, False)
            if body is None:
                return None
        if end == 1:
            leaf = self._root.leaf if size == 1 else None
            if leaf is None:
                leaf = _rest(self._root, ["", ""], 1, size - 1, values)
        else:
            # The first segment is the empty one before the leading slash.
            segments = body.split("/")
            leaf = _descend(self._root, segments, 1, size - end, values)
        if leaf is None:
            return None
        match = Match.__new__(Match)
        match.methods = leaf.methods
        match.params = {}
        for i in range(len(values)):
            match.params[leaf.names[i]] = values[i]
        return match


cdef _Leaf _descend(_Node node, list segments, Py_ssize_t at, Py_ssize_t slashes, list values):
    """The leaf for the segments from `at` on; the values of its parameters are then appended to `values`."""
    cdef Py_ssize_t count = len(segments)
    cdef Py_ssize_t mark
    cdef _Leaf leaf
    cdef _Node child
    cdef str segment
    while at < count:
        segment = <str>segments[at]
        at += 1
        child = node.literals.get(segment)
        if child is None:
            child = node.param
            if child is None or not segment:
                return _rest(node, segments, at - 1, slashes, values)
            if node.rest is None:
                values.append(segment)
                node = child
                continue
        elif node.param is None and node.rest is None:
            node = child
            continue
        # Several continuations: the most specific one that leads to a route wins.
        mark = len(values)
        if child is not node.param:
            leaf = _descend(child, segments, at, slashes, values)
            if leaf is not None:
                return leaf
            del values[mark:]
            child = node.param
        if child is not None:
            values.append(segment)
            leaf = _descend(child, segments, at, slashes, values)
            if leaf is not None:
                return leaf
            del values[mark:]
        return _rest(node, segments, at - 1, slashes, values)
    if node.leaf is not None and (slashes == 0 or node.leaf.any_slashes):
        return node.leaf
    if slashes == 1 and node.slash is not None:
        return node.slash
    if slashes > 0 and node.rest is not None:
        values.append("/" * (slashes - 1))
        return node.rest
    return None


cdef _Leaf _rest(_Node node, list segments, Py_ssize_t at, Py_ssize_t slashes, list values):
    """The rest route of a node for the segments from `at` on, or None."""
    if node.rest is not None:
        values.append("/".join(segments[at:]) + "/" * slashes)
    return node.rest
