from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.authz import rules


def rule(groups: str, resources: str, verbs: str, names: str = "") -> dict[str, Any]:
    found = {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(",")}
    return found | ({"resourceNames": names.split(",")} if names else {})


def paths(urls: str, verbs: str) -> dict[str, Any]:
    return {"nonResourceURLs": urls.split(","), "verbs": verbs.split(",")}


@pytest.mark.parametrize(
    ("owned", "wanted", "missing"),
    [
        ([rule("", "pods", "get,list")], [rule("", "pods", "get")], []),
        ([rule("", "pods", "get")], [rule("", "pods", "get,list")], ['{APIGroups:[""], Resources:["pods"], Verbs:["list"]}']),
        ([rule("", "pods", "get"), rule("", "pods", "list")], [rule("", "pods", "get,list")], []),
        ([rule("*", "*", "*")], [rule("a,b", "x,y/z", "get,x")], []),
        ([rule("", "*/log", "get")], [rule("", "pods/log", "get")], []),
        (
            [rule("", "pods", "get")], [rule("", "pods/log", "get,list")],
            ['{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "list"]}'],
        ),
        ([rule("", "pods", "get")], [rule("", "pods", "get", "a")], []),
        ([rule("", "pods", "get", "a,b")], [rule("", "pods", "get", "a")], []),
        ([rule("", "pods", "get", "a")], [rule("", "pods", "get")], ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}']),
        (
            [], [rule("", "pods", "get", "a,b")],
            ['{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}',
             '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}'],
        ),
        ([paths("/x/*", "get")], [paths("/x/y,/x/*", "get")], []),
        ([paths("/x/*", "*")], [paths("/x", "get")], ['{NonResourceURLs:["/x"], Verbs:["get"]}']),
        ([paths("*", "*")], [rule("", "*", "*")], ['{APIGroups:[""], Resources:["*"], Verbs:["*"]}']),
    ],
)  # fmt: skip
def test_what_is_not_covered(owned: list[Any], wanted: list[Any], missing: list[str]) -> None:
    assert [rules.text(r) for r in rules.compact(rules.uncovered(owned, wanted))] == missing


def test_only_everything_covers_everything() -> None:
    assert not rules.uncovered(rules.FULL_AUTHORITY, rules.FULL_AUTHORITY)
    assert rules.uncovered([rule("*", "*", "*")], rules.FULL_AUTHORITY)


def test_texts_are_quoted_like_the_reference_s() -> None:
    assert rules.text(rule('a"b', "x", "get")) == '{APIGroups:["a\\"b"], Resources:["x"], Verbs:["get"]}'
    assert rules.text({"verbs": ["get"], "apiGroups": []}) == '{Verbs:["get"]}'


@pytest.mark.parametrize("wrong", [{"verbs": "get"}, {"verbs": [1]}, {"resourceNames": {"a": 1}}, [], "x"])
def test_rules_of_another_shape_are_no_rules(wrong: Any) -> None:
    with pytest.raises(ValueError, match="not what a rule"):
        rules.RuleSet([wrong])
