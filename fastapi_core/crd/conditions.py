"""The status of a definition: accepted names, conditions, and what deletion says about itself. No I/O here.

The controllers of the reference write one condition each; here they are settled together, in one write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from fastapi_core.crd.definitions import APPROVAL, Definition, Names
from fastapi_core.errors import go_quote

Tree = dict[str, Any]
Condition = tuple[str, str, str, str]
"""Type, status, reason, message."""

_POLICY = "see https://github.com/kubernetes/enhancements/pull/1111"
_CONFORMANT = "KubernetesAPIApprovalPolicyConformant"
ACCEPTED = ("NamesAccepted", "True", "NoConflicts", "no conflicts found")
ESTABLISHED = ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
NOT_ACCEPTED = ("Established", "False", "NotAccepted", "not all names are accepted")
BAD_BUNDLE = ("Established", "False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
PENDING = (
    "Terminating",
    "True",
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)
IN_PROGRESS = ("Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
COMPLETED = ("Terminating", "False", "InstanceDeletionCompleted", "removed all instances")
NEVER = ("Terminating", "False", "NeverEstablished", "resource was never established")
OVERLAPPING = (
    "Terminating",
    "False",
    "OverlappingBuiltInResource",
    "instances overlap with built-in resources in storage",
)
_KIND = "NonStructuralSchema"


def names_in_use(others: Iterable[Names]) -> tuple[set[str], set[str]]:
    """Resource names and kinds that other definitions of the group have been given."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for names in others:
        resources.update((names.plural, names.singular, *names.short_names))
        kinds.update((names.kind, names.list_kind))
    return resources - {""}, kinds - {""}


def accept(wanted: Names, accepted: Names, others: Callable[[], Iterable[Names]]) -> tuple[Names, Condition]:
    """The names a definition gets, and its NamesAccepted condition. What conflicts stays as it was; the last conflict
    is the one that is told."""
    if wanted == accepted:
        return wanted, ACCEPTED
    resources, kinds = names_in_use(others())
    condition: Condition | None = None

    def settle(new: str, old: str, used: set[str], reason: str) -> str:
        nonlocal condition
        if new == old or new not in used:
            return new
        condition = ("NamesAccepted", "False", reason, f"{go_quote(new)} is already in use")
        return old

    plural = settle(wanted.plural, accepted.plural, resources, "PluralConflict")
    singular = settle(wanted.singular, accepted.singular, resources, "SingularConflict")
    short_names = wanted.short_names
    taken = [name for name in short_names if name not in accepted.short_names and name in resources]
    if taken:
        texts = [f"{go_quote(name)} is already in use" for name in dict.fromkeys(taken)]
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        condition = ("NamesAccepted", "False", "ShortNamesConflict", text)
        short_names = accepted.short_names
    kind = settle(wanted.kind, accepted.kind, kinds, "KindConflict")
    list_kind = settle(wanted.list_kind, accepted.list_kind, kinds, "ListKindConflict")
    names = Names(plural, singular, kind, list_kind, short_names, wanted.categories)
    return names, condition or ACCEPTED


def approval(group: str, note: str) -> Condition | None:
    """Whether the definition of a protected group has been approved; None for other groups."""
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return None
    if not note:
        text = f"protected groups must have approval annotation {go_quote(APPROVAL)}, {_POLICY}"
        return (_CONFORMANT, "False", "MissingAnnotation", text)
    if note.startswith("unapproved"):
        return (_CONFORMANT, "False", "UnapprovedAnnotation", f"not approved: {go_quote(note)}")
    try:
        parts = urlsplit(note)
        sound = bool(parts.scheme and parts.netloc)
    except ValueError:
        sound = False
    if sound:
        return (_CONFORMANT, "True", "ApprovedAnnotation", f"approved in {note}")
    text = (
        f"protected groups must have approval annotation {go_quote(APPROVAL)} with either a URL or a reason starting "
        f'with "unapproved", {_POLICY}'
    )
    return (_CONFORMANT, "False", "InvalidAnnotation", text)


def structure(definition: Definition) -> Condition:
    """What is wrong with the schemas of a definition that preserves unknown fields, which itself is wrong. Others have
    been refused when they were written."""
    from fastapi_core.errors import FieldError
    from fastapi_core.structural.structure import obstacle, problems

    found = [FieldError("Invalid value", "spec.preserveUnknownFields", "must be false", True)]
    for index, version in enumerate((definition.source.tree().get("spec") or {}).get("versions") or ()):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            continue
        obstructed = obstacle(schema)
        if obstructed:
            text = f"failed to check validation schema for version {version.get('name')}: {obstructed}"
            return (_KIND, "Unknown", "StructuralError", text)
        found += problems(schema, f"spec.versions[{index}].schema.openAPIV3Schema")
    texts = [*dict.fromkeys(map(str, found))]
    return (_KIND, "True", "Violations", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def settled(
    definition: Definition, others: Callable[[], Iterable[Names]], now: str, *, sound_bundle: Callable[[], bool]
) -> Tree | None:
    """The definition with the status it should have; None when it has it, which is found out cheaply."""
    names, condition = accept(definition.names, definition.accepted, others)
    wanted: list[Condition] = []
    approved = approval(definition.group, definition.approval)
    if approved is not None:
        wanted.append(approved)
    if definition.preserve:
        wanted.append(structure(definition))
    wanted.append(condition)
    if not definition.holds("Established"):
        if condition is ACCEPTED:
            wanted.append(ESTABLISHED if sound_bundle() else BAD_BUNDLE)
        else:
            wanted.append(NOT_ACCEPTED)
    dropped = tuple(
        kind
        for kind, kept in ((_CONFORMANT, approved is not None), (_KIND, definition.preserve))
        if not kept and kind in definition.conditions
    )
    if not dropped and names == definition.accepted and all(_told(definition, entry) for entry in wanted):
        return None
    tree = definition.source.tree()
    status: Tree = dict(tree.get("status") or {})
    status["conditions"] = with_conditions(status.get("conditions") or [], wanted, now, dropped)
    status["acceptedNames"] = names.tree()
    return {**tree, "status": status}


def _told(definition: Definition, condition: Condition) -> bool:
    found = definition.conditions.get(condition[0])
    return found is not None and tuple(found.get(name) for name in ("status", "reason", "message")) == condition[1:]


def with_conditions(
    current: list[Tree], wanted: Iterable[Condition], now: str, dropped: tuple[str, ...] = ()
) -> list[Tree]:
    """The list with these conditions set: each in its place, its time kept unless its status changes."""
    found = [entry for entry in current if entry.get("type") not in dropped]
    for kind, status, reason, message in wanted:
        place = next((index for index, entry in enumerate(found) if entry.get("type") == kind), None)
        since = now
        if place is not None and found[place].get("status") == status:
            since = found[place].get("lastTransitionTime") or now
        made = {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
        if place is None:
            found.append(made)
        else:
            found[place] = {**found[place], **made}
    return found


def terminating(tree: Tree, condition: Condition, now: str) -> Tree:
    """The definition with a Terminating condition."""
    status: Tree = dict(tree.get("status") or {})
    status["conditions"] = with_conditions(status.get("conditions") or [], [condition], now)
    return {**tree, "status": status}
