"""Plans of protobuf messages (see `fastapi_core/codec/protobuf.py`)."""

from collections.abc import Callable, Iterable
from typing import Any, Final, final

STRING: Final[int]
BOOL: Final[int]
INT32: Final[int]
INT64: Final[int]
DOUBLE: Final[int]
BYTES: Final[int]
OCTETS: Final[int]
STRUCT: Final[int]
INLINE: Final[int]
TIME: Final[int]
MICROTIME: Final[int]
DURATION: Final[int]
QUANTITY: Final[int]
INT_OR_STRING: Final[int]
RAW: Final[int]
STRINGS: Final[int]
SCHEMA_OR_BOOL: Final[int]
SCHEMA_OR_SCHEMAS: Final[int]
SCHEMA_OR_STRINGS: Final[int]
SINGLE: Final[int]
LIST: Final[int]
MAP: Final[int]

@final
class Member:
    """One field of a message: its JSON name, number, and how its values are written.

    `pointer`: zero is written only when the tree has the member. `convert` reads and `revert` writes a value of a
    special form: of a duration nanoseconds to text and back, of RAW (bytes, levels of containers left) to a tree and
    back; of a time `revert` gives (seconds, microseconds) of a text of unusual form. `make` gives the message of a
    STRUCT, INLINE or schema when it is first needed.
    """

    @property
    def name(self) -> str: ...
    @property
    def number(self) -> int: ...
    def __init__(
        self,
        name: str,
        number: int,
        op: int,
        card: int = 0,
        pointer: bool = False,
        *,
        convert: Callable[..., Any] | None = None,
        revert: Callable[[Any], Any] | None = None,
        make: Callable[[], Message] | None = None,
    ) -> None: ...

@final
class Message:
    """One message type; ValueError when two members have one number."""

    @property
    def name(self) -> str: ...
    def __init__(self, name: str, members: Iterable[Member]) -> None: ...
