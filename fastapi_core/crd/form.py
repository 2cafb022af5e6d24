"""The schema of one served version, compiled when the first object of it is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi_core.crd.definitions import schema_of
from fastapi_core.schema.types import Field, Type

if TYPE_CHECKING:
    from fastapi_core._ext.fieldset import Shape
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.crd.schema import Schema
    from fastapi_core.errors import FieldError

Tree = dict[str, Any]


class LazyForm:
    """A `registry.definition.Form`; the schema itself stays in the definition's cached bytes until then."""

    __slots__ = ("_preserve", "_schema", "_source", "_version")

    def __init__(self, source: CachedObject, version: str, *, preserve: bool) -> None:
        self._source = source
        self._version = version
        self._preserve = preserve
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        if self._schema is None:
            from fastapi_core.crd.schema import compiled

            self._schema = compiled(schema_of(self._source, self._version), preserve=self._preserve)
        return self._schema

    def openapi(self) -> Tree | None:
        """The schema as it is written in the definition."""
        return schema_of(self._source, self._version)

    def prune(self, tree: Tree) -> list[str]:
        return self.schema.prune(tree)

    def coerce(self, tree: Tree, *, drop: bool) -> tuple[list[FieldError], list[str]]:
        return self.schema.coerce(tree, drop=drop)

    def default(self, tree: Tree) -> None:
        self.schema.default(tree)


class CustomType(Type):
    """Stands where built-in kinds have a type table: nothing is known here but how fields are owned."""

    __slots__ = ("_form",)

    def __init__(self, ref: str, form: LazyForm) -> None:
        self._form = form
        super().__init__(ref, _no_fields, kind=True)

    @property
    def shape(self) -> Shape:
        return self._form.schema.shape

    @shape.setter
    def shape(self, value: object) -> None:
        """The base class begins with none."""


def _no_fields() -> tuple[Field, ...]:
    return ()
