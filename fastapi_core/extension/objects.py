"""Types to declare kinds with: metadata, and the scalars of the Kubernetes API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final


@dataclass(slots=True)
class OwnerReference:
    """Who an object belongs to."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


@dataclass(slots=True)
class ObjectMeta:
    """`metadata` of every object. What the server fills in (uid, times, versions) is not for writers to change."""

    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] = field(default_factory=list)
    owner_references: list[OwnerReference] = field(default_factory=list)
    managed_fields: list[dict[str, Any]] = field(default_factory=list, repr=False)


QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


class Quantity(str):
    """An amount as Kubernetes writes it: `Quantity("250m")`, `Quantity("2Gi")`. Clients may write numbers, too."""

    __slots__ = ()

    @property
    def nanos(self) -> int:
        """The amount in units of 10^-9. Raises ValueError for a text that is no quantity."""
        from fastapi_core.meta.quantity import parse

        return parse(self).nanos

    # In pydantic models, which ask for these; their schemas are plain data, nothing has to be imported

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> dict[str, Any]:
        return {
            "type": "function-plain",
            "function": {"type": "no-info", "function": cls._validated},
            "serialization": {"type": "to-string"},
        }

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        return {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY,
        }

    @classmethod
    def _validated(cls, value: Any) -> Quantity:
        from fastapi_core.meta.quantity import parse

        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError("a quantity is a text such as '250m', or a number")
        parse(str(value))
        return cls(value)


IntOrString = int | str
"""A port or a percentage: `8080`, `"25%"`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What a field may hold beyond its Python type: `Annotated[int, Field(minimum=1)]`.

    The members are those of OpenAPI schemas; `extra` takes any further ones by their own names
    (`{"x-kubernetes-map-type": "atomic"}`).
    """

    description: str = ""
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    max_properties: int | None = None
    pattern: str = ""
    format: str = ""
    list_keys: tuple[str, ...] = ()
    """Members that identify an item of a list of objects: apply merges items by them."""
    rules: tuple[str, ...] = ()
    """CEL expressions over `self` (and `oldSelf`) that must be true."""
    name: str = ""
    """The name in JSON, where it is not the Python name in camelCase."""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        """Pydantic asks what it says about a field. Members of items are looked at when the schema is whole."""
        if self.name:
            from fastapi_core.extension.models.base import ModelError

            raise ModelError(f"Field(name={self.name!r}): in pydantic models fields are named by their alias")
        return {**handler(core), **self.keywords()}

    def keywords(self) -> dict[str, Any]:
        """As members of a schema."""
        said: dict[str, Any] = {
            "description": self.description,
            "pattern": self.pattern,
            "format": self.format,
            "x-kubernetes-validations": [{"rule": rule} for rule in self.rules],
        }
        counts: dict[str, Any] = {
            "minimum": self.minimum,
            "maximum": self.maximum,
            "minLength": self.min_length,
            "maxLength": self.max_length,
            "minItems": self.min_items,
            "maxItems": self.max_items,
            "maxProperties": self.max_properties,
        }
        found = {name: value for name, value in said.items() if value}
        found |= {name: value for name, value in counts.items() if value is not None}
        if self.list_keys:
            found |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(self.list_keys)}
        return {**found, **self.extra}
