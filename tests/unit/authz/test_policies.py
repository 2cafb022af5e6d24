from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.authz import policies

FACTS = Path(__file__).resolve().parents[4] / "shared/facts/rbac.json"


def object_of(plural: str, name: str) -> dict[str, Any]:
    return next(tree for tree in dict(policies.expected())[plural] if tree["metadata"]["name"] == name)


def test_the_objects_are_those_of_the_reference() -> None:
    if not FACTS.exists():
        pytest.skip("facts are not here")
    facts = json.loads(FACTS.read_text())
    for plural, trees in policies.expected():
        found = {}
        for tree in trees:
            metadata = tree["metadata"]
            key = "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)
            rest = {k: v for k, v in tree.items() if k not in ("kind", "apiVersion", "metadata")}
            found[key] = {"labels": metadata["labels"], "annotations": metadata["annotations"], **rest}
        # A binding of nobody is the same with and without a list of them.
        wanted = {key: {k: v for k, v in tree.items() if k != "subjects" or v} for key, tree in facts[plural].items()}
        assert found == wanted, plural


def test_what_is_complete_needs_nothing() -> None:
    for _, trees in policies.expected():
        for tree in trees:
            assert policies.corrected(tree, tree) is None


def test_missing_rules_come_back_and_added_ones_stay() -> None:
    wanted = object_of("clusterroles", "system:discovery")
    extra = {"nonResourceURLs": ["/mine"], "verbs": ["get"]}
    kept = {"nonResourceURLs": wanted["rules"][0]["nonResourceURLs"][1:], "verbs": ["get"]}
    correction = policies.corrected({**wanted, "rules": [extra, kept]}, wanted)
    lost = wanted["rules"][0]["nonResourceURLs"][0]
    assert correction is not None
    assert correction.tree["rules"] == [extra, kept, {"nonResourceURLs": [lost], "verbs": ["get"]}]
    assert policies.corrected({**wanted, "rules": [*wanted["rules"], extra]}, wanted) is None


def test_labels_and_annotations_come_back_with_the_values_somebody_gave_them() -> None:
    wanted = object_of("clusterroles", "view")
    bare = {**wanted, "metadata": {"name": "view", "labels": {"kubernetes.io/bootstrapping": "mine", "own": "x"}}}
    correction = policies.corrected(bare, wanted)
    assert correction is not None
    metadata = correction.tree["metadata"]
    assert metadata["annotations"] == wanted["metadata"]["annotations"]
    assert metadata["labels"] == {**wanted["metadata"]["labels"], "kubernetes.io/bootstrapping": "mine", "own": "x"}


def test_an_object_that_is_not_to_be_updated_is_left_alone() -> None:
    wanted = object_of("clusterroles", "system:discovery")
    metadata = {**wanted["metadata"], "annotations": {policies.AUTO_UPDATE: "false"}}
    assert policies.corrected({**wanted, "metadata": metadata, "rules": []}, wanted) is None


def test_selectors_of_an_aggregated_role_come_back_and_its_rules_are_nobody_s_business() -> None:
    wanted = object_of("clusterroles", "admin")
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    assert policies.corrected({**wanted, "rules": rules}, wanted) is None
    correction = policies.corrected({**wanted, "rules": rules, "aggregationRule": None}, wanted)
    assert correction is not None
    assert (correction.tree["aggregationRule"], correction.tree["rules"]) == (wanted["aggregationRule"], rules)


def test_a_binding_gets_its_subjects_back_or_is_made_anew_for_another_role() -> None:
    wanted = object_of("clusterrolebindings", "system:discovery")
    other = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "x"}
    correction = policies.corrected({**wanted, "subjects": [other]}, wanted)
    assert correction is not None
    assert (correction.tree["subjects"], correction.anew) == ([other, *wanted["subjects"]], False)
    moved = {**wanted, "roleRef": {**wanted["roleRef"], "name": "cluster-admin"}}
    assert policies.corrected(moved, wanted) == policies.Correction(wanted, anew=True)
