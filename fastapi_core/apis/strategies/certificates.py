"""Certificate signing requests below their main resource: approval sets conditions, status the certificate."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable

from fastapi_core.apis.strategies.basics import Tree, keep_desired
from fastapi_core.errors import FieldError
from fastapi_core.meta import time
from fastapi_core.registry.definition import Strategy

DECISIONS = ("Approved", "Denied")
_FINAL = (*DECISIONS, "Failed")
_SHOWN = "<certificate data>"
_BLOCK = re.compile(rb"-----BEGIN ([^-\n]*)-----\r?\n(.*?)-----END \1-----", re.DOTALL)
_HEADER = re.compile(rb"^[^:\n]+:", re.MULTILINE)


def prepare_approval(new: Tree, old: Tree | None) -> None:
    """Conditions from the new object, all else stays."""
    if old is None:
        return
    conditions = (new.get("status") or {}).get("conditions")
    keep_desired(new, old)
    status: Tree = dict(old.get("status") or {})
    status["conditions"] = [dict(condition) for condition in conditions or ()]
    new["status"] = status
    _stamp(new, old)


def prepare_status(new: Tree, old: Tree | None) -> None:
    """All of the status; decisions stay those of the approval."""
    if old is None:
        return
    keep_desired(new, old)
    status: Tree = dict(new.get("status") or {})
    decided = {c["type"]: c for c in _conditions(old) if c.get("type") in DECISIONS}
    status["conditions"] = [dict(decided.get(c.get("type") or "", c)) for c in _conditions(new)]
    new["status"] = status
    _stamp(new, old)


def _conditions(tree: Tree) -> list[Tree]:
    return (tree.get("status") or {}).get("conditions") or []


def _stamp(new: Tree, old: Tree) -> None:
    now = time.now()
    before = {(c.get("type"), c.get("status")): c.get("lastTransitionTime") for c in _conditions(old)}
    for condition in _conditions(new):
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now
        if not condition.get("lastTransitionTime"):
            condition["lastTransitionTime"] = before.get((condition.get("type"), condition.get("status"))) or now
    if not _conditions(new):
        new["status"].pop("conditions", None)


def validate_approval(new: Tree, old: Tree | None) -> list[FieldError]:
    return [*_condition_errors(new), *_decision_errors(new, old or {}, may_set=True)]


def validate_status(new: Tree, old: Tree | None) -> list[FieldError]:
    errors = list(_condition_errors(new))
    before: Tree = old or {}
    content = (new.get("status") or {}).get("certificate") or ""
    earlier = (before.get("status") or {}).get("certificate") or ""
    if content:
        problem = certificate_problem(content)
        if problem:
            errors.append(FieldError("Invalid value", "status.certificate", problem, _SHOWN))
    errors += _decision_errors(new, before, may_set=False)
    if content != earlier and earlier:
        text = "updates may not modify existing certificate content"
        errors.append(FieldError("Forbidden", "status.certificate", text))
    return errors


def _condition_errors(tree: Tree) -> Iterable[FieldError]:
    seen: set[str] = set()
    for index, condition in enumerate(_conditions(tree)):
        path = f"status.conditions[{index}]"
        kind, status = condition.get("type") or "", condition.get("status") or ""
        if not kind:
            yield FieldError("Required value", f"{path}.type")
        if not status:
            yield FieldError("Required value", f"{path}.status")
        elif kind in _FINAL and status != "True":
            yield FieldError("Unsupported value", f"{path}.status", 'supported values: "True"', status)
        elif status not in ("True", "False", "Unknown"):
            supported = 'supported values: "False", "True", "Unknown"'
            yield FieldError("Unsupported value", f"{path}.status", supported, status)
        other = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if other in seen:
            text = "Approved and Denied conditions are mutually exclusive"
            yield FieldError("Invalid value", "status.conditions", text, kind)
        if kind in seen:
            yield FieldError("Duplicate value", f"{path}.type", "", kind)
        seen.add(kind)


def _decision_errors(new: Tree, old: Tree, *, may_set: bool) -> Iterable[FieldError]:
    for kind in _FINAL:
        now = [c for c in _conditions(new) if c.get("type") == kind]
        before = [c for c in _conditions(old) if c.get("type") == kind]
        if len(now) < len(before):
            what = "remove"
        elif len(now) > len(before) and not may_set and kind != "Failed":
            what = "add"
        else:
            continue
        text = f'updates may not {what} a condition of type "{kind}"'
        yield FieldError("Forbidden", "status.conditions", text)


def certificate_problem(content: str) -> str:
    """What is wrong with the base64 of a chain of PEM certificates; empty when nothing is."""
    try:
        data = base64.b64decode(content)
    except binascii.Error as error:
        return str(error)
    blocks = _BLOCK.findall(data)
    if not blocks:
        return "must contain at least one CERTIFICATE PEM block"
    from cryptography import x509

    for label, body in blocks:
        if label != b"CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{label.decode("utf-8", "replace")}"'
        if _HEADER.search(body):
            return "no PEM block headers are permitted"
        try:
            x509.load_der_x509_certificate(base64.b64decode(body))
        except ValueError:
            return "x509: malformed certificate"
    return ""


def with_status(strategy: Strategy) -> Strategy:
    """The main strategy with the rules of the status subresource."""
    return Strategy(
        prepare=strategy.prepare, prepare_status=prepare_status, validate=validate_status, warnings=strategy.warnings
    )


APPROVAL = Strategy(prepare=prepare_approval, validate=validate_approval)
