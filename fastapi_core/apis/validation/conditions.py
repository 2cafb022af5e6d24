"""Conditions of a status, where the reference checks them."""

from __future__ import annotations

import re
from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.rules import Report, Tree

_STATUSES: Final = ("False", "True", "Unknown")
_FORM: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON: Final = re.compile(_FORM)
_REASON_TEXT: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters "
    "or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or "
    f"'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_FORM}')"
)


def _condition(tree: Tree, path: str, report: Report) -> None:
    kind, status, reason = (tree.get(name) or "" for name in ("type", "status", "reason"))
    report.each_invalid(path + ".type", kind, formats.label_key(kind))
    if status not in _STATUSES:
        report.unsupported(path + ".status", status, _STATUSES)
    generation = tree.get("observedGeneration") or 0
    if generation < 0:
        report.invalid(path + ".observedGeneration", generation, "must be greater than or equal to zero")
    if tree.get("lastTransitionTime") is None:
        report.required(path + ".lastTransitionTime")
    if not reason:
        report.required(path + ".reason")
    else:
        if not _REASON.fullmatch(reason):
            report.invalid(path + ".reason", reason, _REASON_TEXT)
        if len(reason.encode()) > 1024:
            report.too_long(path + ".reason", 1024)
    if len((tree.get("message") or "").encode()) > 32 * 1024:
        report.too_long(path + ".message", 32 * 1024)


def conditions(items: Any, path: str, report: Report) -> None:
    """Each is complete, and none is of the type of another."""
    seen: set[str] = set()
    for index, item in enumerate(items or ()):
        kind = item.get("type") or ""
        if kind in seen:
            report.duplicate(f"{path}[{index}].type", kind)
        seen.add(kind)
        _condition(item, f"{path}[{index}]", report)
