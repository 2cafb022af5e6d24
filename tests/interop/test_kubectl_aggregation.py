"""kubectl on a group that another server answers for, beside one whose server is dead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.aggregated import GROUP, Stage
from tests.interop.test_kubectl import Kubectl

pytestmark = pytest.mark.interop

DEAD = "dead.example.test"
LISTED = f"/apis/{GROUP}/v1/namespaces/default/things"
AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
THING = {
    "name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get", "list"], "shortNames": ["th"],
}  # fmt: skip


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Stage]:
    """A backend with one kind of objects, and an APIService for a port where nobody listens."""
    stage = Stage(tmp_path, "--aggregator-health-period=1s")
    try:
        version = f"{GROUP}/v1"
        listed = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [THING]}
        metadata = {"name": "one", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
        thing = {"kind": "Thing", "apiVersion": version, "metadata": metadata}
        things = {"kind": "ThingList", "apiVersion": version, "metadata": {"resourceVersion": "1"}, "items": [thing]}
        stage.backend.documents |= {f"/apis/{version}": listed, LISTED: things}
        stage.register()
        stage.register(DEAD, 1)
        stage.until(lambda: shown(stage, GROUP) == {"Current"} and shown(stage, DEAD) == {"Stale"})
        yield stage
    finally:
        stage.close()


def shown(stage: Stage, group: str) -> set[str]:
    """What the aggregated document says about the versions of a group that has resources, or never had."""
    items = stage.api("GET", "/apis", headers=AGGREGATED)[1]["items"]
    versions = [version for item in items if item["metadata"]["name"] == group for version in item["versions"]]
    return {version["freshness"] for version in versions if "resources" in version or group == DEAD}


def test_a_dead_server_disturbs_nobody_else(serving: Stage, tmp_path: Path) -> None:
    kubectl = Kubectl(serving.front, "default", tmp_path)
    assert kubectl("create", "configmap", "mine") == "configmap/mine created\n"
    table = kubectl("get", "configmaps")
    assert [line.split()[0] for line in table.splitlines()] == ["NAME", "mine"], "no word about the other server"
    assert kubectl("get", "deployments.apps", "-o", "name") == ""
    for name in ("things", "th", f"thing.{GROUP}"):
        assert kubectl("get", name, "--no-headers").split()[0] == "one"
    resources = kubectl("api-resources", "--no-headers").splitlines()
    assert [line.split() for line in resources if GROUP in line] == [["things", "th", f"{GROUP}/v1", "true", "Thing"]]
    assert not [line for line in resources if DEAD in line or "rror" in line]
    assert len(resources) > 50


def test_kubectl_says_what_is_missing(serving: Stage, tmp_path: Path) -> None:
    kubectl = Kubectl(serving.front, "default", tmp_path)
    lines = (line.split() for line in kubectl("get", "apiservices", "--no-headers").splitlines())
    told = {name: " ".join(words[:-1]) for name, _, *words in lines}
    assert told[f"v1.{GROUP}"] == "True"
    assert told[f"v1.{DEAD}"] == "False (FailedDiscoveryCheck)"
    described = kubectl("describe", "apiservice", f"v1.{DEAD}")
    assert "FailedDiscoveryCheck" in described
    assert "connection refused" in described
    assert "currently unable to handle the request" in kubectl("get", "--raw", f"/apis/{DEAD}/v1", code=1)
    assert "doesn't have a resource type" in kubectl("get", f"things.{DEAD}", code=1)
    assert f"{GROUP}/v1" in kubectl("api-versions").splitlines()


def test_what_a_backend_served_before_it_died(serving: Stage, tmp_path: Path) -> None:
    kubectl = Kubectl(serving.front, "default", tmp_path)
    assert "one" in kubectl("get", "things")
    serving.backend.close()
    for _ in range(2):  # before it has been noticed, and after
        assert "the server is currently unable to handle the request" in kubectl("get", "things", code=1)
        serving.until(lambda: "service unavailable" in serving.api("GET", LISTED)[1])
    assert shown(serving, GROUP) == {"Stale"}, "its resources are still known"
    assert kubectl("create", "configmap", "mine") == "configmap/mine created\n"
