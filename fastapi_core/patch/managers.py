"""The entries of metadata.managedFields: reading, bounding, ordering and writing them.

While it is worked on, an entry is a `Record` under the identity of its manager. Entries a client sends are checked and
brought into canonical form; entries this server wrote are used as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fastapi_core.patch import fieldset
from fastapi_core.patch.fieldset import FieldSet
from fastapi_core.records import dataclass

APPLY, UPDATE = "Apply", "Update"
MAX_UPDATERS = 10
"""Update entries kept apart; the oldest beyond that become one."""
ANCIENT = "ancient-changes"
UNKNOWN = "unknown"
MANAGER_LIMIT = 128

Entry = dict[str, Any]


class Identity(NamedTuple):
    """What makes two entries the same. `version` is empty for appliers: there is one, whatever version it last used."""

    manager: str
    operation: str
    version: str
    subresource: str = ""


@dataclass(slots=True)
class Record:
    """What an entry says: the paths it owns in one version, and since when (None: not known)."""

    fields: FieldSet
    version: str
    time: str | None = None


Managed = dict[Identity, Record]


def applier(manager: str, subresource: str) -> Identity:
    return Identity(manager or UNKNOWN, APPLY, "", subresource)


def updater(manager: str, version: str, subresource: str) -> Identity:
    return Identity(manager or UNKNOWN, UPDATE, version, subresource)


def is_updater(entry: Entry, manager: str, subresource: str) -> bool:
    """Whether an entry holds what a manager set through an endpoint, in some version."""
    return (
        entry.get("manager") == (manager or UNKNOWN)
        and entry.get("operation") == UPDATE
        and (entry.get("subresource") or "") == subresource
    )


def manager_name(field_manager: str, user_agent: str) -> str:
    """Who writes: the name the request gives, else the User-Agent before its first slash, printable and not too long."""
    if field_manager:
        return field_manager
    name = user_agent.partition("/")[0]
    if name.isascii() and name.isprintable() and len(name) <= MANAGER_LIMIT:
        return name
    kept, size = [], 0
    for char in name:
        if not char.isprintable():
            continue
        size += len(char.encode())
        if size > MANAGER_LIMIT:
            break
        kept.append(char)
    return "".join(kept)


# Reading


def read(entries: list[Entry] | None) -> Managed:
    """Entries this server wrote."""
    managed: Managed = {}
    for entry in entries or ():
        managed[_identity(entry)] = Record(entry.get("fieldsV1") or {}, entry["apiVersion"], entry.get("time"))
    return managed


def read_checked(entries: Any) -> Managed | None:
    """Entries a client sent; None when one of them makes no sense."""
    if not isinstance(entries, list):
        return None
    managed: Managed = {}
    for entry in entries:
        if (
            not isinstance(entry, dict)
            or entry.get("operation") not in (APPLY, UPDATE)
            or not entry.get("apiVersion")
            or entry.get("fieldsType") != "FieldsV1"
        ):
            return None
        try:
            fields = fieldset.parse(entry.get("fieldsV1") or {})
        except fieldset.FieldsError:
            return None
        managed[_identity(entry)] = Record(fields, entry["apiVersion"], entry.get("time"))
    return managed


def live(entries: list[Entry] | None) -> Managed:
    """Entries of a stored object. Ours are canonical; should others have written there, bad ones count as none."""
    try:
        return read(entries)
    except (KeyError, TypeError, AttributeError):
        return {}


def chosen(current: list[Entry] | None, given: Any) -> Managed:
    """The entries an update goes on from: those of the request where it carries any that make sense, else the
    object's own. An empty list, or one empty entry, takes them all away."""
    if given is None or given is current or given == current:
        return live(current)
    if not given or given == [{}]:
        return {}
    managed = read_checked(given)
    return managed if managed else live(current)


def _identity(entry: Entry) -> Identity:
    operation = entry["operation"]
    version = entry["apiVersion"] if operation == UPDATE else ""
    return Identity(entry.get("manager") or "", operation, version, entry.get("subresource") or "")


# Bounding


def bound(managed: Managed) -> None:
    """Merge the oldest Update entries of each version into one until few enough are left."""
    updaters = [who for who in managed if who.operation == UPDATE]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return
    updaters.sort(key=lambda who: (managed[who].time or "", who))
    first: dict[str, Identity] = {}
    for who in updaters:
        if excess <= 0:
            return
        record = managed[who]
        known = first.get(record.version)
        if known is None:
            first[record.version] = who
            continue
        bucket = Identity(ANCIENT, UPDATE, record.version)
        if bucket not in managed:
            managed[bucket] = managed.pop(known)
        kept = managed[bucket]
        managed[bucket] = Record(fieldset.union(record.fields, kept.fields), record.version, record.time)
        del managed[who]
        excess -= 1


# Writing


def write(managed: Managed) -> list[Entry]:
    """The entries in the order the reference prints them: operation, time, manager, version, subresource."""
    entries = [entry_of(who, record) for who, record in managed.items()]
    if len(entries) > 1:
        entries.sort(key=_order)
    return entries


def renewed(entries: list[Entry], entry: Entry, now: str) -> list[Entry]:
    """Entries of which one has got a new time, in order."""
    fresh = [{**each, "time": now} if each is entry else each for each in entries]
    if len(fresh) > 1:
        fresh.sort(key=_order)
    return fresh


def entry_of(who: Identity, record: Record) -> Entry:
    """How a record is written."""
    entry: Entry = {}
    if who.manager:
        entry["manager"] = who.manager
    entry["operation"] = who.operation
    entry["apiVersion"] = record.version
    if record.time:
        entry["time"] = record.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = record.fields
    if who.subresource:
        entry["subresource"] = who.subresource
    return entry


def _order(entry: Entry) -> tuple[str, str, str, str, str]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager") or "",
        entry["apiVersion"],
        entry.get("subresource") or "",
    )


def same_but_time(left: list[Entry] | None, right: list[Entry] | None) -> bool:
    """Whether two lists of entries differ in nothing but times."""
    left, right = left or [], right or []
    return len(left) == len(right) and all(
        {**one, "time": None} == {**other, "time": None} for one, other in zip(left, right, strict=True)
    )
