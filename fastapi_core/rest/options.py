"""Query parameters of the verbs: parsed, checked as the reference checks them, memoised by query string.

`ListOptions` serves list, watch and deletecollection; `WriteOptions` create, update and patch; `DeleteOptions` comes
from a body or from the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from fastapi_core import errors
from fastapi_core._ext.reqinfo import parse_query
from fastapi_core.errors import FieldError
from fastapi_core.records import dataclass

Query = Mapping[str, Sequence[str]]

MAX_REVISION = (1 << 64) - 1
META_GROUP = "meta.k8s.io"
_OPTIONS = {
    operation: {"kind": kind, "apiVersion": f"{META_GROUP}/v1"}
    for operation, kind in (("CREATE", "CreateOptions"), ("UPDATE", "UpdateOptions"), ("DELETE", "DeleteOptions"))
}


@dataclass(frozen=True, slots=True)
class ListOptions:
    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""
    """The continue token."""
    timeout: int = 0
    """timeoutSeconds; 0 when not given."""
    watch: bool = False
    bookmarks: bool = False
    send_initial: bool | None = None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool | None = None
    given_validation: str = ""
    """fieldValidation as the client said it."""

    def tree(self, operation: str) -> dict[str, Any]:
        """As an object, for admission."""
        said = {
            "dryRun": ["All"] if self.dry_run else None,
            "fieldManager": self.field_manager,
            "fieldValidation": self.given_validation,
        }
        return {**_OPTIONS[operation], **{name: value for name, value in said.items() if value}}


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    dry_run: bool = False
    grace: int | None = None
    orphan: bool | None = None
    propagation: str = ""
    uid: str | None = None
    resource_version: str | None = None

    def tree(self, operation: str) -> dict[str, Any]:
        """As an object, for admission."""
        conditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        said = {
            "gracePeriodSeconds": self.grace,
            "preconditions": {name: value for name, value in conditions.items() if value is not None} or None,
            "orphanDependents": self.orphan,
            "propagationPolicy": self.propagation or None,
            "dryRun": ["All"] if self.dry_run else None,
        }
        return {**_OPTIONS[operation], **{name: value for name, value in said.items() if value is not None}}


def flag(query: Query, name: str) -> bool | None:
    """A boolean query parameter: any word but "false" and "0" means true, even an empty one."""
    values = query.get(name)
    return values[0].lower() not in ("false", "0") if values else None


def integer(query: Query, name: str) -> int | None:
    values = query.get(name)
    if not values:
        return None
    try:
        text = values[0]
        if (text[:1] in "+-" and text[1:].isdigit()) or text.isdigit():
            number = int(text)
            if -(1 << 63) <= number < 1 << 63:
                return number
    except ValueError:
        pass
    raise errors.bad_request(f"strconv.ParseInt: parsing {errors.go_quote(values[0])}: invalid syntax")


def first(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


@lru_cache(maxsize=1024)
def list_options(query: str, *, deprecated_watch: bool = False) -> ListOptions:
    """Options of a list or watch request from its raw query string; 400 or 422 as the reference answers."""
    if not query:
        return ListOptions(watch=deprecated_watch)
    values = parse_query(query)
    options = ListOptions(
        label_selector=first(values, "labelSelector"),
        field_selector=first(values, "fieldSelector"),
        resource_version=first(values, "resourceVersion"),
        match=first(values, "resourceVersionMatch"),
        limit=integer(values, "limit") or 0,
        token=first(values, "continue"),
        timeout=integer(values, "timeoutSeconds") or 0,
        watch=deprecated_watch or bool(flag(values, "watch")),
        bookmarks=bool(flag(values, "allowWatchBookmarks")),
        send_initial=flag(values, "sendInitialEvents"),
    )
    problems = _watch_problems(options) if options.watch else _list_problems(options)
    if problems:
        raise errors.invalid("ListOptions", META_GROUP, "", problems)
    return options


_MATCHES = '"Exact", "NotOlderThan", ""'


def _list_problems(options: ListOptions) -> list[FieldError]:
    match, version = options.match, options.resource_version
    problems = []
    if match:
        if not version:
            problems.append(_forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.token:
            problems.append(_forbidden("resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            problems.append(
                FieldError(
                    "Unsupported value", "resourceVersionMatch", 'supported values: "Exact", "NotOlderThan", ""', match
                )
            )
        if match == "Exact" and version == "0":
            problems.append(_forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial is not None:
        problems.append(FieldError("Forbidden", "sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return problems


def _forbidden(text: str) -> FieldError:
    return FieldError("Forbidden", "resourceVersionMatch", text)


def _watch_problems(options: ListOptions) -> list[FieldError]:
    match, initial = options.match, options.send_initial
    if initial is None and not match and options.resource_version in ("", "0"):
        # Such a watch begins with the present state, as if it had asked for that in the new way.
        match, initial = "NotOlderThan", True
    problems = []
    if initial is not None and match != "NotOlderThan":
        problems.append(_forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match:
        if initial is None:
            problems.append(
                _forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            )
        if match != "NotOlderThan":
            problems.append(
                FieldError("Unsupported value", "resourceVersionMatch", 'supported values: "NotOlderThan"', match)
            )
        if options.token:
            problems.append(_forbidden("resourceVersionMatch is forbidden when continue is provided"))
    return problems


def revision_of(text: str, *, listing: bool = False) -> int:
    """A resourceVersion as a number ("" is 0).

    Anything but an unsigned 64-bit integer is a 400 on a list; a get or watch is answered a 500 without a reason.
    """
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or int(text) > MAX_REVISION:
        quoted = errors.go_quote(text)
        message = f"resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: invalid syntax"
        if listing:
            raise errors.bad_request(f"invalid resource version: {message}")
        raise errors.APIError("", message, code=500)
    return int(text)


@lru_cache(maxsize=256)
def write_options(query: str, kind: str, *, apply: bool = False) -> WriteOptions:
    """dryRun, fieldManager, fieldValidation (and force) of a create, update or patch; `kind` names the options in errors.

    `apply`: of an apply patch, which must name its manager and may be forced."""
    if not query and not apply:
        return WriteOptions()
    values = parse_query(query)
    manager = first(values, "fieldManager")
    force = flag(values, "force")
    problems = []
    if apply and not manager:
        problems.append(FieldError("Required value", "fieldManager", "is required for apply patch"))
    elif kind == "PatchOptions" and not apply and force is not None:
        problems.append(FieldError("Forbidden", "force", "may not be specified for non-apply patch"))
    if len(manager.encode()) > 128:
        problems.append(FieldError("Too long", "fieldManager", "may not be more than 128 bytes"))
    for position, char in enumerate(manager):
        if not char.isprintable():
            problems.append(
                FieldError(
                    "Invalid value",
                    "fieldManager",
                    f"invalid character U+{ord(char):04X} (at position {position})",
                    manager,
                )
            )
            break
    problems += dry_run_problems(values.get("dryRun", ()))
    validation = first(values, "fieldValidation")
    if validation not in ("", "Ignore", "Strict", "Warn"):
        problems.append(
            FieldError(
                "Unsupported value", "fieldValidation", 'supported values: "", "Ignore", "Strict", "Warn"', validation
            )
        )
    if problems:
        raise errors.invalid(kind, META_GROUP, "", problems)
    return WriteOptions(bool(values.get("dryRun")), manager, validation or "Warn", force, validation)


def dry_run_problems(values: Sequence[str]) -> list[FieldError]:
    if any(v != "All" for v in values):
        return [FieldError("Unsupported value", "dryRun", 'supported values: "All"', list(values))]
    return []


def delete_options_from_query(query: str) -> DeleteOptions:
    """Options of a delete without a body."""
    if not query:
        return DeleteOptions()
    values = parse_query(query)
    return checked_delete(
        dry_run=list(values.get("dryRun", ())),
        grace=integer(values, "gracePeriodSeconds"),
        orphan=flag(values, "orphanDependents"),
        propagation=values["propagationPolicy"][0] if "propagationPolicy" in values else None,
        uid=first(values, "uid") or None,
        resource_version=first(values, "resourceVersion") or None,
    )


def checked_delete(
    *,
    dry_run: list[str],
    grace: int | None,
    orphan: bool | None,
    propagation: str | None,
    uid: str | None = None,
    resource_version: str | None = None,
) -> DeleteOptions:
    """DeleteOptions after the reference's validation; 422 with every problem."""
    problems = []
    if propagation is not None and orphan is not None:
        problems.append(
            FieldError(
                "Invalid value",
                "propagationPolicy",
                "orphanDependents and deletionPropagation cannot be both set",
                propagation,
            )
        )
    if propagation is not None and propagation not in ("Foreground", "Background", "Orphan"):
        problems.append(
            FieldError(
                "Unsupported value",
                "propagationPolicy",
                'supported values: "Foreground", "Background", "Orphan", "nil"',
                propagation,
            )
        )
    problems += dry_run_problems(dry_run)
    if problems:
        raise errors.invalid("DeleteOptions", META_GROUP, "", problems)
    if grace is not None and grace < 0:
        grace = 1
    return DeleteOptions(bool(dry_run), grace, orphan, propagation or "", uid, resource_version)
