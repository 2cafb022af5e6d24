"""The objects a server makes of itself, and how a later start brings them up to date."""

from __future__ import annotations

from pathlib import Path

from fastapi_core.testing.server import RunningServer
from tests.fixtures.server import TOKENS, Api

FLAGS = ("--service-cluster-ip-range=10.0.0.0/16,fd00::/108", "--advertise-address=192.0.2.10")


def test_the_kubernetes_service(tmp_path: Path) -> None:
    for _ in range(2):
        server = RunningServer(tmp_path, tokens=TOKENS, flags=FLAGS)
        api = Api(server)
        try:
            port = server.port
            service = api("GET", "/api/v1/namespaces/default/services/kubernetes")[1]
            assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
            assert service["spec"]["clusterIPs"] == ["10.0.0.1"]
            assert service["spec"]["ports"] == [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]
            endpoints = api("GET", "/api/v1/namespaces/default/endpoints/kubernetes")[1]
            assert endpoints["subsets"] == [
                {"addresses": [{"ip": "192.0.2.10"}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}
            ]
            slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
            (endpoint,) = api("GET", slices)[1]["endpoints"]
            assert (endpoint["addresses"], endpoint["conditions"]) == (["192.0.2.10"], {"ready": True})
            assert api("GET", slices)[1]["ports"][0]["port"] == port
            cidr = api("GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes")[1]
            assert cidr["spec"]["cidrs"] == ["10.0.0.0/16", "fd00::/108"]
            assert [(c["type"], c["status"]) for c in cidr["status"]["conditions"]] == [("Ready", "True")]
            assert api("GET", "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1")[0] == 200
        finally:
            api.connection.close()
            assert server.stop() == 0


def test_the_kubernetes_service_on_a_node_port_with_endpoints_of_others(tmp_path: Path) -> None:
    for flags in (FLAGS, (*FLAGS, "--kubernetes-service-node-port=30443", "--endpoint-reconciler-type=none")):
        server = RunningServer(tmp_path, tokens=TOKENS, flags=flags)
        api = Api(server)
        try:
            spec = api("GET", "/api/v1/namespaces/default/services/kubernetes")[1]["spec"]
            endpoints = "/api/v1/namespaces/default/endpoints/kubernetes"
            if flags == FLAGS:
                assert spec["type"] == "ClusterIP"
                assert api("GET", endpoints)[0] == 200
                assert api("DELETE", endpoints)[0] == 200
            else:
                assert (spec["type"], spec["ports"][0]["nodePort"]) == ("NodePort", 30443)
                assert api("GET", endpoints)[0] == 404
        finally:
            api.connection.close()
            assert server.stop() == 0


def test_tokens_are_signed_with_a_key_that_stays(tmp_path: Path) -> None:
    from fastapi_core.authn.issuer import decoded

    keys = []
    for _ in range(2):
        server = RunningServer(tmp_path, tokens=TOKENS, flags=["--service-account-issuer=https://issuer.example"])
        api = Api(server)
        try:
            path = "/api/v1/namespaces/default/serviceaccounts"
            api("POST", path, {"metadata": {"name": "sa"}})
            kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
            code, answer = api("POST", f"{path}/sa/token", {**kind, "spec": {}})
            assert code == 201
            header, claims = decoded(answer["status"]["token"])
            assert claims["iss"] == "https://issuer.example"
            assert answer["spec"]["audiences"] == ["https://issuer.example"]
            keys.append(header["kid"])
            wrong = {**kind, "metadata": {"uid": "other"}, "spec": {}}
            assert api("POST", f"{path}/sa/token", wrong)[0] == 409
            bound = {**kind, "spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}}}
            text = "cannot bind token to object of type /v1, Kind=ConfigMap"
            assert api("POST", f"{path}/sa/token", bound)[1]["message"] == text
        finally:
            api.connection.close()
            assert server.stop() == 0
    assert keys[0] == keys[1]
