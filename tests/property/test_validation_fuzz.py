"""Whatever a client sends, validation answers with errors, never with an exception, and tells the same twice."""

from __future__ import annotations

import copy
import random
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastapi_core.apis.resources import builtin
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.normalize import normalize
from tests.fixtures.validation_bases import bases

DEFINITIONS = {(d.group_version, d.kind): d for d in builtin()}
BASES = bases()
ODD: list[Any] = [
    None, "", "a", "Bad_!@ x", "é", "a" * 300, "/..", "*", "-1", "1.5", "10.0.0.0/8", "::1", "100%", 0, -1, 1, 70000, 2**31 - 1,
    True, False, [], {}, [""], [{}], [None], {"": ""}, {"a": "b"}, {"cpu": "-1"}, {"x.y/z": "1"},
]  # fmt: skip


def spots(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything in a tree."""
    out: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        out.append((value, key))
        out += spots(item)
    return out


def read(definition: ResourceDefinition, tree: Tree) -> Tree | None:
    """The tree as the write handlers would pass it on; None when decoding refuses it."""
    try:
        normal = normalize(definition.type, orjson.loads(orjson.dumps(tree))).tree
    except TypeMismatch:
        return None
    normal["metadata"] = {"name": "x", **(normal.get("metadata") or {}), "uid": "u", "creationTimestamp": None}
    apply_defaults(definition, normal)
    return normal


@pytest.mark.parametrize("index", range(len(BASES)), ids=[f"{b['kind']}-{b['metadata']['name']}" for b in BASES])
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), count=st.integers(1, 6))
def test_no_object_breaks_validation(index: int, seed: int, count: int) -> None:
    base = BASES[index]
    definition = DEFINITIONS[base["apiVersion"], base["kind"]]
    chance = random.Random(seed)
    changed = copy.deepcopy(base)
    for _ in range(count):
        places = spots(changed)
        if not places:
            break
        holder, key = chance.choice(places)
        if chance.random() < 0.3:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(chance.choice(ODD))
    new, old = read(definition, changed), read(definition, base)
    if new is None or old is None:
        return
    strategy = definition.strategy
    first = strategy.validate(new, None)
    assert strategy.validate(new, None) == first
    for error in [*first, *strategy.validate(new, old), *strategy.validate(old, new)]:
        assert error.cause()["message"]
        assert not error.field.startswith(".")
    strategy.warnings(new, None)
    strategy.warnings(new, old)


@pytest.mark.parametrize("index", range(len(BASES)), ids=[f"{b['kind']}-{b['metadata']['name']}" for b in BASES])
def test_an_unchanged_object_stays_valid(index: int) -> None:
    base = BASES[index]
    definition = DEFINITIONS[base["apiVersion"], base["kind"]]
    tree = read(definition, base)
    assert tree is not None
    definition.strategy.prepare(tree, None)
    assert definition.strategy.validate(tree, None) == []
    assert definition.strategy.validate(copy.deepcopy(tree), tree) == []
