"""Rules of the writable parts of pods and certificate signing requests."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from fastapi_core.apis.strategies import certificates, pod_parts
from fastapi_core.apis.strategies.pods import qos_class

Tree = dict[str, Any]
DAY = "2020-01-01T00:00:00Z"


def container(name: str, **resources: Any) -> Tree:
    return {
        "name": name,
        "image": "i",
        "imagePullPolicy": "Always",
        "terminationMessagePath": "/x",
        "terminationMessagePolicy": "File",
        "resources": resources,
    }


def pod(*containers: Tree, **more: Any) -> Tree:
    spec = {"containers": list(containers), "restartPolicy": "Always", "dnsPolicy": "Default"}
    tree: Tree = {"metadata": {"name": "p", "namespace": "n", "generation": 4}, "spec": spec}
    tree["status"] = {"phase": "Running", "qosClass": qos_class(spec)}
    tree["metadata"].update(more.pop("metadata", {}))
    tree["spec"].update(more)
    return tree


def resize(old: Tree, change: Any) -> tuple[Tree, list[str]]:
    new = copy.deepcopy(old)
    change(new)
    pod_parts.prepare_resize(new, old)
    return new, [str(error) for error in pod_parts.validate_resize(new, old)]


BURST = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m"}}


def test_a_resize_changes_resources_and_nothing_else() -> None:
    def change(new: Tree) -> None:
        new["spec"]["containers"][0]["resources"] = {**BURST, "requests": {"cpu": "150m", "memory": "64Mi"}}
        new["spec"]["containers"][0]["image"] = "other"
        new["metadata"]["labels"] = {"a": "b"}
        new["status"] = {}

    old = pod(container("c", **BURST))
    new, problems = resize(old, change)
    assert problems == []
    assert new["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "150m"
    assert new["spec"]["containers"][0]["image"] == "i"
    assert "labels" not in new["metadata"]
    assert (new["metadata"]["generation"], new["status"]) == (5, old["status"])


def test_a_resize_without_change_keeps_the_generation() -> None:
    assert resize(pod(container("c", **BURST)), lambda new: None)[0]["metadata"]["generation"] == 4


def _resources(index: int, **resources: Any) -> Any:
    return lambda new: new["spec"]["containers"][index].update(resources=resources)


@pytest.mark.parametrize(
    ("old", "change", "expected"),
    [
        (
            pod(container("c", **BURST)),
            _resources(0, requests={"cpu": "100m"}, limits={"cpu": "200m"}),
            ["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"],
        ),
        (
            pod(container("c", **BURST)),
            _resources(0, requests=BURST["requests"]),
            ["spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"],
        ),
        (
            pod(container("c")),
            _resources(0, requests={"cpu": "1"}),
            ['spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing'],
        ),
        (
            pod(container("c", **BURST)),
            _resources(0, **{**BURST, "requests": {**BURST["requests"], "ephemeral-storage": "1Gi"}}),
            ["spec: Forbidden: only cpu and memory resources are mutable"],
        ),
        (
            pod(container("a", **BURST), container("b", **BURST)),
            lambda new: new["spec"]["containers"].reverse(),
            [
                "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
                "spec.containers[1].name: Forbidden: containers may not be renamed or reordered on resize",
            ],
        ),
        (
            pod(container("a", **BURST)),
            lambda new: new["spec"]["containers"].append(container("b")),
            ["spec.containers: Forbidden: containers may not be added or removed on resize"],
        ),
        (
            pod(container("c", **BURST), metadata={"annotations": {pod_parts.MIRROR: "x"}}),
            lambda new: None,
            ["[]: Forbidden: static pods cannot be resized"],
        ),
    ],
)
def test_resizes_that_are_refused(old: Tree, change: Any, expected: list[str]) -> None:
    assert resize(old, change)[1] == expected


def test_a_node_that_cannot_resize() -> None:
    old = pod(container("c", **BURST))
    old["status"]["containerStatuses"] = [{"name": "c", "state": {"running": {}}}]
    _, problems = resize(old, _resources(0, **{**BURST, "requests": {"cpu": "150m", "memory": "64Mi"}}))
    assert problems == ["spec: Forbidden: Pod running on node without support for resize"]


def test_debug_containers_come_and_stay() -> None:
    old = pod(container("c"))
    new = copy.deepcopy(old)
    new["spec"]["ephemeralContainers"] = [container("d")]
    new["spec"]["containers"][0]["image"] = "other"
    pod_parts.prepare_ephemeral(new, old)
    assert pod_parts.validate_ephemeral(new, old) == []
    assert new["metadata"]["generation"] == 5
    assert new["spec"]["containers"] == old["spec"]["containers"]
    gone = copy.deepcopy(new)
    gone["spec"].pop("ephemeralContainers")
    pod_parts.prepare_ephemeral(gone, new)
    (error,) = pod_parts.validate_ephemeral(gone, new)
    assert 'existing ephemeral containers "d" may not be removed' in str(error)
    static = pod(container("c"), metadata={"annotations": {pod_parts.MIRROR: "x"}})
    assert str(pod_parts.validate_ephemeral(static, static)[0]).endswith(
        "static pods do not support ephemeral containers"
    )


# Certificate signing requests


def request(*conditions: Tree, **status: Any) -> Tree:
    whole = {"conditions": [dict(c) for c in conditions], **status}
    return {"metadata": {"name": "r"}, "spec": {"request": "x"}, "status": whole}


APPROVED = {"type": "Approved", "status": "True"}
DENIED = {"type": "Denied", "status": "True"}


def approval(new: Tree, old: Tree) -> tuple[Tree, list[str]]:
    certificates.prepare_approval(new, old)
    return new, [str(error) for error in certificates.validate_approval(new, old)]


def test_an_approval_is_conditions_only() -> None:
    new = request(APPROVED, certificate="mine")
    new["spec"] = {"request": "other"}
    new, problems = approval(new, request())
    assert problems == []
    assert (new["spec"], "certificate" in new["status"]) == ({"request": "x"}, False)
    (condition,) = new["status"]["conditions"]
    assert condition["lastUpdateTime"] == condition["lastTransitionTime"] != ""


def test_times_of_conditions_that_stay() -> None:
    old = request({**APPROVED, "lastUpdateTime": DAY, "lastTransitionTime": DAY})
    (condition,) = approval(request(APPROVED), old)[0]["status"]["conditions"]
    assert condition["lastTransitionTime"] == DAY != condition["lastUpdateTime"]


@pytest.mark.parametrize(
    ("new", "old", "text"),
    [
        ((APPROVED, DENIED), (), "Approved and Denied conditions are mutually exclusive"),
        ((APPROVED, APPROVED), (), 'status.conditions[1].type: Duplicate value: "Approved"'),
        (({"type": "Approved", "status": "False"},), (), 'Unsupported value: "False": supported values: "True"'),
        (({"status": "True"},), (), "status.conditions[0].type: Required value"),
        ((), (APPROVED,), 'updates may not remove a condition of type "Approved"'),
    ],
)
def test_approvals_that_are_refused(new: tuple[Tree, ...], old: tuple[Tree, ...], text: str) -> None:
    assert text in approval(request(*new), request(*old))[1][0]


def test_status_does_not_decide() -> None:
    new = request(APPROVED, {"type": "Failed", "status": "True"})
    certificates.prepare_status(new, request())
    (error,) = certificates.validate_status(new, request())
    assert 'updates may not add a condition of type "Approved"' in str(error)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"junk", "must contain at least one CERTIFICATE PEM block"),
        (b"-----BEGIN KEY-----\neA==\n-----END KEY-----\n", 'only CERTIFICATE PEM blocks are allowed, found "KEY"'),
        (
            b"-----BEGIN CERTIFICATE-----\nA: b\n\neA==\n-----END CERTIFICATE-----\n",
            "no PEM block headers are permitted",
        ),
    ],
)
def test_what_is_no_certificate(content: bytes, problem: str) -> None:
    assert certificates.certificate_problem(base64.b64encode(content).decode()) == problem


def test_bytes_in_pem_that_are_no_certificate() -> None:
    pem = b"-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"
    assert certificates.certificate_problem(base64.b64encode(pem).decode())


def _initial(**resources: Any) -> Tree:
    return {
        **container("i", **resources),
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
    }


def test_initial_containers_may_be_resized_when_nothing_restarts() -> None:
    more = {"requests": {"cpu": "150m", "memory": "64Mi"}, "limits": {"cpu": "200m"}}
    old = pod(container("c", **BURST), initContainers=[container("i", **BURST)])
    _, problems = resize(old, lambda new: new["spec"]["initContainers"][0].update(resources=more))
    assert problems == []
    old = pod(container("c", **BURST), initContainers=[_initial(**BURST)])
    _, problems = resize(old, lambda new: new["spec"]["initContainers"][0].update(resources=more))
    assert problems[-1].startswith("spec.initContainers[0]: Forbidden: non-sidecar init containers")


def test_a_resize_policy_stays() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
    _, problems = resize(
        pod(container("c", **BURST)), lambda new: new["spec"]["containers"][0].update(resizePolicy=policy)
    )
    assert problems == ["spec: Forbidden: only cpu and memory resources are mutable"]


def test_amounts_of_a_whole_pod_stay_and_are_of_cpu_and_memory() -> None:
    whole = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    old = pod(container("c", **BURST), resources=whole)
    gone = resize(old, lambda new: new["spec"].pop("resources"))[1]
    assert "spec.resources: Forbidden: pod-level resources cannot be removed" in gone
    fewer = resize(old, lambda new: new["spec"].update(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}))[1]
    assert "spec.resources.requests: Forbidden: pod-level resource requests cannot be removed" in fewer
