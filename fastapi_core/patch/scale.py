"""Ownership of replicas between a workload and its Scale.

The Scale shows the entries that own the workload's replicas; after a change of the Scale its entries are brought back
into the workload's. As in the reference, an Update entry that comes back has no time, since its identity names another
version there.
"""

from __future__ import annotations

from fastapi_core.patch import fieldset, managers
from fastapi_core.patch.managers import Entry, Managed, Record

SCALE_VERSION = "autoscaling/v1"
_IN_SCALE = ("f:spec", "f:replicas")
_REPLICAS = fieldset.of(_IN_SCALE)

Paths = dict[str, tuple[str, ...]]
"""Where each version (apiVersion) of the workload keeps its replicas, as path elements."""


def to_scale(entries: list[Entry] | None, paths: Paths) -> list[Entry]:
    """The entries of a Scale from those of its workload."""
    shown: Managed = {}
    for who, record in managers.live(entries).items():
        path = paths.get(record.version)
        if path and fieldset.has(record.fields, path):
            shown[who] = Record(_REPLICAS, SCALE_VERSION, record.time)
    return managers.write(shown)


def to_workload(entries: list[Entry] | None, scale: list[Entry] | None, paths: Paths, version: str) -> list[Entry]:
    """The workload's entries after its Scale's have become `scale`; `version` is the workload's apiVersion."""
    current = managers.live(entries)
    left = managers.live(scale)
    merged: Managed = {}
    for who, record in current.items():
        if record.version not in paths:
            continue
        path = paths[record.version]
        if not fieldset.has(record.fields, path) or left.pop(who, None) is not None:
            merged[who] = record
            continue
        fields = fieldset.difference(record.fields, fieldset.of(path))
        if fields:
            merged[who] = Record(fields, record.version, record.time)
    for who, record in left.items():
        if fieldset.has(record.fields, _IN_SCALE):
            known = current.get(who)
            merged[who] = Record(fieldset.of(paths[version]), version, known.time if known is not None else None)
    return managers.write(merged)
