"""Who owns which fields after an object was created, replaced or patched.

A `Tracker` belongs to one resource in one version, or to one of its subresources. Update entries say what their manager
set last: each write takes what it changed from everybody and gives it to the writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

from fastapi_core._ext.fieldset import ItemError, Shape, compare, field_set, names_just, reconciled
from fastapi_core.patch import fieldset, managers
from fastapi_core.patch.fieldset import FieldSet
from fastapi_core.patch.managers import Identity, Managed, Record
from fastapi_core.patch.shapes import shape_of, without
from fastapi_core.schema.types import Type

Tree = dict[str, Any]
Changes = tuple[FieldSet, FieldSet]
"""Fields that were added or changed, and those that went away."""

_UNTRACKED = (
    ("apiVersion",),
    ("kind",),
    *(
        ("metadata", name)
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)
"""Paths nobody owns."""
BEFORE_APPLY = "before-first-apply"


class Version(NamedTuple):
    """Another version of a resource: its type, and the conversions from and to the version a tracker works in."""

    type: Type
    into: Callable[[Tree], Tree]
    back: Callable[[Tree], Tree]


class Versions:
    """The other versions of a resource, for entries written in them, found as they are needed."""

    __slots__ = ("_find", "_known")

    def __init__(self, find: Callable[[str], Version | None]) -> None:
        self._find = find
        self._known: dict[str, Version | None] = {}

    def get(self, name: str) -> Version | None:
        """The version of an apiVersion; None when there is no such version."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]


NO_VERSIONS = Versions(lambda name: None)


class Seen(NamedTuple):
    """An object in some version, with the shape of the whole and of what can be owned."""

    tree: Tree
    shape: Shape
    tracked: Shape


