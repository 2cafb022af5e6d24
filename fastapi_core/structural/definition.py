"""What is wrong with the schema of a version in a definition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from fastapi_core.errors import FieldError
from fastapi_core.records import dataclass
from fastapi_core.structural import defaults, goform, openapi, pruning, structure
from fastapi_core.structural.expressions import Costs
from fastapi_core.structural.nodes import copy_json, digest, node_of
from fastapi_core.structural.structure import Tree

#: Nothing nests deeper in a schema that is looked at; the rest is refused unread.
MAX_DEPTH: Final = 120
_ROOT_FIELDS: Final = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_STATUS: Final = "if the status subresource is enabled"
_ROOT_ALLOWED: Final = frozenset(
    {"description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"}
    | {"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items"}
    | {"properties", "externalDocs", "example", structure.PRESERVE, structure.RULES}
)
#: Keywords of the root whose mere presence counts.
_POINTERS: Final = frozenset(
    {"not", structure.LIST_TYPE, structure.MAP_TYPE, "maxProperties", "minProperties", "$ref", "default"}
    | {"additionalProperties", "additionalItems"}
)
#: What was found in the last schemas: a definition is looked at again whenever its status is written.
_MEMORY: Final[dict[bytes, tuple[FieldError, ...]]] = {}
_MEMORY_SIZE: Final = 64


@dataclass(frozen=True, slots=True)
class Options:
    """How strictly a schema is judged. What an old definition already got wrong stays allowed when it is updated."""

    structural: bool = True
    pruned_defaults: bool = True
    valid_types: bool = True
    atomic_sets: bool = True
    map_keys: bool = True
    unchanged: bool = False
    """The schema is the old one: what single expressions cost is not judged again."""
    known: frozenset[str] = frozenset()
    """Expressions that are stored already."""


def problems(
    schema: Tree, path: str, *, status: bool = False, old: Iterable[Tree] = (), unchanged: bool = False
) -> list[FieldError]:
    """The errors of a schema that stands at `path`, in the reference's order.

    `status`: the version has the status subresource. `old` are the schemas of the definition that is updated,
    `unchanged` tells that this schema is one of them.
    """
    if _too_deep(schema):
        return [FieldError("Invalid value", path, f"must not be nested deeper than {MAX_DEPTH} levels", "")]
    before = list(old)
    key = digest([schema, path, status, before, unchanged])
    if key not in _MEMORY:
        if len(_MEMORY) >= _MEMORY_SIZE:
            del _MEMORY[next(iter(_MEMORY))]
        _MEMORY[key] = tuple(_judged(schema, path, status, before, unchanged))
    return list(_MEMORY[key])


def _judged(schema: Tree, path: str, status: bool, before: list[Tree], unchanged: bool) -> list[FieldError]:
    options = Options(unchanged=unchanged, known=frozenset(_expressions(before)))
    found = _problems(schema, path, status, options)
    if found and before:
        return _problems(schema, path, status, _relaxed(options, before))
    return found


def _too_deep(schema: Any) -> bool:
    level = [schema]
    for _ in range(2 * MAX_DEPTH):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
        if not inner:
            return False
        level = [value for value in inner if isinstance(value, Mapping | list)]
    return True


def _expressions(schemas: list[Tree]) -> Iterable[str]:
    for schema in schemas:
        for inner in structure.walk(schema):
            for rule in inner.get(structure.RULES) or ():
                yield rule.get("rule") or ""
                yield rule.get("messageExpression") or ""


def _problems(schema: Tree, path: str, status: bool, options: Options) -> list[FieldError]:
    found = _status_root(schema, path) if status else []
    if schema.get("nullable"):
        found.append(FieldError("Forbidden", f"{path}.nullable", "nullable cannot be true at the root"))
    obstacle = ""
    costs: Costs | None = None
    if options.structural:
        obstacle = structure.obstacle(schema)
        if not obstacle:
            wrong = structure.problems(schema, path)
            wrong = wrong or defaults.problems(schema, path, pruned=options.pruned_defaults)
            found += wrong
            costs = None if wrong else Costs()
    found += openapi.problems(schema, path, options, costs)
    if obstacle and not found:
        found.append(FieldError("Invalid value", path, obstacle, ""))
    if costs is not None:
        found += costs.total_errors(path)
    return found


def _status_root(schema: Tree, path: str) -> list[FieldError]:
    """Only what leaves the schema of the status whole when it is looked at alone."""
    kind = schema.get("type") or ""
    if kind and kind != "object":
        text = f'only "object" is allowed as the type at the root of the schema {_STATUS}'
        first = _first_forbidden(schema, before_type=True)
        return _not_allowed(schema, path) if first else [FieldError("Invalid value", f"{path}.type", text, kind)]
    return _not_allowed(schema, path) if _first_forbidden(schema) else []


def _not_allowed(schema: Tree, path: str) -> list[FieldError]:
    text = f"only [{_ROOT_FIELDS}] fields are allowed at the root of the schema {_STATUS}"
    return [FieldError("Invalid value", path, text, goform.schema(schema))]


def _first_forbidden(schema: Tree, *, before_type: bool = False) -> bool:
    """Whether a keyword is set that is not allowed; `before_type`: one of those the reference looks at first."""
    return any(
        name not in _ROOT_ALLOWED
        and value is not None
        and (name in _POINTERS or value not in (False, "", [], {}))
        and (not before_type or name in ("id", "$schema", "$ref"))
        for name, value in schema.items()
    )


# Updates


def _relaxed(options: Options, old: list[Tree]) -> Options:
    """What the old schemas break already is no error of the new ones."""
    return replace(
        options,
        structural=not any(structure.obstacle(schema) or structure.problems(schema, "") for schema in old),
        pruned_defaults=all(map(_defaults_are_pruned, old)),
        valid_types=all(openapi.has_valid_type(inner) for schema in old for inner in structure.walk(schema)),
        atomic_sets=not any(openapi.set_problem(inner, "") for schema in old for inner in structure.walk(schema)),
        map_keys=not any(openapi.key_problems(inner, "") for schema in old for inner in structure.walk(schema)),
    )


def _defaults_are_pruned(schema: Tree) -> bool:
    if structure.obstacle(schema):
        return True
    for inner in structure.walk(schema):
        default = inner.get("default")
        if default is not None:
            copied = copy_json(default)
            pruning.prune_default(copied, node_of(inner))
            if copied != default:
                return False
    return True
