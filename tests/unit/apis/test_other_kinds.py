"""Rules of kinds that are neither pods nor services: volumes, claims, events, quotas, drivers, secrets."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastapi_core.apis.strategies.table import strategy_for
from fastapi_core.apis.validation.index import validator

Tree = dict[str, Any]


def problems(group: str, kind: str, new: Tree, old: Tree | None = None) -> list[tuple[str, str]]:
    check = validator(group, kind)
    assert check is not None
    return [(error.field, error.detail) for error in check(new, old)]


def prepared(group: str, kind: str, new: Tree, old: Tree | None = None) -> Tree:
    strategy_for(group, kind, status=True, generation=0, bump=False).prepare(new, old)
    return new


def warned(group: str, kind: str, new: Tree, old: Tree | None = None) -> list[str]:
    return strategy_for(group, kind, status=False, generation=0, bump=False).warnings(new, old)


VOLUME: Tree = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}


def test_a_changed_volume_is_judged_twice() -> None:
    old = {"metadata": {"name": "a"}, "spec": {**VOLUME, "hostPath": {"path": "/x"}}}
    new = {"metadata": {"name": "a"}, "spec": {**VOLUME, "accessModes": [], "hostPath": {"path": "/x"}}}
    assert problems("", "PersistentVolume", new, old) == [("spec.accessModes", "")] * 2


def test_the_secret_to_expand_a_volume_may_be_added() -> None:
    csi = {"driver": "d.x", "volumeHandle": "h"}
    old = {"metadata": {"name": "a"}, "spec": {**VOLUME, "csi": csi}}
    secret = {"name": "s", "namespace": "n"}
    new = {"metadata": {"name": "a"}, "spec": {**VOLUME, "csi": {**csi, "controllerExpandSecretRef": secret}}}
    assert problems("", "PersistentVolume", new, old) == []
    assert problems("", "PersistentVolume", old, new)[0][0] == "spec.persistentvolumesource"


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ({"cinder": {"volumeID": "v", "secretRef": {"name": "s"}}}, "spec.cinder.secretRef.namespace"),
        ({"iscsi": {"targetPortal": "p", "iqn": "x"}}, "spec.iscsi.iqn"),
        ({"glusterfs": {"endpoints": "e", "path": "p", "endpointsNamespace": ""}}, "spec.glusterfs.endpointsNamespace"),
        (
            {"hostPath": {"path": "//."}, "persistentVolumeReclaimPolicy": "Recycle"},
            "spec.persistentVolumeReclaimPolicy",
        ),
    ],
)
def test_sources_of_volumes(source: Tree, field: str) -> None:
    assert [name for name, _ in problems("", "PersistentVolume", {"spec": {**VOLUME, **source}})] == [field]


def test_a_volume_of_one_attachment_is_of_csi_and_plain() -> None:
    inline = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    spec = {"attacher": "a.x", "nodeName": "n", "source": {"inlineVolumeSpec": {**inline, "volumeMode": "Block"}}}
    found = [field.rpartition(".")[2] for field, _ in problems("storage.k8s.io", "VolumeAttachment", {"spec": spec})]
    assert found == ["capacity", "csi", "volumeMode"]


def test_codes_of_attachment_errors() -> None:
    spec = {"attacher": "a.x", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    old = {"spec": spec, "status": {"attached": True}}
    new = {"spec": spec, "status": {"attached": True, "attachError": {"errorCode": -1}}}
    assert [field for field, _ in problems("storage.k8s.io", "VolumeAttachment", new, old)] == [
        "status.attachError.errorCode"
    ]


def test_status_of_claims() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    old = {"metadata": {}, "spec": spec, "status": {}}
    status = {"allocatedResources": {"cpu": "1"}, "allocatedResourceStatuses": {"storage": "Maybe"}}
    found = problems("", "PersistentVolumeClaim", {**old, "status": status}, old)
    assert [field for field, _ in found] == ["status.allocatedResourceStatuses", "status.allocatedResources"]


def test_sources_of_claims_say_the_same() -> None:
    claim = {"metadata": {}, "spec": {"dataSourceRef": {"apiGroup": "g.x", "kind": "K", "name": "n"}}}
    assert prepared("", "PersistentVolumeClaim", claim)["spec"]["dataSource"]["kind"] == "K"
    far = {"metadata": {}, "spec": {"dataSourceRef": {"kind": "K", "name": "n", "namespace": "o"}}}
    assert prepared("", "PersistentVolumeClaim", far)["spec"] == {}
    odd = {"metadata": {}, "spec": {"dataSource": {"apiGroup": "g.x", "kind": "K", "name": "n"}}}
    assert prepared("", "PersistentVolumeClaim", odd)["spec"] == {}


NEW_EVENT: Tree = {
    "metadata": {"namespace": "n"},
    "eventTime": "2024-01-01T00:00:00.000000Z",
    "reportingController": "c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "type": "Normal",
    "regarding": {"namespace": "n"},
}


def test_events_of_the_new_group_are_strict() -> None:
    assert problems("events.k8s.io", "Event", NEW_EVENT) == []
    wrong = {**NEW_EVENT, "type": "Odd", "deprecatedCount": 1, "series": {"count": 1}}
    assert problems("events.k8s.io", "Event", wrong) == [
        ("series.count", "should be at least 2"),
        ("series.lastObservedTime", ""),
        ("type", "has invalid value: Odd"),
        ("count", "needs to be unset"),
    ]


def test_events_of_the_new_group_do_not_change() -> None:
    changed = {**NEW_EVENT, "note": "x", "regarding": {"namespace": "n", "name": "y"}}
    found = [field for field, _ in problems("events.k8s.io", "Event", changed, NEW_EVENT)]
    assert found == ["involvedObject", "message"]


def test_scopes_of_quotas() -> None:
    spec = {"hard": {"pods": "1", "ex.io/x": "1"}, "scopes": ["BestEffort"]}
    assert problems("", "ResourceQuota", {"spec": spec}) == []
    item = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["a"]}
    spec = {"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [item]}}
    assert problems("", "ResourceQuota", {"spec": spec}) == [
        ("spec.scopeSelector.matchExpressions", "unsupported scope applied to resource")
    ]
    old = {"spec": {"hard": {"pods": "1"}}, "status": {}}
    found = problems("", "ResourceQuota", {**old, "status": {"used": {"pods": "-1"}}}, old)
    assert [field for field, _ in found] == ["status.used[pods]"]


def test_nodes_drop_what_is_gone() -> None:
    node = {"metadata": {}, "spec": {"configSource": {}}, "status": {"config": {}}}
    assert "configSource" not in prepared("", "Node", node)["spec"]
    assert node["status"] == {}


def test_accounts_keep_names_of_secrets() -> None:
    account = prepared(
        "", "ServiceAccount", {"metadata": {}, "secrets": [{"name": "a", "kind": "Secret"}, {"uid": "u"}]}
    )
    assert account["secrets"] == [{"name": "a"}, {}]


def test_terms_of_topologies_that_repeat() -> None:
    term = {"matchLabelExpressions": [{"key": "k", "values": ["v"]}]}
    tree = {"provisioner": "p.x", "volumeBindingMode": "Immediate", "allowedTopologies": [term, term, term]}
    assert len(problems("storage.k8s.io", "StorageClass", tree)) == 3
    tree["allowedTopologies"] = [{}, term]
    assert len(problems("storage.k8s.io", "StorageClass", tree)) == 2


def test_tokens_that_may_be_logged() -> None:
    driver = {"metadata": {}, "spec": {"tokenRequests": [{"audience": "a"}]}}
    assert len(warned("storage.k8s.io", "CSIDriver", driver)) == 1
    assert warned("storage.k8s.io", "CSIDriver", driver, driver) == []


def _secret(certificate: str, key: str) -> Tree:
    data = {
        name: base64.b64encode(text.encode()).decode() for name, text in (("tls.crt", certificate), ("tls.key", key))
    }
    return {"metadata": {}, "type": "kubernetes.io/tls", "data": data}


def _block(kind: str) -> str:
    return f"-----BEGIN {kind}-----\nYQ==\n-----END {kind}-----\n"


@pytest.mark.parametrize(
    ("certificate", "key", "text"),
    [
        ("x", "y", "failed to find any PEM data in certificate input"),
        (_block("RSA PRIVATE KEY"), "y", "PEM inputs may have been switched"),
        (_block("A") + _block("B"), "y", "types: [A B]"),
        (_block("CERTIFICATE"), "y", "failed to find any PEM data in key input"),
        (_block("CERTIFICATE"), _block("CERTIFICATE"), "found a certificate rather than a key"),
        (_block("CERTIFICATE"), _block("PRIVATE KEY"), "x509: malformed certificate"),
    ],
)
def test_secrets_that_serve_nobody(certificate: str, key: str, text: str) -> None:
    (warning,) = warned("", "Secret", _secret(certificate, key))
    assert text in warning


RULE: Tree = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def _policy(**more: Any) -> Tree:
    constraints = {"matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {}, "resourceRules": [RULE]}
    spec = {"failurePolicy": "Fail", "matchConstraints": constraints, "validations": [{"expression": "true"}], **more}
    return {"metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize(
    ("resources", "found"),
    [
        (["pods", "*"], []),
        (["*", "pods"], [""]),
        (["pods/*", "pods/log"], ["[1]"]),
        (["pods/log", "pods/*"], []),
        (["*/log", "pods/log"], ["[1]"]),
        (["*/*", "pods"], [""]),
    ],
)
def test_wildcards_of_resources(resources: list[str], found: list[str]) -> None:
    policy = _policy()
    policy["spec"]["matchConstraints"]["resourceRules"] = [{**RULE, "resources": resources}]
    at = "spec.matchConstraints.resourceRules[0].resources"
    told = [field for field, _ in problems("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", policy)]
    assert told == [at + where for where in found]


def test_a_policy_without_variables_does_not_know_of_them() -> None:
    policy = _policy(validations=[{"expression": "variables.a == 1"}])
    ((_, detail),) = problems("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", policy)
    assert "undeclared reference to 'variables'" in detail


def test_mutations_tell_what_is_too_much_last() -> None:
    policy = _policy(reinvocationPolicy="Never", mutations=[{"patchType": "JSONPatch", "applyConfiguration": {}}])
    del policy["spec"]["validations"]
    assert problems("admissionregistration.k8s.io", "MutatingAdmissionPolicy", policy) == [
        ("spec.mutations[0].jsonPatch", "must be specified when patchType is JSONPatch"),
        ("spec.mutations[0].applyConfiguration", "must not be specified when patchType is JSONPatch"),
    ]


@pytest.mark.parametrize(
    ("group", "kind", "status", "field"),
    [
        ("apiregistration.k8s.io", "APIService", {"conditions": [{"status": "Maybe"}]}, "status.conditions[0].status"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema", {"conditions": [{}]}, "status.conditions[0].type"),
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicy",
            {"typeChecking": {"expressionWarnings": [{"warning": "w"}]}},
            "status.typeChecking.expressionWarnings[0].fieldRef",
        ),
    ],
)
def test_statuses(group: str, kind: str, status: Tree, field: str) -> None:
    old = _policy() if kind == "ValidatingAdmissionPolicy" else {"metadata": {"name": "v1."}, "spec": {}}
    before = {name for name, _ in problems(group, kind, {**old, "status": {}}, old)}
    found = {name for name, _ in problems(group, kind, {**old, "status": status}, old)}
    assert found - before == {field}


@pytest.mark.parametrize(
    ("signer", "value"),
    [("a/b", "a"), ("A.io/b", "A.io"), ("a.io/B_", "B_"), ("a.io", "a.io")],
)
def test_names_of_signers(signer: str, value: str) -> None:
    spec = {"request": base64.b64encode(_block("CERTIFICATE REQUEST").encode()).decode(), "usages": ["any"]}
    check = validator("certificates.k8s.io", "CertificateSigningRequest")
    assert check is not None
    (error,) = check({"spec": {**spec, "signerName": signer}}, None)
    assert error.value == value


def test_processes_of_the_host() -> None:
    windows = {"windowsOptions": {"hostProcess": True}}
    spec = {
        "containers": [{"name": "c", "image": "i", "securityContext": windows}, {"name": "d", "image": "i"}],
        "restartPolicy": "Always",
        "dnsPolicy": "Default",
    }
    found = [detail for _, detail in problems("", "Pod", {"metadata": {"name": "p", "namespace": "n"}, "spec": spec})]
    assert any("all containers must be HostProcess containers" in detail for detail in found)
    assert "hostProcess containers are disallowed by cluster policy" in found
