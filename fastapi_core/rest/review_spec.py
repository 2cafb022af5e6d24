"""The questions of access reviews: what may be asked, and the attributes an authorizer is asked about."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fastapi_core.apis.validation import labelling
from fastapi_core.apis.validation.rules import Report
from fastapi_core.authz.base import Attributes
from fastapi_core.errors import FieldError
from fastapi_core.meta.selectors import parse_fields, parse_labels
from fastapi_core.registry.definition import Tree
from fastapi_core.request.context import User

GROUP = "authorization.k8s.io"
OWN, LOCAL = "SelfSubjectAccessReview", "LocalSubjectAccessReview"
_RESOURCE, _PATH = "resourceAttributes", "nonResourceAttributes"


class Asked(NamedTuple):
    """Attributes to judge, and what of the selectors could not be understood."""

    attributes: Attributes
    ignored: tuple[str, ...]


# Validation


def check(tree: Tree, kind: str) -> list[FieldError]:
    """Everything that is wrong with a review."""
    spec = tree.get("spec") or {}
    report = Report()
    resource, path = spec.get(_RESOURCE), spec.get(_PATH)
    if resource is not None and path is not None:
        text = "cannot be specified in combination with resourceAttributes"
        report.invalid(f".spec.{_PATH}", _shown(path), text)
    elif resource is None and path is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        report.invalid(f".spec.{_RESOURCE}", None, text)
    if kind != OWN and not spec.get("user") and not spec.get("groups"):
        report.invalid(".spec.user", "", "at least one of user or group must be specified")
    if resource is not None:
        _check_selector(resource, "fieldSelector", _field_requirement, report)
        _check_selector(resource, "labelSelector", _label_requirement, report)
    metadata = {key: value for key, value in tree["metadata"].items() if value and key != "managedFields"}
    namespace = metadata.pop("namespace", "") if kind == LOCAL else ""
    if metadata:
        shown = {**metadata, "namespace": namespace} if namespace else metadata
        report.invalid(".metadata", shown, "must be empty except for namespace" if kind == LOCAL else "must be empty")
    if kind == LOCAL:
        if resource is not None and (resource.get("namespace") or "") != namespace:
            path_text = f".spec.{_RESOURCE}.namespace"
            report.invalid(path_text, resource.get("namespace") or "", "must match metadata.namespace")
        if path is not None:
            report.invalid(f".spec.{_PATH}", _shown(path), "disallowed on this kind of request")
    return report


def _shown(path: Tree) -> Tree:
    return {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}


def _check_selector(resource: Tree, name: str, rule: Callable[[Tree, str, Report], None], report: Report) -> None:
    selector = resource.get(name)
    if selector is None:
        return
    path = f".spec.{_RESOURCE}.{name}"
    raw, requirements = selector.get("rawSelector") or "", selector.get("requirements") or ()
    if raw and requirements:
        report.invalid(path + ".rawSelector", raw, "may not specified at the same time as requirements")
    if not raw and not requirements:
        text = f"when {path[1:]} is specified, requirements or rawSelector is required"
        report.required(path + ".requirements", text)
    for index, requirement in enumerate(requirements):
        rule(requirement, f"{path}.requirements[{index}]", report)


def _label_requirement(requirement: Tree, path: str, report: Report) -> None:
    # Operators of later versions are let through: what is not understood is left out of the question.
    labelling.requirement(requirement, path, report, operators=False)


def _field_requirement(requirement: Tree, path: str, report: Report) -> None:
    if not requirement.get("key"):
        report.required(path + ".key", "must be specified")
    operator, values = requirement.get("operator") or "", requirement.get("values")
    if operator in ("In", "NotIn") and not values:
        report.required(path + ".values", labelling.VALUES_NEEDED)
    elif operator in ("Exists", "DoesNotExist") and values:
        report.forbidden(path + ".values", labelling.VALUES_UNWANTED)


# Attributes


def asked(spec: Tree, kind: str, caller: User) -> Asked:
    """What a valid review asks about; `caller` is meant where it names nobody."""
    user = caller if kind == OWN else _subject(spec)
    resource = spec.get(_RESOURCE)
    if resource is None:
        path = spec[_PATH]
        verb, where = path.get("verb") or "", path.get("path") or ""
        return Asked(Attributes(user, verb, "", "", "", "", "", "", where, False, "", ""), ())
    labels, labels_ignored = _selector(resource, "labelSelector", _label_text, parse_labels)
    fields, fields_ignored = _selector(resource, "fieldSelector", _field_text, parse_fields)

    def given(member: str) -> str:
        return resource.get(member) or ""

    attributes = Attributes(
        user, given("verb"), given("group"), given("version") or "*", given("namespace"), given("resource"),
        given("subresource"), given("name"), "", True, labels, fields,
    )  # fmt: skip
    return Asked(attributes, (fields_ignored, labels_ignored))


def _subject(spec: Tree) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)


def _selector(
    resource: Tree, name: str, text_of: Callable[[Tree], str], parse: Callable[[str], object]
) -> tuple[str, str]:
    """The selector as text, without what cannot be understood, and a note when there was such."""
    selector = resource.get(name) or {}
    raw: str = selector.get("rawSelector") or ""
    ignored = f"spec.{_RESOURCE}.{name} ignored due to parse error"
    if raw:
        try:
            parse(raw)
        except ValueError:
            return "", ignored
        return raw, ""
    requirements = selector.get("requirements") or ()
    texts = [text for requirement in requirements if (text := text_of(requirement))]
    if len(texts) == len(requirements):
        return ",".join(texts), ""
    return ",".join(texts), ignored.replace(" ignored", " partially ignored") if texts else ignored


def _label_text(requirement: Tree) -> str:
    key, values = requirement.get("key") or "", ",".join(requirement.get("values") or ())
    texts = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
    return texts.get(requirement.get("operator") or "", "")


def _field_text(requirement: Tree) -> str:
    values: list[str] = requirement.get("values") or []
    sign = {"In": "=", "NotIn": "!="}.get(requirement.get("operator") or "")
    if sign is None or len(values) != 1:
        return ""
    value = values[0].replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
    return f"{requirement.get('key') or ''}{sign}{value}"
