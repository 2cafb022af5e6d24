"""What the server says it serves, in both forms, and whether it is so."""

from __future__ import annotations

from typing import Any

from fastapi_core.testing.conformance.client import Answer, Tree
from fastapi_core.testing.conformance.discovered import AGGREGATED, EITHER, resources
from fastapi_core.testing.conformance.subject import Subject, error, success
from fastapi_core.testing.conformance.verdicts import SHOULD, Scope, Skipped, check, demand

_STANDARD = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


def _parent(t: Subject) -> str:
    return "/apis" if t.resource.group else "/api"


@check("discovery.groups", scope=Scope.SERVER)
def groups(t: Subject) -> None:
    """/apis lists the group with its versions and the preferred one; clients begin there."""
    answer = success(t.client.request("GET", _parent(t)), "the groups")
    if not t.resource.group:
        demand(t.resource.version in (answer.tree().get("versions") or ()), "the version is listed", answer)
        return
    entry = _entry(answer, t.resource.group)
    _right_group(entry, t, answer)


@check("discovery.group", scope=Scope.SERVER)
def group(t: Subject) -> None:
    """/apis/GROUP is that entry by itself, as an APIGroup; clients that know the group ask there."""
    if not t.resource.group:
        raise Skipped("the core group has no such document")
    answer = success(t.client.request("GET", f"/apis/{t.resource.group}"), "the group")
    tree = answer.tree()
    demand(tree.get("kind") == "APIGroup" and tree.get("name") == t.resource.group, "an APIGroup of that name", answer)
    _right_group(tree, t, answer)
    whole = success(t.client.request("GET", "/apis"), "the groups")
    entry = _entry(whole, t.resource.group)
    demand(entry.get("versions") == tree.get("versions"), "the same versions as in /apis", answer, whole)


def _right_group(entry: Tree, t: Subject, answer: Answer) -> None:
    versions = [item for item in entry.get("versions") or () if isinstance(item, dict)]
    demand(
        {"groupVersion": t.resource.api_version, "version": t.resource.version} in versions,
        f"versions has {t.resource.api_version}",
        answer,
    )
    demand(entry.get("preferredVersion") in versions, "preferredVersion is one of the versions", answer)


def _entry(answer: Answer, name: str) -> Tree:
    found = [entry for entry in answer.tree().get("groups") or () if entry.get("name") == name]
    demand(len(found) == 1, f"one entry for {name}", answer)
    return dict(found[0])


@check("discovery.resources", scope=Scope.SERVER)
def resource_list(t: Subject) -> None:
    """The list of a version has name, kind, scope and verbs of each resource; clients build every request from it."""
    answer = success(t.client.request("GET", t.resource.root), "the resources")
    tree = answer.tree()
    demand(tree.get("kind") == "APIResourceList", "an APIResourceList", answer)
    demand(tree.get("groupVersion") == t.resource.api_version, f"groupVersion {t.resource.api_version}", answer)
    entries = tree.get("resources")
    demand(isinstance(entries, list) and entries, "resources is a list", answer)
    named = [entry.get("name") for entry in entries or ()]
    for entry in entries or ():
        name = entry.get("name")
        demand(isinstance(name, str) and name and entry.get("kind"), "each has name and kind", answer)
        demand(isinstance(entry.get("namespaced"), bool), f"namespaced of {name} is true or false", answer)
        demand(isinstance(entry.get("verbs"), list) and entry["verbs"], f"{name} has verbs", answer)
        demand("/" not in name or name.split("/")[0] in named, f"{name} belongs to a resource in the list", answer)
    demand(len(set(named)) == len(named), "no name comes twice", answer)


@check("discovery.names", SHOULD)
def resource_names(t: Subject) -> None:
    """A resource has a singular, and no short name means two resources; `kubectl get NAME` looks them up."""
    answer = success(t.client.request("GET", t.resource.root), "the resources")
    demand(t.resource.singular, f"{t.resource.name} has a singularName", answer)
    found = resources(t.resource.group, t.resource.version, answer.tree()["resources"])
    taken: dict[str, str] = {}
    for resource in found:
        for name in {resource.name, resource.singular or resource.name, *resource.short_names}:
            demand(taken.setdefault(name, resource.name) == resource.name, f"{name} means one resource", answer)


@check("discovery.either-form", scope=Scope.SERVER)
def either_form(t: Subject) -> None:
    """Whoever takes both forms of discovery gets one of them, rightly labelled; every current client asks so."""
    answer = success(t.client.request("GET", _parent(t), headers={"Accept": EITHER}), "one of both forms")
    kind = answer.tree().get("kind")
    wanted = ("APIGroupDiscoveryList",) if "as=" in answer.header("Content-Type") else ("APIGroupList", "APIVersions")
    demand(kind in wanted, f"a body of kind {' or '.join(wanted)}, as its Content-Type says", answer)


def _aggregated(t: Subject) -> Answer:
    answer = t.client.request("GET", _parent(t), headers={"Accept": EITHER})
    if answer.status != 200 or "as=APIGroupDiscoveryList" not in answer.header("Content-Type"):
        raise Skipped("the server has no aggregated discovery")
    return answer


@check("discovery.aggregated", SHOULD, scope=Scope.SERVER)
def aggregated(t: Subject) -> None:
    """Aggregated discovery is offered: one request instead of one a version."""
    answer = t.client.request("GET", _parent(t), headers={"Accept": AGGREGATED})
    success(answer, "discovery in the aggregated form")
    demand("as=APIGroupDiscoveryList" in answer.header("Content-Type"), "a Content-Type with its as, g and v", answer)


