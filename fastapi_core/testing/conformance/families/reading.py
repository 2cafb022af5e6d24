"""Reading one object."""

from __future__ import annotations

import re

from fastapi_core.testing.conformance.subject import Subject, error, metadata, name_of, success, version
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@check("get.object", needs="get")
def get_object(t: Subject) -> None:
    """An object has kind, apiVersion and its name and namespace; clients decode and find it again by these."""
    obj = t.existing()
    answer = success(t.client.request("GET", t.where(obj)), "the object")
    tree = answer.tree()
    demand(tree.get("kind") == t.resource.kind, f"kind {t.resource.kind}", answer)
    demand(tree.get("apiVersion") == t.resource.api_version, f"apiVersion {t.resource.api_version}", answer)
    demand(name_of(tree) == name_of(obj), "the name that was asked for", answer)
    demand(
        bool(metadata(tree).get("namespace")) == t.resource.namespaced,
        "a namespace if, and only if, namespaced",
        answer,
    )


@check("get.identity", needs="get create delete")
def get_identity(t: Subject) -> None:
    """Stored objects have uid, resourceVersion and creationTimestamp; caches and owner references rest on them."""
    answer = success(t.get(name_of(t.create())), "the object")
    found = metadata(answer.tree())
    for name in ("uid", "resourceVersion"):
        demand(isinstance(found.get(name), str) and found[name], f"metadata.{name} is a text", answer)
    demand(_TIME.fullmatch(str(found.get("creationTimestamp"))), "creationTimestamp in UTC and whole seconds", answer)


@check("get.not-found", needs="get")
def get_not_found(t: Subject) -> None:
    """An object that is not there is a 404 NotFound that names it; clients take that as its absence, nothing else."""
    answer = t.get("conformance-nothing")
    details = error(answer, 404, "NotFound", "there is no such object").get("details") or {}
    demand(details.get("name") == "conformance-nothing", "details.name", answer)
    demand(details.get("group", "") == t.resource.group, "details.group", answer)
    known = (t.resource.name, t.resource.kind.lower())
    demand(str(details.get("kind")).lower() in known, f"details.kind {t.resource.name}", answer)


@check("get.namespaces-apart", needs="get create delete namespaced")
def get_namespaces_apart(t: Subject) -> None:
    """An object is found in its own namespace only; permissions are given by namespace."""
    made = t.create()
    path = t.path(name_of(made), namespace="conformance-nowhere")
    error(t.client.request("GET", path), 404, what="the object is in another namespace")


@check("get.any-version", needs="get watch")
def get_any_version(t: Subject) -> None:
    """resourceVersion 0 is whatever the server has, and one it has reached is served; that is how caches are read."""
    obj = t.existing()
    for value in ("0", version(obj)):
        success(t.client.request("GET", t.where(obj), query={"resourceVersion": value}), f"resourceVersion={value}")


@check("get.future-version", needs="get create delete watch")
def get_future_version(t: Subject) -> None:
    """A version the server has not reached is an error; whoever asks for newer must not be given older."""
    made = t.create()
    if not version(made).isdigit():
        raise Skipped("versions are no numbers here")
    answer = t.get(name_of(made), {"resourceVersion": str(int(version(made)) + 1_000_000_000)})
    demand(answer.status >= 400, "an error (504 of reason Timeout)", answer)
    error(answer, answer.status)


@check("get.bad-version", SHOULD, needs="get watch")
def get_bad_version(t: Subject) -> None:
    """A resourceVersion that is none is an error, not ignored."""
    obj = t.existing()
    answer = t.client.request("GET", t.where(obj), query={"resourceVersion": "no-version"})
    demand(answer.status >= 400, "an error", answer)


@check("get.unknown-options", needs="get")
def get_unknown_options(t: Subject) -> None:
    """Unknown query parameters are ignored: newer clients send newer ones."""
    obj = t.existing()
    success(t.client.request("GET", t.where(obj), query={"conformanceUnknown": "1"}), "the parameter is ignored")


@check("get.pretty", SHOULD, needs="get")
def get_pretty(t: Subject) -> None:
    """pretty=true indents, and changes nothing else; people read it."""
    obj = t.existing()
    plain = success(t.client.request("GET", t.where(obj)), "the object")
    answer = success(t.client.request("GET", t.where(obj), query={"pretty": "true"}), "the object")
    demand(answer.body.count(b"\n") > 3, "lines", answer)
    demand(answer.tree().get("kind") == plain.tree().get("kind"), "the same object", answer, plain)
    demand(metadata(answer.tree()).get("name") == name_of(obj), "the same object", answer, plain)


@check("get.head", SHOULD, needs="get")
def get_head(t: Subject) -> None:
    """HEAD has no body and OPTIONS does nothing; both leave the connection usable."""
    obj = t.existing()
    for method in ("HEAD", "OPTIONS"):
        answer = t.client.request(method, t.where(obj))
        demand(answer.status in (200, 204, 405), f"{method}: 405, or 200", answer)
        demand(method == "OPTIONS" or not answer.body, "no body", answer)
        again = success(t.client.request("GET", t.where(obj)), "the object")
        demand(name_of(again.tree()) == name_of(obj), f"the object, after {method} on the same connection", again)
