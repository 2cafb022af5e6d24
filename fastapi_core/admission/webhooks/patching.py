"""The patch of a mutating webhook, applied to what the webhook was shown."""

from __future__ import annotations

from typing import Any

from fastapi_core.admission.webhooks.caller import CallError
from fastapi_core.codec import json
from fastapi_core.errors import go_quote, internal
from fastapi_core.patch.errors import PatchError
from fastapi_core.patch.fieldset import FieldsError, parse
from fastapi_core.patch.jsonpatch import apply_json_patch
from fastapi_core.registry.definition import Tree
from fastapi_core.schema.errors import DecodeError

INVALID_OWNERS = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests: "
)
_MISSING = "missing path"
#: How the reference says that the place of an operation does not exist.
_NOWHERE = {
    "add": 'add operation does not apply: doc is missing path: "{path}"',
    "remove": 'remove operation does not apply: doc is missing path: "{path}"',
    "replace": "replace operation does not apply: doc is missing path: {path}",
    "move": "move operation does not apply: doc is missing from path: {source}",
    "copy": "copy operation does not apply: doc is missing from path: {source}",
    "test": "test operation does not apply: is missing path: {path}",
}


def operations(patch: bytes) -> list[Tree]:
    """The operations of a patch. Raises CallError for another document."""
    try:
        document: Any = json.parse(patch).tree
    except DecodeError as error:
        raise _undecodable(str(error)) from None
    if document is None:
        return []
    if not isinstance(document, list):
        noun = {dict: "object", str: "string", bool: "bool"}.get(type(document), "number")
        raise _undecodable(f"json: cannot unmarshal {noun} into Go value of type jsonpatch.Patch")
    for operation in document:
        if not isinstance(operation, dict):
            raise _undecodable("json: cannot unmarshal into Go value of type jsonpatch.Operation")
    return document


def _undecodable(why: str) -> CallError:
    return CallError(f"received undecodable patch in webhook response: {why}")


def apply(tree: Tree, steps: list[Tree]) -> Tree:
    """The tree after the patch. InternalError when it does not apply, whatever the failure policy says."""
    try:
        return apply_json_patch(tree, steps)
    except PatchError as error:
        raise internal(_first(tree, steps) or error.cause) from None


def _first(tree: Tree, steps: list[Tree]) -> str:
    """What the first operation that does not apply suffers from, in the reference's words."""
    for step in steps:
        try:
            tree = apply_json_patch(tree, [step])
        except PatchError as error:
            return _text(step, error.cause)
    return ""


def _text(step: Tree, cause: str) -> str:
    name, path, source = step.get("op") or "unknown", step.get("path"), step.get("from")
    if path is None and name in _NOWHERE:
        return f"{name} operation failed to decode path: missing value"
    if cause.startswith(_MISSING) and name in _NOWHERE:
        return _NOWHERE[name].format(path=path, source=source) + ": missing value"
    if name not in _NOWHERE or (name == "test" and cause.startswith("testing value")):
        return cause
    if cause.startswith("Unable to remove nonexistent key"):
        if name == "move":
            path = str(source).rpartition("/")[2]
        cause += ": missing value"
    shown = "remove" if name == "replace" else name
    return f"error in {shown} for path: '{path}': {cause}"


def check_kind(tree: Tree, kind: str, version: str) -> None:
    """A patch cannot turn an object into another kind; what it leaves out stays."""
    found, known = tree.get("kind") or kind, tree.get("apiVersion") or version
    if found != kind or known != version:
        text = f"no kind {go_quote(str(found))} is registered for version {go_quote(str(known))}"
        raise internal(f'{text} in scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"')


def owners_problem(entries: Any) -> str:
    """What is wrong with entries of metadata.managedFields, empty when nothing is."""
    if entries is None:
        return ""
    if not isinstance(entries, list):
        return "entries must be a list"
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
            return "operation must be `Apply` or `Update`"
        if not entry.get("apiVersion"):
            return "apiVersion must not be empty"
        form = entry.get("fieldsType") or ""
        if not form:
            return f"missing fieldsType in managed fields entry {number}"
        if form != "FieldsV1":
            return f"invalid fieldsType {go_quote(form)} in managed fields entry {number}"
        try:
            parse(entry.get("fieldsV1") or {})
        except FieldsError as error:
            return f"error decoding versioned set from entry {number}: error decoding set: {error}"
    return ""
