"""Flow schemas and priority levels."""

from __future__ import annotations

import math
from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.rules import REQUIRED, Report, Tree, text
from fastapi_core.flow import bootstrap

_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
#: In the order in which surplus ones are told; that of accounts has the user before the group.
_SUBJECTS: Final = (("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group"))
_ACCOUNT_NAME = text("name", formats.subdomain, empty=REQUIRED)
_ACCOUNT_SPACE = text("namespace", formats.label, empty=REQUIRED, detail="must specify namespace for service account")
_FIXED_SCHEMAS: Final = bootstrap.fixed(bootstrap.SCHEMAS)
_FIXED_LEVELS: Final = bootstrap.fixed(bootstrap.LEVELS)
_NAMESPACE: Final = "each member of this list must be '*' or a DNS-1123 label; "


def _verbs(verbs: list[str], path: str, report: Report) -> None:
    if not verbs:
        report.required(path, "verbs must contain at least one value")
    elif "*" in verbs:
        if len(verbs) > 1:
            report.invalid(path, verbs, "if '*' is present, must not specify other verbs")
    elif any(verb not in _VERBS for verb in verbs):
        report.unsupported(path, verbs, _VERBS)


def _alone(items: list[str], missing: str, what: str, path: str, report: Report) -> None:
    if not items:
        report.required(path, missing)
    elif len(items) > 1 and "*" in items:
        report.invalid(path, items, f"if '*' is present, must not specify other {what}")


def _resource_rule(rule: Tree, path: str, report: Report) -> None:
    _verbs(rule.get("verbs") or [], path + ".verbs", report)
    groups, resources = rule.get("apiGroups") or [], rule.get("resources") or []
    _alone(groups, "resource rules must supply at least one api group", "api groups", path + ".apiGroups", report)
    _alone(resources, "resource rules must supply at least one resource", "resources", path + ".resources", report)
    spaces = rule.get("namespaces") or []
    at = path + ".namespaces"
    if not spaces and not rule.get("clusterScope"):
        report.required(at, "resource rules that are not cluster scoped must supply at least one namespace")
    elif len(spaces) > 1 and "*" in spaces:
        report.invalid(at, spaces, "if '*' is present, must not specify other namespaces")
    else:
        for index, name in enumerate(spaces):
            if name != "*":
                problems = [_NAMESPACE + problem for problem in formats.label(name)]
                report.each_invalid(f"{at}[{index}]", name, problems)


