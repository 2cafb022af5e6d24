"""Documents as `sigs.k8s.io/yaml` prints them, which is as libyaml does: keys sorted the natural way (`a2` before `a10`),
texts quoted that would be read as something else, long lines folded.

libyaml takes an event for every scalar, which costs more than most scalars deserve: structure and short texts are put
together here, and libyaml is asked for texts that may be folded, once each, and for documents with unusual keys.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from fastapi_core.codec import yaml_scalars as scalars

#: libyaml's, twice as fast as PyYAML's own, which stands in where that was built without.
_Emitter: Any = getattr(getattr(yaml, "cyaml", None), "CEmitter", yaml.SafeDumper)
_WIDTH: Final = 80
_DEEPEST: Final = 60
"""Indentation above which libyaml prints the document: folded texts are hard to place there."""
_LONGEST_KEY: Final = 100
_SIMPLE: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(:[A-Za-z0-9_./-]+)*", re.ASCII)
_KINDS: Final = {c: "a" if chr(c).isalpha() else "0" if chr(c).isdigit() else chr(c) for c in range(128)}


class _Unusual(Exception):  # noqa: N818 - no failure
    """The document is for libyaml as a whole."""


def dump(tree: Any) -> bytes:
    """A document with sorted keys and two spaces of indentation, ending in a newline."""
    if not tree or not isinstance(tree, dict | list | tuple):
        return emitted(tree)
    try:
        return _printed(tree).encode()
    except _Unusual:
        return emitted(tree)


def _printed(tree: Any) -> str:
    out: list[str] = []
    # (what the line begins with, its head, where children stand, the value) of what is still to be printed
    todo: list[tuple[str, str, int, Any]] = []
    _open(todo, "", 0, tree)
    while todo:
        lead, head, indent, value = todo.pop()
        kind = type(value)
        if kind is str:
            out.append(f"{lead}{head} {_text(value, head, indent)}\n")
        elif kind is dict or kind is list or kind is tuple:
            if not value:
                out.append(f"{lead}{head} {'{}' if kind is dict else '[]'}\n")
            elif head == "-":
                out.append(f"{lead}- ")
                _open(todo, "", indent + 2, value)
            else:
                out.append(f"{lead}{head}\n")
                inner = indent + 2 if kind is dict else indent
                _open(todo, " " * inner, inner, value)
        else:
            out.append(f"{lead}{head} {_literal(value)}\n")
    return "".join(out)


def _open(todo: list[tuple[str, str, int, Any]], lead: str, indent: int, value: Any) -> None:
    """Put the children of a collection on the stack; the first one's line has begun with `lead`."""
    if indent > _DEEPEST:
        raise _Unusual
    space = " " * indent
    if isinstance(value, dict):
        children = [(space, _key(key), indent, value[key]) for key in sorted_keys(value)]
    else:
        children = [(space, "-", indent, item) for item in value]
    children[0] = (lead, *children[0][1:])
    children.reverse()
    todo += children


@functools.lru_cache(4096)
def _key(key: str) -> str:
    """A key with its colon."""
    if len(key) > _LONGEST_KEY:
        raise _Unusual
    if _SIMPLE.fullmatch(key) and scalars.plain_is_text(key):
        return key + ":"
    printed = emitted({key: 1}).decode()
    if not printed.endswith(": 1\n") or printed.startswith("?") or printed.count("\n") != 1:
        raise _Unusual
    return printed[:-3]


def _text(text: str, head: str, indent: int) -> str:
    if len(text) < _WIDTH:
        short = _short(text)
        if short is not None and indent + len(head) + 1 + len(short) <= _WIDTH:
            return short
    elif " " not in text and len(text) < 4096 and _SIMPLE.fullmatch(text):
        return text
    return _placed(text, head, indent)


@functools.lru_cache(4096)
def _short(text: str) -> str | None:
    """A text that fits on its line, wherever that is; None when that depends on the place."""
    if _SIMPLE.fullmatch(text) and scalars.plain_is_text(text):
        return text
    if "\n" in text:
        return None
    printed = emitted([text]).decode()
    return printed[2:-1] if printed.startswith("- ") and printed.count("\n") == 1 else None


def _placed(text: str, head: str, indent: int) -> str:
    """A text as libyaml prints it in this place, for what goes before decides where lines are folded."""
    nested: Any = {"a": [text]} if head == "-" else {"a" * (len(head) - 1): text}
    outer = indent // 2
    for _ in range(outer):
        nested = {"a": nested}
    lines = emitted(nested).decode()
    for _ in range(outer + (head == "-")):
        lines = lines[lines.index("\n") + 1 :]
    return lines[indent + len(head) + 1 : -1]


