"""Any well-typed object, however odd, passes through defaults, strategy, validation, conversion and printing."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.apis.defaults import apply_defaults
from fastapi_core.apis.resources import builtin
from fastapi_core.errors import APIError, invalid
from fastapi_core.registry.conversion import converter
from fastapi_core.registry.metadata import validate_metadata
from fastapi_core.registry.printers import compile_row, printer
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.types import Field, Type

STORED = [d for d in builtin() if d.key_prefix]
TEXTS = st.sampled_from(
    [
        "",
        "a",
        "Running",
        "True",
        "LoadBalancer",
        "NodePort",
        "ExternalName",
        "None",
        "Always",
        "kubernetes.io/tls",
        "<&>",
    ]
)
NUMBERS = st.sampled_from([0, 1, -1, 80, 2**31 - 1])
FORMS: dict[str, st.SearchStrategy[Any]] = {
    "time": st.sampled_from([None, "2024-01-01T00:00:00Z", "0001-01-01T00:00:00Z"]),
    "microtime": st.sampled_from([None, "2024-01-01T00:00:00.000001Z"]),
    "quantity": st.sampled_from(["0", "1", "500m", "1Gi", None]),
    "intOrString": st.sampled_from([0, 8, "25%", ""]),
    "duration": st.sampled_from(["0s", "1m0s"]),
    "rawObject": st.just({"a": 1}),
    "fields": st.just({}),
}


@st.composite
def value(draw: st.DrawFn, field: Field, depth: int) -> Any:
    if field.card == "list":
        return draw(st.lists(element(field, depth - 1), max_size=2))
    if field.card == "map":
        return draw(
            st.dictionaries(st.sampled_from(["a", "cpu", "memory", "b.c/d"]), element(field, depth - 1), max_size=2)
        )
    return draw(element(field, depth - 1))


def element(field: Field, depth: int) -> st.SearchStrategy[Any]:
    if field.type is not None:
        return FORMS.get(field.type.json, st.none()) if field.type.json else st.none() | struct(field.type, depth)
    if field.scalar == "string":
        return TEXTS
    if field.scalar == "bool":
        return st.booleans()
    if field.scalar == "bytes":
        return st.sampled_from(["", "e30=", "YQ=="])
    return NUMBERS


@st.composite
def struct(draw: st.DrawFn, type_: Type, depth: int) -> dict[str, Any]:
    names = list(type_.fields)
    if depth <= 0 or not names:
        return {}
    chosen = draw(st.lists(st.sampled_from(names), max_size=6, unique=True))
    favoured = [name for name in ("spec", "status", "containers", "ports", "template") if name in names]
    return {name: draw(value(type_.fields[name], depth)) for name in {*chosen, *favoured} if name != "metadata"}


@pytest.mark.parametrize("definition", STORED, ids=lambda d: f"{d.group_version}-{d.kind}")
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_object_passes(definition: Any, data: st.DataObject) -> None:
    allocator = ServiceAllocator()
    trees = []
    for _ in range(2):
        body = data.draw(struct(definition.type, 6))
        body["metadata"] = {"name": "x", "namespace": "n" if definition.namespaced else "", "uid": "u"}
        try:
            tree = normalize(definition.type, body).tree
        except TypeMismatch:
            return
        apply_defaults(definition, tree)
        trees.append(tree)
    old, new = trees
    if definition.kind == "Service":
        definition = allocator.bind(definition)
    for tree, before in ((old, None), (new, old)):
        with suppress(APIError):
            definition.strategy.prepare(tree, before)
        problems = validate_metadata(tree, before, definition=definition) + definition.strategy.validate(tree, before)
        invalid(definition.kind, definition.group, "x", problems).to_status()
        definition.strategy.warnings(tree, before)
        definition.strategy.canonicalize(tree, before)
        stored = normalize(definition.type, tree).tree
        compile_row(printer(definition).cells(stored))
        for target in STORED:
            convert = converter(definition, target) if target.kind == definition.kind else None
            if convert is not None:
                normalize(target.type, convert(stored))
    status = normalize(definition.type, new).tree
    definition.strategy.prepare_status(status, old)
