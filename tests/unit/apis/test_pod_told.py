"""Pods: annotations that must be right, selectors that are completed, statuses, and what is warned about."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.apis.validation import pod_warnings
from fastapi_core.apis.validation.pods import pod_update
from fastapi_core.apis.validation.rules import Report

Tree = dict[str, Any]
POD = next(d for d in builtin() if d.kind == "Pod")
ARMOR = "container.apparmor.security.beta.kubernetes.io/c"


def pod(annotations: dict[str, str] | None = None, **spec: Any) -> Tree:
    container = {
        "name": "c", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File",
    }  # fmt: skip
    return {
        "metadata": {"name": "p", "namespace": "n", "annotations": annotations or {}},
        "spec": {
            "containers": [container], "restartPolicy": "Always", "dnsPolicy": "Default", "serviceAccountName": "d",
            "terminationGracePeriodSeconds": 30, **spec,
        },
    }  # fmt: skip


def created(tree: Tree) -> tuple[list[str], list[str], Tree]:
    """(errors, warnings, the pod) of a create."""
    strategy = POD.strategy
    strategy.prepare(tree, None)
    problems = [str(error) for error in strategy.validate(tree, None)]
    warnings = strategy.warnings(tree, None)
    strategy.canonicalize(tree, None)
    return problems, warnings, tree


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"kubernetes.io/config.mirror": "x"}, 'Invalid value: "x": must set spec.nodeName'),
        ({"controller.kubernetes.io/pod-deletion-cost": "+10"}, 'Invalid value: "+10": must be a 32bit integer'),
        ({"seccomp.security.alpha.kubernetes.io/pod": "x"}, 'Invalid value: "x": must be a valid seccomp profile'),
        ({ARMOR + "x": "unconfined"}, 'Invalid value: "cx": container not found'),
        ({ARMOR: "x"}, 'invalid AppArmor profile name: "x"'),
    ],
)
def test_annotations_are_checked(annotations: dict[str, str], expected: str) -> None:
    problems, _, _ = created(pod(annotations))
    assert len(problems) == 1
    assert expected in problems[0]


def test_the_annotation_of_a_profile_becomes_the_field() -> None:
    problems, warnings, tree = created(pod({ARMOR: "localhost/x"}))
    assert problems == []
    assert warnings == [
        f'metadata.annotations[{ARMOR}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    ]
    profile = tree["spec"]["containers"][0]["securityContext"]["appArmorProfile"]
    assert profile == {"type": "Localhost", "localhostProfile": "x"}


def test_annotation_and_field_agree() -> None:
    tree = pod({ARMOR: "unconfined"})
    tree["spec"]["containers"][0]["securityContext"] = {"appArmorProfile": {"type": "RuntimeDefault"}}
    problems, _, _ = created(tree)
    at = "spec.containers[0].securityContext.appArmorProfile.type"
    assert problems == [f"{at}: Forbidden: apparmor type in annotation and field must match"]


def test_label_keys_complete_the_selector() -> None:
    term = {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["b", "none"]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    tree = pod(affinity={"podAffinity": {required: [term]}})
    tree["metadata"]["labels"] = {"a": "1", "b": "2"}
    problems, _, tree = created(tree)
    assert problems == []
    assert tree["spec"]["affinity"]["podAffinity"][required][0]["labelSelector"]["matchExpressions"] == [
        {"key": "a", "operator": "In", "values": ["1"]},
        {"key": "b", "operator": "NotIn", "values": ["2"]},
    ]


def test_updates_of_annotations() -> None:
    old = pod({ARMOR: "unconfined"})
    for new, text in ((pod(), "may not remove or update AppArmor annotations"), (pod({ARMOR: "x"}), "may not remove")):
        report = Report(old)
        pod_update(new, "", report)
        assert any(text in str(error) for error in report)


def test_a_deadline_that_is_taken_away_does_not_hide_the_rest() -> None:
    report = Report(pod(activeDeadlineSeconds=5))
    pod_update(pod(hostname="h"), "", report)
    assert [error.field for error in report] == ["spec.activeDeadlineSeconds", "spec"]


def status(old: Tree, new: Tree, **spec: Any) -> list[str]:
    before, tree = pod(**spec), pod(**spec)
    before["status"], tree["status"] = {"qosClass": "BestEffort", **old}, {"qosClass": "BestEffort", **new}
    return [str(error) for error in POD.strategy.validate(tree, before)]


def test_a_container_that_ended_stays_so() -> None:
    ended = {"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 1}}}]}
    running = {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}
    text = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
    assert status(ended, running, restartPolicy="Never") == [text]
    assert status(ended, running, restartPolicy="OnFailure") == []
    assert status(running, ended, restartPolicy="Never") == []


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}, "no more than one IP for each IP family"),
        ({"hostIPs": [{"ip": "10.0.0.1"}]}, "must be equal to `hostIP`"),
        ({"qosClass": "Burstable"}, "field is immutable"),
        ({"conditions": [{"type": "a/b/c"}]}, "status.conditions[0].Type"),
        ({"resourceClaimStatuses": [{"name": "x"}]}, "must match the name of an entry in `spec.resourceClaims`"),
        ({"nominatedNodeName": "n"}, "already bound to a node"),
        (
            {"containerStatuses": [{"name": "c", "allocatedResourcesStatus": [{"name": "x.y/z"}]}]},
            "must match one of the container's resource requests",
        ),
        ({"containerStatuses": [{"name": "c", "user": {"linux": {"uid": -1}}}]}, "user.linux.uid"),
    ],
)
def test_what_a_node_reports(new: Tree, expected: str) -> None:
    problems = status({}, new, nodeName="n1")
    assert len(problems) == 1
    assert expected in problems[0]


def test_generations_of_conditions_are_kept() -> None:
    condition = {"type": "Ready", "status": "True"}
    old, new = pod(), pod()
    old["status"] = {"observedGeneration": 3, "conditions": [{**condition, "observedGeneration": 3}]}
    new["status"] = {"conditions": [copy.deepcopy(condition)]}
    POD.strategy.prepare_status(new, old)
    assert new["status"]["observedGeneration"] == new["status"]["conditions"][0]["observedGeneration"] == 3


def warned(**spec: Any) -> list[str]:
    return pod_warnings.pod_spec(spec, {}, "")


def test_paths_that_overlap() -> None:
    items = [{"key": "a", "path": "p"}, {"key": "b", "path": "p/q"}]
    assert warned(volumes=[{"name": "v", "configMap": {"name": "m", "items": items}}]) == [
        'volume "v" (ConfigMap "m"): overlapping paths: "p/q" with "p"'
    ]
    token = {"serviceAccountToken": {"path": "p/q"}}
    sources = [{"secret": {"name": "s", "items": items[:1]}}, token, {}]
    assert warned(volumes=[{"name": "v", "projected": {"sources": sources}}]) == [
        'volume "v" (Projected): overlapping paths: "p/q" (ServiceAccountToken) with "p" (Secret "s")',
        'volume "v" (Projected) has no sources provided',
    ]


def test_ports_of_all_containers_are_compared() -> None:
    one = {"name": "w", "containerPort": 80, "hostPort": 80, "protocol": "TCP"}
    other = {**one, "name": "w", "hostPort": 0, "hostIP": "1.2.3.4"}
    first = "spec.containers[0].ports[0]"
    second = "spec.containers[1].ports[0]"
    assert warned(containers=[{"name": "a", "ports": [one]}, {"name": "b", "ports": [other]}]) == [
        f"{second}: hostIP set without hostPort: {{Name:w HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.2.3.4}}",
        f"{second}: overlapping port definition with {first}",
        f'{second}: duplicate port name "w" with {first}, services and probes that select ports by name will use {first}',
    ]


def test_variables_that_add_to_the_earlier_one_are_fine() -> None:
    variables = [{"name": "A", "value": "x"}, {"name": "A", "value": "$(A):y"}]
    assert warned(containers=[{"name": "c", "env": variables}]) == []
    assert len(warned(containers=[{"name": "c", "env": [variables[0], variables[0]]}])) == 1


def test_addresses_in_other_forms() -> None:
    assert warned(dnsConfig={"nameservers": ["FD00::1"]}) == [
        'spec.dnsConfig.nameservers[0]: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")'
    ]
