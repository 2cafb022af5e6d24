"""Defaults that OpenAPI does not state, kind by kind."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.apis.defaulting.core import image_policy
from fastapi_core.apis.defaults import RULES, apply_defaults
from fastapi_core.apis.resources import builtin
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_of

FACTS = Path(__file__).parents[4] / "shared" / "facts" / "defaults.json"


def definition(kind: str, version: str = "") -> ResourceDefinition:
    return next(d for d in builtin() if d.kind == kind and version in ("", d.version))


def defaulted(kind: str, tree: dict[str, Any], version: str = "") -> dict[str, Any]:
    found = definition(kind, version)
    tree = normalize(found.type, tree).tree
    apply_defaults(found, tree)
    return normalize(found.type, tree).tree


def pod(**spec: Any) -> dict[str, Any]:
    containers = spec.pop("containers", [{"name": "a", "image": "x:1"}])
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("registry.example:5000/app", "Always"),
        ("registry.example:5000/app:1.2", "IfNotPresent"),
        ("app@sha256:" + "a" * 64, "IfNotPresent"),
        ("app:latest@sha256:" + "a" * 64, "Always"),
        ("", "IfNotPresent"),
        ("UPPER", "IfNotPresent"),
        (" a", "IfNotPresent"),
        ("docker.io/App", "IfNotPresent"),
        ("index.docker.io/app", "Always"),
        ("a" * 64, "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert image_policy(image) == policy


def test_a_pod_gets_what_its_template_would_not() -> None:
    tree = defaulted("Pod", pod(containers=[{"name": "a", "image": "x:1", "resources": {"limits": {"cpu": "1"}}}]))
    assert tree["spec"]["enableServiceLinks"] is True
    assert tree["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    deployment = defaulted("Deployment", {"metadata": {}, "spec": {"template": tree | {"metadata": {}}}})
    assert (
        "enableServiceLinks" not in defaulted("Deployment", {"spec": {"template": pod()}})["spec"]["template"]["spec"]
    )
    assert deployment["spec"]["replicas"] == 1


def test_host_ports_follow_container_ports_on_the_host_network() -> None:
    containers = [{"name": "a", "image": "x:1", "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 9}]}]
    ports = defaulted("Pod", pod(containers=containers, hostNetwork=True))["spec"]["containers"][0]["ports"]
    assert [port["hostPort"] for port in ports] == [80, 9]


def test_pod_level_requests_come_from_containers_then_limits() -> None:
    containers = [
        {"name": "a", "image": "x:1", "resources": {"requests": {"cpu": "100m"}}},
        {"name": "b", "image": "x:1", "resources": {"requests": {"cpu": "200m"}}},
    ]
    tree = defaulted("Pod", pod(containers=containers, resources={"limits": {"cpu": "1", "memory": "1Gi"}}))
    assert tree["spec"]["resources"]["requests"] == {"cpu": "300m", "memory": "1Gi"}


def test_init_containers_count_at_their_peak() -> None:
    spec = pod(
        containers=[{"name": "a", "image": "x:1", "resources": {"requests": {"cpu": "100m"}}}],
        initContainers=[
            {"name": "s", "image": "x:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}},
            {"name": "i", "image": "x:1", "resources": {"requests": {"cpu": "400m"}}},
        ],
        resources={"limits": {"cpu": "1"}},
    )
    assert defaulted("Pod", spec)["spec"]["resources"]["requests"] == {"cpu": "450m"}


def test_a_volume_without_source_is_an_empty_directory() -> None:
    volumes = [{"name": "a"}, {"name": "b", "hostPath": {"path": "/x"}}, {"name": "c", "secret": {"secretName": "s"}}]
    found = defaulted("Pod", pod(volumes=volumes))["spec"]["volumes"]
    assert found[0] == {"name": "a", "emptyDir": {}}
    assert found[1]["hostPath"] == {"path": "/x", "type": ""}
    assert found[2]["secret"]["defaultMode"] == 420


def test_probes_of_every_container_sort() -> None:
    probe = {"httpGet": {"port": 80}}
    container = {"name": "a", "image": "x:1", "livenessProbe": probe}
    spec = defaulted("Pod", pod(containers=[container], initContainers=[container]))["spec"]
    for name in ("containers", "initContainers"):
        found = spec[name][0]["livenessProbe"]
        assert found["periodSeconds"] == 10
        assert found["httpGet"] == {"path": "/", "port": 80, "scheme": "HTTP"}


def test_session_affinity_settings() -> None:
    spec = defaulted("Service", {"spec": {"sessionAffinity": "ClientIP", "ports": [{"port": 80}]}})["spec"]
    assert spec["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}
    assert spec["ports"][0] | {} == {"protocol": "TCP", "port": 80, "targetPort": 80}
    spec = defaulted("Service", {"spec": {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}})["spec"]
    assert "sessionAffinityConfig" not in spec


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("ClusterIP", {"internalTrafficPolicy": "Cluster"}),
        ("NodePort", {"internalTrafficPolicy": "Cluster", "externalTrafficPolicy": "Cluster"}),
        (
            "LoadBalancer",
            {
                "internalTrafficPolicy": "Cluster",
                "externalTrafficPolicy": "Cluster",
                "allocateLoadBalancerNodePorts": True,
            },
        ),
        ("ExternalName", {}),
    ],
)
def test_service_policies_by_type(kind: str, members: dict[str, Any]) -> None:
    spec = defaulted("Service", {"spec": {"type": kind}})["spec"]
    names = ("internalTrafficPolicy", "externalTrafficPolicy", "allocateLoadBalancerNodePorts")
    assert {name: spec[name] for name in names if name in spec} == members


def test_only_jobs_themselves_get_job_defaults() -> None:
    template = {"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}}}
    job = defaulted("Job", {"metadata": {"name": "j"}, **copy.deepcopy(template)})
    assert job["metadata"]["labels"] == {"a": "b"}
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 1
    assert job["spec"]["podReplacementPolicy"] == "TerminatingOrFailed"
    cron = defaulted("CronJob", {"spec": {"schedule": "@daily", "jobTemplate": template}})
    assert "parallelism" not in cron["spec"]["jobTemplate"]["spec"]
    assert cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] == "Always"


def test_completions_stay_unset_with_parallelism() -> None:
    assert "completions" not in defaulted("Job", {"spec": {"parallelism": 3, "template": {}}})["spec"]


def test_stateful_set_rolling_update_only_when_left_out() -> None:
    assert defaulted("StatefulSet", {"spec": {}})["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"partition": 0},
    }
    stated = defaulted("StatefulSet", {"spec": {"updateStrategy": {"type": "RollingUpdate"}}})
    assert stated["spec"]["updateStrategy"] == {"type": "RollingUpdate"}


def test_autoscaler_behaviour_is_completed_member_by_member() -> None:
    tree = defaulted(
        "HorizontalPodAutoscaler", {"spec": {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 9}}}}, "v2"
    )
    up = tree["spec"]["behavior"]["scaleUp"]
    assert up["stabilizationWindowSeconds"] == 9
    assert len(up["policies"]) == 2
    assert tree["spec"]["behavior"]["scaleDown"]["selectPolicy"] == "Max"
    assert tree["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}


def test_limit_range_chain() -> None:
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}
    found = defaulted("LimitRange", {"spec": {"limits": [item]}})["spec"]["limits"][0]
    assert found["default"] == {"cpu": "2"}
    assert found["defaultRequest"] == {"cpu": "2", "memory": "1Mi"}


def test_network_policy_types_follow_egress() -> None:
    assert defaulted("NetworkPolicy", {"spec": {"podSelector": {}}})["spec"]["policyTypes"] == ["Ingress"]
    both = defaulted("NetworkPolicy", {"spec": {"podSelector": {}, "egress": [{}]}})
    assert both["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_definition_names() -> None:
    tree = {"spec": {"names": {"plural": "widgets", "kind": "Widget"}, "group": "x.example"}}
    found = defaulted("CustomResourceDefinition", tree)["spec"]
    assert found["names"]["singular"] == "widget"
    assert found["names"]["listKind"] == "WidgetList"
    assert found["conversion"] == {"strategy": "None"}


def test_defaults_are_not_shared_between_objects() -> None:
    first = defaulted("Deployment", {"spec": {}})
    first["spec"]["strategy"]["rollingUpdate"]["maxSurge"] = 7
    assert defaulted("Deployment", {"spec": {}})["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == "25%"


@pytest.mark.parametrize("kind", sorted({d.kind for d in builtin() if d.key_prefix}))
def test_defaulting_twice_changes_nothing(kind: str) -> None:
    once = defaulted(kind, {"metadata": {"name": "x"}})
    assert defaulted(kind, copy.deepcopy(once)) == once


def test_rules_name_types_that_exist() -> None:
    for ref in RULES:
        assert type_of(ref).ref == ref


#: Handled elsewhere: read-only types, quantities (normalisation), strategies, options of a subresource.
_ELSEWHERE = {
    "core/v1.ResourceList",
    "core/v1.ConfigMap",
    "core/v1.PodLogOptions",
    "core/v1.LoadBalancerIngress",
    "core/v1.ResourceRequirements",
    "apps/v1.RollingUpdateDeployment",
    "apps/v1.RollingUpdateDaemonSet",
    "apps/v1.RollingUpdateStatefulSetStrategy",
    "apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
    "apps/v1.DaemonSet",
    "batch/v1.JobSpec",
    "resource.k8s.io/v1.NodeAllocatableResourceMapping",
    "apiextensions.k8s.io/v1.CustomResourceDefinitionNames",
    "apiextensions.k8s.io/v1.CustomResourceDefinitionStatus",
}


@pytest.mark.skipif(not FACTS.exists(), reason="the recorded facts are absent")
def test_every_type_with_facts_has_rules() -> None:
    named = {rule["type"] for rule in json.loads(FACTS.read_text())["scheme"]}
    assert named - set(RULES) <= _ELSEWHERE


def test_string_data_goes_over_data() -> None:
    found = defaulted("Secret", {"data": {"a": "b2xk", "b": "a2VlcA=="}, "stringData": {"a": "new", "c": "é"}})
    assert found["data"] == {"a": "bmV3", "b": "a2VlcA==", "c": "w6k="}
    assert "stringData" not in found


@pytest.mark.parametrize("member", ["serviceAccountName", "serviceAccount"])
def test_an_account_has_two_names(member: str) -> None:
    spec = defaulted("Pod", pod(**{member: "x"}))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("x", "x")
    spec = defaulted("Pod", pod(serviceAccountName="x", serviceAccount="y"))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("x", "x")
    assert "serviceAccount" not in defaulted("Pod", pod())["spec"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"podCIDR": "a"}, ("a", ["a"])),
        ({"podCIDRs": ["a", "b"]}, ("a", ["a", "b"])),
        ({"podCIDR": "a", "podCIDRs": ["b"]}, ("a", ["a"])),
        ({"podCIDR": "a", "podCIDRs": ["a", "b"]}, ("a", ["a", "b"])),
    ],
)
def test_pod_ranges_of_nodes_agree(given: dict[str, Any], wanted: tuple[str, list[str]]) -> None:
    spec = defaulted("Node", {"spec": given})["spec"]
    assert (spec["podCIDR"], spec["podCIDRs"]) == wanted
