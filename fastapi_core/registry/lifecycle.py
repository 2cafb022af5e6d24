"""What happens to an object around every write, whatever its kind: stamping, merging system fields, deletion.

Follows rest.BeforeCreate, rest.BeforeUpdate and rest.BeforeDelete of the reference; no I/O here.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

from fastapi_core import errors
from fastapi_core.errors import FieldError
from fastapi_core.meta.names import generate_name
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.metadata import validate_metadata

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
#: Metadata members that only the server writes, kept from the old object on update.
SERVER_OWNED = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "uid")
#: Members after which metadata is put back into the canonical order once something was added.
ORDER = {
    name: position
    for position, name in enumerate(
        (
            "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
            "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
            "managedFields",
        )
    )
}  # fmt: skip


def timestamp(now: float | None = None) -> str:
    """RFC 3339 with whole seconds, as metav1.Time prints it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))


def new_uid() -> str:
    """A random version 4 UUID (cheaper than the uuid module's object)."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def ordered(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata with its members in wire order."""
    return dict(sorted(metadata.items(), key=lambda item: ORDER.get(item[0], len(ORDER))))


def sort_metadata(tree: Tree, *, custom: bool) -> None:
    """Metadata in the order its kind prints: wire order, or alphabetical for custom resources."""
    metadata = tree["metadata"]
    tree["metadata"] = dict(sorted(metadata.items())) if custom else ordered(metadata)


def invalid(definition: ResourceDefinition, name: str, problems: list[FieldError]) -> errors.APIError:
    return errors.invalid(definition.kind, definition.group, name, problems)


