"""Rules, equivalent versions, selectors of namespaces and objects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext.objects import CachedObject
from fastapi_core._ext.selector import Matcher
from fastapi_core.admission.matching import Constraint, Rules, Selector, equivalents, kind_of, named
from fastapi_core.apis.resources import builtin
from fastapi_core.codec import json as json_codec
from fastapi_core.errors import APIError
from fastapi_core.meta import selectors
from fastapi_core.registry.definition import ResourceDefinition
from tests.fixtures.admission import World, definition, request, world

__all__ = ["world"]

EQUALS = equivalents(builtin())


def served(plural: str, group: str, version: str) -> ResourceDefinition:
    return next(d for d in builtin() if (d.plural, d.group, d.version) == (plural, group, version))


def rule(resources: str, group: str = "", version: str = "v1", operation: str = "CREATE", **more: Any) -> Any:
    return {
        "apiGroups": [group], "apiVersions": [version], "operations": [operation], "resources": resources.split(),
        "scope": "*", **more,
    }  # fmt: skip


def matches(tree: Any, plural: str, subresource: str = "", group: str = "", operation: str = "CREATE") -> bool:
    return bool(Rules([tree], "Exact").candidates(operation, definition(plural, group), subresource, EQUALS))


@pytest.mark.parametrize(
    ("resources", "plural", "subresource", "expected"),
    [
        ("pods", "pods", "", True),
        ("pods", "pods", "status", False),
        ("*", "pods", "", True),
        ("*", "pods", "status", False),
        ("*/*", "pods", "", True),
        ("*/*", "pods", "status", True),
        ("pods/*", "pods", "", True),
        ("pods/*", "pods", "exec", True),
        ("*/status", "pods", "status", True),
        ("*/status", "pods", "", False),
        ("secrets configmaps", "configmaps", "", True),
        ("secrets", "configmaps", "", False),
    ],
)
def test_resources(resources: str, plural: str, subresource: str, expected: bool) -> None:
    assert matches(rule(resources), plural, subresource) is expected


def test_operations_groups_versions_and_scope() -> None:
    assert not matches(rule("pods", operation="UPDATE"), "pods")
    assert matches(rule("pods", operation="*"), "pods", operation="DELETE")
    assert not matches(rule("pods", group="apps"), "pods")
    assert matches(rule("deployments", group="*", version="*"), "deployments", group="apps")
    assert not matches(rule("pods", version="v2"), "pods")
    assert matches(rule("pods", scope="Namespaced"), "pods")
    assert not matches(rule("pods", scope="Cluster"), "pods")
    # Namespaces are objects of the cluster, whatever attribute they have.
    assert matches(rule("namespaces", scope="Cluster"), "namespaces")
    assert not matches(rule("namespaces", scope="Namespaced"), "namespaces")


def test_other_versions_match_when_they_are_equivalent() -> None:
    new, old = (
        served("horizontalpodautoscalers", "autoscaling", "v2"),
        served("horizontalpodautoscalers", "autoscaling", "v1"),
    )
    trees = [rule("horizontalpodautoscalers", "autoscaling", "v1")]
    assert Rules(trees, "Exact").candidates("CREATE", new, "", EQUALS) == []
    [found] = Rules(trees, "Equivalent").candidates("CREATE", new, "", EQUALS)
    assert found.target is old
    # What matches as it is wins.
    [found] = Rules([*trees, rule("*", "*", "*")], "Equivalent").candidates("CREATE", new, "", EQUALS)
    assert found.target is new
    # Events of both groups are the same objects.
    [found] = Rules([rule("events")], "Equivalent").candidates(
        "CREATE", served("events", "events.k8s.io", "v1"), "", EQUALS
    )
    assert found.target is served("events", "", "v1")


def test_names() -> None:
    rules = Rules([rule("pods", resourceNames=["a", "b"]), rule("pods", resourceNames=["c"])], "Exact")
    candidates = rules.candidates("CREATE", definition("pods"), "", EQUALS)
    assert named(candidates, "c") is definition("pods")
    assert named(candidates, "d") is None


def test_kinds_of_subresources() -> None:
    assert kind_of(definition("pods"), "") == ("", "v1", "Pod")
    assert kind_of(definition("pods"), "status") == ("", "v1", "Pod")
    assert kind_of(definition("pods"), "eviction") == ("policy", "v1", "Eviction")
    assert kind_of(definition("deployments", "apps"), "scale") == ("autoscaling", "v1", "Scale")


async def test_selectors_of_namespaces(world: World) -> None:
    await world.add("namespaces", "ns", labels={"team": "a"})
    namespaces = world.see("namespaces")
    mine = Constraint({"matchLabels": {"team": "a"}}, None)
    others = Constraint({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, {})
    configmap = request("configmaps", {"metadata": {"name": "x"}})
    assert mine.selected(configmap, namespaces)
    assert not others.selected(configmap, namespaces)
    # Objects outside of namespaces are in reach of every selector; a namespace counts with its new labels.
    assert mine.selected(request("nodes", {"metadata": {"name": "x"}}), namespaces)
    space = request("namespaces", {"metadata": {"name": "ns", "labels": {"team": "b"}}}, name="ns")
    space.namespace = "ns"
    assert not mine.selected(space, namespaces)
    space.operation = "DELETE"
    assert mine.selected(space, namespaces)
    with pytest.raises(APIError, match='namespaces "gone" not found'):
        mine.selected(request("configmaps", {"metadata": {}}, namespace="gone"), namespaces)
    assert Constraint({}, {}).selected(request("configmaps", {"metadata": {}}, namespace="gone"), namespaces)


async def test_selectors_of_objects(world: World) -> None:
    namespaces = world.see("namespaces")
    constraint = Constraint(None, {"matchLabels": {"a": "b"}})
    plain: Any = {"metadata": {"name": "x"}}
    labelled: Any = {"metadata": {"name": "x", "labels": {"a": "b"}}}
    assert constraint.selected(request("configmaps", labelled), namespaces)
    assert not constraint.selected(request("configmaps", plain), namespaces)
    # The object before the change counts, too.
    assert constraint.selected(request("configmaps", plain, old=labelled, operation="UPDATE"), namespaces)
    assert constraint.selected(request("configmaps", None, old=labelled, operation="DELETE"), namespaces)
    connect = request("pods", {"kind": "PodExecOptions"}, operation="CONNECT", subresource="exec")
    assert not constraint.selected(connect, namespaces)


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "x", "y"])
EXPRESSIONS = st.one_of(
    st.fixed_dictionaries({"key": KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
    st.fixed_dictionaries(
        {"key": KEYS, "operator": st.sampled_from(["In", "NotIn"]), "values": st.lists(VALUES, min_size=1, max_size=2)}
    ),
)


@settings(max_examples=100)
@given(
    st.fixed_dictionaries(
        {},
        optional={"matchLabels": st.dictionaries(KEYS, VALUES), "matchExpressions": st.lists(EXPRESSIONS, max_size=3)},
    ),
    st.dictionaries(KEYS, VALUES),
)
def test_a_selector_selects_what_lists_select(tree: Any, labels: dict[str, str]) -> None:
    stored = json_codec.encode({"kind": "X", "apiVersion": "v1", "metadata": {"name": "x", "labels": labels}})
    obj = CachedObject("/registry/x/x", "", "x", stored, 1, 1)
    expected = Matcher(selectors.from_object(tree), (), None).matches(obj)
    assert Selector(tree).matches(labels) is expected
