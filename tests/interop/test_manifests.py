"""Manifests as their projects publish them, applied with the real kubectl as a person would.

Files are taken together as long as no object is named twice. Documents of kinds the server does not serve (custom
resources whose definition is not a built-in) are left out; the test prints which kinds those were.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import Client
from tests.interop.test_kubectl import Kubectl

pytestmark = pytest.mark.interop

FOLDERS = ("examples", "crds-cert-manager", "crds-gateway-api", "crds-prometheus-operator")
MAX_ANNOTATIONS = 256 << 10
#: A policy that forbids the definitions beside it, which call themselves version 0.
UPGRADES = "vap_safeupgrades.yaml"
Document = dict[str, Any]
Kind = tuple[str, str]


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.1 gives a lone `=` a meaning of its own, which nobody uses."""


Loader.add_constructor("tag:yaml.org,2002:value", Loader.construct_scalar)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(tmp_path_factory.mktemp("manifests"))
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[Client]:
    made = Client(server)
    yield made
    made.close()


@pytest.fixture
def kubectl(server: RunningServer, tmp_path: Path) -> Kubectl:
    made = Kubectl(server, "default", tmp_path)
    made.command = made.command[:1]  # manifests bring their own namespaces
    return made


def served_kinds(client: Client) -> set[Kind]:
    found = set()
    paths = ["/api/v1"]
    for group in client("GET", "/apis")[1]["groups"]:
        paths += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
    for path in paths:
        status, listed = client("GET", path)
        if status == 200:
            found |= {(listed["groupVersion"], r["kind"]) for r in listed["resources"] if "create" in r["verbs"]}
    return found


def documents(folder: Path) -> list[list[Document]]:
    """One list per file; a List counts as its items."""
    files = []
    for path in sorted(folder.rglob("*.yaml")):
        if path.name.endswith(UPGRADES):
            continue
        found: list[Document] = []
        for document in yaml.load_all(path.read_text(), Loader):
            if document:
                found += document["items"] if document["kind"] == "List" else [document]
        files.append(found)
    return files


def identity(document: Document) -> tuple[str, str, str, str]:
    meta = document["metadata"]
    return document["apiVersion"], document["kind"], meta.get("namespace", "default"), meta["name"]


def batches(files: list[list[Document]]) -> list[list[Document]]:
    """As few groups of whole files as it takes for every object to stand once in its group."""
    groups: list[dict[tuple[str, str, str, str], Document]] = []
    for file in files:
        named = {identity(document): document for document in file}
        for group in groups:
            if not group.keys() & named.keys():
                group.update(named)
                break
        else:
            groups.append(named)
    return [list(group.values()) for group in groups]


def compact(document: Document) -> str:
    return json.dumps(document, separators=(",", ":"))


def written(batch: list[Document]) -> str:
    return "\n---\n".join(json.dumps(document) for document in batch)


def revisions(kubectl: Kubectl, text: str) -> list[str]:
    path = '{range .items[*]}{.kind}/{.metadata.name}@{.metadata.resourceVersion}{"\\n"}{end}'
    if "\n---\n" not in text:
        path = path.replace(" .items[*]", " @")
    return kubectl("get", "-f", "-", "-o", f"jsonpath={path}", stdin=text).split()


