"""Protobuf messages of API types as plans, for `protoread` and `protowrite`.

A `Message` is one message type, a `Member` one field of it. They are made from the type tables by
`fastapi_core/codec/protobuf.py`, which also says what the rules are.
"""

cimport cython


cdef enum:
    MAX_NUMBER = 65535  # of a field: plans look numbers up in a table


@cython.final
cdef class Member:
    """One field of a message: its JSON name, number, and how its values are written.

    `pointer`: zero is written only when the tree has the member. `convert` of a duration or RAW reads (nanoseconds to
    text; bytes and levels left to tree), `revert` writes (text to nanoseconds; tree to bytes); of a time, `revert` gives
    seconds and microseconds of a text of unusual form. `make` gives the message of a STRUCT, INLINE or schema when it
    is first needed.
    """

    def __init__(
        self,
        str name not None,
        int number,
        int op,
        int card=SINGLE,
        bint pointer=False,
        *,
        object convert=None,
        object revert=None,
        object make=None,
    ):
        if not 0 < number <= MAX_NUMBER:
            raise ValueError(f"{name}: no field number: {number}")
        self.name = name
        self.number = number
        self.op = op
        self.card = card
        self.pointer = pointer
        self.convert = convert
        self.revert = revert
        self.make = make
        self._child = None

    cdef Message child(self):
        if self._child is None:
            self._child = <Message?>self.make()
        return self._child


@cython.final
cdef class Message:
    """One message type."""

    def __init__(self, str name not None, members):
        self.name = name
        self.members = tuple(sorted(members, key=_number))
        self.highest = self.members[-1].number if self.members else 0
        table = [None] * (self.highest + 1)
        for member in self.members:
            if table[member.number] is not None:
                raise ValueError(f"{name}: two fields have the number {member.number}")
            table[member.number] = <Member?>member
        self.by_number = tuple(table)
        self.zero = None


def _number(Member member):
    return member.number
