# Layout of CachedObject for the modules that loop over many of them.

cimport cython


@cython.final
cdef class CachedObject:
    cdef readonly str key
    cdef readonly str namespace
    cdef readonly str name
    cdef readonly long long revision
    cdef readonly long long created
    cdef readonly bytes head
    cdef readonly bytes body
    cdef dict _labels
    cdef dict _memo
    # Offsets in `body`: the `{` of metadata, and the range of the resource version member with its comma.
    cdef Py_ssize_t _meta
    cdef Py_ssize_t _cut
    cdef Py_ssize_t _cut_end

    cdef dict label_map(self)
    cdef dict memo_map(self)
