"""Rows: the logic of each kind's cells, and the bytes of a table."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core._ext.objects import CachedObject
from fastapi_core.codec.json import encode
from fastapi_core.registry.printers import Age, age_text, compile_row, custom_printer, kind_printer, partial_metadata
from fastapi_core.registry.printers.engine import LONGEST, epoch

BORN = "2024-01-01T00:00:00Z"


def cells(kind: str, **tree: Any) -> dict[str, Any]:
    shown = kind_printer(kind)
    tree.setdefault("metadata", {"name": "x", "creationTimestamp": BORN})
    return dict(zip([column.name for column in shown.columns], shown.cells(tree), strict=False))


def cached(name: str = "x", created: str = BORN, **tree: Any) -> CachedObject:
    metadata = {"name": name, "namespace": "ns", "uid": "u", "creationTimestamp": created, **tree.pop("metadata", {})}
    value = encode({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **tree})
    return CachedObject(f"/registry/pods/ns/{name}", "ns", name, value, 7, 7)


# Pods


def pod(containers: int = 1, statuses: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    status = {"phase": "Running", "containerStatuses": statuses or [], **more.pop("status", {})}
    spec = {"containers": [{"name": f"c{i}"} for i in range(containers)], **more.pop("spec", {})}
    return cells("Pod", spec=spec, status=status, **more)


def test_running_pod() -> None:
    shown = pod(2, [{"ready": True, "state": {"running": {}}}, {"ready": False, "state": {"running": {}}}])
    assert (shown["Ready"], shown["Status"], shown["Restarts"]) == ("1/2", "Running", "0")
    assert (shown["IP"], shown["Node"], shown["Nominated Node"], shown["Readiness Gates"]) == ("<none>",) * 4


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ({"waiting": {"reason": "CrashLoopBackOff"}}, "CrashLoopBackOff"),
        ({"terminated": {"exitCode": 1, "reason": "Error"}}, "Error"),
        ({"terminated": {"exitCode": 3}}, "ExitCode:3"),
        ({"terminated": {"exitCode": 0, "signal": 9}}, "Signal:9"),
        ({"terminated": {"exitCode": 0}}, "ExitCode:0"),
        ({"waiting": {}}, "Running"),
    ],
)
def test_container_state_decides_the_text(state: dict[str, Any], status: str) -> None:
    assert pod(1, [{"state": state}])["Status"] == status


def test_completed_container_beside_running_ones() -> None:
    done = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
    running = {"ready": True, "state": {"running": {}}}
    assert pod(2, [done, running])["Status"] == "NotReady"
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    assert pod(2, [done, running], status=ready)["Status"] == "Running"
    failed = {"state": {"terminated": {"exitCode": 2, "reason": "Error"}}}
    assert pod(2, [done, failed])["Status"] == "Error"


def test_init_containers() -> None:
    spec = {"initContainers": [{"name": "a"}, {"name": "b"}]}

    def shown(*statuses: Any) -> str:
        return pod(spec=spec, status={"phase": "Pending", "initContainerStatuses": list(statuses)})["Status"]

    done = {"name": "a", "state": {"terminated": {"exitCode": 0}}}
    assert shown(done, {"name": "b", "state": {"running": {}}}) == "Init:1/2"
    assert shown({"name": "a", "state": {"waiting": {"reason": "PodInitializing"}}}) == "Init:0/2"
    assert shown({"name": "a", "state": {"waiting": {"reason": "ErrImagePull"}}}) == "Init:ErrImagePull"
    assert shown({"name": "a", "state": {"terminated": {"exitCode": 5}}}) == "Init:ExitCode:5"
    assert shown({"name": "a", "state": {"terminated": {"exitCode": 1, "signal": 6}}}) == "Init:Signal:6"
    assert shown({"name": "a", "state": {"terminated": {"exitCode": 1, "reason": "OOMKilled"}}}) == "Init:OOMKilled"


def test_init_phase_counts_only_its_restarts() -> None:
    spec = {"initContainers": [{"name": "a"}]}
    status = {
        "phase": "Pending",
        "initContainerStatuses": [{"name": "a", "restartCount": 4, "state": {"waiting": {"reason": "X"}}}],
        "containerStatuses": [{"restartCount": 9, "state": {}}],
    }
    assert pod(spec=spec, status=status)["Restarts"] == "4"
    status["conditions"] = [{"type": "Initialized", "status": "True"}]
    assert pod(spec=spec, status=status)["Restarts"] == "9"


def test_sidecars_count_as_containers() -> None:
    spec = {"initContainers": [{"name": "s", "restartPolicy": "Always"}]}
    sidecar = {"name": "s", "ready": True, "started": True, "restartCount": 2, "state": {"running": {}}}
    main = {"ready": True, "restartCount": 1, "state": {"running": {}}}
    shown = pod(1, [main], spec=spec, status={"initContainerStatuses": [sidecar]})
    assert (shown["Ready"], shown["Status"], shown["Restarts"]) == ("2/2", "Running", "3")


def test_restarts_say_when_the_last_one_was() -> None:
    ended = {"terminated": {"exitCode": 1, "finishedAt": "2024-01-02T00:00:00Z"}}
    earlier = {"terminated": {"exitCode": 1, "finishedAt": "2024-01-01T12:00:00Z"}}
    statuses = [
        {"restartCount": 2, "lastState": ended, "state": {}},
        {"restartCount": 1, "lastState": earlier, "state": {}},
    ]
    assert pod(2, statuses)["Restarts"] == Age(epoch("2024-01-02T00:00:00Z"), "3 (", " ago)")


def test_deleted_pods() -> None:
    gone = {"name": "x", "creationTimestamp": BORN, "deletionTimestamp": BORN}
    assert pod(metadata=gone)["Status"] == "Terminating"
    assert pod(metadata=gone, status={"reason": "NodeLost"})["Status"] == "Unknown"
    assert pod(metadata=gone, status={"phase": "Succeeded"})["Status"] == "Succeeded"


def test_gates() -> None:
    gated = {"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}
    assert pod(status={"phase": "Pending", **gated})["Status"] == "SchedulingGated"
    spec = {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}
    assert pod(spec=spec, status={"conditions": [{"type": "a", "status": "True"}]})["Readiness Gates"] == "1/2"


# Other kinds


def test_services() -> None:
    shown = cells(
        "Service", spec={"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "protocol": "TCP"}]}
    )
    assert (shown["Cluster-IP"], shown["External-IP"], shown["Port(s)"]) == ("10.0.0.1", "<none>", "80/TCP")
    balancer = {"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "9.9.9.9"}, {"ip": "9.9.9.9"}]}}
    spec = {
        "type": "LoadBalancer",
        "externalIPs": ["1.1.1.1"],
        "ports": [{"port": 1, "nodePort": 30000, "protocol": "UDP"}],
    }
    shown = cells("Service", spec=spec, status=balancer)
    assert (shown["External-IP"], shown["Port(s)"]) == ("9.9.9.9,h,1.1.1.1", "1:30000/UDP")
    assert cells("Service", spec={"type": "LoadBalancer"})["External-IP"] == "<pending>"
    assert cells("Service", spec={"type": "ExternalName", "externalName": "a.b"})["External-IP"] == "a.b"


def test_endpoints_are_cut_after_three() -> None:
    addresses = [{"ip": f"10.0.0.{i}"} for i in range(4)]
    shown = cells("Endpoints", subsets=[{"addresses": addresses, "ports": [{"port": 80}]}])["Endpoints"]
    assert shown == "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 1 more..."
    assert (
        cells("Endpoints", subsets=[{"addresses": [{"ip": "::1"}], "ports": [{"port": 1}]}])["Endpoints"] == "[::1]:1"
    )
    assert cells("Endpoints")["Endpoints"] == "<none>"
    assert cells("Endpoints", subsets=[{"addresses": [{"ip": "1.1.1.1"}]}])["Endpoints"] == "1.1.1.1"


@pytest.mark.parametrize(
    ("hosts", "shown"),
    [
        ([], "*"),
        (["", ""], "*"),
        (["a", "", "b", "c"], "a,b,c"),
        (["a", "b", "c", ""], "a,b,c + 1 more..."),
        (["a", "b", "c", "d", "e"], "a,b,c + 2 more..."),
    ],
)
def test_ingress_hosts(hosts: list[str], shown: str) -> None:
    assert cells("Ingress", spec={"rules": [{"host": host} for host in hosts]})["Hosts"] == shown


def test_selectors_are_sorted_by_key() -> None:
    expressions = [
        {"key": "z", "operator": "Exists"},
        {"key": "b", "operator": "In", "values": ["y", "x"]},
        {"key": "a", "operator": "DoesNotExist"},
    ]
    spec = {"selector": {"matchLabels": {"m": "1"}, "matchExpressions": expressions}}
    assert cells("ReplicaSet", spec=spec)["Selector"] == "!a,b in (x,y),m=1,z"
    bad = {"selector": {"matchExpressions": [{"key": "b", "operator": "In"}]}}
    assert cells("ReplicaSet", spec=bad)["Selector"] == "<error>"
    assert cells("Deployment", spec=bad)["Selector"] == "<invalid>"
    assert (cells("ReplicaSet")["Selector"], cells("Deployment")["Selector"]) == ("<none>", "")


def test_jobs() -> None:
    done = {"succeeded": 1, "startTime": BORN, "completionTime": "2024-01-01T00:02:05Z"}
    shown = cells(
        "Job", spec={"completions": 3}, status={**done, "conditions": [{"type": "Complete", "status": "True"}]}
    )
    assert (shown["Status"], shown["Completions"], shown["Duration"]) == ("Complete", "1/3", "2m5s")
    shown = cells("Job", spec={"parallelism": 2}, status={"startTime": BORN})
    assert (shown["Status"], shown["Completions"], shown["Duration"]) == ("Running", "0/1 of 2", Age(epoch(BORN)))
    assert cells("Job", spec={"parallelism": 1})["Completions"] == "0/1"


def test_nodes() -> None:
    labels = {"node-role.kubernetes.io/b": "", "node-role.kubernetes.io/a": "", "kubernetes.io/role": "c"}
    shown = cells("Node", metadata={"name": "n", "labels": labels}, spec={"unschedulable": True})
    assert (shown["Status"], shown["Roles"], shown["Age"]) == ("Unknown,SchedulingDisabled", "a,b,c", "<unknown>")
    status = {
        "conditions": [{"type": "Ready", "status": "False"}],
        "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
    }
    shown = cells("Node", status=status)
    assert (shown["Status"], shown["Internal-IP"], shown["External-IP"]) == ("NotReady", "1.2.3.4", "<none>")


def test_autoscaler_targets() -> None:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}
    pods = {"type": "Pods", "pods": {"target": {"averageValue": "5"}}}
    current = [{"type": "Resource", "resource": {"current": {"averageUtilization": 30}}}]
    targets = cells("HorizontalPodAutoscaler", spec={"metrics": [cpu, pods, pods]}, status={"currentMetrics": current})
    assert targets["Targets"] == "cpu: 30%/80%, <unknown>/5 + 1 more..."
    outside = {"type": "External", "external": {"target": {"averageValue": "2"}}}
    assert cells("HorizontalPodAutoscaler", spec={"metrics": [outside]})["Targets"] == "<unknown>/2 (avg)"
    assert cells("HorizontalPodAutoscaler", spec={"metrics": [{"type": "Odd"}]})["Targets"] == "<unknown type>"
    assert cells("HorizontalPodAutoscaler")["MinPods"] == "<unset>"


def test_events() -> None:
    shown = cells("Event", involvedObject={"kind": "Pod", "name": "p"}, message=" hi \n", count=0, firstTimestamp=BORN)
    assert (shown["Object"], shown["Message"], shown["Count"]) == ("pod/p", "hi", 1)
    assert shown["Last Seen"] == shown["First Seen"] == Age(epoch(BORN))
    shown = cells("Event", series={"count": 4, "lastObservedTime": BORN}, source={"component": "k", "host": "n"})
    assert (shown["Count"], shown["Source"], shown["First Seen"]) == (4, "k, n", "<unknown>")


def test_claims_show_size_only_when_bound() -> None:
    status = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "phase": "Bound"}
    shown = cells("PersistentVolumeClaim", spec={"volumeName": "v"}, status=status)
    assert (shown["Capacity"], shown["Access Modes"], shown["StorageClass"]) == ("1Gi", "RWO,RWX", "")
    assert cells("PersistentVolumeClaim", status=status)["Capacity"] == ""


def test_roles_quota_and_parameters() -> None:
    subjects = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "namespace": "n", "name": "s"}]
    shown = cells("RoleBinding", roleRef={"kind": "Role", "name": "r"}, subjects=subjects)
    assert (shown["Role"], shown["Users"], shown["Groups"], shown["ServiceAccounts"]) == ("Role/r", "u", "", "n/s")
    hard = {"hard": {"pods": "4", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "1"}}
    shown = cells("ResourceQuota", status=hard)
    assert (shown["Request"], shown["Limit"]) == ("cpu: 0/1, pods: 1/4", "limits.cpu: 0/2")
    selector = {"matchLabels": {"b": "2", "a": "1"}}
    assert cells("ValidatingAdmissionPolicyBinding", spec={"paramRef": {"selector": selector}})["ParamRef"] == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{},}"
    )


# Bytes


def test_a_table_is_json_with_the_reference_s_members() -> None:
    shown = kind_printer("Pod")
    objects = [cached("a", spec={"containers": [{}]}, status={"phase": "Failed"}), cached("b")]
    now = epoch(BORN) + 90
    document = json.loads(shown.table(b'{"resourceVersion":"9"}', shown.render_rows(objects, now)))
    assert list(document) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]
    first = document["rows"][0]
    assert list(first) == ["cells", "conditions", "object"]
    assert first["cells"][:5] == ["a", "0/1", "Failed", "0", "90s"]
    assert first["conditions"] == [
        {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
    ]
    assert first["object"]["kind"] == "PartialObjectMetadata"
    assert first["object"]["metadata"]["resourceVersion"] == "7"
    assert shown.render_rows([], now) == b"[]"
    assert b'"columnDefinitions":null' in shown.table(b"{}", b"[]", columns=False)


def test_ages_move_while_the_rest_is_kept() -> None:
    shown, obj = kind_printer("Namespace"), cached()
    ages = [json.loads(shown.render_rows([obj], epoch(BORN) + s))[0]["cells"][2] for s in (5, 65, 3600 * 50)]
    assert ages == ["5s", "65s", "2d2h"]
    assert obj.memo[shown] is shown.row(obj)


def test_include_object() -> None:
    shown, obj = kind_printer("Pod"), cached(spec={"containers": []})
    whole = json.loads(shown.render_rows([obj], 0, "Object"))[0]["object"]
    assert whole == json.loads(obj.json())
    assert json.loads(shown.render_rows([obj], 0, "None"))[0]["object"] is None
    other = cached("other")
    assert json.loads(shown.render_rows([obj], 0, "Object", whole=[other]))[0]["object"]["metadata"]["name"] == "other"
    assert (
        json.loads(shown.render_rows([obj], 0, version="v1beta1"))[0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"
    )


def test_rows_of_trees_equal_rows_of_objects() -> None:
    shown, obj = kind_printer("Pod"), cached(spec={"containers": [{}]})
    assert shown.render_tree(obj.tree(), 5) == shown.render_rows([obj], 5, "None")


def test_partial_metadata_is_the_stored_metadata() -> None:
    obj = cached(metadata={"labels": {"a": "<&>"}, "annotations": {"b": '}{"\\'}}, spec={"containers": []})
    document = partial_metadata(obj)
    assert json.loads(document)["metadata"] == obj.tree()["metadata"]
    assert obj.json().split(b',"spec"')[0].split(b'"metadata":')[1] in document
    assert partial_metadata(obj) is document


def test_partial_metadata_of_a_custom_resource_with_members_before_it() -> None:
    value = b'{"aaa":1,"apiVersion":"x/v1","kind":"W","metadata":{"name":"n","uid":"u"}}'
    obj = CachedObject("/registry/x/n", "", "n", value, 3, 3)
    assert json.loads(partial_metadata(obj))["metadata"] == {"name": "n", "uid": "u", "resourceVersion": "3"}


@given(st.text(), st.text(), st.integers(-10, 10**6))
def test_any_text_survives_around_an_age(before: str, after: str, seconds: int) -> None:
    parts, ages = compile_row([before, Age(0.0, before, after), 3, None, True])
    assert ages == (0.0,)
    row = json.loads(parts[0] + age_text(seconds) + parts[1] + b"null}")
    assert row["cells"][0] == before
    assert row["cells"][1] == before + json.loads(b'"' + age_text(seconds) + b'"') + after
    assert row["cells"][2:] == [3, None, True]


def test_ages_beyond_a_go_duration() -> None:
    assert age_text(LONGEST * 2) == b"292y"
    assert age_text(-LONGEST * 2) == encode("<invalid>")[1:-1]


def test_custom_resources_without_columns() -> None:
    assert custom_printer().cells({"metadata": {"name": "w"}}) == ["w", None]


def test_five_hundred_known_rows_are_cheap() -> None:
    shown, objects = kind_printer("Pod"), [cached(f"p{i}", spec={"containers": [{}]}) for i in range(500)]
    now = time.time()
    shown.render_rows(objects, now)
    best = min(_timed(lambda: shown.render_rows(objects, now)) for _ in range(5))
    assert best / 500 < 20e-6


def _timed(action: Any) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
