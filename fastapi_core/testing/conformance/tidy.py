"""Leaving nothing behind: the kit's objects and namespaces are removed, and what resists is told."""

from __future__ import annotations

import http.client
import time

from fastapi_core.testing.conformance.client import Client, Tree
from fastapi_core.testing.conformance.subject import LABEL, Subject, Surroundings, metadata
from fastapi_core.testing.conformance.verdicts import MISSHAPEN, Failed

_NAMESPACES = "/api/v1/namespaces"
_OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background", "gracePeriodSeconds": 0}
_PATIENCE = 10.0
#: How long a namespace with something in it may take that a controller is emptying.
_LONG = 90.0


def after_check(t: Subject) -> None:
    """Remove what a check has made; what resists is left to `sweep`."""
    t.hang_up()
    made, t.made = t.made, {}
    for path in made:
        try:
            remove(t.client, path)
        except (OSError, http.client.HTTPException, Failed, *MISSHAPEN):
            t.client.close()


def remove(client: Client, path: str) -> None:
    """Delete one object, with its finalizers if it has any."""
    answer = client.request("DELETE", path, _OPTIONS)
    if answer.status == 404 or (answer.status == 200 and answer.tree().get("kind") == "Status"):
        return
    held = client.request("GET", path)
    if held.status != 200 or not metadata(held.tree()).get("finalizers"):
        return
    tree = held.tree()
    metadata(tree)["finalizers"] = []
    if client.request("PUT", path, tree).status in (404, 405, 409, 422):
        merge = {"Content-Type": "application/merge-patch+json"}
        client.request("PATCH", path, {"metadata": {"finalizers": None}}, headers=merge)


def sweep(t: Subject) -> list[str]:
    """Remove every object of this run; the paths of those that stay."""
    if not {"list", "delete"} <= t.resource.verbs:
        return []
    until = time.monotonic() + _PATIENCE
    while True:
        left = [t.where(item) for item in _mine(t)]
        if left and time.monotonic() > until:
            left = [path for path in left if not _gone(t.client, path, until - _PATIENCE)]
            return left
        if not left:
            return left
        for path in left:
            remove(t.client, path)
        if _mine(t):
            time.sleep(0.5)


def _mine(t: Subject) -> list[Tree]:
    # Not trusting selectors: this is a server under test.
    answer = t.client.request("GET", t.path(namespace=""))
    if answer.status != 200:
        answer = t.listing()
    found = answer.tree().get("items") or []
    return [item for item in found if (metadata(item).get("labels") or {}).get(LABEL) == t.around.run]


def surroundings(
    client: Client, run: str, *, namespaced: bool, namespace: str = "", elsewhere: str = ""
) -> Surroundings:
    """Where to work: the namespaces given, else two that are made for this run."""
    if not namespaced:
        return Surroundings(run, own=True)
    served = client.request("GET", _NAMESPACES, query={"limit": 1}).status == 200
    if namespace:
        return Surroundings(run, namespace, elsewhere, namespaces=served)
    names = (f"conformance-{run}", f"conformance-{run}-b")
    if not served:
        return Surroundings(run, *names, own=True)
    for name in names:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {LABEL: run}}}
        answer = client.request("POST", _NAMESPACES, body)
        if answer.status != 201:
            demolish(client, Surroundings(run, *names, own=True, namespaces=True))
            raise Failed("201: a namespace to work in (or name one that exists)", answer)
    return Surroundings(run, *names, own=True, namespaces=True)


def demolish(client: Client, around: Surroundings) -> list[str]:
    """Remove the namespaces of this run; the paths of those that stay."""
    if not around.own or not around.namespaces:
        return []
    paths = [f"{_NAMESPACES}/{name}" for name in (around.namespace, around.elsewhere) if name]
    for path in paths:
        client.request("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1"})
    begun = time.monotonic()
    return [path for path in paths if not _gone(client, path, begun)]


def _gone(client: Client, path: str, begun: float) -> bool:
    while True:
        answer = client.request("GET", path)
        if answer.status == 404:
            return True
        tree = answer.tree()
        if answer.status != 200 or tree.get("kind") != "Namespace":
            return False
        waited = time.monotonic() - begun
        if waited > _PATIENCE and not _looked_at(tree):
            # Nobody but us will let it go. All in it has been removed above.
            tree["spec"] = {"finalizers": []}
            client.request("PUT", f"{path}/finalize", tree)
            client.request("DELETE", path)
            return client.request("GET", path).status == 404
        if waited > _LONG:
            return False
        time.sleep(0.25)


def _looked_at(namespace: Tree) -> bool:
    """Whether a controller has begun to empty a namespace: it tells how far it is."""
    conditions = (namespace.get("status") or {}).get("conditions") or []
    return any(str(condition.get("type")).startswith("Namespace") for condition in conditions)