@check("discovery.aggregated-same", scope=Scope.SERVER)
def aggregated_same(t: Subject) -> None:
    """The aggregated form tells the same resources, scopes, verbs and names as the lists; clients take either."""
    answer, legacy = _aggregated(t), success(t.client.request("GET", t.resource.root), "the resources")
    entries = [
        version
        for item in answer.tree().get("items") or ()
        if (item.get("metadata") or {}).get("name", "") == t.resource.group
        for version in item.get("versions") or ()
        if version.get("version") == t.resource.version
    ]
    demand(len(entries) == 1, f"one entry for {t.resource.api_version}", answer)
    told = {entry.get("resource"): entry for entry in entries[0].get("resources") or ()}
    found = resources(t.resource.group, t.resource.version, legacy.tree()["resources"])
    demand(told.keys() == {resource.name for resource in found}, "the same resources in both forms", answer, legacy)
    for resource in found:
        entry = told[resource.name]
        same: dict[str, tuple[Any, Any]] = {
            "scope": (entry.get("scope"), "Namespaced" if resource.namespaced else "Cluster"),
            "verbs": (set(entry.get("verbs") or ()), resource.verbs),
            "shortNames": (tuple(entry.get("shortNames") or ()), resource.short_names),
            "singularResource": (entry.get("singularResource", ""), resource.singular),
            "kind": ((entry.get("responseKind") or {}).get("kind"), resource.kind),
            "subresources": (
                {sub.get("subresource"): set(sub.get("verbs") or ()) for sub in entry.get("subresources") or ()},
                {name: set(verbs) for name, verbs in resource.subresources.items()},
            ),
        }
        for name, (one, other) in same.items():
            demand(one == other, f"{name} of {resource.name} is {other}, not {one}", answer, legacy)


@check("discovery.aggregated-etag", SHOULD, scope=Scope.SERVER)
def aggregated_etag(t: Subject) -> None:
    """The aggregated form has an ETag, and answers 304 to whoever has it already; clients keep it on disk."""
    answer = _aggregated(t)
    tag = answer.header("ETag")
    demand(tag, "an ETag", answer)
    again = t.client.request("GET", _parent(t), headers={"Accept": EITHER, "If-None-Match": tag})
    demand(again.status == 304 and not again.body, "304 without a body", again)


@check("discovery.claimed-verbs")
def claimed_verbs(t: Subject) -> None:
    """Each verb of the discovery is served; clients call what is listed and nothing else."""
    name, verbs = "conformance-nothing", t.resource.verbs
    dry = {"dryRun": "All"}
    tried = []
    if "get" in verbs:
        tried.append(t.get(name))
    if "list" in verbs:
        tried.append(success(t.listing({"limit": 1}), "list is claimed"))
    if "create" in verbs:
        tried.append(t.post({}, dry))
    if "update" in verbs:
        tried.append(t.put({"metadata": {"name": name}}, dry))
    if "patch" in verbs:
        tried.append(t.patch(name, {}, dry))
    if "delete" in verbs:
        tried.append(t.delete(name, query=dry))
    if "deletecollection" in verbs and "list" in verbs and not t.stranger():
        none = {**dry, "labelSelector": "fastapi-core.conformance/nobody=x"}
        tried.append(t.client.request("DELETE", t.path(), query=none))
    for answer in tried:
        demand(answer.status not in (405, 501), "a verb that is claimed is allowed", answer)
        if answer.status == 404:
            # Not found must mean the object (or the namespace), never the path.
            status = error(answer, 404, "NotFound")
            demand((status.get("details") or {}).get("name"), "404 about the object, not the path", answer)
    if "watch" in verbs:
        with t.watch({"timeoutSeconds": 1}):
            pass


@check("discovery.unclaimed-verbs")
def unclaimed_verbs(t: Subject) -> None:
    """What the discovery does not list is not served: 405, or 404; else clients miss what is there."""
    name, dry = "conformance-nothing", {"dryRun": "All"}
    client, path = t.client, t.path(name)
    ways = {
        "get": lambda: t.get(name),
        "list": lambda: t.listing(),
        "create": lambda: t.post({}, dry),
        "update": lambda: client.request("PUT", path, {"metadata": {"name": name}}, query=dry),
        "patch": lambda: t.patch(name, {}, dry),
        "delete": lambda: t.delete(name, query=dry),
        "deletecollection": lambda: client.request(
            "DELETE", t.path(), query={**dry, "labelSelector": "fastapi-core.conformance/nobody=x"}
        ),
    }
    unclaimed = [verb for verb in ways if verb not in t.resource.verbs]
    if "deletecollection" in unclaimed and ("list" not in t.resource.verbs or t.stranger()):
        # Should it be served after all, nobody else's objects may pay for it.
        unclaimed.remove("deletecollection")
    if not unclaimed:
        raise Skipped("every verb is claimed")
    for verb in unclaimed:
        answer = ways[verb]()
        demand(answer.status in (403, 404, 405), f"405: {verb} is not among the verbs", answer)


@check("discovery.subresources")
def subresource_verbs(t: Subject) -> None:
    """Subresources that claim get answer for an object that exists; controllers read status and scale there."""
    readable = [
        name for name, verbs in t.resource.subresources.items() if name in ("status", "scale") and "get" in verbs
    ]
    if not readable:
        raise Skipped("no status or scale that can be read")
    obj = t.create(t.scalable()) if {"create", "delete"} <= t.resource.verbs and not t.refused else t.existing()
    for name in readable:
        answer = success(t.client.request("GET", f"{t.where(obj)}/{name}"), f"{name} of an object that exists")
        demand(answer.tree().get("kind") == ("Scale" if name == "scale" else t.resource.kind), "its kind", answer)
