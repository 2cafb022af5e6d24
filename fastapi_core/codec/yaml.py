"""YAML bodies, and documents as `sigs.k8s.io/yaml` prints them. Imported only when somebody speaks YAML.

Reading goes event by event, without recursion: aliases are copied and counted, so that a small text cannot grow into a
huge tree; keys become texts; a key given twice is noted and the last one wins; only the first document counts. Writing
sorts keys the natural way (`a2` before `a10`) and quotes what would be read as something else.
"""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Iterator
from typing import Any, Final

import orjson
import yaml

from fastapi_core._ext import jsonscan
from fastapi_core.codec import yaml_scalars as scalars
from fastapi_core.codec.json import MAX_DEPTH, Parsed, number
from fastapi_core.errors import go_value
from fastapi_core.schema.errors import DecodeError

#: libyaml's parser, twenty times as fast as PyYAML's own, which stands in where that was built without.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Emitter: Any = getattr(yaml, "CEmitter", yaml.SafeDumper)

_TAG: Final = "tag:yaml.org,2002:"
#: Share of a document that may come from aliases: nearly all of a small one, a tenth of a huge one.
_ALIAS_LOW, _ALIAS_HIGH = 400_000, 4_000_000
_WIDTH: Final = 80


def parse(body: bytes) -> Parsed:
    """Decode the first document of a YAML text; DecodeError with a text like the reference's."""
    if body.startswith(b"{"):
        quickly = _parse_json(body)
        if quickly is not None:
            return quickly
    builder = _Builder()
    try:
        tree = builder.build(_events(body))
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise DecodeError(f"yaml: {line}{error.problem}") from None
    except yaml.YAMLError as error:
        raise DecodeError(f"yaml: {error}") from None
    if not builder.repeated:
        return Parsed(tree, [], [])
    return Parsed(tree, [], ["yaml: unmarshal errors:\n  " + "\n  ".join(builder.repeated)])


def _parse_json(body: bytes) -> Parsed | None:
    """A YAML text that is JSON, as most bodies of apply are; None for any other.

    The reference turns YAML into JSON text and decodes that, which makes an integer of `1.0`: so numbers are spelled
    anew first.
    """
    try:
        if jsonscan.duplicate_keys(body, MAX_DEPTH):
            return None
        return Parsed(orjson.loads(jsonscan.go_style(body, number)), [], [])
    except (ValueError, OverflowError):
        return None


def _events(body: bytes) -> Iterator[yaml.Event]:
    """Events of the first document."""
    parser = _Parser(body)
    try:
        while parser.check_event():
            event = parser.get_event()
            yield event
            if isinstance(event, yaml.DocumentEndEvent):
                return
    finally:
        parser.dispose()


class _Frame:
    """A mapping or sequence under construction."""

    __slots__ = ("anchor", "container", "has_key", "key", "merging", "size")

    def __init__(self, container: Any, anchor: str | None) -> None:
        self.container = container
        self.anchor = anchor
        self.key: Any = None
        self.has_key = False
        self.merging = False
        self.size = 1


