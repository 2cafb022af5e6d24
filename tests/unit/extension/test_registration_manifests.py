"""The objects of a registration: where the server is, how it is known, who may use what it serves."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastapi_core.extension.delegated.access import kubeconfigs
from fastapi_core.extension.description import Description, GroupVersion, ServedResource
from fastapi_core.extension.register import register, unregister
from fastapi_core.extension.registration.manifests import mark_of, objects
from fastapi_core.extension.registration.options import Common, address, registration
from fastapi_core.options.flags import OptionsError

RESOURCES = (
    ServedResource("db.example.com", "v1", "databases", "Database", True, ("create", "get", "list", "watch")),
    ServedResource("db.example.com", "v1", "databases/status", "Database", True, ("get", "update")),
    ServedResource("db.example.com", "v2", "databases", "Database", True, ("create", "get", "list", "watch")),
)
ABOUT = Description(
    "db", "data", (GroupVersion("db.example.com", "v1", 100, 20), GroupVersion("db.example.com", "v2")), RESOURCES
)


def made(*flags: str, about: Description = ABOUT, ca: bytes = b"CA") -> dict[str, dict[str, Any]]:
    """Manifests by what they are called."""
    known = () if any("insecure" in flag for flag in flags) else ("--insecure-skip-tls-verify",)
    options = registration([*flags, *known])
    if known:
        options.insecure_skip_tls_verify = False
    return {obj.shown: obj.tree(mark_of(about)) for obj in objects(about, options, ca)}


def test_pods_behind_a_service() -> None:
    found = made("--target-port=8443")
    assert list(found) == [
        "serviceaccount/db",
        "clusterrolebinding.rbac.authorization.k8s.io/data:db:auth-delegator",
        "rolebinding.rbac.authorization.k8s.io/data:db:auth-reader",
        "clusterrole.rbac.authorization.k8s.io/data:db:view",
        "clusterrole.rbac.authorization.k8s.io/data:db:edit",
        "service/db",
        "apiservice.apiregistration.k8s.io/v1.db.example.com",
        "apiservice.apiregistration.k8s.io/v2.db.example.com",
    ]
    service = found["service/db"]
    assert service["metadata"] == {
        "name": "db",
        "namespace": "data",
        "labels": {"app.kubernetes.io/managed-by": "fastapi-core-extension"},
        "annotations": {"extension.fastapi-core/registration": "data/db"},
    }
    assert service["spec"] == {
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 8443}],
        "selector": {"app.kubernetes.io/name": "db"},
    }
    assert made("--selector=app=db,tier=api")["service/db"]["spec"]["selector"] == {"app": "db", "tier": "api"}
    first = found["apiservice.apiregistration.k8s.io/v1.db.example.com"]["spec"]
    assert first == {
        "group": "db.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 20,
        "service": {"name": "db", "namespace": "data", "port": 443}, "caBundle": base64.b64encode(b"CA").decode(),
    }  # fmt: skip
    assert found["apiservice.apiregistration.k8s.io/v2.db.example.com"]["spec"]["groupPriorityMinimum"] == 1000


def test_addresses_outside_of_pods() -> None:
    found = made("--endpoint=10.0.0.1:6443,10.0.0.2:6443", "--endpoint=10.0.0.1:7443", "--endpoint=[fd00::1]:6443")
    assert "selector" not in found["service/db"]["spec"]
    slices = {name: tree for name, tree in found.items() if name.startswith("endpointslice")}
    assert list(slices) == [
        "endpointslice.discovery.k8s.io/db-ipv4-6443",
        "endpointslice.discovery.k8s.io/db-ipv4-7443",
        "endpointslice.discovery.k8s.io/db-ipv6-6443",
    ]
    first = slices["endpointslice.discovery.k8s.io/db-ipv4-6443"]
    assert [endpoint["addresses"] for endpoint in first["endpoints"]] == [["10.0.0.1"], ["10.0.0.2"]]
    assert first["metadata"]["labels"]["kubernetes.io/service-name"] == "db"
    assert first["ports"] == [{"name": "https", "port": 6443, "protocol": "TCP"}]
    assert slices["endpointslice.discovery.k8s.io/db-ipv6-6443"]["addressType"] == "IPv6"


def test_a_name_outside() -> None:
    found = made("--external-name=db.example.com:8443")
    assert found["service/db"]["spec"] == {"type": "ExternalName", "externalName": "db.example.com"}
    assert found["apiservice.apiregistration.k8s.io/v1.db.example.com"]["spec"]["service"]["port"] == 8443


def test_rights_of_the_server_and_of_its_users() -> None:
    found = made("--user=dev,ci")
    for name in (
        "clusterrolebinding.rbac.authorization.k8s.io/data:db:auth-delegator",
        "rolebinding.rbac.authorization.k8s.io/data:db:auth-reader",
    ):
        assert [(s["kind"], s["name"]) for s in found[name]["subjects"]] == [
            ("ServiceAccount", "db"),
            ("User", "dev"),
            ("User", "ci"),
        ]
    assert found["rolebinding.rbac.authorization.k8s.io/data:db:auth-reader"]["metadata"]["namespace"] == "kube-system"
    view = found["clusterrole.rbac.authorization.k8s.io/data:db:view"]
    assert view["rules"] == [
        {"apiGroups": ["db.example.com"], "resources": ["databases"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["db.example.com"], "resources": ["databases/status"], "verbs": ["get"]},
    ]
    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    edit = found["clusterrole.rbac.authorization.k8s.io/data:db:edit"]
    assert [rule["verbs"] for rule in edit["rules"]] == [["create"], ["update"]]
    assert "rbac.authorization.k8s.io/aggregate-to-view" not in edit["metadata"]["labels"]
    assert not [name for name in made("--roles=false") if "clusterrole." in name]


def test_the_namespace_and_no_verification() -> None:
    found = made("--create-namespace", "--insecure-skip-tls-verify")
    assert next(iter(found)) == "namespace/data"
    spec = found["apiservice.apiregistration.k8s.io/v1.db.example.com"]["spec"]
    assert spec["insecureSkipTLSVerify"] is True
    assert "caBundle" not in spec


def test_flags_that_make_no_sense_are_all_told() -> None:
    with pytest.raises(OptionsError) as caught:
        registration(
            [
                "--selector=a=b",
                "--endpoint=127.0.0.1:1",
                "--endpoint=host:1",
                "--external-name=x",
                "--port=0",
                "--timeout=-1s",
            ]
        )
    text = "\n".join(caught.value.errors)
    for part in (
        "exclude each other: they are three ways",
        "--ca-file FILE for a mounted one",
        "--port: 0 is not a port",
        "--timeout: cannot be negative",
        "127.0.0.1 is a loopback address, which no endpoint may have",
        "'host' is not an IP address; for names there is --external-name",
        "--external-name: 'x' is not HOST:PORT",
    ):
        assert part in text
    with pytest.raises(OptionsError, match=r"--ca-file, --data-dir, --tls-secret and .* exclude each other"):
        registration(["--ca-file=a", "--tls-secret=b"])
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        address("10.0.0.1")


def test_what_is_registered_by_flags_alone() -> None:
    found = Common(name="ms", group_version=("metrics.k8s.io/v1beta1",)).described(None)
    assert found == Description("ms", "default", (GroupVersion("metrics.k8s.io", "v1beta1"),), ())
    assert Common(namespace="other").described(ABOUT).namespace == "other"
    with pytest.raises(OptionsError) as caught:
        Common().described(None)
    assert [line.split(":")[0] for line in caught.value.errors] == ["--group-version", "--name"]
    with pytest.raises(OptionsError, match="'v1' is no group and version"):
        Common(name="x", group_version=("v1",)).described(None)


def test_kubeconfigs_are_looked_for_as_kubectl_does() -> None:
    assert kubeconfigs("mine", {"KUBECONFIG": "a:b"}) == ("mine",)
    assert kubeconfigs("", {"KUBECONFIG": "a::b"}) == ("a", "b")
    assert kubeconfigs("", {}) == ()


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({}, "--kubeconfig: is not given, $KUBECONFIG is not set, and /nowhere/.kube/config does not exist: name the"),
        ({"KUBECONFIG": "/nowhere/a"}, "--kubeconfig: '/nowhere/a' does not exist, check the path"),
        ({"KUBECONFIG": "/nowhere/a:/nowhere/b"}, "'/nowhere/a' and '/nowhere/b' do not exist, check the paths"),
    ],
)
def test_no_kubeconfig(
    environment: dict[str, str], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/nowhere", **environment}.items():
        monkeypatch.setenv(name, value)
    assert register(ABOUT, ["--insecure-skip-tls-verify", "--timeout=0"]) == 1
    assert text in capsys.readouterr().err


def test_printing_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    from fastapi_core.codec import decode

    assert register(ABOUT, ["--print", "--insecure-skip-tls-verify"]) == 0
    documents = capsys.readouterr().out.split("---\n")
    trees = [decode.parse(text.encode(), "yaml").tree for text in documents]
    assert [tree["kind"] for tree in trees] == [
        "ServiceAccount", "ClusterRoleBinding", "RoleBinding", "ClusterRole", "ClusterRole", "Service", "APIService",
        "APIService",
    ]  # fmt: skip


def test_help_and_wrong_command_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert register(ABOUT, ["--help"]) == unregister(ABOUT, ["-h"]) == 0
    assert "--tls-secret string" in capsys.readouterr().out
    assert register(ABOUT, []) == 2
    assert "--ca-file: the API server has to know" in capsys.readouterr().err
    assert unregister(None, []) == 2