def before_create(definition: ResourceDefinition, tree: Tree) -> list[str]:
    """Stamp and check a new object; returns warnings, raises Invalid with every error."""
    metadata = tree["metadata"]
    if metadata.get("resourceVersion") not in (None, "", "0"):
        raise errors.APIError("", "resourceVersion should not be set on objects to be created", code=500)
    for name in ("resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(name, None)
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = timestamp()
    if definition.initial_generation:
        metadata["generation"] = definition.initial_generation
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generate_name(metadata["generateName"])
    strategy = definition.strategy
    strategy.prepare(tree, None)
    problems = validate_metadata(tree, None, definition=definition) + strategy.validate(tree, None)
    if problems:
        raise invalid(definition, metadata.get("name", ""), problems)
    warnings = strategy.warnings(tree, None)
    strategy.canonicalize(tree, None)
    sort_metadata(tree, custom=definition.custom)
    return warnings


def before_update(definition: ResourceDefinition, tree: Tree, old: Tree, *, status: bool = False) -> list[str]:
    """Carry over what clients may not change, let the strategy prepare, check; returns warnings."""
    metadata, previous = tree["metadata"], old["metadata"]
    metadata.pop("selfLink", None)
    if definition.namespaced and not metadata.get("namespace"):
        metadata["namespace"] = previous.get("namespace", "")
    for name in SERVER_OWNED:
        if name in ("uid", "creationTimestamp", "deletionTimestamp") and metadata.get(name):
            continue
        if name in previous:
            metadata[name] = previous[name]
        else:
            metadata.pop(name, None)
    if metadata.get("managedFields") is None and "managedFields" in previous:
        metadata["managedFields"] = previous["managedFields"]
    strategy = definition.strategy
    (strategy.prepare_status if status else strategy.prepare)(tree, old)
    if definition.bump_generation and not status and _desired_state_changed(tree, old):
        metadata["generation"] = previous.get("generation", 0) + 1
    problems = validate_metadata(tree, old, definition=definition) + strategy.validate(tree, old)
    if problems:
        raise invalid(definition, metadata.get("name", ""), problems)
    warnings = strategy.warnings(tree, old)
    strategy.canonicalize(tree, old)
    sort_metadata(tree, custom=definition.custom)
    return warnings


def _desired_state_changed(tree: Tree, old: Tree) -> bool:
    """Anything but metadata and status differs."""
    names = (tree.keys() | old.keys()) - {"metadata", "status", "kind", "apiVersion"}
    return any(tree.get(name) != old.get(name) for name in names)


def to_be_removed(tree: Tree) -> bool:
    """An update that took the last finalizer of an object being deleted completes the deletion."""
    metadata = tree["metadata"]
    return (
        bool(metadata.get("deletionTimestamp"))
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not (tree.get("kind") == "Namespace" and tree.get("spec", {}).get("finalizers"))
    )


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a delete request does to an object: `tree` is the new state, `remove` says it goes at once."""

    tree: Tree
    remove: bool
    changed: bool


def plan_deletion(
    definition: ResourceDefinition, old: Tree, *, grace: int | None, orphan: bool | None, propagation: str
) -> Deletion:
    """Decide between removal, a grace period and waiting for finalizers."""
    metadata = dict(old["metadata"])
    tree = {**old, "metadata": metadata}
    finalizers = _finalizers(definition, metadata.get("finalizers") or [], orphan, propagation)
    changed = finalizers != (metadata.get("finalizers") or [])
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    seconds = _grace(tree, grace) if definition.graceful else 0
    deleting = bool(metadata.get("deletionTimestamp"))
    if deleting and definition.graceful:
        left = metadata.get("deletionGracePeriodSeconds") or 0
        if seconds >= left and not (left == 0 and not finalizers):
            return _sorted(definition, Deletion(tree, False, changed))
        seconds = min(seconds, left)
    waits = bool(finalizers) or seconds > 0
    if not deleting or definition.graceful:
        now = time.time()
        metadata["deletionTimestamp"] = timestamp(now + seconds)
        metadata["deletionGracePeriodSeconds"] = seconds
        if not deleting and "generation" in metadata:
            metadata["generation"] += 1
        changed = True
    if definition.kind == "Namespace" and not definition.group:
        return _namespace(tree, deleting)
    return _sorted(definition, Deletion(tree, not waits, changed))


def _sorted(definition: ResourceDefinition, deletion: Deletion) -> Deletion:
    sort_metadata(deletion.tree, custom=definition.custom)
    return deletion


def _namespace(tree: Tree, deleting: bool) -> Deletion:
    """A namespace becomes Terminating first; only a later delete, or finalize, removes it."""
    metadata = tree["metadata"]
    metadata.pop("deletionGracePeriodSeconds", None)
    gone = deleting and not tree.get("spec", {}).get("finalizers") and not metadata.get("finalizers")
    tree["status"] = {**tree.get("status", {}), "phase": "Terminating"}
    tree["metadata"] = ordered(metadata)
    return Deletion(tree, gone, not deleting)


def _finalizers(
    definition: ResourceDefinition, present: list[str], orphan: bool | None, propagation: str
) -> list[str]:
    """The finalizers a delete leaves: orphan and foregroundDeletion set or taken as asked."""
    if definition.default_propagation == "unsupported":
        return list(present)
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    if not propagation:
        if ORPHAN in present or FOREGROUND in present:
            return list(present)
        propagation = "Orphan" if definition.default_propagation == "orphan" else "Background"
    kept = [f for f in present if f not in (ORPHAN, FOREGROUND)]
    if propagation == "Orphan":
        kept.append(ORPHAN)
    elif propagation == "Foreground":
        kept.append(FOREGROUND)
    return kept


def _grace(tree: Tree, asked: int | None) -> int:
    """Seconds a pod is given: none when nothing runs it or it is finished."""
    spec, status = tree.get("spec", {}), tree.get("status", {})
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return asked
    seconds = spec.get("terminationGracePeriodSeconds")
    return 30 if seconds is None else max(int(seconds), 1) if seconds < 0 else int(seconds)


def check_preconditions(obj: Tree, definition: ResourceDefinition, uid: str | None, version: str | None) -> None:
    """409 when the object is not the one the client means."""
    metadata = obj["metadata"]
    text = ""
    if uid is not None and uid != metadata.get("uid", ""):
        text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata.get('uid', '')}"
    elif version is not None and version != metadata.get("resourceVersion", ""):
        text = (
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {metadata.get('resourceVersion', '')}"
        )
    if text:
        raise errors.conflict(definition.plural, definition.group, metadata.get("name", ""), text)
