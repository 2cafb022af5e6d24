"""Parts that many kinds share: label maps, label selectors, embedded metadata, references."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.rules import Report, Rule, Tree, each_text
from fastapi_core.meta import names
from fastapi_core.registry.metadata import ANNOTATIONS_LIMIT

NO_OPERATOR: Final = "not a valid selector operator"
VALUES_NEEDED: Final = "must be specified when `operator` is 'In' or 'NotIn'"
VALUES_UNWANTED: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
INVALID_SELECTOR: Final = "invalid label selector"


def labels_at(labels: dict[str, str] | None, path: str, report: Report) -> None:
    """Keys are qualified names, values label values; both errors stand at the map."""
    for key, value in (labels or {}).items():
        for problem in formats.label_key(key):
            report.invalid(path, key, problem)
        for problem in formats.label_value(value):
            report.invalid(path, value, problem)


def labels(name: str) -> Rule:
    """A map of labels."""
    dotted = "." + name

    def rule(tree: Tree, path: str, report: Report) -> None:
        value = tree.get(name)
        if value:
            labels_at(value, path + dotted, report)

    return rule


def annotations_at(annotations: dict[str, str] | None, path: str, report: Report) -> None:
    if not annotations:
        return
    total = 0
    for key, value in annotations.items():
        for problem in formats.qualified(key.lower()):
            report.invalid(path, key, problem)
        total += len(key.encode()) + len(value.encode())
    if total > ANNOTATIONS_LIMIT:
        report.too_long(path, ANNOTATIONS_LIMIT)


def requirement(item: Tree, path: str, report: Report, *, operators: bool = True) -> None:
    """One expression of a label selector. `operators`: only those known here are right."""
    operator = item.get("operator") or ""
    values = item.get("values")
    if operator in ("In", "NotIn"):
        if not values:
            report.required(path + ".values", VALUES_NEEDED)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            report.forbidden(path + ".values", VALUES_UNWANTED)
    elif operators:
        report.invalid(path + ".operator", operator, NO_OPERATOR)
    key = item.get("key") or ""
    report.each_invalid(path + ".key", key, formats.label_key(key))
    for index, value in enumerate(values or ()):
        for problem in formats.label_value(value):
            report.invalid(f"{path}.values[{index}]", value, problem)


def selector(tree: Tree, path: str, report: Report) -> None:
    """A label selector."""
    labels_map = tree.get("matchLabels")
    if labels_map:
        labels_at(labels_map, path + ".matchLabels", report)
    for index, item in enumerate(tree.get("matchExpressions") or ()):
        requirement(item, f"{path}.matchExpressions[{index}]", report)


def selectable(tree: Tree) -> bool:
    """Whether a label selector can be turned into one that matches."""
    for key, value in (tree.get("matchLabels") or {}).items():
        if formats.label_key(key) or formats.label_value(value):
            return False
    return not any(_broken(item) for item in tree.get("matchExpressions") or ())


def _broken(item: Tree) -> bool:
    values = item.get("values") or []
    operator = item.get("operator")
    if operator in ("In", "NotIn"):
        wrong = not values
    elif operator in ("Exists", "DoesNotExist"):
        wrong = bool(values)
    else:
        return True
    return wrong or bool(formats.label_key(item.get("key") or "")) or any(map(formats.label_value, values))


def is_empty(tree: Tree) -> bool:
    return not tree.get("matchLabels") and not tree.get("matchExpressions")


def matches(tree: Tree, labels_map: dict[str, str]) -> bool:
    """Whether a (sound) label selector matches labels; an empty one matches everything."""
    for key, value in (tree.get("matchLabels") or {}).items():
        if labels_map.get(key) != value:
            return False
    return all(_matches(item, labels_map) for item in tree.get("matchExpressions") or ())


def _matches(item: Tree, labels_map: dict[str, str]) -> bool:
    key, operator, values = item.get("key"), item.get("operator"), item.get("values") or ()
    if operator == "In":
        return key in labels_map and labels_map[key] in values
    if operator == "NotIn":
        return key not in labels_map or labels_map[key] not in values
    return (key in labels_map) is (operator == "Exists")


_UNSETTABLE: Final = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields",
)  # fmt: skip


def template_metadata(metadata: Tree, path: str, report: Report) -> None:
    """Metadata of a template of an object: labels and annotations, nothing else."""
    annotations_at(metadata.get("annotations"), path + ".annotations", report)
    labels_at(metadata.get("labels"), path + ".labels", report)
    for name in _UNSETTABLE:
        if metadata.get(name):
            report.forbidden(f"{path}.{'uID' if name == 'uid' else name}", "cannot be set")


def local_path(value: str, path: str, report: Report) -> None:
    """A path below a volume: relative and never upwards."""
    for problem in formats.relative_path(value):
        report.invalid(path, value, problem)


def unreserved_path(value: str, path: str, report: Report) -> None:
    """A local path whose first element does not begin with two dots."""
    local_path(value, path, report)
    if value.startswith("..") and not value.startswith("../"):
        report.invalid(path, value, "must not start with '..'")


def backsteps(value: str, path: str, report: Report) -> None:
    if ".." in value.split("/"):
        report.invalid(path, value, "must not contain '..'")


def csi_driver(name: str, path: str, report: Report) -> None:
    """The name of a CSI driver."""
    if not name:
        report.required(path)
        return
    if len(name.encode()) > 63:
        report.too_long(path, 63)
    report.each_invalid(path, name, formats.subdomain(name.lower()))


def port_member(name: str) -> Rule:
    """A port by number or name; an absent one is number zero."""
    dotted = "." + name

    def rule(tree: Tree, path: str, report: Report) -> None:
        value = tree.get(name)
        value = 0 if value is None else value
        report.each_invalid(path + dotted, value, formats.port_or_name(value))

    return rule


addresses = each_text


def int_or_percent(value: Any, path: str, report: Report, *, capped: bool = False) -> None:
    """A count that is not negative or a percentage; `capped`: at most all of it."""
    if isinstance(value, str):
        problems = names.percent(value)
        report.each_invalid(path, value, problems)
        if not problems and capped and int(value[:-1]) > 100:
            report.invalid(path, value, "must not be greater than 100%")
    elif value is not None and value < 0:
        report.invalid(path, value, "must be greater than or equal to 0")


def percent_over(value: Any, path: str, report: Report) -> None:
    """A percentage is not above 100."""
    if isinstance(value, str) and not names.percent(value) and int(value[:-1]) > 100:
        report.invalid(path, value, "must not be greater than 100%")
