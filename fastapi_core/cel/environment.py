"""What an expression may use: variables, functions by version, and types that can be named or made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from fastapi_core.cel.decls import Decl, Field, object_decl
from fastapi_core.cel.functions import CIDR, IP, Library, Overload
from fastapi_core.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST,
    MAP,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    struct,
    type_of,
)

#: New expressions may use what the version before the current one knows, so that going back one version is safe.
VERSION: Final = (1, 35)

#: Types that every expression can name.
_TYPE_NAMES: Final = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "int": INT,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": NULL,
    "string": STRING,
    "uint": UINT,
    "type": type_of(DYN),
    "optional_type": optional_of(DYN),
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
    "net.IP": IP,
    "net.CIDR": CIDR,
}
_OBJECT: Final = "Object"
_JSON_PATCH: Final = "JSONPatch"


@lru_cache(16)
def functions_of(version: tuple[int, int], patches: bool) -> Mapping[str, tuple[Overload, ...]]:
    """The functions of a version by name; `patches`: with those of mutating policies."""
    from fastapi_core.cel.library.all import LIBRARIES, PATCHES

    found: dict[str, dict[str, Overload]] = {}
    libraries: list[Library] = [*LIBRARIES, PATCHES] if patches else list(LIBRARIES)
    for entry in libraries:
        if entry.since <= version and (entry.until is None or version < entry.until):
            for overload in entry.overloads:
                found.setdefault(overload.function, {})[overload.id] = overload
    return {name: tuple(overloads.values()) for name, overloads in found.items()}


class Environment:
    """The variables (qualified names allowed) with their types, and what belongs to them.

    `patches` offers the types `Object` and `JSONPatch` of mutating policies, `bindings` the macro `cel.bind`.
    Environments are shared: nothing in one changes after it is made, but for the variables of a policy (`put_variable`).
    """

    __slots__ = ("bindings", "functions", "patches", "types", "variables", "version")

    def __init__(
        self,
        variables: Mapping[str, Type | Decl],
        *,
        version: tuple[int, int] = VERSION,
        patches: bool = False,
        bindings: bool = False,
    ) -> None:
        self.variables = {name: kind.type if isinstance(kind, Decl) else kind for name, kind in variables.items()}
        self.version = version
        self.patches = patches
        self.bindings = bindings
        self.functions = functions_of(version, patches)
        self.types: dict[str, Type] = {}
        for kind in self.variables.values():
            if kind.decl is not None:
                _collect(kind.decl, self.types)

    def extended(self, variables: Mapping[str, Type | Decl]) -> Environment:
        """This environment with more variables."""
        return Environment(
            {**self.variables, **variables}, version=self.version, patches=self.patches, bindings=self.bindings
        )

    def put_variable(self, name: str, kind: Type | Decl) -> None:
        """One more field of `variables`, which expressions checked from now on may use: for whoever made this environment
        and checks one variable after the other."""
        decl = self.variables["variables"].decl
        assert decl is not None
        assert isinstance(decl.fields, dict)
        decl.fields[name] = _variable(name, kind)
        decl.deep = decl.equal = ...
        _collect(decl.fields[name].decl, self.types)

    def find_type(self, name: str) -> Type | None:
        """A type by its name."""
        known = _TYPE_NAMES.get(name) or self.types.get(name)
        if known is None and self.patches:
            return _patch_type(name)
        return known

    def find_field(self, kind: Type, name: str) -> Decl | Field | Type | None:
        """The field of a struct; None when it has none of this name."""
        decl = kind.decl
        if decl is None:
            named = self.types.get(kind.name)
            decl = None if named is None else named.decl
        if decl is not None and decl.fields is not None:
            return decl.field(name)
        if self.patches and kind.name == _JSON_PATCH:
            return STRING if name in ("op", "from", "path") else DYN
        if self.patches and (kind.name == _OBJECT or kind.name.startswith(_OBJECT + ".")):
            return DYN
        return None

    def is_known_struct(self, kind: Type) -> bool:
        return (kind.decl is not None and kind.decl.fields is not None) or self.find_type(kind.name) is not None


def _patch_type(name: str) -> Type | None:
    if name in (_JSON_PATCH, _OBJECT) or name.startswith(_OBJECT + "."):
        return struct(name)
    return None


def _collect(decl: Decl, types: dict[str, Type]) -> None:
    if decl.fields is not None:
        if decl.type.name in types:
            return
        types[decl.type.name] = decl.type
        for field in decl.fields.values():
            _collect(field.decl, types)
    if decl.elem is not None:
        _collect(decl.elem, types)


_SIMPLE: Final = frozenset(
    kind.kind for kind in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, TIMESTAMP, DURATION, DYN)
)


def variables_decl(fields: Mapping[str, Type | Decl]) -> Decl:
    """The declaration of `variables`, whose fields are the results of other expressions."""
    return object_decl("kubernetes.variables", {name: _variable(name, kind) for name, kind in fields.items()})


def _variable(name: str, kind: Type | Decl) -> Field:
    return Field(name, kind if isinstance(kind, Decl) else Decl(_kept(kind)), keeps_null=True)


def _kept(kind: Type) -> Type:
    """As much of the type of a result as the reference remembers: what is neither simple nor a list or map is dyn."""
    if kind.kind in (LIST, MAP):
        return Type(kind.kind, kind.name, tuple(map(_kept, kind.params)))
    return kind if kind.kind in _SIMPLE else DYN
