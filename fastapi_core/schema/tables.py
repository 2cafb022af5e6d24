"""The built-in types, read from `data/` one group version at a time.

A data file is `{"group", "version", "served", "proto", "enums", "types"}`. A type is a list of texts: first its header,
then one text per field in the order JSON prints them (`tools/make_types.py` writes them):

    header   words `kind`, `gvk=v1/Pod,...`, `json=time`, `map=atomic`, `oa=JSON`, `unions=JSON`
    field    NAME NUMBER TYPE [word ...]
    TYPE     `*` for a pointer, `[]` list or `{}` map, then a scalar, `.Name` of the same file, or a full reference
    words    `+` always printed   `0` dropped when zero, even a struct   `!` required   `~` inlined   `-` not in JSON
             `=JSON` default   `e` enum of its alias   `e=a,b` enum   `list=set`, `list=map:key,key`   `map=atomic`
             `merge=key`   `patch=merge,retainKeys`   `as=ALIAS`   `of=ELEMENT ALIAS`   `key=KEY ALIAS`   `gates=A,B`
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from fastapi_core.schema.types import SCALARS, Field, Type

_DATA: Final = Path(__file__).parent / "data"
_types: Final[dict[str, Type]] = {}
_CARDS: Final = {"[]": "list", "{}": "map"}


def data_file(group_version: str) -> str:
    """Name of the data file of a group version as types refer to it: `core/v1`, `runtime`."""
    return group_version.replace("/", "_") + ".json"


@cache
def _files() -> frozenset[str]:
    return frozenset(entry.name for entry in _DATA.iterdir())


@cache
def _read(group_version: str) -> dict[str, Any]:
    name = data_file(group_version)
    if name not in _files():  # references come from clients too: nothing else is ever opened
        raise KeyError(group_version)
    data: dict[str, Any] = orjson.loads((_DATA / name).read_bytes())
    return data


def group_versions() -> list[str]:
    """Every group version with types, served or not, sorted: `core/v1`, `meta/v1`, `runtime`."""
    return sorted(name[: -len(".json")].replace("_", "/") for name in _files() if name.endswith(".json"))


def info(group_version: str) -> tuple[str, str]:
    """(served, protobuf package): served is default, optin, none or library."""
    data = _read(group_version)
    return data["served"], data["proto"]


def type_names(group_version: str) -> list[str]:
    """Names of all types of a group version."""
    return list(_read(group_version)["types"])


def enum_values(alias: str) -> tuple[Any, ...]:
    """Declared constants of a named scalar (`core/v1.PullPolicy`), in order of declaration; empty when it has none."""
    group_version, _, name = alias.rpartition(".")
    try:
        entry = _read(group_version)["enums"][name]
    except KeyError:
        return ()
    return tuple(entry["values"])


def type_of(ref: str) -> Type:
    """Type of a reference such as `core/v1.Pod`; KeyError when there is none."""
    found = _types.get(ref)
    return found if found is not None else _make(ref)


def type_for(group: str, version: str, kind: str) -> Type | None:
    """Type of a kind that requests may carry, or None; `group` empty for the core group.

    Kinds every group version has (`DeleteOptions`, `Status`, ...) are those of meta/v1.
    """
    for ref in (f"{group or 'core'}/{version}.{kind}", f"meta/v1.{kind}"):
        try:
            found = type_of(ref)
        except KeyError:
            continue
        if found.kind:
            return found
    return None


def _make(ref: str) -> Type:
    group_version, _, name = ref.rpartition(".")
    try:
        lines: list[str] = _read(group_version)["types"][name]
    except KeyError:
        raise KeyError(ref) from None
    header = _words(lines[0].split())

    def load() -> tuple[Field, ...]:
        return tuple(_field(line, group_version) for line in lines[1:])

    made = Type(
        ref,
        load,
        kind="kind" in header,
        gvk=tuple(header["gvk"].split(",")) if "gvk" in header else (),
        json=header.get("json", ""),
        map_type=header.get("map", ""),
        oa=orjson.loads(header["oa"]) if "oa" in header else None,
        unions=orjson.loads(header["unions"]) if "unions" in header else None,
    )
    return _types.setdefault(ref, made)


def _words(words: list[str]) -> dict[str, str]:
    out = {}
    for word in words:
        name, _, value = word.partition("=")
        out[name] = value
    return out


def _full(name: str, group_version: str) -> str:
    return group_version + name if name.startswith(".") else name


def _field(line: str, group_version: str) -> Field:
    name, number, shape, *rest = line.split(" ")
    words = _words(rest) if rest else {}
    pointer = shape.startswith("*")
    if pointer:
        shape = shape[1:]
    card = _CARDS.get(shape[:2], "")
    if card:
        shape = shape[2:]
    alias, elem_alias = _full(words.get("as", ""), group_version), _full(words.get("of", ""), group_version)
    list_type, _, keys = words.get("list", "").partition(":")
    return Field(
        name,
        int(number),
        scalar=shape if shape in SCALARS else "",
        ref="" if shape in SCALARS else _full(shape, group_version),
        resolve=type_of,
        card=card,
        pointer=pointer,
        omit="" if "+" in words else "empty+zero" if "0" in words else "empty",
        required="!" in words,
        inline="~" in words,
        json="-" not in words,
        **({"default": orjson.loads(words[""])} if "" in words else {}),
        enum=_enum(words["e"], elem_alias or alias) if "e" in words else (),
        list_type=list_type,
        list_keys=tuple(keys.split(",")) if keys else (),
        map_type=words.get("map", ""),
        merge_key=words.get("merge", ""),
        patch_strategy=tuple(words["patch"].split(",")) if "patch" in words else (),
        alias=alias,
        elem_alias=elem_alias,
        key_alias=_full(words.get("key", ""), group_version),
        gates=tuple(words["gates"].split(",")) if "gates" in words else (),
    )


def _enum(listed: str, alias: str) -> tuple[str, ...]:
    return tuple(listed.split(",")) if listed else tuple(sorted(enum_values(alias)))