class _Builder:
    """Turns events into a tree."""

    def __init__(self) -> None:
        self.repeated: list[str] = []
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._decoded = 0
        self._aliased = 0
        self._root: Any = None

    def build(self, events: Iterator[yaml.Event]) -> Any:
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._count(1)
                value = _scalar(event)
                if event.anchor:
                    self._anchors[event.anchor] = (value, 1)
                self._place(value, event, plain_merge=event.value == scalars.MERGE and bool(event.implicit[0]))
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._open(event)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                frame = self._stack.pop()
                if frame.anchor:
                    self._anchors[frame.anchor] = (frame.container, frame.size)
                self._grow(frame.size)
                self._place(frame.container, event)
        return self._root

    def _open(self, event: yaml.CollectionStartEvent) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise DecodeError("yaml: exceeded max depth")
        self._count(1)
        if event.anchor:
            self._anchors.pop(event.anchor, None)
        self._stack.append(_Frame({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor))

    def _alias(self, event: yaml.AliasEvent) -> None:
        if any(frame.anchor == event.anchor for frame in self._stack):
            raise DecodeError(f"yaml: anchor '{event.anchor}' value contains itself")
        if event.anchor not in self._anchors:
            raise DecodeError(f"yaml: unknown anchor '{event.anchor}' referenced")
        value, size = self._anchors[event.anchor]
        self._aliased += size
        self._count(size)
        self._grow(size)
        self._place(_copy(value), event)

    def _grow(self, size: int) -> None:
        if self._stack:
            self._stack[-1].size += size

    def _count(self, nodes: int) -> None:
        self._decoded += nodes
        if self._aliased > 100 and self._decoded > 1000 and self._aliased / self._decoded > self._allowed():
            raise DecodeError("yaml: document contains excessive aliasing")

    def _allowed(self) -> float:
        if self._decoded <= _ALIAS_LOW:
            return 0.99
        if self._decoded >= _ALIAS_HIGH:
            return 0.10
        return 0.99 - 0.89 * (self._decoded - _ALIAS_LOW) / (_ALIAS_HIGH - _ALIAS_LOW)

    def _place(self, value: Any, event: yaml.Event, *, plain_merge: bool = False) -> None:
        """Put a finished value where it belongs: the root, the next element, a key or the value of one."""
        if isinstance(event, yaml.ScalarEvent):
            self._grow(1)
        if not self._stack:
            self._root = _finite(value)
            return
        frame = self._stack[-1]
        if isinstance(frame.container, list):
            frame.container.append(_finite(value))
        elif not frame.has_key:
            frame.has_key, frame.merging = True, plain_merge
            frame.key = value
        elif frame.merging:
            frame.has_key = False
            self._merge(frame.container, value, event)
        else:
            frame.has_key = False
            self._set(frame.container, frame.key, _finite(value), event)

    def _set(self, mapping: dict[str, Any], key: Any, value: Any, event: yaml.Event) -> None:
        name = _key(key)
        if name in mapping and len(self.repeated) < 100:
            shown = go_value(key) if isinstance(key, str | bool | int) else name
            line = event.start_mark.line + 1 if event.start_mark is not None else 0
            self.repeated.append(f"line {line}: key {shown} already set in map")
        mapping[name] = value

    def _merge(self, mapping: dict[str, Any], value: Any, event: yaml.Event) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise DecodeError("yaml: map merge requires map or sequence of maps as the value")
        for source in reversed(sources):
            for key, item in source.items():
                self._set(mapping, key, item, event)


def _copy(value: Any) -> Any:
    """A copy of a tree; one Python frame a level, which `copy.deepcopy` needs several of."""
    if isinstance(value, dict):
        mapping = {}
        for key, item in value.items():
            mapping[key] = _copy(item)
        return mapping
    if isinstance(value, list):
        items = []
        for item in value:
            items.append(_copy(item))
        return items
    return value


def _finite(value: Any) -> Any:
    """JSON stands between YAML and the decoder and has no infinities."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        name = "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
        raise DecodeError(f"json: unsupported value: {name}")
    return value


def _key(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return scalars.format_float(value)
    kind = "<nil>" if value is None else "map" if isinstance(value, dict) else "slice"
    raise DecodeError(f"unsupported map key of type: {kind}")


def _scalar(event: yaml.ScalarEvent) -> scalars.Scalar:
    text: str = event.value
    tag = event.tag
    if tag is None:
        return scalars.resolve(text) if event.implicit[0] else text
    if not tag.startswith(_TAG):
        return text
    kind = tag[len(_TAG) :]
    if kind == "str":
        return text
    if kind == "binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
        except binascii.Error:
            raise DecodeError("yaml: !!binary value contains invalid base64 data") from None
    value = scalars.resolve(text)
    if not _fits(kind, value):
        raise DecodeError(f"yaml: cannot decode !!{_kind(value)} `{text}` as a !!{kind}")
    return value


def _fits(kind: str, value: scalars.Scalar) -> bool:
    if kind == "float":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return kind == _kind(value) or kind in ("timestamp", "merge")


def _kind(value: scalars.Scalar) -> str:
    if value is None:
        return "null"
    names = {bool: "bool", int: "int", float: "float", str: "str"}
    return names[type(value)]


def dump(tree: Any) -> bytes:
    """A document with sorted keys and two spaces of indentation, ending in a newline."""
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
            for key in sorted(value, key=functools.cmp_to_key(natural_order), reverse=True):
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
