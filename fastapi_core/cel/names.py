"""Names of properties as expressions spell them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

RESERVED: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)

_NAME: Final = re.compile(r"[A-Za-z_./\-][A-Za-z0-9_./\-]*", re.ASCII)
_SPECIAL: Final = re.compile(r"__|[./\-]")
_WORDS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__[^_]+__")
_BACK: Final = {word: plain for plain, word in _WORDS.items()}
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)


@lru_cache(4096)
def escape(name: str) -> str | None:
    """The name in expressions; None when no expression can name the property."""
    if not _NAME.fullmatch(name):
        return None
    if name in RESERVED:
        return f"__{name}__"
    return _SPECIAL.sub(lambda match: _WORDS[match.group()], name)


@lru_cache(4096)
def unescape(name: str) -> str | None:
    """The name of the property; None when the escapes in it are none."""
    bad = False

    def plain(match: re.Match[str]) -> str:
        nonlocal bad
        word = match.group()
        inner = word[2:-2]
        if word in _BACK:
            return _BACK[word]
        if inner in RESERVED and word == name:
            return inner
        bad = True
        return ""

    result = _ESCAPED.sub(plain, name)
    return None if bad else result


def is_identifier(name: str) -> bool:
    """Whether a variable may have this name."""
    return bool(_IDENTIFIER.fullmatch(name)) and name not in RESERVED
