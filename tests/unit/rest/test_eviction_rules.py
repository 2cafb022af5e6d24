"""Disruption budgets as evictions spend them, and what a binding makes of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.errors import APIError
from fastapi_core.rest.binding import assigned, check
from fastapi_core.rest.eviction import MOST_DISRUPTED, beyond_budgets, delete_options, spent, unhealthy_may_go

Tree = dict[str, Any]


def budget(**status: Any) -> Tree:
    whole = {"observedGeneration": 2, "disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, **status}
    return {"metadata": {"name": "b", "generation": 2}, "spec": {}, "status": whole}


def refused(tree: Tree) -> APIError:
    with pytest.raises(APIError) as raised:
        spent(tree, "p")
    return raised.value


def test_an_eviction_takes_one() -> None:
    before = budget()
    status = spent(before, "p")["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (1, ["p"])
    assert "conditions" not in status
    assert before == budget()


def test_the_last_one_is_told() -> None:
    (condition,) = spent(budget(disruptionsAllowed=1), "p")["status"]["conditions"]
    shown = {name: condition[name] for name in ("type", "status", "reason", "observedGeneration")}
    assert shown == {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "observedGeneration": 2,
    }


def test_nothing_left() -> None:
    error = refused(budget(disruptionsAllowed=0))
    assert (error.code, error.retry_after) == (429, 0)
    assert error.details == {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget b needs 1 healthy pods and has 3 currently",
            }
        ]
    }


def test_a_budget_nobody_has_looked_at_yet() -> None:
    error = refused(budget(observedGeneration=1))
    assert (error.code, error.retry_after) == (429, 10)
    assert error.details is not None
    assert error.details["causes"][0]["message"] == "The disruption budget b is still being processed by the server."


def test_budgets_that_cannot_be() -> None:
    assert "negative" in refused(budget(disruptionsAllowed=-1)).message
    many = {f"p{i}": "2020-01-01T00:00:00Z" for i in range(MOST_DISRUPTED + 1)}
    assert "too big" in refused(budget(disruptedPods=many)).message


@pytest.mark.parametrize(
    ("policy", "status", "expected"),
    [
        (None, {"currentHealthy": 1, "desiredHealthy": 1}, True),
        (None, {"currentHealthy": 0, "desiredHealthy": 1}, False),
        (None, {"currentHealthy": 0, "desiredHealthy": 0}, False),
        ("IfHealthyBudget", {"currentHealthy": 0, "desiredHealthy": 1}, False),
        ("AlwaysAllow", {"currentHealthy": 0, "desiredHealthy": 1}, True),
    ],
)
def test_unhealthy_pods(policy: str | None, status: Tree, expected: bool) -> None:
    assert unhealthy_may_go({"spec": {"unhealthyPodEvictionPolicy": policy}, "status": status}) == expected


def test_pods_that_do_no_work() -> None:
    for phase, expected in (("Pending", True), ("Succeeded", True), ("Failed", True), ("Running", False)):
        assert beyond_budgets({"metadata": {}, "status": {"phase": phase}}) == expected
    assert beyond_budgets({"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Running"}})


def test_options_of_an_eviction() -> None:
    tree = {"gracePeriodSeconds": 5, "preconditions": {"uid": "u", "resourceVersion": "7"}, "dryRun": ["All"]}
    options = delete_options(tree, dry_run=False)
    assert (options.grace, options.uid, options.resource_version, options.dry_run) == (5, "u", "7", True)
    assert delete_options({}, dry_run=True).dry_run
    with pytest.raises(APIError):
        delete_options({"dryRun": ["Some"]}, dry_run=False)


# Binding


def pod(**spec: Any) -> Tree:
    metadata = {"name": "p", "uid": "u", "resourceVersion": "7", "generation": 1, "annotations": {"a": "1", "b": "1"}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending", "nominatedNodeName": "n"}}


def binding(**metadata: Any) -> Tree:
    return {"metadata": {"name": "p", **metadata}, "target": {"kind": "Node", "name": "n1"}}


def test_a_pod_gets_its_node() -> None:
    before = pod()
    after = assigned(before, binding(annotations={"b": "2", "c": "3"}, labels={"zone": "z"}), "key")
    assert after["spec"]["nodeName"] == "n1"
    assert after["metadata"]["annotations"] == {"a": "1", "b": "2", "c": "3"}
    assert after["metadata"]["labels"] == {"zone": "z"}
    assert after["metadata"]["generation"] == 1
    (condition,) = after["status"]["conditions"]
    assert (condition["type"], condition["status"], "observedGeneration" in condition) == (
        "PodScheduled",
        "True",
        False,
    )
    followed = assigned({**before, "status": {"observedGeneration": 1}}, binding(), "key")
    assert followed["status"]["conditions"][0]["observedGeneration"] == 1
    assert "nominatedNodeName" not in after["status"]
    assert before == pod()


@pytest.mark.parametrize(
    ("tree", "metadata", "text"),
    [
        (pod(nodeName="other"), {}, 'on pods/binding "p": pod p is already assigned to node "other"'),
        (pod(schedulingGates=[{"name": "g"}]), {}, "pod p has non-empty .spec.schedulingGates"),
        (pod(), {"uid": "other"}, "Precondition failed: UID in precondition: other, UID in object meta: u"),
        (pod(), {"resourceVersion": "6"}, "Precondition failed: RV in precondition: 6, RV in object meta: 7"),
        ({**pod(), "metadata": {"name": "p", "deletionTimestamp": "x"}}, {}, "pod p is being deleted"),
    ],
)
def test_pods_that_cannot_be_bound(tree: Tree, metadata: Tree, text: str) -> None:
    with pytest.raises(APIError) as raised:
        assigned(tree, binding(**metadata), "key")
    assert raised.value.code == 409
    assert text in raised.value.message


def test_bindings_that_say_nothing() -> None:
    tree = {"metadata": {"name": "p"}, "target": {"kind": "Pod"}}
    with pytest.raises(APIError) as raised:
        check(tree)
    text = '[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]'
    assert (raised.value.code, raised.value.reason, raised.value.message) == (500, "", text)
