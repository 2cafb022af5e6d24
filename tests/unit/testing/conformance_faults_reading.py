"""Faults of documents, reads, lists and forms: check -> what breaks it."""

from __future__ import annotations

from tests.fixtures.faulty import Ask, Fault, Reply, Tree
from tests.unit.testing.breaking import (
    STRAY,
    answering,
    claiming,
    editing,
    heading,
    hits,
    ignoring,
    labelling,
    meta,
    moving,
    replacing,
    sending,
    setting,
)

GROUP, ROOT = "conformance.example.com", "/apis/conformance.example.com/v1"
OPENAPI = "GET /openapi/v3/"
_KIND = (b'"kind":"Database"', b'"kind":"Databank"')
_TEXT = "application/x-conformance"


def _entry(tree: Tree) -> Tree:
    """Our group in /apis."""
    return next((entry for entry in tree.get("groups", ()) if entry["name"] == GROUP), {})


def _verbs(tree: Tree) -> None:
    for item in tree.get("items", ()):
        if item["metadata"].get("name") == GROUP:
            item["versions"][0]["resources"][0]["verbs"].pop()


def _one_partial_less(tree: Tree) -> None:
    if tree["kind"] == "PartialObjectMetadataList":
        tree["items"].pop()


def _deleted_stay() -> Fault:
    gone: list[str] = []

    def reply(ask: Ask, reply: Reply) -> None:
        if hits(ask, "DELETE item"):
            gone.append(ask.name)
        if ask.listing and gone:
            reply.edit(lambda tree: tree["items"].append({"metadata": {"name": gone[-1]}}))

    return Fault(reply=reply)


def _shifting() -> Fault:
    first: list[str] = []

    def ask(ask: Ask) -> None:
        if ask.query.pop("continue", ""):
            ask.memory["later"] = True

    def reply(ask: Ask, reply: Reply) -> None:
        if ask.listing and reply.ok:
            tree = reply.json
            first.append(tree["metadata"]["resourceVersion"])
            if ask.memory:
                tree["metadata"] = {"resourceVersion": first[0]}
            reply.json = tree

    return Fault(ask, reply)


