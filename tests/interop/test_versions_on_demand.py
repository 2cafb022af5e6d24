"""Alpha and beta versions: absent by default, whole when asked for, and no trouble for what was stored with them."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path

from fastapi_core.testing.server import RunningServer
from tests.fixtures.server import TOKENS, Api

EVERYTHING = (
    "--runtime-config=api/all=true",
    "--feature-gates=GenericWorkload=true,ClusterTrustBundle=true,PodCertificateRequest=true,StorageVersionMigrator=true",
)
NEW = (
    "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies",
    "/apis/certificates.k8s.io/v1beta1/clustertrustbundles",
    "/apis/coordination.k8s.io/v1beta1/leasecandidates",
    "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions",
    "/apis/networking.k8s.io/v1beta1/servicecidrs",
    "/apis/resource.k8s.io/v1alpha3/devicetaintrules",
    "/apis/resource.k8s.io/v1beta2/resourceslices",
    "/apis/scheduling.k8s.io/v1alpha2/workloads",
    "/apis/storage.k8s.io/v1beta1/volumeattributesclasses",
    "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations",
)
CLAIMS = "/apis/resource.k8s.io/{}/namespaces/default/resourceclaims"
POLICIES = "/apis/admissionregistration.k8s.io/{}/mutatingadmissionpolicies"
POLICY = {
    "metadata": {"name": "p"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            ]
        },
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/x'}]"}}],
    },
}


def test_versions_come_and_go_with_the_flags(tmp_path: Path) -> None:
    with_flags = RunningServer(tmp_path, tokens=TOKENS, flags=EVERYTHING)
    api = Api(with_flags)
    try:
        for path in NEW:
            assert api("GET", path)[0] == 200, path
            group_version = path.rsplit("/", 1)[0]
            assert api("GET", f"/openapi/v3{group_version}")[0] == 200, path
            assert path.rsplit("/", 1)[1] in {r["name"] for r in api("GET", group_version)[1]["resources"]}
        request = {"name": "r", "deviceClassName": "c"}
        claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
        code, made = api("POST", CLAIMS.format("v1beta1"), claim)
        assert code == 201, made
        assert made["spec"]["devices"]["requests"] == [{**request, "allocationMode": "ExactCount", "count": 1}]
        code, found = api("GET", CLAIMS.format("v1") + "/c")
        assert found["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "c"
        listed = api("GET", CLAIMS.format("v1beta2"))[1]["items"]
        assert "exactly" in listed[0]["spec"]["devices"]["requests"][0]
        code, answer = api(
            "POST",
            CLAIMS.format("v1beta1"),
            {"metadata": {"name": "d"}, "spec": {"devices": {"requests": [{"name": "r"}]}}},
        )
        assert code == 422
        assert "spec.devices.requests[0].exactly.deviceClassName: Required value" in answer["message"]
        code, answer = api("POST", POLICIES.format("v1"), POLICY)
        assert code == 201, answer
    finally:
        api.connection.close()
        assert with_flags.stop() == 0
    without = RunningServer(tmp_path, tokens=TOKENS)
    api = Api(without)
    try:
        for path in NEW:
            assert api("GET", path)[0] == 404, path
        policy = api("GET", POLICIES.format("v1") + "/p")[1]
        assert policy["apiVersion"] == "admissionregistration.k8s.io/v1"
        policy["metadata"]["labels"] = {"a": "b"}
        code, answer = api("PUT", POLICIES.format("v1") + "/p", policy)
        assert code == 200, answer
        assert api("GET", CLAIMS.format("v1") + "/c")[0] == 200
    finally:
        api.connection.close()
        assert without.stop() == 0


def test_what_is_turned_off_is_still_there_for_the_server_itself(tmp_path: Path) -> None:
    off = "rbac.authorization.k8s.io/v1=false,networking.k8s.io/v1=false,networking.k8s.io/v1beta1=true,discovery.k8s.io/v1=false"
    server = RunningServer(tmp_path, tokens=TOKENS, flags=[f"--runtime-config={off}"])
    api, alice = Api(server), Api(server, "usertoken")
    alice.connection = http.client.HTTPSConnection(
        "127.0.0.1", server.port, context=ssl.create_default_context(cafile=str(tmp_path / "pki/ca.crt")), timeout=30
    )
    try:
        assert api("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles")[0] == 404
        assert alice("GET", "/version")[0] == 200, "roles still count"
        assert alice("GET", "/api/v1/namespaces/default/pods")[0] == 403
        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
        assert api("POST", "/api/v1/namespaces/default/services", service)[0] == 201
        addresses = api("GET", "/apis/networking.k8s.io/v1beta1/ipaddresses")[1]
        assert addresses["apiVersion"] == "networking.k8s.io/v1beta1"
        assert len(addresses["items"]) == 2
    finally:
        api.connection.close()
        alice.connection.close()
        assert server.stop() == 0
