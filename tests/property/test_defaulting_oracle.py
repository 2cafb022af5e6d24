"""The compiled walks of defaults equal the oracle."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext.defaulting import EMPTY, LIST, MAP, SINGLE, UNSET, ZERO, Fill, Walk
from tests.oracles import defaulting as oracle

NAMES = st.sampled_from(["a", "b", "c", "d"])
JSON = st.recursive(
    st.sampled_from([None, True, False, 0, 0.0, 1, "", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
PLANS = st.recursive(
    st.builds(dict, pairs=st.lists(st.tuples(NAMES, JSON, st.integers(0, 2)), max_size=3), members=st.just({})),
    lambda inner: st.builds(
        dict,
        pairs=st.lists(st.tuples(NAMES, JSON, st.integers(0, 2)), max_size=2),
        members=st.dictionaries(NAMES, st.tuples(st.integers(0, 2), inner), max_size=4),
    ),
    max_leaves=6,
)


def compiled(plan: dict[str, Any]) -> Walk:
    walk = Walk()
    members = {name: (card, compiled(inner)) for name, (card, inner) in plan["members"].items()}
    walk.define((Fill(*plan["pairs"]),) if plan["pairs"] else (), members)
    return walk


def test_the_names_are_the_oracles() -> None:
    assert (UNSET, ZERO, EMPTY) == (oracle.UNSET, oracle.ZERO, oracle.EMPTY)
    assert (SINGLE, LIST, MAP) == (oracle.SINGLE, oracle.LIST, oracle.MAP)


@given(PLANS, st.dictionaries(NAMES, JSON, max_size=4))
@settings(max_examples=200)
def test_walks(plan: dict[str, Any], tree: dict[str, Any]) -> None:
    declared = json.dumps(plan)
    wanted = copy.deepcopy(tree)
    oracle.run(plan, wanted)
    compiled(plan).run(tree)
    assert json.dumps(tree) == json.dumps(wanted)
    spoil(tree)
    assert json.dumps(plan) == declared


@given(PLANS, st.dictionaries(NAMES, JSON, max_size=4), st.dictionaries(NAMES, JSON, max_size=4))
@settings(max_examples=200)
def test_parts_of_a_complete_tree_are_left_alone(
    plan: dict[str, Any], before: dict[str, Any], change: dict[str, Any]
) -> None:
    """Completing a tree that shares parts with a complete one gives what completing a copy gives, and touches no part."""
    walk = compiled(plan)
    walk.run(before)
    kept = copy.deepcopy(before)
    tree = {**before, **change}
    wanted = copy.deepcopy(tree)
    walk.run(wanted)
    walk.run(tree, before)
    assert json.dumps(tree) == json.dumps(wanted)
    assert before == kept


def spoil(value: Any) -> None:
    """What a walk has set can be changed without changing the declaration."""
    if isinstance(value, dict):
        for inner in value.values():
            spoil(inner)
        value["spoilt"] = 1
    elif isinstance(value, list):
        for inner in value:
            spoil(inner)
        value.append("spoilt")


def test_functions_are_rules_too() -> None:
    seen = []
    walk, inner = Walk(), Walk()
    inner.define((lambda tree: seen.append(tree["n"]),), {})
    walk.define((Fill(("n", 0, UNSET)), lambda tree: seen.append(tree["n"])), {"items": (LIST, inner)})
    walk.run({"items": [{"n": 1}, {"n": 2}]})
    assert seen == [0, 1, 2]
    assert not walk.idle
    assert Walk().idle


def test_errors_of_rules_come_through() -> None:
    walk = Walk()
    walk.define((lambda tree: tree["nope"],), {})
    outer = Walk()
    outer.define((), {"a": (SINGLE, walk)})
    with pytest.raises(KeyError):
        outer.run({"a": {}})


@pytest.mark.parametrize("pair", [(1, "x", UNSET), ("a", "x", 3), ("a", "x", "UNSET")])
def test_wrong_declarations_are_refused(pair: Any) -> None:
    with pytest.raises(ValueError, match="no member and condition"):
        Fill(pair)


def test_walks_that_never_end_do_end() -> None:
    walk = Walk()
    walk.define((), {"a": (SINGLE, walk)})
    tree: dict[str, Any] = {}
    tree["a"] = tree
    with pytest.raises(RecursionError):
        walk.run(tree)
