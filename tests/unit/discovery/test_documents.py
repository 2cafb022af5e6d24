"""Discovery documents of the built-in set equal the recording; order of groups and versions; custom resources."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.discovery.documents import DiscoveryDocuments
from fastapi_core.discovery.endpoints import DiscoveryEndpoints
from fastapi_core.discovery.index import listed_paths
from fastapi_core.discovery.priorities import GroupPriority, version_key
from fastapi_core.registry.definition import ResourceDefinition, Subresource

FACTS = Path(__file__).parents[4] / "shared" / "facts"


def definition(plural: str, group: str = "", version: str = "v1", **more: Any) -> ResourceDefinition:
    more = {"kind": "K", "singular": "k", "namespaced": True, "verbs": ("list", "get"), **more}
    return ResourceDefinition(
        group=group, version=version, plural=plural, type=None, storage_group=group, storage_version=version,
        key_prefix=f"/registry/{plural}/", **more,
    )  # fmt: skip


def _subresource(name: str, record: dict[str, Any]) -> Subresource:
    *place, kind = record["kind"].split("/")
    group, version = place if len(place) == 2 else ("", "")
    return Subresource(name, tuple(record["verbs"]), kind, group, version)


def recorded_definitions() -> list[ResourceDefinition]:
    records = json.loads((FACTS / "resources.json").read_text())["resources"].values()
    return [
        definition(
            r["plural"],
            r["group"],
            r["version"],
            kind=r["kind"],
            singular=r["singular"],
            namespaced=r["scope"] == "Namespaced",
            # Order of declarations and verbs must not matter.
            verbs=tuple(reversed(r["verbs"])),
            short_names=tuple(r.get("short", ())),
            categories=tuple(r.get("categories", ())),
            subresources={n: _subresource(n, s) for n, s in reversed(r.get("subresources", {}).items())},
            storage_version_hash=r.get("storageVersionHash", ""),
        )
        for r in records
        if r["served"] == "default"
    ][::-1]


@pytest.mark.parametrize("definitions", [recorded_definitions, builtin], ids=["recorded", "declared"])
def test_built_in_documents_equal_the_recording(definitions: Callable[[], Sequence[ResourceDefinition]]) -> None:
    if not FACTS.is_dir():
        pytest.skip("no facts")
    documents = DiscoveryDocuments(definitions(), server_address="192.0.2.2:17010")
    recorded = json.loads((FACTS / "discovery.json").read_text())
    got = {"/api": documents.core.tree, "/apis": documents.group_list.tree}
    got |= {f"/apis/{group}": d.tree for group, d in documents.groups.items()}
    for (group, version), d in documents.resource_lists.items():
        got[f"/apis/{group}/{version}" if group else f"/api/{version}"] = d.tree
    assert got == recorded["legacy"]
    nested = {"/api": documents.aggregated_core.tree, "/apis": documents.aggregated_groups.tree}
    assert nested == recorded["aggregated"]
    routes = DiscoveryEndpoints(documents, lambda tree: b"").routes()
    assert listed_paths(routes) == [p for p in recorded["rootPaths"] if p.startswith("/api")]


def test_bytes_are_the_tree() -> None:
    document = DiscoveryDocuments([definition("pods")]).resource_lists["", "v1"]
    assert document.json.endswith(b"}\n")
    assert document.json.startswith(
        b'{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"k",'
    )
    assert json.loads(document.json) == json.loads(document.pretty) == document.tree
    assert document.pretty.startswith(b'{\n  "kind": "APIResourceList",\n')
    assert document.etag == document.etag.upper()
    assert len(document.etag) == 130


def test_the_tag_follows_the_content() -> None:
    one, same, other = (
        DiscoveryDocuments([definition("a", "g"), definition(x, "g")]).aggregated_groups.etag for x in ("b", "b", "c")
    )
    assert one == same != other


def test_without_address_and_without_resources() -> None:
    documents = DiscoveryDocuments([])
    assert documents.core.tree == {"kind": "APIVersions", "versions": [], "serverAddressByClientCIDRs": []}
    assert documents.group_list.tree["groups"] == documents.aggregated_core.tree["items"] == []


def test_versions_from_the_most_stable() -> None:
    order = "v10 v2 v1 v0 v11beta2 v3beta1 v2beta1 v12alpha1 v11alpha2 v1alpha1 foo1 foo10"
    assert " ".join(sorted(sorted(order.split()), key=version_key)) == order


def test_groups_by_priority_then_name_and_versions_by_priority() -> None:
    definitions = [
        definition("x", "z.example.com"),
        definition("x", "a.example.com", "v1beta1", custom=True),
        definition("x", "a.example.com", "v2", custom=True),
        definition("x", "first.example.com"),
        definition("x", "autoscaling", "v1"),
        definition("x", "autoscaling", "v2"),
        definition("x", "coordination.k8s.io", "v1alpha2"),
        definition("x", "coordination.k8s.io", "v1beta1"),
        definition("x", "coordination.k8s.io", "v1"),
        definition("x"),
    ]
    documents = DiscoveryDocuments(definitions, group_priorities={"first.example.com": GroupPriority(30000)})
    assert list(documents.versions) == [
        "first.example.com", "", "autoscaling", "coordination.k8s.io", "a.example.com", "z.example.com",
    ]  # fmt: skip
    assert documents.versions["autoscaling"] == ("v2", "v1")
    assert documents.versions["coordination.k8s.io"] == ("v1", "v1beta1", "v1alpha2")
    assert documents.versions["a.example.com"] == ("v2", "v1beta1")
    assert documents.groups["autoscaling"].tree["preferredVersion"] == {
        "groupVersion": "autoscaling/v2",
        "version": "v2",
    }
    assert documents.custom == {("a.example.com", "v2"), ("a.example.com", "v1beta1")}


def test_custom_resources_keep_their_order_and_name_their_own_group() -> None:
    custom = definition(
        "widgets",
        "g",
        custom=True,
        kind="Widget",
        verbs=("delete", "get", "create"),
        subresources={
            "status": Subresource("status", ("get", "patch"), "Widget"),
            "scale": Subresource("scale", ("get",), "Scale", "autoscaling", "v1"),
        },
    )
    documents = DiscoveryDocuments([custom])
    listed = documents.resource_lists["g", "v1"].tree["resources"]
    assert [(r["name"], r["verbs"]) for r in listed] == [
        ("widgets", ["delete", "get", "create"]),
        ("widgets/status", ["get", "patch"]),
        ("widgets/scale", ["get"]),
    ]
    assert "storageVersionHash" not in listed[0]
    assert (listed[2]["group"], listed[2]["version"], listed[2]["kind"]) == ("autoscaling", "v1", "Scale")
    nested = documents.aggregated_groups.tree["items"][0]["versions"][0]["resources"][0]
    own = {"group": "g", "version": "v1", "kind": "Widget"}
    assert nested["responseKind"] == nested["subresources"][0]["responseKind"] == own
    assert nested["subresources"][1]["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
