"""Faults of writes: check -> what breaks it."""

from __future__ import annotations

import itertools
import json

from tests.fixtures.faulty import Ask, Fault, Reply, Tree, said
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
    sending,
    setting,
)

_MERGE, _APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
_MARK = "fastapi-core.conformance/mark"
_COUNT = itertools.count()


def _newest(what: str) -> Fault:
    """Updates of whatever is there, as if they had been made from it: lost updates."""

    def ask(ask: Ask) -> Reply | None:
        if not hits(ask, what):
            return None
        path = ask.path.removesuffix("/status")
        with ask.relay.lock:
            tree = ask.json
            now = ask.upstream("GET", path)
            if now.ok:
                meta(tree)["resourceVersion"] = meta(now.json)["resourceVersion"]
            return ask.upstream("PUT", ask.path, tree)

    return Fault(ask)


def _touching(what: str) -> Fault:
    """Writes that always change something."""
    return sending(what, lambda tree: meta(tree).setdefault("annotations", {}).update(touched=str(next(_COUNT))))


def _apply_touching(ask: Ask) -> None:
    if ask.media == _APPLY:
        tree = ask.json
        meta(tree)["annotations"]["touched"] = str(next(_COUNT))
        ask.json = tree


def _stored_after_all(ask: Ask) -> Reply | None:
    if ask.method != "POST" or "not a valid value!" not in ask.body.decode():
        return None
    tree = ask.json
    meta(tree)["labels"].pop("conformance")
    ask.upstream("POST", ask.path, tree)
    return said(422, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422, "message": "no"})


def _back(ask: Ask) -> Reply | None:
    if not hits(ask, "PUT item") or ask.upstream("GET").status != 404:
        return None
    tree = ask.json
    meta(tree).pop("resourceVersion", None), meta(tree).pop("uid", None)
    made = ask.upstream("POST", ask.path.rsplit("/", 1)[0], tree)
    made.status = 200
    return made


def _same_name(ask: Ask, reply: Reply) -> None:
    if ask.method == "POST" and reply.ok and "generateName" in meta(ask.json):
        reply.edit(lambda tree: meta(tree).update(name=meta(tree)["generateName"] + "x"))


def _as_sent(ask: Ask, reply: Reply) -> None:
    if ask.method == "POST" and reply.ok:
        sent = ask.json
        reply.edit(lambda tree: meta(tree).update(uid=meta(sent).get("uid"), **({})))


def _sent_status(ask: Ask, reply: Reply) -> None:
    if ask.method == "POST" and reply.ok and "status" in ask.json:
        status = ask.json["status"]
        reply.edit(lambda tree: tree.update(status=status))


def _right(tree: Tree) -> None:
    tree.update(kind="Database", apiVersion="conformance.example.com/v1")


def _without(name: str) -> Fault:
    return sending("*", lambda tree: meta(tree).pop(name, None))


def _fit(tree: Tree) -> None:
    for name in ("annotations", "labels", "ownerReferences", "finalizers"):
        meta(tree).pop(name, None)


def _replaced_by_merge(ask: Ask) -> None:
    if hits(ask, "PUT item"):
        ask.method, ask.headers["Content-Type"] = "PATCH", _MERGE


def _no_nulls(ask: Ask) -> None:
    if ask.media == _MERGE:
        tree = ask.json
        notes = meta(tree).get("annotations") or {}
        meta(tree)["annotations"] = {name: value for name, value in notes.items() if value is not None}
        ask.json = tree


def _without_operation(name: str) -> Fault:
    def ask(ask: Ask) -> None:
        if ask.media == "application/json-patch+json":
            ask.json = [step for step in ask.json if step["op"] != name]

    return Fault(ask)


def _lenient(ask: Ask) -> Reply | None:
    """Bodies that cannot be read are taken for nothing."""
    if ask.method not in ("POST", "PATCH", "DELETE"):
        return None
    try:
        readable = isinstance(ask.json, dict) and ask.media != "application/json-patch+json"
    except ValueError:
        readable = False
    return None if readable else said(200, {"kind": "Database", "metadata": {}})


def _merged_apply(ask: Ask) -> None:
    if ask.media == _APPLY and ask.upstream("GET").ok:
        ask.headers["Content-Type"] = _MERGE