def _half(ask: Ask, reply: Reply) -> None:
    if ask.listing and len(reply.body) > 1000:
        reply.body = reply.body[: len(reply.body) // 2]


def _ascii(tree: Tree) -> None:
    notes = meta(tree).get("annotations") or {}
    for name, value in notes.items():
        notes[name] = value.encode("ascii", "ignore").decode()


def _protobuf_that_is_none(ask: Ask, reply: Reply) -> None:
    if "protobuf" in ask.accept:
        reply.headers["Content-Type"] = ask.accept
        reply.body = b'{"swagger": "2.0"}'


def _stray(ask: Ask, reply: Reply) -> None:
    if ask.method == "HEAD":
        reply.extra = STRAY


def _packed_unasked(ask: Ask, reply: Reply) -> None:
    if ask.headers.get("Accept-Encoding") == "identity":
        reply.headers["Content-Encoding"] = "gzip"


def _torn_gzip(ask: Ask, reply: Reply) -> None:
    if ask.headers.get("Accept-Encoding") == "gzip":
        reply.headers["Content-Encoding"] = "gzip"


FAULTS: dict[str, list[Fault]] = {
    "server.health": [answering("GET /readyz", 500), answering("GET /livez", 404)],
    "server.health-verbose": [replacing("GET /readyz", b"[+]", b"")],
    "server.version": [editing("GET /version", lambda tree: tree.pop("gitVersion"))],
    "server.unknown-paths": [
        answering("GET /conformance-nothing", 200),
        answering(f"GET {ROOT}/conformance-nothing", 200),
    ],
    "server.metrics": [replacing("GET /metrics", b"# TYPE", b"# KIND")],
    "discovery.groups": [
        editing("GET /apis", lambda tree: _entry(tree).update(preferredVersion={"version": "v9"})),
        editing("GET /apis", lambda tree: tree.update(groups=[])),
    ],
    "discovery.group": [
        editing(f"GET /apis/{GROUP}", lambda tree: tree.update(versions=[])),
        editing(f"GET /apis/{GROUP}", lambda tree: tree.update(kind="Group")),
    ],
    "discovery.resources": [
        editing(f"GET {ROOT}", lambda tree: tree["resources"][0].pop("namespaced")),
        editing(f"GET {ROOT}", lambda tree: tree["resources"].append(tree["resources"][0])),
        editing(f"GET {ROOT}", lambda tree: tree["resources"].pop(0)),
    ],
    "discovery.names": [
        editing(
            f"GET {ROOT}",
            lambda tree: tree["resources"].append({"name": "cars", "singularName": "car", "shortNames": ["cdb"]}),
        )
    ],
    "discovery.either-form": [editing("GET /apis", lambda tree: tree.update(kind="List"))],
    "discovery.aggregated": [heading("GET /apis", Accept="application/json"), answering("GET /apis", 406)],
    "discovery.aggregated-same": [editing("GET /apis", _verbs)],
    "discovery.aggregated-etag": [
        heading("GET /apis", If_None_Match=""),
        labelling("GET /apis", ETag=""),
    ],
    "discovery.claimed-verbs": [
        answering("PATCH item", 405),
        answering("POST list", 405),
        answering("GET watch", 404),
        claiming("GET item", 404, 404, {}),
    ],
    "discovery.unclaimed-verbs": [answering("POST list", 201), answering("PATCH item", 200)],
    "discovery.subresources": [answering("GET scale", 404), editing("GET status", lambda tree: tree.update(kind="X"))],
    "openapi.v3-index": [
        replacing("GET /openapi/v3", b"?hash=", b"?"),
        editing("GET /openapi/v3", lambda tree: tree.update(paths={})),
    ],
    "openapi.v3-hash": [labelling(OPENAPI, Cache_Control=""), labelling(OPENAPI, Cache_Control="public, immutable")],
    "openapi.v3-etag": [heading(OPENAPI, If_None_Match=""), labelling(OPENAPI, ETag="")],
    "openapi.v3-kind": [replacing(OPENAPI, *_KIND)],
    "openapi.v3-references": [replacing(OPENAPI, b"#/components/schemas/", b"#/components/schemes/")],
    "openapi.v3-paths": [editing(OPENAPI, lambda tree: tree.update(paths={}))],
    "openapi.v3-protobuf": [
        Fault(reply=_protobuf_that_is_none),
        labelling(OPENAPI, lambda ask: "protobuf" in ask.accept, Content_Type="application/json"),
    ],
    "openapi.v2": [replacing("GET /openapi/v2", *_KIND), answering("GET /openapi/v2", 404)],
    "openapi.v2-references": [replacing("GET /openapi/v2", b'"#/definitions/', b'"#/definition/')],
    "openapi.v2-etag": [heading("GET /openapi/v2", If_None_Match="")],
    "openapi.v2-protobuf": [
        Fault(reply=_protobuf_that_is_none),
        answering("GET /openapi/v2", 406, lambda ask: "protobuf" in ask.accept),
    ],
    "get.object": [
        editing("GET item", lambda tree: tree.update(kind="Other")),
        editing("GET item", lambda tree: tree.pop("apiVersion")),
        editing("GET item", lambda tree: meta(tree).pop("namespace")),
    ],
    "get.identity": [
        editing("GET item", lambda tree: meta(tree).pop("uid")),
        editing("GET item", lambda tree: meta(tree).update(creationTimestamp="2024-01-01 00:00:00")),
    ],
    "get.not-found": [
        editing("GET item", lambda tree: tree.pop("details")),
        claiming("GET item", 404, 200),
        editing("GET item", lambda tree: tree.update(reason="Missing")),
    ],
    "get.namespaces-apart": [moving("GET item", "/conformance-nowhere/", "/conformance-one/")],
    "get.any-version": [answering("GET item", 400, lambda ask: "resourceVersion" in ask.query)],
    "get.future-version": [ignoring("resourceVersion")],
    "get.bad-version": [ignoring("resourceVersion")],
    "get.unknown-options": [answering("GET item", 400, lambda ask: "conformanceUnknown" in ask.query)],
    "get.pretty": [ignoring("pretty")],
    "get.head": [Fault(reply=_stray), answering("OPTIONS item", 500)],
    "list.kind": [
        editing("GET list", lambda tree: tree.update(items=tree.get("items") or None)),
        editing("GET list", lambda tree: tree.update(kind="List")),
        editing("GET list", lambda tree: tree.pop("metadata")),
    ],
    "list.complete": [editing("GET list", lambda tree: tree["items"].pop())],
    "list.namespaces-apart": [moving("GET list", "/conformance-two/", "/conformance-one/")],
    "list.same-as-get": [editing("GET list", lambda tree: [meta(item).pop("labels") for item in tree["items"]])],
    "list.version": [
        editing("GET list", lambda tree: meta(tree).update(resourceVersion="1")),
        editing("GET list", lambda tree: meta(tree).pop("resourceVersion")),
    ],
    "list.any-version": [answering("GET list", 400, lambda ask: ask.query.get("resourceVersion") == "0")],
    "list.not-older": [editing("GET list", lambda tree: tree.update(items=[]))],
    "list.exact": [ignoring("resourceVersion", "resourceVersionMatch")],
    "list.future-version": [ignoring("resourceVersion")],
    "list.bad-version": [ignoring("resourceVersion")],
    "list.match-alone": [ignoring("resourceVersionMatch")],
    "list.unknown-options": [answering("GET list", 400, lambda ask: "conformanceUnknown" in ask.query)],
    "list.gone": [_deleted_stay()],
    "list.updated": [
        editing("GET list", lambda tree: [meta(item).update(resourceVersion="1") for item in tree["items"]])
    ],
    "list.gzip": [Fault(reply=_packed_unasked), Fault(reply=_torn_gzip)],
    "select.labels": [ignoring("labelSelector"), editing("GET list", lambda tree: tree.update(items=[]))],
    "select.labels-only": [ignoring("labelSelector")],
    "select.labels-invalid": [ignoring("labelSelector")],
    "select.name": [ignoring("fieldSelector")],
    "select.namespace": [ignoring("fieldSelector")],
    "select.fields-unknown": [ignoring("fieldSelector")],
    "select.both": [ignoring("fieldSelector"), ignoring("labelSelector")],
    "select.read-only": [ignoring("labelSelector"), editing("GET list", lambda tree: tree["items"].pop())],
    "page.limit": [ignoring("limit"), editing("GET list", lambda tree: meta(tree).pop("continue", 0))],
    "page.whole": [
        Fault(reply=lambda ask, reply: reply.edit(lambda t: t["items"].pop()) if "continue" in ask.query else None),
    ],
    "page.one-state": [_shifting()],
    "page.remaining": [
        editing("GET list", lambda tree: meta(tree).update(remainingItemCount=99) if "continue" in meta(tree) else 0)
    ],
    "page.selected": [
        Fault(lambda ask: ask.query.pop("labelSelector", None) and None if "continue" in ask.query else None),
        ignoring("labelSelector"),
    ],
    "page.bad-continue": [ignoring("continue")],
    "page.bad-limit": [ignoring("limit")],
    "table.kubectl": [answering("GET list", 406), editing("GET list", lambda tree: tree["rows"][0]["cells"].pop())],
    "table.list": [
        editing("GET list", lambda tree: tree.update(rows=[])),
        heading("GET list", Accept="application/json"),
        editing("GET list", lambda tree: tree.update(columnDefinitions=[])),
    ],
    "table.get": [editing("GET item", lambda tree: tree["rows"].append(tree["rows"][0]))],
    "table.include": [ignoring("includeObject"), setting("GET list", includeObject="None")],
    "table.watch": [heading("GET watch", Accept="application/json")],
    "partial.get": [
        heading("GET item", Accept="application/json"),
        editing("GET item", lambda tree: tree.update(spec={})),
    ],
    "partial.list": [editing("GET list", _one_partial_less), heading("GET list", Accept="")],
    "partial.watch": [heading("GET watch", Accept="application/json")],
    "form.json": [labelling("GET list", Content_Type="text/plain"), heading("GET list", Accept="application/yaml")],
    "form.not-acceptable": [heading("GET list", Accept="application/json")],
    "form.fallback": [answering("GET list", 406)],
    "form.protobuf": [labelling("GET list", Content_Type="application/json"), heading("GET list", Accept="")],
    "form.yaml": [answering("GET list", 406), heading("GET list", Accept="application/json")],
    "form.body-yaml": [answering("POST", 415, lambda ask: ask.media == "application/yaml")],
    "form.unsupported": [heading("POST", Content_Type="application/json")],
    "form.watch": [heading("GET watch", Accept="application/json"), labelling("GET watch", Content_Type="text/plain")],
    "form.large": [Fault(reply=_half), labelling("GET list", Content_Encoding=""), labelling("GET list", Vary="")],
    "form.text": [editing("GET item", _ascii), sending("POST", _ascii)],
}