@pytest.fixture(params=FOLDERS)
def batched(request: pytest.FixtureRequest, shared: Path, client: Client) -> list[list[Document]]:
    """The documents of a folder that can be applied, with the namespaces they name."""
    folder = shared / "manifests" / request.param
    if not folder.is_dir():
        pytest.skip("the manifests are not here")
    files = documents(folder)
    served = served_kinds(client)
    left_out = Counter(
        f"{d['apiVersion']} {d['kind']}" for file in files for d in file if (d["apiVersion"], d["kind"]) not in served
    )
    print("not served:", dict(left_out) or "none")
    assert all("." in kind.split("/")[0] for kind in left_out), "a built-in kind is not served"
    kept = [[d for d in file if (d["apiVersion"], d["kind"]) in served] for file in files]
    assert any(kept) or left_out
    for name in {identity(d)[2] for file in kept for d in file}:
        client("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        client("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    return batches([file for file in kept if file])


def test_client_side(batched: list[list[Document]], kubectl: Kubectl) -> None:
    for whole in batched:
        # kubectl keeps what it applied in an annotation, which may not be longer than this.
        batch = [document for document in whole if len(compact(document)) < MAX_ANNOTATIONS]
        text = written(batch)
        count = len(batch)
        assert kubectl("apply", "--dry-run=server", "-f", "-", stdin=text).count("created (server dry run)") == count
        new = kubectl("diff", "-f", "-", stdin=text, code=1)
        assert new.count("\n+  name: ") >= count
        assert kubectl("apply", "-f", "-", stdin=text).count(" created\n") == count
        # kubectl sends a patch again where the server spells a value otherwise or fills in an atomic list; it must be none.
        stored = revisions(kubectl, text)
        again = kubectl("apply", "-f", "-", stdin=text)
        assert again.count(" unchanged\n") + again.count(" configured\n") == count
        assert revisions(kubectl, text) == stored, "applying again changed something"
        assert kubectl("diff", "-f", "-", stdin=text) == ""
        assert len(stored) == count
        kubectl("describe", "-f", "-", stdin=text)
        deleted = kubectl("delete", "--wait=false", "-f", "-", stdin=text)
        assert deleted.count(" deleted") == count
        # Only what a finalizer keeps for its controller is still there.
        left = kubectl("get", "--ignore-not-found", "-o", "json", "-f", "-", stdin=text)
        for item in json.loads(left).get("items", [json.loads(left)]) if left.strip() else []:
            assert item["metadata"]["deletionTimestamp"]
            assert item["metadata"]["finalizers"]
            path = json.dumps({"metadata": {"finalizers": None}})
            kubectl("patch", "-f", "-", "--type=merge", "-p", path, stdin=json.dumps(item))


def test_too_large_for_client_side(shared: Path, client: Client, kubectl: Kubectl) -> None:
    """Known to everybody who installs the Prometheus operator: its definitions need server-side apply."""
    files = documents(shared / "manifests" / "crds-prometheus-operator")
    large = [d for file in files for d in file if len(compact(d)) > MAX_ANNOTATIONS]
    if not large or ("apiextensions.k8s.io/v1", "CustomResourceDefinition") not in served_kinds(client):
        pytest.skip("no such manifests here")
    said = kubectl("apply", "-f", "-", stdin=written(large[:1]), code=1)
    assert "metadata.annotations: Too long: may not be more than 262144 bytes" in said


def test_server_side(batched: list[list[Document]], kubectl: Kubectl, client: Client) -> None:
    probe = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"probe"}}'
    client.connection.request(
        "PATCH",
        "/api/v1/namespaces/default/configmaps/probe?fieldManager=test&dryRun=All",
        probe,
        {"Content-Type": "application/apply-patch+yaml"},
    )
    answer = client.connection.getresponse()
    answer.read()
    if answer.status == 415:
        pytest.skip("server-side apply is not served yet")
    for batch in batched:
        text = written(batch)
        apply = ("apply", "--server-side", "-f", "-")
        dry = kubectl(*apply, "--dry-run=server", stdin=text)
        assert dry.count("serverside-applied (server dry run)") == len(batch)
        assert kubectl(*apply, stdin=text).count(" serverside-applied\n") == len(batch)
        before = kubectl("get", "-o", "json", "-f", "-", stdin=text)
        assert kubectl(*apply, stdin=text).count(" serverside-applied\n") == len(batch)
        assert kubectl("get", "-o", "json", "-f", "-", stdin=text) == before, "applying again changed something"
        assert kubectl("diff", "--server-side", "-f", "-", stdin=text) == ""
        kubectl("delete", "--wait=false", "-f", "-", stdin=text)
