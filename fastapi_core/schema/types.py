"""One description of a type: what decoding, defaults, patches, apply, OpenAPI and the binary codecs all read.

A `Type` is immutable once made and materialises its fields on first use, so that loading a group version costs no more
than reading its file. Nothing here knows where types come from: `tables` makes the built-in ones, and anything that
has a schema (a custom resource) can make its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

#: Scalar -> protobuf wire type.
SCALARS: Final[dict[str, str]] = {
    "string": "len",
    "bool": "varint",
    "int32": "varint",
    "int64": "varint",
    "double": "fixed64",
    "bytes": "len",
}
_FORMATS: Final = {"int32": "int32", "int64": "int64", "double": "double", "bytes": "byte"}

Resolver = Callable[[str], "Type"]


class _Absent:
    """Marks a default that is not stated, `null` being a value."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


class Field:
    """One field of a type.

    `card` is "", "list" or "map" (keys are always strings). Either `scalar` names a scalar or `ref` a type, for lists
    and maps that of the elements. `omit` tells when JSON leaves the field out: "" never (an unset list, map or pointer
    prints null), "empty" as Go's omitempty, "empty+zero" also for a zero struct. `pointer`: absent and zero differ.
    `default` is the OpenAPI default or `ABSENT`; `enum` the values OpenAPI lists, sorted (of the elements for a list or
    map); `alias`, `elem_alias` and `key_alias` the named Go type behind a scalar or container.
    """

    __slots__ = (
        "_resolve",
        "_type",
        "alias",
        "card",
        "default",
        "elem_alias",
        "enum",
        "gates",
        "inline",
        "json",
        "key_alias",
        "list_keys",
        "list_type",
        "map_type",
        "merge_key",
        "name",
        "number",
        "omit",
        "patch_strategy",
        "pointer",
        "ref",
        "required",
        "scalar",
    )

    def __init__(
        self,
        name: str,
        number: int = 0,
        *,
        scalar: str = "",
        ref: str = "",
        resolve: Resolver | None = None,
        card: str = "",
        pointer: bool = False,
        omit: str = "empty",
        required: bool = False,
        inline: bool = False,
        json: bool = True,
        default: Any = ABSENT,
        enum: tuple[str, ...] = (),
        list_type: str = "",
        list_keys: tuple[str, ...] = (),
        map_type: str = "",
        merge_key: str = "",
        patch_strategy: tuple[str, ...] = (),
        alias: str = "",
        elem_alias: str = "",
        key_alias: str = "",
        gates: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.number = number
        self.scalar = scalar
        self.ref = ref
        self._resolve = resolve
        self._type: Type | None = None
        self.card = card
        self.pointer = pointer
        self.omit = omit
        self.required = required
        self.inline = inline
        self.json = json
        self.default = default
        self.enum = enum
        self.list_type = list_type
        self.list_keys = list_keys
        self.map_type = map_type
        self.merge_key = merge_key
        self.patch_strategy = patch_strategy
        self.alias = alias
        self.elem_alias = elem_alias
        self.key_alias = key_alias
        self.gates = gates

    @property
    def type(self) -> Type | None:
        """Type of the value (of the elements for a list or map); None for scalars."""
        if self._type is None and self.ref:
            if self._resolve is None:
                raise LookupError(f"field {self.name!r} refers to {self.ref!r} and has nothing to resolve it with")
            self._type = self._resolve(self.ref)
        return self._type

    @property
    def wire(self) -> str:
        """Protobuf wire type: varint, len or fixed64."""
        return SCALARS.get(self.scalar, "len")

    @property
    def format(self) -> str:
        """OpenAPI format of the scalar (of the elements for a list or map), empty for none."""
        return _FORMATS.get(self.scalar, "")

    def __repr__(self) -> str:
        shape = {"": "", "list": "[]", "map": "{}"}[self.card]
        return f"<Field {self.name} {shape}{self.scalar or self.ref}>"


class Type:
    """A struct, or one of the types whose JSON form differs from an object (`json` names the form).

    `json` is "" or one of time, microtime, duration, quantity, intOrString, rawObject, rawAny, fields, list,
    schemaOrBool, schemaOrSchemaList, schemaOrStringList. `kind`: the JSON form begins with kind and apiVersion, which
    are not among the fields. `gvk`: "group/version/kind" texts OpenAPI lists ("many" for option types).
    """

    __slots__ = (
        "_declared",
        "_fields",
        "_load",
        "gvk",
        "json",
        "kind",
        "map_type",
        "oa",
        "plan",
        "ref",
        "shape",
        "unions",
    )

    def __init__(
        self,
        ref: str,
        fields: Callable[[], tuple[Field, ...]],
        *,
        kind: bool = False,
        gvk: tuple[str, ...] = (),
        json: str = "",
        map_type: str = "",
        oa: Any = None,
        unions: Any = None,
    ) -> None:
        self.ref = ref
        self._load = fields
        self._declared: tuple[Field, ...] | None = None
        self._fields: Mapping[str, Field] | None = None
        self.kind = kind
        self.gvk = gvk
        self.json = json
        self.map_type = map_type
        self.oa = oa
        self.unions = unions
        self.plan: Any = None
        """Compiled form, kept here by the normaliser."""
        self.shape: Any = None
        """How field ownership sees the type, kept here by `patch.shapes`."""

    @property
    def name(self) -> str:
        """`Pod` of `core/v1.Pod`."""
        return self.ref.rpartition(".")[2]

    @property
    def group_version(self) -> str:
        """`core/v1` of `core/v1.Pod`."""
        return self.ref.rpartition(".")[0]

    @property
    def declared(self) -> tuple[Field, ...]:
        """All fields as declared: inlined structs are one field (their protobuf form), JSON order."""
        if self._declared is None:
            self._declared = self._load()
        return self._declared

    @property
    def fields(self) -> Mapping[str, Field]:
        """JSON name -> field, in the order JSON prints them, inlined structs flattened, without kind and apiVersion."""
        if self._fields is None:
            self._fields = MappingProxyType(dict(self._flatten()))
        return self._fields

    def _flatten(self) -> Iterator[tuple[str, Field]]:
        for field in self.declared:
            if field.inline and field.type is not None:
                yield from field.type.fields.items()
            elif field.json:
                yield field.name, field

    def __repr__(self) -> str:
        return f"<Type {self.ref}>"