def _one_manager(ask: Ask) -> None:
    if "fieldManager" in ask.query:
        ask.query["fieldManager"] = "conformance-a"


def _any_manager(ask: Ask) -> None:
    if ask.media == _APPLY:
        ask.query.setdefault("fieldManager", "anybody")


def _forced(ask: Ask) -> None:
    if ask.media == _APPLY:
        ask.query["force"] = "true"


def _other_patch(ask: Ask) -> None:
    if ask.method == "PATCH" and ask.media in ("application/json", "application/x-conformance"):
        ask.headers["Content-Type"] = _MERGE


def _plain_delete(*names: str) -> Fault:
    def ask(ask: Ask) -> None:
        if ask.method == "DELETE" and ask.body:
            try:
                ask.json = {name: value for name, value in ask.json.items() if name not in names}
            except ValueError:
                ask.body = b""
            for name in names:
                ask.query.pop(name, None)

    return Fault(ask)


def _pretended_delete(ask: Ask) -> Reply | None:
    return said(200, {"kind": "Status", "status": "Success"}) if ask.method == "DELETE" else None


def _renamed(ask: Ask) -> None:
    if ask.method == "PUT":
        tree = ask.json
        meta(tree)["name"] = ask.name
        ask.json = tree


def _dry_deletes(ask: Ask) -> None:
    if ask.method == "DELETE":
        ask.query.pop("dryRun", None)
        if ask.body:
            tree = ask.json
            tree.pop("dryRun", None)
            ask.json = tree


def _gone_at_once(ask: Ask) -> None:
    if hits(ask, "DELETE item"):
        ask.upstream("PATCH", ask.path, {"metadata": {"finalizers": None}}, **{"Content-Type": _MERGE})


def _old_finalizers(ask: Ask) -> None:
    if hits(ask, "PUT item"):
        tree = ask.json
        meta(tree)["finalizers"] = meta(tree).get("finalizers", [])[:1]
        ask.json = tree


def _too_much(ask: Ask) -> None:
    if hits(ask, "DELETE list"):
        ask.upstream("DELETE", ask.path.replace("conformance-one", "conformance-two"))


def _stored_without(ask: Ask) -> Reply | None:
    if ask.method != "POST" or len(ask.body) < 10_000_000:
        return None
    tree = ask.json
    meta(tree).pop("annotations")
    ask.upstream("POST", ask.path, tree)
    return said(413, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 413, "message": "no"})


def _stray(ask: Ask, reply: Reply) -> None:
    if ask.method == "POST" and not reply.ok:
        reply.extra = STRAY


def _short(tree: Tree) -> None:
    if tree.get("spec", {}).get("note"):
        tree["spec"]["note"] = tree["spec"]["note"][:1000]


def _lost_patch(ask: Ask) -> Reply | None:
    return ask.upstream("GET") if ask.method == "PATCH" and b"worker-2" in ask.body else None


def _doubled(ask: Ask) -> None:
    if ask.method == "POST":
        ask.body = json.dumps(ask.json).encode()


