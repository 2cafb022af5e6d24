"""Passes over JSON texts that build no tree: duplicate keys and depth on the way in, Go's spelling on the way out."""

from collections.abc import Callable

def duplicate_keys(body: bytes, max_depth: int) -> list[str]:
    """Paths (`spec.containers[0].name`) of keys that stand twice in one object, in order; empty for almost every body.

    At most 100, each once. Raises ValueError when nesting exceeds `max_depth`. The body need not be valid JSON: the
    decoder proper says that.
    """

def inspect(body: bytes, max_depth: int) -> tuple[list[str], bool]:
    """`duplicate_keys`, and whether a number has an exponent or enough digits to fall outside of 64 bits."""

def decode_key(raw: bytes) -> str:
    """The text of a key as it stands between its quotes, escapes resolved."""

def go_style(text: bytes, number: Callable[[float], bytes]) -> bytes:
    """An encoder's JSON as Go spells it: `<`, `>`, `&`, U+2028, U+2029, backspace and form feed escaped by number, and
    every number with a fraction or exponent written by `number`. Returns `text` itself when nothing differs.
    """