def _url(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    if "*" in url and (url.count("*") > 1 or not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def _url_rule(rule: Tree, path: str, report: Report) -> None:
    _verbs(rule.get("verbs") or [], path + ".verbs", report)
    urls = rule.get("nonResourceURLs") or []
    at = path + ".nonResourceURLs"
    _alone(urls, "nonResourceURLs must contain at least one value", "non-resource URLs", at, report)
    if "*" in urls:
        return
    for index, url in enumerate(urls):
        if problem := _url(url):
            report.invalid(f"{at}[{index}]", url, problem)


def _subject(subject: Tree, path: str, report: Report) -> None:
    kind = subject.get("kind") or ""
    if kind not in ("User", "Group", "ServiceAccount"):
        report.unsupported(path + ".kind", kind, ("Group", "ServiceAccount", "User"))
        return
    for name, member in sorted(_SUBJECTS, key=lambda pair: pair[0] != kind):
        part = subject.get(member)
        at = f"{path}.{member}"
        if name != kind:
            if part is not None:
                report.forbidden(at, f"{member} is forbidden when subject kind is not '{name}'")
        elif part is None:
            report.required(at, f"{member} is required when subject kind is '{name}'")
        elif kind == "ServiceAccount":
            if part.get("name") != "*":
                _ACCOUNT_NAME(part, at, report)
            _ACCOUNT_SPACE(part, at, report)
        elif not part.get("name"):
            report.required(at + ".name")


def _rule(rule: Tree, path: str, report: Report) -> None:
    subjects = rule.get("subjects") or ()
    if not subjects:
        report.required(path + ".subjects", "subjects must contain at least one value")
    for index, subject in enumerate(subjects):
        _subject(subject, f"{path}.subjects[{index}]", report)
    resources, urls = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    if not resources and not urls:
        report.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, item in enumerate(resources):
        _resource_rule(item, f"{path}.resourceRules[{index}]", report)
    for index, item in enumerate(urls):
        _url_rule(item, f"{path}.nonResourceRules[{index}]", report)


def flow_schema(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    name = (tree.get("metadata") or {}).get("name") or ""
    precedence = spec.get("matchingPrecedence") or 0
    at = ".spec.matchingPrecedence"
    if precedence <= 0:
        report.invalid(at, precedence, "must be a positive value")
    elif precedence > 10000:
        report.invalid(at, precedence, "must not be greater than 10000")
    elif precedence == 1 and name != "exempt":
        report.invalid(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        told = shown("flowcontrol.apiserver.k8s.io/v1.FlowDistinguisherMethod", method)
        report.unsupported(".spec.distinguisherMethod.type", told, ("ByNamespace", "ByUser"))
    level = (spec.get("priorityLevelConfiguration") or {}).get("name") or ""
    at = ".spec.priorityLevelConfiguration.name"
    if not level:
        report.required(at, "must reference a priority level")
    else:
        report.each_invalid(at, level, formats.subdomain(level))
    for index, rule in enumerate(spec.get("rules") or ()):
        _rule(rule, f".spec.rules[{index}]", report)
    fixed = _FIXED_SCHEMAS.get(name)
    if fixed is not None and spec != fixed:
        report.invalid(".spec", spec, f"spec of '{name}' must equal the fixed value")


def typed_conditions(tree: Tree, path: str, report: Report) -> None:
    """Conditions of the status of both kinds: of one type each."""
    seen: set[str] = set()
    for index, condition in enumerate((tree.get("status") or {}).get("conditions") or ()):
        kind, at = condition.get("type") or "", f".status.conditions[{index}].type"
        if kind in seen:
            report.duplicate(at, kind)
        seen.add(kind)
        if not kind:
            report.required(at)


def _entropy(deck: int, hand: int) -> int:
    """Bits needed to pick a hand of queues."""
    return math.ceil(math.log2(deck) * hand)


def _queuing(queuing: Tree, path: str, report: Report) -> None:
    limit, queues, hand = (queuing.get(name) or 0 for name in ("queueLengthLimit", "queues", "handSize"))
    if limit <= 0:
        report.invalid(path + ".queueLengthLimit", limit, "must be positive")
    if queues <= 0:
        report.invalid(path + ".queues", queues, "must be positive")
    elif queues > 10_000_000:
        report.invalid(path + ".queues", queues, "must not be greater than 10000000")
    if hand <= 0:
        report.invalid(path + ".handSize", hand, "must be positive")
    elif hand > queues:
        report.invalid(path + ".handSize", hand, f"should not be greater than queues ({queues})")
    elif _entropy(queues, hand) > 60:
        text_ = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
        report.invalid(path + ".handSize", hand, text_)


def _response(response: Tree, path: str, report: Report) -> None:
    kind, queuing = response.get("type") or "", response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            report.forbidden(path + ".queuing", "must be nil if limited.limitResponse.type is not Limited")
    elif kind == "Queue":
        if queuing is None:
            report.required(path + ".queuing", "must not be empty if limited.limitResponse.type is Limited")
        else:
            _queuing(queuing, path + ".queuing", report)
    else:
        report.unsupported(path + ".type", kind, ("Queue", "Reject"))


def _limited(limited: Tree, path: str, report: Report) -> None:
    shares: Any = limited.get("nominalConcurrencyShares")
    if shares is not None and shares < 0:
        report.invalid(path + ".nominalConcurrencyShares", shares, "must be a non-negative integer")
    _response(limited.get("limitResponse") or {}, path + ".limitResponse", report)
    lend, borrow = limited.get("lendablePercent"), limited.get("borrowingLimitPercent")
    if lend is not None and not 0 <= lend <= 100:
        report.invalid(path + ".lendablePercent", lend, "must be between 0 and 100, inclusive")
    if borrow is not None and borrow < 0:
        report.invalid(path + ".borrowingLimitPercent", borrow, "if specified, must be a non-negative integer")


def priority_level(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    name, kind = (tree.get("metadata") or {}).get("name") or "", spec.get("type") or ""
    exempt, limited = spec.get("exempt"), spec.get("limited")
    if (name == "exempt") != (kind == "Exempt") and kind in ("Exempt", "Limited"):
        report.invalid(".spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if kind == "Exempt":
        if limited is not None:
            report.forbidden(".spec.limited", "must be nil if the type is not Limited")
        if exempt is not None:
            _limited(
                {key: value for key, value in exempt.items() if key != "limitResponse"} | _REJECT,
                ".spec.exempt",
                report,
            )
    elif kind == "Limited":
        if exempt is not None:
            report.forbidden(".spec.exempt", "must be nil if the type is Limited")
        if limited is None:
            report.required(".spec.limited", "must not be empty when type is Limited")
        else:
            _limited(limited, ".spec.limited", report)
    else:
        report.unsupported(".spec.type", kind, ("Exempt", "Limited"))
    fixed = _FIXED_LEVELS.get(name)
    if name == "exempt":
        # Its numbers are the user's.
        if fixed is not None and {**spec, "exempt": None} != {**fixed, "exempt": None}:
            report.invalid(".spec", spec, "spec of 'exempt' except the 'spec.exempt' fields must equal the fixed value")
    elif fixed is not None and spec != fixed:
        report.invalid(".spec", spec, f"spec of '{name}' must equal the fixed value")


_REJECT: Final[Tree] = {"limitResponse": {"type": "Reject"}}
