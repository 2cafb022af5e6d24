"""Declared types: what a schema says about values, in the form that checking, cost and evaluation need.

Sizes are upper bounds as the reference reckons them, from limits in the schema or from the size of the largest request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fastapi_core.cel.names import RESERVED
from fastapi_core.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    struct,
)

#: No bound on the number of elements.
UNBOUNDED: Final = 2**63 - 1
#: Largest request, which bounds what is not bounded by a schema.
REQUEST_LIMIT: Final = 3 * 1024 * 1024

Convert = Callable[[Any], Any]


class Field:
    """A property: `raw` is its name in JSON; `keeps_null`: null is a value of it, not its absence."""

    __slots__ = ("decl", "keeps_null", "raw")

    def __init__(self, raw: str, decl: Decl, *, keeps_null: bool = False) -> None:
        self.raw = raw
        self.decl = decl
        self.keeps_null = keeps_null

    def renamed(self, name: str) -> Field:
        return Field(self.raw, self.decl.named(name), keeps_null=self.keeps_null)


class Decl:
    """A declared type.

    `max_elements` is the largest size (-1 counts as unbounded where the reference declares it so), `min_size` the
    smallest length in JSON. `convert` makes a value of the JSON form, None when that is one already. `fields` are those
    of an object, by the name an expression uses. `order` is "set" or "map" for lists that compare without order, by the
    properties `keys`.
    """

    __slots__ = (
        "convert",
        "deep",
        "elem",
        "equal",
        "fields",
        "key",
        "keys",
        "max_elements",
        "min_size",
        "nullable",
        "order",
        "type",
    )

    def __init__(
        self,
        type_: Type,
        *,
        max_elements: int = 0,
        min_size: int = 1,
        convert: Convert | None = None,
        fields: Mapping[str, Field] | None = None,
        key: Decl | None = None,
        elem: Decl | None = None,
        order: str = "",
        keys: tuple[str, ...] = (),
        nullable: bool = False,
    ) -> None:
        self.type = type_.declared(self)
        self.max_elements = max_elements
        self.min_size = min_size
        self.convert = convert
        self.fields = fields
        self.key = key
        self.elem = elem
        self.order = order
        self.keys = keys
        self.nullable = nullable
        #: Kept by `declared`: the deep forms of `convert` and of equality, ... until they are asked for.
        self.deep: Any = ...
        self.equal: Any = ...

    def field(self, name: str) -> Field | None:
        """A property by its name in expressions; words that the language reserves may stand as they are."""
        if self.fields is None:
            return None
        found = self.fields.get(name)
        return self.fields.get(f"__{name}__") if found is None and name in RESERVED else found

    def named(self, name: str) -> Decl:
        """The same declaration with objects named after their path from `name`."""
        if self.fields is not None:
            if self.type.name != "object":
                return self
            fields = {key: field.renamed(f"{name}.{key}") for key, field in self.fields.items()}
            return self._with(struct(name), fields=fields)
        if self.elem is None:
            return self
        elem = self.elem.named(f"{name}.@elem" if self.key is not None else f"{name}.@idx")
        if elem is self.elem:
            return self
        if self.key is not None:
            return self._with(map_of(self.key.type, elem.type), elem=elem)
        return self._with(list_of(elem.type), elem=elem)

    def _with(self, type_: Type, *, fields: Mapping[str, Field] | None = None, elem: Decl | None = None) -> Decl:
        return Decl(
            type_,
            max_elements=self.max_elements,
            min_size=self.min_size,
            convert=self.convert,
            fields=fields,
            key=self.key,
            elem=elem,
            order=self.order,
            keys=self.keys,
            nullable=self.nullable,
        )


def list_decl(elem: Decl, max_elements: int = UNBOUNDED, *, order: str = "", keys: tuple[str, ...] = ()) -> Decl:
    return Decl(list_of(elem.type), max_elements=max_elements, min_size=2, elem=elem, order=order, keys=keys)


def map_decl(elem: Decl, max_elements: int = UNBOUNDED) -> Decl:
    return Decl(map_of(STRING, elem.type), max_elements=max_elements, min_size=2, key=STRING_DECL, elem=elem)


def object_decl(name: str, fields: Mapping[str, Decl | Field], min_size: int = 2) -> Decl:
    """An object; a field given as a declaration has the same name in JSON."""
    made = {key: field if isinstance(field, Field) else Field(key, field) for key, field in fields.items()}
    return Decl(struct(name), min_size=min_size, fields=made)


BOOL_DECL: Final = Decl(BOOL, min_size=4)
INT_DECL: Final = Decl(INT, min_size=1)
DOUBLE_DECL: Final = Decl(DOUBLE, min_size=1, convert=float)
DYN_DECL: Final = Decl(DYN, min_size=1)
STRING_DECL: Final = Decl(STRING, min_size=2, max_elements=0)
BYTES_DECL: Final = Decl(BYTES, min_size=2)
TIMESTAMP_DECL: Final = Decl(TIMESTAMP, min_size=12)
DURATION_DECL: Final = Decl(DURATION, min_size=3)
