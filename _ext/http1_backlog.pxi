# What streams owe their clients: kept as the pieces producers gave, so that many streams wait with one copy of a frame.

cdef enum:
    PIECE_COST = 64            # bytes of memory beside a piece's own
    PLACE_COST = 16            # and for each stream that has it waiting
    STALLED_COST = 131072      # what the transport of a stream that is behind keeps for itself
    PUMPED = 65536             # bytes for one write of the backlog
    READS = 1                  # seconds within which a client that has taken something is only slow
    LARGE = 131072             # a piece above goes through the backlog even when nobody is behind


@cython.final
cdef class Debts:
    """What all streams of one server owe, a piece that several wait with counted once."""

    cdef Py_ssize_t limit      # 0: none
    cdef Py_ssize_t total
    cdef Py_ssize_t cuts
    cdef dict _holders         # address of a piece -> how many streams have it waiting
    cdef dict _behind          # writers whose clients are behind, longest first

    def __cinit__(self):
        self._holders = {}
        self._behind = {}

    cdef void _take(self, bytes piece) except *:
        cdef size_t key = <size_t><PyObject*>piece
        holders = self._holders.get(key)
        if holders is None:
            self.total += len(piece) + PIECE_COST
            self._holders[key] = 1
        else:
            self._holders[key] = holders + 1
        self.total += PLACE_COST

    cdef void _release(self, bytes piece) except *:
        cdef size_t key = <size_t><PyObject*>piece
        holders = self._holders[key]
        if holders == 1:
            self.total -= len(piece) + PIECE_COST
            del self._holders[key]
        else:
            self._holders[key] = holders - 1
        self.total -= PLACE_COST

    cdef void _joined(self, ChunkWriter writer) except *:
        if writer not in self._behind:
            self._behind[writer] = None
            writer._moved = _clock(CLOCK_MONOTONIC)
            self.total += STALLED_COST
            self._relieve()

    cdef void _left(self, ChunkWriter writer) except *:
        if writer in self._behind:
            del self._behind[writer]
            self.total -= STALLED_COST

    cdef void _relieve(self) except *:
        """Over the limit: cut those that owe most, first those past their first events that take nothing at all."""
        if self.limit == 0 or self.total <= self.limit:
            return
        for writer in sorted(self._behind, key=_most_owed):
            (<ChunkWriter>writer)._cut()
            self.cuts += 1
            if self.total <= self.limit:
                return


def _most_owed(ChunkWriter writer not None):
    return (writer._sources > 0, _clock(CLOCK_MONOTONIC) - writer._moved < READS, -writer._owed)
