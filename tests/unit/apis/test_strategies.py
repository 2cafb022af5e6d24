"""What kinds do around a write beyond defaults: status, generation, immutability, keys."""

import copy
from typing import Any

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.apis.strategies import kinds, pods
from fastapi_core.request.context import User

BUILTIN = {d.kind: d for d in builtin()}
Tree = dict[str, Any]


def prepared(kind: str, new: Tree, old: Tree | None = None) -> Tree:
    new.setdefault("metadata", {"name": "x"})
    BUILTIN[kind].strategy.prepare(new, old)
    return new


def status_write(kind: str, new: Tree, old: Tree) -> Tree:
    BUILTIN[kind].strategy.prepare_status(new, old)
    return new


def problems(kind: str, new: Tree, old: Tree | None = None) -> list[str]:
    new.setdefault("metadata", {"name": "x"})
    return [str(e) for e in BUILTIN[kind].strategy.validate(new, old)]


def test_status_is_not_for_main_writes() -> None:
    assert "status" not in prepared("Deployment", {"spec": {}, "status": {"replicas": 3}})
    old = {"metadata": {"name": "x", "generation": 1}, "spec": {}, "status": {"replicas": 1}}
    new = {"metadata": {"name": "x"}, "spec": {}, "status": {"replicas": 3}}
    assert prepared("Deployment", new, old)["status"] == {"replicas": 1}


def test_status_writes_change_nothing_else() -> None:
    old = {"metadata": {"name": "x", "labels": {"a": "1"}}, "spec": {"replicas": 1}, "status": {}}
    new = {
        "metadata": {"name": "x", "labels": {"b": "2"}},
        "spec": {"replicas": 9, "paused": True},
        "status": {"replicas": 5},
    }
    found = status_write("ReplicaSet", copy.deepcopy(new), old)
    assert found["spec"] == old["spec"]
    assert found["status"] == {"replicas": 5}
    assert found["metadata"]["labels"] == {"b": "2"}
    assert status_write("Deployment", copy.deepcopy(new), old)["metadata"]["labels"] == {"a": "1"}
    guarded = status_write("FlowSchema", copy.deepcopy(new), old)
    assert guarded["metadata"]["labels"] == {"a": "1"}


def test_generation_counts_what_the_user_wants() -> None:
    created = prepared("Deployment", {"metadata": {"name": "x", "generation": 9}, "spec": {"replicas": 1}})
    assert created["metadata"]["generation"] == 1
    labelled = copy.deepcopy(created)
    labelled["metadata"] |= {"labels": {"a": "b"}, "generation": 7}
    assert prepared("Deployment", labelled, created)["metadata"]["generation"] == 1
    annotated = copy.deepcopy(created)
    annotated["metadata"]["annotations"] = {"a": "b"}
    assert prepared("Deployment", annotated, created)["metadata"]["generation"] == 2
    scaled = copy.deepcopy(created)
    scaled["spec"]["replicas"] = 2
    assert prepared("Deployment", scaled, created)["metadata"]["generation"] == 2


def test_kinds_without_generation_keep_what_the_client_sent() -> None:
    assert prepared("ConfigMap", {"metadata": {"name": "x", "generation": 7}})["metadata"]["generation"] == 7
    old = {"metadata": {"name": "x", "generation": 7}, "data": {}}
    assert prepared("ConfigMap", {"metadata": {"name": "x"}, "data": {"a": "b"}}, old)["metadata"]["generation"] == 7