FAULTS: dict[str, list[Fault]] = {
    "create.stamped": [
        editing("POST", lambda tree: meta(tree).pop("uid")),
        editing("POST", lambda tree: meta(tree).pop("labels")),
        editing("POST", lambda tree: meta(tree).update(creationTimestamp="yesterday")),
    ],
    "create.readable": [
        editing("GET item", lambda tree: meta(tree)["labels"].update(more="x")),
        claiming("GET item", 200, 404, {}),
    ],
    "create.namespace-filled": [sending("POST", lambda tree: meta(tree).update(namespace="conformance-one"))],
    "create.namespace-missing": [answering("POST", 201, lambda ask: "conformance-nowhere" in ask.path)],
    "create.server-owned": [Fault(reply=_as_sent)],
    "create.with-version": [_without("resourceVersion")],
    "create.generated-name": [Fault(reply=_same_name), _without("generateName")],
    "create.nameless": [claiming("POST", 422, 201), answering("POST", 500)],
    "create.bad-name": [claiming("POST", 422, 201)],
    "create.exists": [claiming("POST", 409, 201), editing("POST", lambda tree: tree.update(reason="Conflict"))],
    "create.wrong-kind": [sending("POST", _right)],
    "create.dry-run": [ignoring("dryRun"), answering("POST", 201, lambda ask: "dryRun" in ask.query, {"metadata": {}})],
    "create.bad-dry-run": [ignoring("dryRun")],
    "create.refused-nothing": [Fault(_stored_after_all)],
    "create.again": [editing("POST", lambda tree: meta(tree).update(uid="same"))],
    "create.manager": [ignoring("fieldManager")],
    "fields.strict": [ignoring("fieldValidation")],
    "fields.strict-nested": [ignoring("fieldValidation")],
    "fields.warn": [labelling("POST", Warning="")],
    "fields.ignore": [ignoring("fieldValidation")],
    "fields.bad-level": [ignoring("fieldValidation")],
    "fields.doubled": [Fault(_doubled)],
    "fields.metadata": [sending("POST", _fit), editing("POST", lambda tree: tree["details"].update(causes=[]))],
    "fields.type": [sending("POST", _fit)],
    "update.replaces": [
        editing("PUT", lambda tree: meta(tree).update(resourceVersion="1")),
        editing("PUT", lambda tree: meta(tree).pop("annotations")),
        editing("PUT", lambda tree: meta(tree).update(uid="other")),
    ],
    "update.removes": [Fault(_replaced_by_merge)],
    "update.conflict": [_newest("PUT item"), editing("PUT", lambda tree: tree.update(reason="AlreadyExists"))],
    "update.unconditional": [claiming("PUT item", 422, 200), answering("PUT item", 500)],
    "update.missing": [claiming("PUT item", 404, 200)],
    "update.deleted": [Fault(_back)],
    "update.other-name": [Fault(_renamed)],
    "update.other-uid": [_without("uid")],
    "update.creation-time": [
        editing("GET item", lambda tree: meta(tree).update(creationTimestamp="2001-02-03T04:05:06Z"))
    ],
    "update.nothing": [_touching("PUT")],
    "update.dry-run": [ignoring("dryRun")],
    "update.wrong-kind": [sending("PUT", _right)],
    "update.strict": [ignoring("fieldValidation")],
    "update.generation": [editing("PUT", lambda tree: meta(tree).update(generation=meta(tree)["generation"] + 1))],
    "update.manager": [ignoring("fieldManager")],
    "status.written": [
        editing("GET item", lambda tree: tree.pop("status", None)),
        editing("GET item", lambda tree: tree["spec"].update(note="changed")),
        setting("PUT status", dryRun="All"),
    ],
    "status.spec-kept": [moving("PUT status", "/status", "")],
    "status.kept": [editing("PUT item", lambda tree: tree.update(status={}))],
    "status.not-created": [Fault(reply=_sent_status)],
    "status.conflict": [_newest("PUT status")],
    "status.missing": [claiming("GET status", 404, 200)],
    "status.patch": [moving("PATCH status", "/status", "")],
    "scale.read": [editing("GET scale", lambda tree: tree.update(kind="Size"))],
    "scale.write": [setting("PUT scale", dryRun="All")],
    "patch.merge": [Fault(_no_nulls), setting("PATCH", dryRun="All")],
    "patch.json": [_without_operation("add"), _without_operation("remove")],
    "patch.json-test": [_without_operation("test")],
    "patch.malformed": [Fault(_lenient)],
    "patch.strategic": [claiming("PATCH", 415, 200)],
    "patch.unknown-type": [Fault(_other_patch)],
    "patch.missing": [claiming("PATCH", 404, 201)],
    "patch.conflict": [_without("resourceVersion")],
    "patch.nothing": [_touching("PATCH")],
    "patch.dry-run": [ignoring("dryRun")],
    "patch.rename": [sending("PATCH", lambda tree: (meta(tree).pop("name", 0), meta(tree).pop("uid", 0)))],
    "patch.invalid": [sending("PATCH", _fit)],
    "patch.strict": [ignoring("fieldValidation")],
    "apply.supported": [answering("PATCH", 415)],
    "apply.creates": [
        editing("PATCH", lambda tree: meta(tree).pop("managedFields")),
        claiming("PATCH", 201, 200),
    ],
    "apply.same": [Fault(_apply_touching)],
    "apply.conflict": [Fault(_forced), editing("PATCH", lambda tree: tree.get("details", {}).update(causes=[]))],
    "apply.shared": [Fault(_one_manager)],
    "apply.removes": [Fault(_merged_apply)],
    "apply.manager": [Fault(_any_manager)],
    "apply.yaml": [answering("PATCH", 400)],
    "apply.dry-run": [ignoring("dryRun")],
    "apply.after-update": [Fault(_forced)],
    "apply.managed-fields": [_without("managedFields")],
    "apply.malformed": [Fault(_lenient)],
    "delete.object": [
        editing("DELETE item", lambda tree: tree["details"].update(name="other")),
        setting("DELETE item", dryRun="All"),
    ],
    "delete.missing": [claiming("DELETE item", 404, 200)],
    "delete.uid": [_plain_delete("preconditions")],
    "delete.version": [_plain_delete("preconditions")],
    "delete.dry-run": [Fault(_dry_deletes), ignoring("dryRun")],
    "delete.bad-options": [_plain_delete("propagationPolicy", "orphanDependents", "dryRun")],
    "delete.propagation": [
        answering("DELETE item", 400, lambda ask: b"Orphan" in ask.body),
        Fault(_pretended_delete),
    ],
    "delete.finalizers": [
        Fault(_gone_at_once),
        editing("GET item", lambda tree: meta(tree).pop("deletionTimestamp", 0)),
    ],
    "delete.held": [Fault(_old_finalizers)],
    "delete.grace": [answering("DELETE item", 400, lambda ask: b"gracePeriodSeconds" in ask.body)],
    "delete.repeated": [claiming("DELETE item", 404, 200)],
    "deletecollection.selected": [ignoring("labelSelector"), setting("DELETE list", dryRun="All")],
    "deletecollection.all": [setting("DELETE list", dryRun="All")],
    "deletecollection.fields": [ignoring("fieldSelector")],
    "deletecollection.dry-run": [ignoring("dryRun")],
    "deletecollection.bad-selector": [ignoring("labelSelector")],
    "deletecollection.namespaces-apart": [Fault(_too_much)],
    "body.malformed": [claiming("POST", 400, 500, {}), Fault(_lenient)],
    "body.empty": [answering("POST", 201, lambda ask: not ask.body)],
    "body.one-mebibyte": [answering("POST", 413, lambda ask: len(ask.body) > 1 << 20), editing("GET item", _short)],
    "body.too-large": [Fault(_stored_without)],
    "body.too-large-told": [claiming("POST", 413, 500, {})],
    "body.in-step": [Fault(reply=_stray)],
    "error.shape": [
        editing("*", lambda tree: tree.pop("kind")),
        editing("*", lambda tree: tree.update(code=500) if "code" in tree else None),
        labelling("GET item", Content_Type="text/plain"),
        editing("*", lambda tree: tree.update(reason="Other") if "reason" in tree else None),
    ],
    "error.not-found": [editing("GET item", lambda tree: tree.update(message="gone"))],
    "error.method": [answering("PUT list", 200), answering("POST item", 201)],
    "error.invalid": [
        editing("POST", lambda tree: tree["details"].update(causes=[])),
        editing("POST", lambda tree: tree["details"].pop("kind")),
    ],
    "access.nobody": [heading("*", Authorization="Bearer admintoken")],
    "access.nobody-writes": [heading("POST", Authorization="Bearer admintoken")],
    "access.wrong-token": [heading("*", Authorization="")],
    "access.claimed-identity": [
        heading("*", lambda ask: "X-Remote-User" in ask.headers, Authorization="Bearer admintoken")
    ],
    "access.forbidden": [heading("*", Authorization="Bearer admintoken")],
    "access.forbidden-first": [
        answering("GET item", 404, lambda ask: ask.name == "conformance-nothing"),
        answering("POST", 400, lambda ask: ask.body == b"{"),
    ],
    "access.forbidden-claims": [
        heading("*", lambda ask: "X-Remote-User" in ask.headers, Authorization="Bearer admintoken")
    ],
    "together.updates": [_newest("PUT item")],
    "together.patches": [Fault(_lost_patch)],
    "together.creates": [claiming("POST", 409, 201)],
    "together.deletes": [setting("DELETE item", dryRun="All")],
}
