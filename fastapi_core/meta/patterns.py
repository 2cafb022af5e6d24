"""Regular expressions that are compiled when they are first needed: most servers never need most of them, and compiling
all at the start costs more than opening the store."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, AnyStr, Generic


class Pattern(Generic[AnyStr]):
    """A pattern of `re`, with what is used of its methods; they are those of `re` once one of them was asked for."""

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self.pattern: AnyStr = pattern
        self._flags = flags

    if TYPE_CHECKING:

        def match(self, text: AnyStr, at: int = 0) -> re.Match[AnyStr] | None: ...

        def fullmatch(self, text: AnyStr, at: int = 0, end: int = sys.maxsize) -> re.Match[AnyStr] | None: ...

        def search(self, text: AnyStr) -> re.Match[AnyStr] | None: ...

        def finditer(self, text: AnyStr) -> Iterator[re.Match[AnyStr]]: ...

        def findall(self, text: AnyStr) -> list[Any]: ...

        def sub(self, replacement: AnyStr | Callable[[re.Match[AnyStr]], AnyStr], text: AnyStr) -> AnyStr: ...

    else:

        def __getattr__(self, name: str) -> Any:
            if name not in _METHODS:
                raise AttributeError(name)
            compiled = re.compile(self.pattern, self._flags)
            self.__dict__.update({method: getattr(compiled, method) for method in _METHODS})
            return self.__dict__[name]


_METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub")
