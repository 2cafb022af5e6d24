"""What happens to an object around every write, whatever its kind: stamping, merging system fields, deletion.

Follows rest.BeforeCreate, rest.BeforeUpdate and rest.BeforeDelete of the reference; no I/O here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from fastapi_core import errors
from fastapi_core.errors import FieldError
from fastapi_core.meta import names
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.metadata import validate_metadata

Prepare = Callable[[Tree, Tree], None]

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


def timestamp(now: float | None = None) -> str:
    """RFC 3339 with whole seconds, as metav1.Time prints it."""
    return _stamp(int(time.time() if now is None else now))


@lru_cache(maxsize=4)
def _stamp(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def new_uid() -> str:
    """A random version 4 UUID (cheaper than the uuid module's object)."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def invalid(definition: ResourceDefinition, name: str, problems: list[FieldError]) -> errors.APIError:
    # By the group it is kept in: events of both groups are those of the core.
    return errors.invalid(definition.kind, definition.storage_group, name, problems)


def before_create(definition: ResourceDefinition, tree: Tree, *, dry_run: bool = False) -> list[str]:
    """Stamp and check a new object; returns warnings, raises Invalid with every error."""
    metadata = tree["metadata"]
    if metadata.get("resourceVersion") in (None, "", "0"):
        metadata.pop("resourceVersion", None)
    metadata.pop("selfLink", None)
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = timestamp()
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = names.generate(metadata["generateName"])
    strategy = definition.strategy
    strategy.preparing(dry_run=dry_run)(tree, None)
    problems = validate_metadata(tree, None, definition=definition) + strategy.validate(tree, None)
    if problems:
        raise invalid(definition, metadata.get("name", ""), problems)
    warnings = strategy.warnings(tree, None)
    strategy.canonicalize(tree, None)
    return warnings


def check_unstored(tree: Tree, dry_run: bool = False) -> None:
    """A new object has no version yet; asked last of all, by the store: not in a dry run."""
    if not dry_run and "resourceVersion" in tree["metadata"]:
        raise errors.APIError("", "resourceVersion should not be set on objects to be created", code=500)


def before_update(definition: ResourceDefinition, tree: Tree, old: Tree, prepare: Prepare) -> list[str]:
    """Carry over what clients may not change, let the (sub)resource prepare, check; returns warnings."""
    metadata, previous = tree["metadata"], old["metadata"]
    metadata.pop("selfLink", None)
    if definition.namespaced and not metadata.get("namespace"):
        metadata["namespace"] = previous.get("namespace", "")
    for name in ("creationTimestamp", "generation", "deletionTimestamp"):
        if name in previous:
            metadata[name] = previous[name]
        elif name != "deletionTimestamp":
            metadata.pop(name, None)
    for name in ("uid", "deletionGracePeriodSeconds"):
        if metadata.get(name) in (None, "") and name in previous:
            metadata[name] = previous[name]
    strategy = definition.strategy
    prepare(tree, old)
    subresource = prepare not in (strategy.prepare, strategy.rehearse)
    problems = validate_metadata(tree, old, definition=definition, subresource=subresource)
    problems += strategy.validate(tree, old)
    if problems:
        raise invalid(definition, metadata.get("name", ""), problems)
    warn = strategy.status_warnings if prepare is strategy.prepare_status else strategy.warnings
    warnings = warn(tree, old)
    strategy.canonicalize(tree, old)
    return warnings


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
    """What a delete request does: `tree` is the new state (written first when `changed`), `remove` says it goes then.
    `pending`: a grace period has begun that the request does not shorten; admission is not asked about it."""

    tree: Tree
    changed: bool
    remove: bool
    pending: bool = False


def plan_deletion(
    definition: ResourceDefinition, old: Tree, *, grace: int | None, orphan: bool | None, propagation: str
) -> Deletion:
    """Decide between removal, a grace period and waiting for finalizers."""
    metadata = dict(old["metadata"])
    tree = {**old, "metadata": metadata}
    if definition.kind == "Namespace" and not definition.group:
        if not metadata.get("deletionTimestamp"):
            return _terminate_namespace(tree, propagation if orphan is None else "Orphan" if orphan else "Foreground")
        if tree.get("spec", {}).get("finalizers"):
            return Deletion(old, False, False)
    if definition.strategy.terminate is not None and not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = timestamp()
        definition.strategy.terminate(tree)
        return Deletion(tree, True, False)
    gracefully = False
    if definition.graceful:
        decision = _start_grace(tree, grace)
        if decision is None:
            return Deletion(old, False, False, pending=True)
        gracefully = decision
    present = metadata.get("finalizers") or []
    finalizers = _finalizers(definition, present, orphan, propagation)
    if set(finalizers) != set(present):
        metadata["finalizers"] = finalizers
    if not metadata.get("finalizers"):
        metadata.pop("finalizers", None)
    if metadata.get("finalizers") and not gracefully:
        _mark_deleting(metadata)
    waits = bool(metadata.get("finalizers")) or (gracefully and metadata["deletionGracePeriodSeconds"] > 0)
    return Deletion(tree, waits or gracefully, not waits)


def _start_grace(tree: Tree, asked: int | None) -> bool | None:
    """Give a pod its grace period. True: the object changed; False: nothing to wait for any more; None: a deletion
    is under way and this request does not shorten it."""
    metadata = tree["metadata"]
    deleting = bool(metadata.get("deletionTimestamp"))
    if deleting:
        left = metadata.get("deletionGracePeriodSeconds") or 0
        if left == 0:
            return False
        if asked is None or asked >= left:
            return None
        seconds = asked
    else:
        seconds = _grace(tree, asked)
        if metadata.get("generation"):
            metadata["generation"] += 1
    metadata["deletionTimestamp"] = timestamp(time.time() + seconds)
    metadata["deletionGracePeriodSeconds"] = seconds
    return True


def _mark_deleting(metadata: dict[str, Any]) -> None:
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = timestamp()
        if metadata.get("generation"):
            metadata["generation"] += 1
    metadata["deletionGracePeriodSeconds"] = 0


def _terminate_namespace(tree: Tree, propagation: str) -> Deletion:
    """The first delete of a namespace only makes it Terminating; its content and finalizers go before it does. What
    has to be kept or to go with it is told by a finalizer, as for other kinds."""
    metadata = tree["metadata"]
    metadata["deletionTimestamp"] = timestamp()
    if propagation:
        finalizers = [f for f in metadata.pop("finalizers", ()) if f not in (ORPHAN, FOREGROUND)]
        finalizers += {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(propagation, [])
        if finalizers:
            metadata["finalizers"] = finalizers
    tree["status"] = {**tree.get("status", {}), "phase": "Terminating"}
    return Deletion(tree, True, False)


def _finalizers(definition: ResourceDefinition, present: list[str], orphan: bool | None, propagation: str) -> list[str]:
    """The finalizers a delete leaves: orphan and foregroundDeletion set or taken as asked."""
    kept = [f for f in present if f not in (ORPHAN, FOREGROUND)]
    if definition.default_propagation == "unsupported":
        return kept
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    elif not propagation:
        if ORPHAN in present or FOREGROUND in present:
            propagation = "Orphan" if ORPHAN in present else "Foreground"
        elif definition.default_propagation == "orphan":
            propagation = "Orphan"
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
    if definition.kind == "Namespace" and not definition.group:
        return _check_namespace(metadata, definition.plural, uid, version)
    if uid is not None and uid != metadata.get("uid", ""):
        text = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({metadata.get('uid', '')}). "
            "The object might have been deleted and then recreated"
        )
    elif version is not None and version != metadata.get("resourceVersion", ""):
        text = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({metadata.get('resourceVersion', '')}). The object might have been modified"
        )
    if text:
        raise errors.conflict(definition.kind, definition.storage_group, metadata.get("name", ""), text)


def _check_namespace(metadata: Tree, plural: str, uid: str | None, version: str | None) -> None:
    """The same for a namespace, which is deleted by an update and told so in the words of one."""
    for what, wanted, member in (("UID", uid, "uid"), ("ResourceVersion", version, "resourceVersion")):
        found = metadata.get(member, "")
        if wanted is not None and wanted != found:
            text = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            raise errors.conflict(plural, "", metadata.get("name", ""), text)