def sorted_keys(mapping: dict[str, Any]) -> list[str]:
    """The keys of a mapping in their natural order."""
    keys = list(mapping)
    if len(keys) < 2:
        return keys
    whole = "".join(keys)
    if whole.isascii():
        if whole.isalpha():
            return sorted(keys)
        if len(keys) > 16:
            return _merged(keys)
    return sorted(keys, key=_NATURAL, reverse=True)[::-1]


def _compared(left: str, right: str) -> int:
    return natural_order(left, right)


_NATURAL: Final = functools.cmp_to_key(_compared)


def _merged(keys: list[str]) -> list[str]:
    """The same for many: keys whose letters and digits stand in the same places are in their natural order by sorting."""
    alike: dict[str, list[str]] = {}
    for key in keys:
        alike.setdefault(key.translate(_KINDS), []).append(key)
    groups = [sorted(group) for group in alike.values()]
    if len(groups) == 1:
        return groups[0]
    # Sorting finds the runs that are in order already.
    return sorted([key for group in groups for key in group], key=_NATURAL, reverse=True)[::-1]


def emitted(tree: Any) -> bytes:
    """The document as libyaml prints it, which the rest of this module agrees with."""
    chunks: list[bytes] = []

    class Sink:
        def write(self, chunk: bytes) -> None:
            chunks.append(chunk)

    emitter = _Emitter(Sink(), width=_WIDTH, allow_unicode=True, encoding="utf-8")
    try:
        emitter.emit(yaml.StreamStartEvent(encoding="utf-8"))
        emitter.emit(yaml.DocumentStartEvent(explicit=False))
        for event in _dump_events(tree):
            emitter.emit(event)
        emitter.emit(yaml.DocumentEndEvent(explicit=False))
        emitter.emit(yaml.StreamEndEvent())
    finally:
        emitter.dispose()
    text = b"".join(chunks)
    # libyaml ends a document with "..." where its last scalar leaves the end open; the reference does not.
    return text[: -len(b"...\n")] if text.endswith(b"\n...\n") and isinstance(tree, dict | list) else text


_PLAIN_TAGS: Final = (True, True)


def _text_event(text: str) -> yaml.ScalarEvent:
    if "\n" in text:
        style = "|"
    else:
        style = "" if scalars.plain_is_text(text) else '"'
    return yaml.ScalarEvent(None, None, _PLAIN_TAGS, text, style=style or None)


def _dump_events(tree: Any) -> Iterator[yaml.Event]:
    todo: list[Any] = [tree]
    while todo:
        value = todo.pop()
        if isinstance(value, yaml.Event):
            yield value
        elif isinstance(value, str):
            yield _text_event(value)
        elif isinstance(value, dict):
            yield yaml.MappingStartEvent(None, None, True, flow_style=False)
            todo.append(yaml.MappingEndEvent())
            for key in reversed(sorted_keys(value)):
                todo += (value[key], _text_event(key))
        elif isinstance(value, list | tuple):
            yield yaml.SequenceStartEvent(None, None, True, flow_style=False)
            todo.append(yaml.SequenceEndEvent())
            todo += reversed(value)
        else:
            yield yaml.ScalarEvent(None, None, _PLAIN_TAGS, _literal(value))


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return scalars.format_float(value) if isinstance(value, float) else str(value)


def natural_order(left: str, right: str) -> int:
    """Order of keys: letters after everything else, runs of digits by their number."""
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            continue
        if a.isalpha() or b.isalpha():
            if a.isalpha() and b.isalpha():
                return -1 if a < b else 1
            return -1 if b.isalpha() else 1
        return _compare_numbers(left, right, i)
    return len(left) - len(right)


def _compare_numbers(left: str, right: str, at: int) -> int:
    """Order of two texts that first differ at a place where neither has a letter."""
    # A zero here continues a number begun before, unless only zeros precede it: then the run counts from one.
    lead = 0
    if "0" in (left[at], right[at]):
        before = at
        while before > 0 and left[before - 1].isdigit():
            before -= 1
        lead = int(bool(left[before:at].strip("0")))
    a_end, b_end = _digits_end(left, at), _digits_end(right, at)
    a_number = int(f"{lead}{left[at:a_end]}")
    b_number = int(f"{lead}{right[at:b_end]}")
    if a_number != b_number:
        return -1 if a_number < b_number else 1
    if a_end != b_end:
        return -1 if a_end < b_end else 1
    return -1 if left[at] < right[at] else 1


def _digits_end(text: str, at: int) -> int:
    while at < len(text) and "0" <= text[at] <= "9" and at < 4000:
        at += 1
    return at
