"""What decoding into the reference's structs and printing them again does to a tree.

- members come in the order of the type, map keys sorted; unknown members are dropped and their paths reported;
- null means unset; an unset or zero member is dropped when its type says so, printed as its zero value otherwise
  (pointers, lists and maps print null); structs are always printed; an empty list or map is an unset one, because the
  stored form of the reference cannot tell them apart (custom resource definitions are stored as JSON and can);
- integers keep their range, bytes are base64, times, durations and quantities take their canonical spelling.

The walk itself is compiled (`_ext/typed.pyx`); this module turns type tables into its plans.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from fastapi_core._ext import typed
from fastapi_core.meta import quantity
from fastapi_core.schema import forms
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.types import Field, Type

#: The reference stops collecting complaints about unknown and duplicate members here.
MAX_COMPLAINTS: Final = 100

_SCALARS: Final = {
    "string": (typed.STRING, ""),
    "bool": (typed.BOOL, False),
    "int32": (typed.INT32, 0),
    "int64": (typed.INT64, 0),
    "double": (typed.DOUBLE, 0),
    "bytes": (typed.BYTES, None),
}
_FORMS: Final[dict[str, tuple[int, Any, Callable[[Any], Any] | None]]] = {
    "time": (typed.TIME, None, forms.time),
    "microtime": (typed.MICROTIME, None, forms.microtime),
    "duration": (typed.CONVERT, "0s", forms.duration),
    "quantity": (typed.QUANTITY, "0", forms.quantity),
    "intOrString": (typed.INT_OR_STRING, 0, forms.int_or_string),
    "rawObject": (typed.RAW, None, None),
    "rawAny": (typed.RAW, None, None),
    "fields": (typed.RAW, None, None),
    "list": (typed.STRINGS, None, None),
    "schemaOrBool": (typed.SCHEMA_OR_BOOL, False, None),
    "schemaOrSchemaList": (typed.SCHEMA_OR_SCHEMAS, None, None),
    "schemaOrStringList": (typed.SCHEMA_OR_STRINGS, None, None),
}
_CARDS: Final = {"": typed.SINGLE, "list": typed.LIST, "map": typed.MAP}
_OMIT: Final = {"": 0, "empty": 1, "empty+zero": 2}
_GO_SCALARS: Final = {"double": "float64", "bytes": "[]uint8"}
_JSON_STORED: Final = "apiextensions.k8s.io/"
#: Lists that are defaulted when they are absent and refused when they are empty.
_MEANINGFUL: Final = {("autoscaling/v2.HPAScalingRules", "policies")}
_RESOURCE_LIST: Final = "core/v1.ResourceList"


class Normalized(NamedTuple):
    """A tree as the reference would print it, and the paths (`spec.containers[0].nope`) of what it does not know, in
    order, a hundred at most."""

    tree: dict[str, Any]
    unknown: list[str]


def normalize(type_: Type, tree: Any, *, share: bool = False, known: dict[str, Any] | None = None) -> Normalized:
    """Decode and print again; the input is not changed, but untyped parts of it are shared with the result.

    With `share` everything that is normal already is shared: for callers who have no use for the input afterwards, or
    who do not change the result. `known` is a normal tree that parts of the input come from: members that are the very
    same objects in both are taken as they are (a write seldom changes more than a corner of an object).
    A null tree is an object with nothing set. Raises TypeMismatch with the reference's text when a value does not fit
    its field.
    """
    try:
        result, unknown = (type_.plan or plan_of(type_)).run({} if tree is None else tree, share, known)
    except typed.Mismatch as error:
        raise TypeMismatch(_mismatch_text(type_, error)) from None
    except ValueError as error:
        raise TypeMismatch(str(error)) from None
    return Normalized(result, list(dict.fromkeys(unknown)) if unknown else unknown)


def canonical(type_: Type, tree: dict[str, Any], known: dict[str, Any] | None = None) -> dict[str, Any]:
    """Just the tree of `normalize(type_, tree, share=True, known=known)`."""
    plan: typed.Plan = type_.plan or plan_of(type_)
    try:
        return plan.run(tree, True, known)[0]
    except (typed.Mismatch, ValueError):
        return normalize(type_, tree, share=True).tree


def _mismatch_text(type_: Type, error: typed.Mismatch) -> str:
    if error.struct is None:
        return f"json: cannot unmarshal {error.value} into Go value of type {go_name(type_.ref)}"
    path = ".".join(reversed(error.path))
    return f"json: cannot unmarshal {error.value} into Go struct field {error.struct}.{path} of type {error.wanted}"


def plan_of(type_: Type) -> typed.Plan:
    """The compiled plan of a struct type, made once."""
    plan: typed.Plan | None = type_.plan
    if plan is None:
        plan = type_.plan = typed.Plan(type_.name, _field_plans(type_))
    return plan


def _field_plans(type_: Type) -> list[typed.FieldPlan]:
    fields = list(type_.fields.values())
    if type_.kind:
        fields = [Field("kind", scalar="string"), Field("apiVersion", scalar="string"), *fields]
    stored = int(type_.ref.startswith(_JSON_STORED))
    return [
        _field_plan(field, index, 2 if (type_.ref, field.name) in _MEANINGFUL else stored)
        for index, field in enumerate(fields)
    ]


def _field_plan(field: Field, index: int, keep_empty: int) -> typed.FieldPlan:
    convert: Callable[[Any], Any] | None = None
    text: Callable[[str], str] | None = None
    make: Callable[[], typed.Plan] | None = None
    target = field.type
    if target is None:
        op, zero = _SCALARS[field.scalar]
        if field.scalar == "bytes":
            convert, zero = forms.data, "" if field.card else zero
    elif target.json:
        op, zero, convert = _FORMS[target.json]
        if op == typed.QUANTITY:
            text = quantity.canonical
            if field.alias == _RESOURCE_LIST:
                convert, text = forms.quantity_milli, quantity.canonical_milli
        if target.json.startswith("schema"):
            make = _maker(_schema_of(target))
    else:
        op, zero, make = typed.STRUCT, None, _maker(target)
    return typed.FieldPlan(
        field.name,
        index,
        op,
        _CARDS[field.card],
        field.pointer,
        _OMIT[field.omit],
        keep_empty=keep_empty,
        wanted=element_type(field),
        container=container_type(field),
        convert=convert,
        text=text,
        zero=zero,
        make=make,
    )


def _schema_of(form: Type) -> Type:
    """The schema type a short form stands for: the one struct among its members."""
    return next(field.type for field in form.declared if field.type is not None)


def _maker(type_: Type) -> Callable[[], typed.Plan]:
    return lambda: plan_of(type_)


def go_name(ref: str) -> str:
    """`v1.Pod` of `core/v1.Pod`: a type as Go prints it."""
    return ref.rpartition("/")[2]


def element_type(field: Field) -> str:
    """Go type of a value of a field, of its elements for a list or map."""
    alias = field.elem_alias if field.card else field.alias
    if alias:
        return go_name(alias)
    if field.scalar:
        return _GO_SCALARS.get(field.scalar, field.scalar)
    return go_name(field.ref)


def container_type(field: Field) -> str:
    """Go type of a whole list or map field."""
    if not field.card:
        return ""
    if field.alias:
        return go_name(field.alias)
    if field.card == "list":
        return "[]" + element_type(field)
    return f"map[{go_name(field.key_alias) or 'string'}]{element_type(field)}"