def test_namespaces() -> None:
    created = prepared("Namespace", {"spec": {"finalizers": ["a.b/c"]}, "status": {"phase": "Terminating"}})
    assert created["spec"]["finalizers"] == ["a.b/c", "kubernetes"]
    assert created["status"] == {"phase": "Active"}
    updated = prepared("Namespace", {"spec": {}}, created)
    assert updated["spec"]["finalizers"] == ["a.b/c", "kubernetes"]
    final = {"metadata": {"name": "x"}, "spec": {"finalizers": []}, "status": {}}
    kinds.prepare_namespace_finalize(final, created)
    assert final["status"] == {"phase": "Active"}
    assert final["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert problems("Namespace", {"status": {"phase": "Terminating"}}, created) == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    ]
    deleting = {"metadata": {"name": "x", "deletionTimestamp": "t"}, "status": {"phase": "Active"}}
    assert "may only be 'Terminating'" in problems("Namespace", deleting, created)[0]


@pytest.mark.parametrize(
    ("secret", "expected"),
    [
        ({"type": "Opaque"}, []),
        ({"type": "kubernetes.io/tls"}, ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
        ({"type": "kubernetes.io/dockercfg"}, ["data[.dockercfg]: Required value"]),
        ({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}}, []),
        ({"type": "kubernetes.io/basic-auth", "data": {"password": "YQ=="}}, []),
        ({"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}}, ["data[ssh-privatekey]: Required value"]),
        (
            {"type": "kubernetes.io/service-account-token"},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
    ],
)
def test_secret_types(secret: Tree, expected: list[str]) -> None:
    assert problems("Secret", secret) == expected


def test_docker_configs_are_json() -> None:
    bad = {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e2JhZA=="}}
    found = problems("Secret", bad)
    start = 'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": '
    assert found == [start + "invalid character 'b' looking for beginning of object key string"]
    bad["data"] = {".dockerconfigjson": "W10="}
    assert problems("Secret", bad) == [
        start + "json: cannot unmarshal array into Go value of type map[string]interface {}"
    ]


def test_the_type_of_a_secret_stays() -> None:
    old = {"metadata": {"name": "x"}, "type": "Opaque"}
    assert prepared("Secret", {"metadata": {"name": "x"}, "type": ""}, old)["type"] == "Opaque"
    assert problems("Secret", {"type": "other"}, old) == ['type: Invalid value: "other": field is immutable']


def test_immutable_objects() -> None:
    old = {"metadata": {"name": "x"}, "immutable": True, "data": {"a": "1"}}
    frozen = "Forbidden: field is immutable when `immutable` is set"
    assert problems("ConfigMap", {"immutable": True, "data": {"a": "1"}}, old) == []
    assert problems("ConfigMap", {"data": {"a": "2"}}, old) == [f"immutable: {frozen}", f"data: {frozen}"]
    assert problems("Secret", {"type": None, "immutable": True, "data": {}}, old) == [f"data: {frozen}"]


def test_total_sizes() -> None:
    big = "x" * (1024 * 1024)
    assert problems("ConfigMap", {"data": {"a": big}}) == []
    assert problems("ConfigMap", {"data": {"a": big, "b": "x"}}) == ["[]: Too long: may not be more than 1048576 bytes"]


def test_selectors_are_immutable() -> None:
    old = {"metadata": {"name": "x"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}}
    new = {"spec": {"selector": {"matchLabels": {"a": "c"}}}}
    assert 'spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable' in problems(
        "Deployment", new, old
    )


#: Words of the errors about changes, among those about objects that are not whole.
CHANGES = ("immutable", "cannot change", "may not be changed", "forbidden", "in tandem")


@pytest.mark.parametrize(
    ("kind", "old", "new", "expected"),
    [
        (
            "RoleBinding",
            {"roleRef": {"apiGroup": "g", "kind": "Role", "name": "a"}},
            {"roleRef": {"apiGroup": "g", "kind": "Role", "name": "b"}},
            ['roleRef: Invalid value: {"APIGroup":"g","Kind":"Role","Name":"b"}: cannot change roleRef'],
        ),
        (
            "StorageClass",
            {"provisioner": "a", "parameters": {}},
            {"provisioner": "b", "parameters": {"x": "y"}},
            [
                'parameters: Invalid value: {"x":"y"}: field is immutable',
                'provisioner: Invalid value: "b": field is immutable',
            ],
        ),
        ("PriorityClass", {"value": 1}, {"value": 2}, ["value: Forbidden: may not be changed in an update."]),
        (
            "Job",
            {"spec": {"completions": 1}},
            {"spec": {"completions": 3}},
            ["spec.completions: Invalid value: 3: field is immutable"],
        ),
        (
            "Job",
            {"spec": {"completions": 1, "parallelism": 1, "completionMode": "Indexed"}},
            {"spec": {"completions": 3, "parallelism": 3, "completionMode": "Indexed"}},
            [],
        ),
        ("StatefulSet", {"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}, []),
        (
            "PersistentVolumeClaim",
            {"spec": {"resources": {"requests": {"storage": "1"}}}, "status": {"phase": "Bound"}},
            {"spec": {"volumeName": "v", "resources": {"requests": {"storage": "2"}}}, "status": {"phase": "Bound"}},
            [],
        ),
    ],
)
def test_frozen_members(kind: str, old: Tree, new: Tree, expected: list[str]) -> None:
    found = problems(kind, {"metadata": {"name": "x"}, **new}, {"metadata": {"name": "x"}, **old})
    assert [text for text in found if any(word in text for word in CHANGES)] == expected


def test_frozen_specs_name_what_may_change() -> None:
    old = {"metadata": {"name": "x"}, "spec": {"serviceName": "a"}}
    assert problems("StatefulSet", {"spec": {"serviceName": "b"}}, old)[-1].endswith(
        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
    )
    assert problems("PersistentVolumeClaim", {"spec": {"accessModes": ["x"]}}, old)[-1].startswith(
        "spec: Forbidden: spec is immutable after creation except resources.requests"
    )


def pod(*resources: Tree, **spec: Any) -> Tree:
    containers = [{"name": f"c{i}", "resources": r} for i, r in enumerate(resources or ({},))]
    return {"metadata": {"name": "x"}, "spec": {"containers": containers, **spec}}


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (pod(), "BestEffort"),
        (pod({"requests": {"cpu": "0"}, "limits": {"cpu": "0"}}), "BestEffort"),
        (pod({"requests": {"cpu": "1"}}), "Burstable"),
        (
            pod({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1024Mi"}}),
            "Guaranteed",
        ),
        (pod({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}), "Burstable"),
        (pod({"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}, {}), "Burstable"),
        (pod({"requests": {"ephemeral-storage": "1"}}), "BestEffort"),
    ],
)
def test_quality_of_service(tree: Tree, expected: str) -> None:
    assert pods.qos_class(tree["spec"]) == expected


def test_gated_pods_say_so() -> None:
    found = prepared("Pod", pod(schedulingGates=[{"name": "a"}]))["status"]
    assert found["conditions"][0]["reason"] == "SchedulingGated"


def test_pods_may_change_little() -> None:
    old = prepared("Pod", pod())
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["image"] = "y:2"
    new["spec"]["activeDeadlineSeconds"] = 4
    frozen = "pod updates may not change fields"
    assert not any(frozen in text for text in problems("Pod", new, old))
    new["spec"]["containers"][0]["command"] = ["x"]
    assert problems("Pod", new, old)[-1].startswith("spec: Forbidden: pod updates may not change fields other than ")


def test_pod_status_keeps_class_and_owners() -> None:
    old = {
        "metadata": {"name": "x", "ownerReferences": [{"uid": "u"}]},
        "spec": {},
        "status": {"qosClass": "Burstable"},
    }
    new = {"metadata": {"name": "x", "ownerReferences": []}, "spec": {}, "status": {"phase": "Running"}}
    found = status_write("Pod", new, old)
    assert found["status"] == {"phase": "Running", "qosClass": "Burstable"}
    assert found["metadata"]["ownerReferences"] == [{"uid": "u"}]


def test_jobs_select_by_their_uid() -> None:
    found = prepared("Job", {"metadata": {"name": "j", "uid": "u1"}, "spec": {"template": {}}})
    assert found["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}}
    labels = found["spec"]["template"]["metadata"]["labels"]
    assert labels["job-name"] == "j"
    assert labels["controller-uid"] == "u1"
    manual = prepared("Job", {"metadata": {"name": "j", "uid": "u1"}, "spec": {"manualSelector": True, "template": {}}})
    assert "selector" not in manual["spec"]


def test_daemon_sets_count_template_changes() -> None:
    old = prepared("DaemonSet", {"metadata": {"name": "x"}, "spec": {"template": {"a": 1}}})
    key = "deprecated.daemonset.template.generation"
    assert old["metadata"]["annotations"][key] == "1"
    new = {"metadata": {"name": "x"}, "spec": {"template": {"a": 2}}}
    assert prepared("DaemonSet", new, old)["metadata"]["annotations"][key] == "2"


def test_volumes_are_protected_and_pending() -> None:
    volume = prepared("PersistentVolume", {"spec": {}, "status": {"phase": "Bound"}})
    assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    assert volume["status"]["phase"] == "Pending"
    claim = prepared("PersistentVolumeClaim", {"spec": {"dataSource": {"apiGroup": "x", "kind": "T", "name": "t"}}})
    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert claim["spec"] == {}
    claim = prepared("PersistentVolumeClaim", {"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "c"}}})
    assert claim["spec"]["dataSourceRef"] == claim["spec"]["dataSource"]


def test_nodes_bring_their_status() -> None:
    node = prepared("Node", {"spec": {"podCIDR": "10.1.0.0/24"}, "status": {"capacity": {"cpu": "1"}}})
    assert node["status"] == {"capacity": {"cpu": "1"}}
    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


def test_certificate_requests_name_who_asked() -> None:
    request = prepared("CertificateSigningRequest", {"spec": {"username": "spoof", "usages": ["x"]}})
    assert request["spec"] == {"usages": ["x"]}
    kinds.fill_requester(request, User("u", groups=("g",)))
    assert request["spec"] == {"usages": ["x"], "username": "u", "groups": ["g"]}
    changed = {"metadata": {"name": "x"}, "spec": {"usages": ["y"]}}
    assert prepared("CertificateSigningRequest", changed, request)["spec"] == request["spec"]


def test_warnings() -> None:
    ingress = {"metadata": {"name": "x", "annotations": {"kubernetes.io/ingress.class": "c"}}}
    assert len(BUILTIN["Ingress"].strategy.warnings(ingress, None)) == 1
    headless = {"metadata": {"name": "x"}, "spec": {"clusterIP": "None", "sessionAffinity": "ClientIP"}}
    assert BUILTIN["Service"].strategy.warnings(headless, None) == [
        "spec.SessionAffinity is ignored for headless services"
    ]


@pytest.mark.parametrize("definition", builtin(), ids=lambda d: f"{d.group_version}-{d.kind}")
def test_every_strategy_takes_a_bare_object(definition: Any) -> None:
    tree = {"metadata": {"name": "x", "namespace": "n"}}
    definition.strategy.prepare(tree, None)
    old = copy.deepcopy(tree)
    definition.strategy.prepare(tree, old)
    definition.strategy.prepare_status(tree, old)
    assert tree == old
    definition.strategy.warnings(tree, old)
    definition.strategy.canonicalize(tree, old)
