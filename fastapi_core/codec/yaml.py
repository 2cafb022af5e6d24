"""YAML bodies, and documents as `sigs.k8s.io/yaml` prints them. Imported only when somebody speaks YAML.

Reading goes event by event, without recursion: aliases are copied and counted, so that a small text cannot grow into a
huge tree; keys become texts; a key given twice is noted and the last one wins; only the first document counts. Writing
is in `yaml_print`.
"""

from __future__ import annotations

import base64
import binascii
import functools
from typing import Any, Final

import orjson
import yaml

from fastapi_core._ext import jsonscan
from fastapi_core.codec import yaml_scalars as scalars
from fastapi_core.codec.json import MAX_DEPTH, Parsed
from fastapi_core.codec.yaml_print import dump, natural_order
from fastapi_core.errors import go_json_number, go_value
from fastapi_core.schema.errors import DecodeError

__all__ = ["dump", "natural_order", "parse"]

#: libyaml's parser, twenty times as fast as PyYAML's own, which stands in where that was built without.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_TAG: Final = "tag:yaml.org,2002:"
#: Share of a document that may come from aliases: nearly all of a small one, a tenth of a huge one.
_ALIAS_LOW, _ALIAS_HIGH = 400_000, 4_000_000


def parse(body: bytes) -> Parsed:
    """Decode the first document of a YAML text; DecodeError with a text like the reference's."""
    if body.startswith(b"{"):
        quickly = _parse_json(body)
        if quickly is not None:
            return quickly
    builder = _Builder()
    try:
        tree = builder.build(body)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise DecodeError(f"yaml: {line}{error.problem}") from None
    except yaml.YAMLError as error:
        raise DecodeError(f"yaml: {error}") from None
    if not builder.repeated:
        return Parsed(tree, [], [], True)
    return Parsed(tree, [], ["yaml: unmarshal errors:\n  " + "\n  ".join(builder.repeated)], True)


def _parse_json(body: bytes) -> Parsed | None:
    """A YAML text that is JSON, as most bodies of apply are; None for any other.

    The reference turns YAML into JSON text and decodes that, which makes an integer of `1.0`: so numbers are spelled
    anew first.
    """
    try:
        if jsonscan.duplicate_keys(body, MAX_DEPTH):
            return None
        return Parsed(orjson.loads(jsonscan.go_style(body, go_json_number)), [], [], True)
    except (ValueError, OverflowError):
        return None


class _Frame:
    """A mapping or sequence under construction."""

    __slots__ = ("anchor", "container", "has_key", "key", "merging", "sequence", "size")

    def __init__(self, container: Any, anchor: str | None) -> None:
        self.container = container
        self.sequence = type(container) is list
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

    def build(self, body: bytes) -> Any:
        """The tree of the first document."""
        parser = _Parser(body)
        try:
            following = parser.get_event
            event = following()
            while event is not None:
                kind = type(event)
                if kind is yaml.ScalarEvent:
                    if event.anchor is None and event.tag is None and self._plain(event):
                        pass
                    else:
                        self._marked(event)
                elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                    self._open(event)
                elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                    frame = self._stack.pop()
                    if frame.anchor:
                        self._anchors[frame.anchor] = (frame.container, frame.size)
                    self._grow(frame.size)
                    self._place(frame.container, event)
                elif kind is yaml.AliasEvent:
                    self._alias(event)
                elif kind is yaml.DocumentEndEvent:
                    break
                event = following()
        finally:
            parser.dispose()
        return self._root

    def _plain(self, event: yaml.ScalarEvent) -> bool:
        """Place a scalar without anchor and tag, as nearly all are; False when that takes more thought."""
        if not self._stack or self._aliased:
            return False
        frame = self._stack[-1]
        text = event.value
        if not event.implicit[0]:
            value: Any = text
        elif len(text) > 32:
            value = scalars.resolve(text)
        else:
            value = _resolved(text)
        if type(value) is float:
            return False
        if frame.sequence:
            frame.container.append(value)
        elif frame.has_key:
            if frame.merging or type(frame.key) is not str or frame.key in frame.container:
                return False
            frame.container[frame.key] = value
            frame.has_key = False
        else:
            frame.key, frame.has_key = value, True
            frame.merging = text == scalars.MERGE and bool(event.implicit[0])
        frame.size += 1
        self._decoded += 1
        return True

    def _marked(self, event: yaml.ScalarEvent) -> None:
        self._count(1)
        value = _scalar(event)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._place(value, event, plain_merge=event.value == scalars.MERGE and bool(event.implicit[0]))

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


_resolved: Final = functools.lru_cache(4096)(scalars.resolve)


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