class Tracker:
    """`version` is the apiVersion written into entries. `reset` are paths of member names that the resource's strategy
    does not let this endpoint change, so that nobody comes to own them through it.
    `changing`: the type may have changed since entries were written."""

    def __init__(
        self,
        type_: Type,
        version: str,
        *,
        subresource: str = "",
        reset: Iterable[tuple[str, ...]] = (),
        changing: bool = False,
        versions: Versions = NO_VERSIONS,
    ) -> None:
        self.version = version
        self.subresource = subresource
        self.reset = tuple(reset)
        self.changing = changing
        self.versions = versions
        self._type = type_
        self._shapes: dict[str, tuple[Shape, Shape]] = {}

    @cached_property
    def shape(self) -> Shape:
        """Shape of the whole object."""
        return self._pair(self.version, self._type)[0]

    @cached_property
    def tracked(self) -> Shape:
        """Shape of what can be owned through this endpoint."""
        return self._pair(self.version, self._type)[1]

    @cached_property
    def settable(self) -> Shape:
        """Shape of what a configuration can say through this endpoint, system fields included."""
        return without(self.shape, self.reset)

    def _pair(self, version: str, type_: Type) -> tuple[Shape, Shape]:
        known = self._shapes.get(version)
        if known is None:
            shape = shape_of(type_)
            known = self._shapes[version] = shape, without(shape, (*_UNTRACKED, *self.reset))
        return known

    def shape_in(self, version: str) -> Shape | None:
        """Shape of the whole object in a version; None when there is no such version."""
        if version == self.version:
            return self.shape
        found = self.versions.get(version)
        return None if found is None else self._pair(version, found.type)[0]

    def seen_in(self, version: str, tree: Tree, home: str = "") -> Seen | None:
        """An object of version `home` (the tracker's own unless given) in another one; None when that does not exist."""
        if home and home != self.version and home != version:
            source = self.versions.get(home)
            if source is None:
                return None
            tree, home = source.back(tree), ""
        if version == self.version:
            source = self.versions.get(home) if home and home != version else None
            return Seen(tree if source is None else source.back(tree), *self._pair(version, self._type))
        found = self.versions.get(version)
        if found is None:
            return None
        return Seen(tree if home == version else found.into(tree), *self._pair(version, found.type))

    # Updates

    def update(self, current: Tree | None, new: Tree, manager: str, now: str) -> None:
        """Set the managedFields of `new`, which replaces `current` (None: is created).

        `now` is the time for the writer's entry. Objects whose entries were cleared are left alone until the next apply.
        """
        metadata = new["metadata"]
        before: list[Tree] | None = current["metadata"].get("managedFields") if current is not None else None
        given = metadata.get("managedFields") if not self.subresource else None
        kept = given is None or given is before or given == before
        try:
            changes = self.changes(self.tracked, current or {}, new)
        except ItemError:
            changes = None
        if current is None and given is None and changes is not None:
            # Nobody owned anything before.
            metadata.pop("managedFields", None)
            if changes[0]:
                who = managers.updater(manager, self.version, self.subresource)
                metadata["managedFields"] = [managers.entry_of(who, Record(changes[0], self.version, now))]
            return
        if before and kept and changes is not None:
            entries = self._unmoved(before, changes, manager, now)
            if entries is not None:
                metadata["managedFields"] = entries
                return
        managed = managers.chosen(before, None if kept else given)
        if self.changing or not kept:
            self.reconcile(managed)
        if managed or current is None:
            try:
                self.record_update(current or {}, new, managed, manager, now, changes)
            except ItemError:
                managed = managers.live(before)
        if managed:
            metadata["managedFields"] = managers.write(managed)
        else:
            metadata.pop("managedFields", None)

    def _unmoved(self, entries: list[Tree], changes: Changes, manager: str, now: str) -> list[Tree] | None:
        """The entries when no field changes hands, as with most writes: nothing but the time of the writer's can differ.
        None when there is more to it."""
        if len(entries) > managers.MAX_UPDATERS:
            return None
        touched, removed = changes
        mine: Tree | None = None
        try:
            for entry in entries:
                fields = entry["fieldsV1"]
                if entry["apiVersion"] != self.version or (
                    self.changing and reconciled(self.shape, fields) is not fields
                ):
                    return None
                if removed and fieldset.difference(fields, removed) is not fields:
                    return None
                if managers.is_updater(entry, manager, self.subresource):
                    if not fieldset.covers(fields, touched):
                        return None
                    mine = entry
                elif touched and fieldset.difference(fields, touched) is not fields:
                    return None
        except (KeyError, TypeError, AttributeError):
            return None
        if not touched or mine is None:
            return None if touched else entries
        return managers.renewed(entries, mine, now)

    def record_update(
        self, current: Tree, new: Tree, managed: Managed, manager: str, now: str, changes: Changes | None = None
    ) -> None:
        """Account for a change in `managed`; `changes` are those that `self.changes` finds, where they are known."""
        if changes is None:
            changes = self.changes(self.tracked, current, new)
        self.disown(managed, current, new, changes)
        touched = changes[0]
        if touched:
            who = managers.updater(manager, self.version, self.subresource)
            known = managed.get(who)
            fields = fieldset.union(touched, known.fields) if known is not None else touched
            managed[who] = Record(fields, self.version, now)
            managers.bound(managed)

    def reconcile(self, managed: Managed) -> None:
        """Bring entries in line with a type that has changed since they were written."""
        for record in managed.values():
            shape = self.shape_in(record.version)
            if shape is not None:
                record.fields = reconciled(shape, record.fields)

    def disown(
        self,
        managed: Managed,
        current: Tree,
        new: Tree,
        changes: Changes,
        *,
        except_for: Identity | None = None,
    ) -> None:
        """Take what changed or went away from all entries; entries without fields or of unknown versions go."""
        known: dict[str, Changes | None] = {self.version: changes}
        for who, record in list(managed.items()):
            if who == except_for:
                continue
            version = record.version
            if version not in known:
                known[version] = self.changes_in(version, current, new)
            found = known[version]
            if found is None:
                del managed[who]
                continue
            fields = record.fields
            for gone in found:
                if gone:
                    fields = fieldset.difference(fields, gone)
            if not fields:
                del managed[who]
            elif fields is not record.fields:
                managed[who] = Record(fields, version, record.time)

    def changes_in(self, version: str, current: Tree, new: Tree) -> Changes | None:
        """What changed as another version sees it; None when there is no such version."""
        if new is current:
            return None if self.shape_in(version) is None else ({}, {})
        after = self.seen_in(version, new)
        if after is None:
            return None
        before = self.seen_in(version, current) if current else None
        return self.changes(after.tracked, before.tree if before is not None else {}, after.tree)

    def changes(self, tracked: Shape, current: Tree, new: Tree) -> Changes:
        """What was (added or changed, removed) among what can be owned through this endpoint."""
        changed: Changes = compare(tracked, current, new)
        return changed

    def names_just(self, config: Tree, fields: FieldSet) -> bool:
        """Whether `named` of a configuration equals `fields`; cheap, and now and then False although it does."""
        return names_just(self.tracked, config, fields)

    def named(self, config: Tree) -> FieldSet:
        """What a configuration names among what can be owned through this endpoint."""
        return field_set(self.tracked, config)
