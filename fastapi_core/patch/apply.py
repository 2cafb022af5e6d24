"""Server-side apply: a configuration merged into an object, with the fields it names owned by whoever applies it.

The configuration is the applier's whole opinion: what it named last time and does not name now is removed, unless
somebody else owns it. Changing what others own is a conflict, or, forced, takes it from them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from fastapi_core import errors
from fastapi_core._ext.fieldset import ItemError, Shape, compare, field_set, merge, remove, same, with_named
from fastapi_core.codec import json as json_codec
from fastapi_core.errors import APIError
from fastapi_core.patch import conform, fieldset, managers
from fastapi_core.patch.conflicts import ApplyConflictError, listed, without
from fastapi_core.patch.fieldset import FieldSet
from fastapi_core.patch.managers import Identity, Managed, Record
from fastapi_core.patch.tracking import BEFORE_APPLY, Tracker, Tree

ANNOTATIONS_LIMIT = 256 * 1024
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
"""The applier that takes over from its own client-side apply."""


class Applied(NamedTuple):
    """`tree` is the merged object in the shape the configuration left it (not yet defaulted), or None when it is the
    object as it was; `managed` are the entries."""

    tree: Tree | None
    managed: Managed


class Applier:
    """Apply through the endpoint a tracker belongs to."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def apply(self, current: Tree, config: Tree, manager: str, now: str, *, force: bool) -> Applied:
        """Merge `config` into `current` (an empty object when there is none).

        Raises ApplyConflictError; APIError 400 for managedFields in the configuration, 500 for one that does not fit.
        """
        who = managers.applier(manager, self._tracker.subresource)
        entries = (current.get("metadata") or {}).get("managedFields")
        try:
            result = self._attempt(current, config, managers.live(entries), who, now, force=force)
        except ApplyConflictError as conflict:
            if manager != KUBECTL:
                raise
            allowed = self._client_side(current)
            left = without(conflict.conflicts, allowed) if allowed is not None else conflict.conflicts
            if left:
                raise ApplyConflictError(left) from None
            result = self._attempt(current, config, managers.live(entries), who, now, force=True)
        return result

    def _attempt(
        self, current: Tree, config: Tree, managed: Managed, who: Identity, now: str, *, force: bool
    ) -> Applied:
        self._check(config)
        try:
            return self._merged(current, config, managed, who, now, force=force)
        except ItemError as error:
            raise plain_failure(f"failed to create typed live object ({named(current)}): {error}") from error

    def _merged(
        self, current: Tree, config: Tree, managed: Managed, who: Identity, now: str, *, force: bool
    ) -> Applied:
        tracker = self._tracker
        if not managed and current:
            tracker.record_update({}, current, managed, BEFORE_APPLY, now)
        tracker.reconcile(managed)
        last = managed.get(who)
        merged = merge(tracker.shape, current, config)
        if last is not None and tracker.names_just(config, last.fields):
            fields = last.fields
        else:
            fields = tracker.named(config)
        managed[who] = Record(fields, tracker.version, last.time if last is not None else None)
        if last is not None:
            merged = self._prune(merged, config, managed, who, last)
        self._take(managed, current, merged, who, force=force)
        if not managed[who].fields:
            del managed[who]
        if same(merged, current):
            return Applied(None, managed)
        if who in managed:
            managed[who].time = now
        return Applied(merged, managed)

    def _check(self, config: Tree) -> None:
        metadata = config.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
            raise errors.bad_request("metadata.managedFields must be nil")
        found = conform.problems(self._tracker.shape, config)
        if found:
            raise plain_failure(f"failed to create typed patch object ({named(config)}): {conform.text(found)}")

    def _take(self, managed: Managed, current: Tree, merged: Tree, who: Identity, *, force: bool) -> None:
        """Find what others own and this changes; take it from them or fail."""
        tracker = self._tracker
        changes = tracker.changes(tracker.tracked, current, merged)
        if not force and changes[0]:
            owned: dict[Identity, FieldSet] = {}
            known = {tracker.version: changes}
            for other, record in managed.items():
                if other == who:
                    continue
                if record.version not in known:
                    known[record.version] = tracker.changes_in(record.version, current, merged) or ({}, {})
                common = fieldset.intersection(record.fields, known[record.version][0])
                if common:
                    owned[other] = common
            if owned:
                raise ApplyConflictError(listed(owned))
        tracker.disown(managed, current, merged, changes, except_for=who)

    # Pruning

    def _prune(self, merged: Tree, config: Tree, managed: Managed, who: Identity, last: Record) -> Tree:
        """Take away what the applier named last time, does not name now and nobody else owns."""
        tracker = self._tracker
        fields = managed[who].fields
        if last.version == tracker.version and (last.fields is fields or not fieldset.difference(last.fields, fields)):
            return merged
        there = tracker.seen_in(last.version, merged)
        if there is None:
            return merged
        whole, shape = there.tree, there.shape
        named = with_named(shape, last.fields)
        pruned = remove(shape, whole, named)
        # The configuration's own system fields count here, although nobody comes to own them.
        owned = {tracker.version: field_set(tracker.settable, config)}
        for record in managed.values():
            owned[record.version] = fieldset.union(owned.get(record.version, {}), record.fields)
        everything = _all(shape, whole)
        pruned = self._add_back(shape, whole, everything, pruned, owned.pop(last.version, {}))
        for version, fields in owned.items():
            pruned = self._add_back_in(version, last.version, whole, pruned, fields)
        gone = fieldset.intersection(fieldset.difference(everything, _all(shape, pruned)), named)
        pruned = remove(shape, whole, gone)
        back = tracker.seen_in(tracker.version, pruned, last.version)
        return merged if back is None else back.tree

    @staticmethod
    def _add_back(shape: Shape, whole: Tree, everything: FieldSet, pruned: Tree, owned: FieldSet) -> Tree:
        """`pruned` with what some own; `everything` are the paths of `whole`."""
        kept = fieldset.union(_all(shape, pruned), with_named(shape, owned))
        return remove(shape, whole, fieldset.difference(everything, kept))

    def _add_back_in(self, version: str, home: str, whole: Tree, pruned: Tree, owned: FieldSet) -> Tree:
        """`_add_back` for entries of another version than the trees are in."""
        there = self._tracker.seen_in(version, whole, home)
        part = self._tracker.seen_in(version, pruned, home)
        if there is None or part is None:
            return pruned
        added = self._add_back(there.shape, there.tree, _all(there.shape, there.tree), part.tree, owned)
        back = self._tracker.seen_in(home, added, version)
        return pruned if back is None else back.tree

    # kubectl apply, client side

    def _client_side(self, current: Tree) -> FieldSet | None:
        """Fields that client-side apply set and that still have its values; None when it never ran."""
        text = ((current.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
        if not text:
            return None
        try:
            config = orjson.loads(text)
        except orjson.JSONDecodeError:
            return None
        shape = self._tracker.shape
        if not isinstance(config, dict) or config.get("apiVersion") != self._tracker.version:
            return None
        if conform.problems(shape, config):
            return None
        try:
            touched, removed = compare(shape, config, current)
            fields = field_set(shape, config)
        except ItemError:
            return None
        return fieldset.difference(fieldset.difference(fields, touched), removed)


def sync_last_applied(tree: Tree, config: Tree, manager: str) -> None:
    """Keep the annotation of client-side apply, where there is one, in step with what kubectl applies."""
    annotations = (tree.get("metadata") or {}).get("annotations") or {}
    if manager != KUBECTL or not annotations.get(LAST_APPLIED):
        return
    metadata = dict(config.get("metadata") or {})
    given = metadata.pop("annotations", None)
    if given is not None:
        metadata["annotations"] = {name: text for name, text in given.items() if name != LAST_APPLIED}
    text = json_codec.encode(_sorted({**config, "metadata": metadata})).decode() + "\n"
    kept = {**annotations, LAST_APPLIED: text}
    if sum(len(k.encode()) + len(v.encode()) for k, v in kept.items()) > ANNOTATIONS_LIMIT:
        del kept[LAST_APPLIED]
    tree["metadata"]["annotations"] = {name: kept[name] for name in sorted(kept)}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _all(shape: Shape, tree: Tree) -> FieldSet:
    return with_named(shape, field_set(shape, tree))


def named(config: Tree) -> str:
    """An object as errors name it: namespace, name and kind."""
    metadata = config.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}; {gvk(config)}"


def gvk(config: Tree) -> str:
    """Group, version and kind as the reference prints them."""
    group, _, version = str(config.get("apiVersion") or "").rpartition("/")
    return f"{group}/{version}, Kind={config.get('kind') or ''}"


def plain_failure(text: str) -> APIError:
    """The reference's 500 without a reason."""
    return APIError("", text, code=500)
