"""Where pods may run: affinity, tolerations, spreading, node selectors."""

from __future__ import annotations

from collections import Counter
from typing import Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.labelling import NO_OPERATOR, VALUES_NEEDED, VALUES_UNWANTED, selector
from fastapi_core.apis.validation.rules import CHECK, Report, Tree, choice

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ALL: Final = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
_ONE_VALUE: Final = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
_RANGE: Final = "must be in the range 1-100"
_HONOR = (
    choice("nodeAffinityPolicy", "Honor", "Ignore", empty=CHECK),
    choice("nodeTaintsPolicy", "Honor", "Ignore", empty=CHECK),
)
_WHEN: Final = ("DoNotSchedule", "ScheduleAnyway")
_NO_SELECTOR: Final = "must not be specified when labelSelector is not set"


def _expression(item: Tree, path: str, report: Report, *, strict: bool) -> None:
    operator, values = item.get("operator") or "", item.get("values")
    if operator in ("In", "NotIn"):
        if not values:
            report.required(path + ".values", VALUES_NEEDED)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            report.forbidden(path + ".values", VALUES_UNWANTED)
    elif operator in ("Gt", "Lt"):
        if len(values or ()) != 1:
            report.required(path + ".values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        report.invalid(path + ".operator", operator, NO_OPERATOR)
    key = item.get("key") or ""
    report.each_invalid(path + ".key", key, formats.label_key(key))
    if strict:
        for index, value in enumerate(values or ()):
            report.each_invalid(f"{path}.values[{index}]", value, formats.label_value(value))


def _field(item: Tree, path: str, report: Report) -> None:
    operator, values = item.get("operator") or "", item.get("values") or ()
    if operator in ("In", "NotIn"):
        if len(values) != 1:
            report.required(path + ".values", _ONE_VALUE)
    else:
        report.invalid(path + ".operator", operator, NO_OPERATOR)
    key = item.get("key") or ""
    if key == "metadata.name":
        for index, value in enumerate(values):
            report.each_invalid(f"{path}.values[{index}]", value, formats.subdomain(value))
    else:
        report.invalid(path + ".key", key, "not a valid field selector key")


def node_term(term: Tree, path: str, report: Report, *, strict: bool = True) -> None:
    """`strict`: values have to be label values, which a mere preference does not ask."""
    for index, item in enumerate(term.get("matchExpressions") or ()):
        _expression(item, f"{path}.matchExpressions[{index}]", report, strict=strict)
    for index, item in enumerate(term.get("matchFields") or ()):
        _field(item, f"{path}.matchFields[{index}]", report)


def node_selector(tree: Tree, path: str, report: Report) -> None:
    terms = tree.get("nodeSelectorTerms")
    if not terms:
        report.required(path + ".nodeSelectorTerms", "must have at least one node selector term")
        return
    for index, term in enumerate(terms):
        node_term(term, f"{path}.nodeSelectorTerms[{index}]", report)


def _node_affinity(tree: Tree, path: str, report: Report) -> None:
    needed = tree.get("requiredDuringSchedulingIgnoredDuringExecution")
    if needed is not None:
        node_selector(needed, path + ".requiredDuringSchedulingIgnoredDuringExecution", report)
    for index, term in enumerate(tree.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        at = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        _weight(term, at, report)
        node_term(term.get("preference") or {}, at + ".preference", report, strict=False)


def _weight(term: Tree, path: str, report: Report) -> None:
    weight = term.get("weight") or 0
    if not 1 <= weight <= 100:
        report.invalid(path + ".weight", weight, _RANGE)


def _match_keys(tree: Tree, path: str, report: Report) -> None:
    """Label keys whose values come from the pod itself. A pod's selectors have them already, so that a key of the user's
    is there twice."""
    keys, others = tree.get("matchLabelKeys") or (), tree.get("mismatchLabelKeys") or ()
    if not keys and not others:
        return
    labels = tree.get("labelSelector")
    for name, listed in (("matchLabelKeys", keys), ("mismatchLabelKeys", others)):
        if listed and labels is None:
            report.forbidden(f"{path}.{name}", _NO_SELECTOR)
        else:
            for index, key in enumerate(listed):
                report.each_invalid(f"{path}.{name}[{index}]", key, formats.label_key(key))
    if labels is not None:
        places = {key: index for index, key in enumerate(keys)}
        selected = set(labels.get("matchLabels") or ())
        for item in labels.get("matchExpressions") or ():
            key = item.get("key") or ""
            if key in places and key in selected:
                report.invalid(f"{path}[{places[key]}]", key, "exists in both matchLabelKeys and labelSelector")
            selected.add(key)
    for index, key in enumerate(keys):
        if key in others:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            report.invalid(f"{path}.matchLabelKeys[{index}]", key, text)


def _pod_term(term: Tree, path: str, report: Report) -> None:
    for name in ("labelSelector", "namespaceSelector"):
        if term.get(name) is not None:
            selector(term[name], f"{path}.{name}", report)
    for name in term.get("namespaces") or ():
        report.each_invalid(path + ".namespace", name, formats.label(name))
    _match_keys(term, path, report)
    key = term.get("topologyKey") or ""
    if not key:
        report.required(path + ".topologyKey", "can not be empty")
    report.each_invalid(path + ".topologyKey", key, formats.label_key(key))


def _pod_affinity(tree: Tree, path: str, report: Report) -> None:
    for index, term in enumerate(tree.get("requiredDuringSchedulingIgnoredDuringExecution") or ()):
        _pod_term(term, f"{path}.requiredDuringSchedulingIgnoredDuringExecution[{index}]", report)
    for index, weighted in enumerate(tree.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        at = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        _weight(weighted, at, report)
        _pod_term(weighted.get("podAffinityTerm") or {}, at + ".podAffinityTerm", report)


def affinity(tree: Tree, path: str, report: Report) -> None:
    if tree.get("nodeAffinity") is not None:
        _node_affinity(tree["nodeAffinity"], path + ".nodeAffinity", report)
    for name in ("podAffinity", "podAntiAffinity"):
        if tree.get(name) is not None:
            _pod_affinity(tree[name], f"{path}.{name}", report)


def tolerations(items: list[Tree], path: str, report: Report) -> None:
    for index, item in enumerate(items):
        _toleration(item, f"{path}[{index}]", report)


def _toleration(item: Tree, path: str, report: Report) -> None:
    key, operator, effect = item.get("key"), item.get("operator") or "", item.get("effect") or ""
    if key:
        report.each_invalid(path + ".key", key, formats.label_key(key))
    elif operator != "Exists":
        report.invalid(path + ".operator", operator, _ALL)
    if item.get("tolerationSeconds") is not None and effect != "NoExecute":
        report.invalid(path + ".effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    value = item.get("value") or ""
    if operator in ("", "Equal"):
        problems = formats.label_value(value)
        if problems:
            report.invalid(path + ".operator", value, ";".join(problems))
    elif operator == "Exists":
        if value:
            report.invalid(path + ".operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        known = ("Equal", "Exists")
        report.unsupported(path + ".operator", operator, (*known, "Lt", "Gt") if operator in ("Lt", "Gt") else known)
    if effect and effect not in EFFECTS:
        report.unsupported(path + ".effect", effect, EFFECTS)


def spread(items: list[Tree], path: str, report: Report) -> None:
    later = Counter((item.get("topologyKey") or "", item.get("whenUnsatisfiable") or "") for item in items)
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        skew, key, action = item.get("maxSkew") or 0, item.get("topologyKey") or "", item.get("whenUnsatisfiable") or ""
        if skew <= 0:
            report.invalid(at + ".maxSkew", skew, "must be greater than zero")
        if not key:
            report.required(at + ".topologyKey", "can not be empty")
        if action not in _WHEN:
            report.unsupported(at + ".whenUnsatisfiable", action, _WHEN)
        later[key, action] -= 1
        if key and action and later[key, action]:
            report.duplicate(at + ".{topologyKey, whenUnsatisfiable}", f"{{{key}, {action}}}")
        domains = item.get("minDomains")
        if domains is not None:
            if domains <= 0:
                report.invalid(at + ".minDomains", domains, "must be greater than zero")
            if action != "DoNotSchedule":
                text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                report.invalid(at + ".minDomains", domains, text)
        for rule in _HONOR:
            rule(item, at, report)
        _match_keys(item, at, report)
        if item.get("labelSelector") is not None:
            selector(item["labelSelector"], at + ".labelSelector", report)


def taints(items: list[Tree], path: str, report: Report) -> None:
    """Taints of a node."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(items):
        at = f"{path}[{index}]"
        key, value, effect = taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""
        report.each_invalid(at + ".key", key, formats.label_key(key))
        problems = formats.label_value(value)
        if problems:
            report.invalid(at + ".value", value, ";".join(problems))
        if not effect:
            report.required(at + ".effect")
        elif effect not in EFFECTS:
            report.unsupported(at + ".effect", effect, EFFECTS)
        if (key, effect) in seen:
            value_shown = shown("core/v1.Taint", taint)
            report.duplicate(at, value_shown, "taints must be unique by key and effect pair")
        seen.add((key, effect))
