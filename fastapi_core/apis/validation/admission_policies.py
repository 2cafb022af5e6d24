"""Admission policies of both kinds, and their bindings."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.admission import FAILURE, MATCH, match_conditions, rule_checks
from fastapi_core.apis.validation.conditions import conditions
from fastapi_core.apis.validation.expressions import PolicyExpressions
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.labelling import selector
from fastapi_core.apis.validation.rules import CHECK, REQUIRED, Report, Tree, choice, text
from fastapi_core.meta import names

_MUTATING_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")


def _match_resources(tree: Tree, path: str, report: Report, *, mutating: bool) -> None:
    if tree.get("matchPolicy") is None:
        report.required(path + ".matchPolicy")
    else:
        MATCH(tree, path, report)
    for member in ("namespaceSelector", "objectSelector"):
        if tree.get(member) is None:
            report.required(f"{path}.{member}")
        else:
            selector(tree[member], f"{path}.{member}", report)
    for member in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(tree.get(member) or ()):
            at = f"{path}.{member}[{index}]"
            seen: set[str] = set()
            for number, name in enumerate(rule.get("resourceNames") or ()):
                report.each_invalid(f"{at}.resourceNames[{number}]", name, names.path_segment(name))
                if name in seen:
                    report.duplicate(f"{at}.resourceNames[{number}]", name)
                seen.add(name)
            rule_checks(rule, at, report)
    if mutating:
        for rule in tree.get("resourceRules") or ():
            for operation in rule.get("operations") or ():
                if operation not in _MUTATING_OPERATIONS:
                    report.unsupported(path + ".resourceRules.operations", operation, _MUTATING_OPERATIONS)


def _parameter_kind(tree: Tree, path: str, report: Report) -> None:
    version, kind = tree.get("apiVersion") or "", tree.get("kind") or ""
    if not version:
        report.required(path + ".apiVersion")
    elif version.count("/") > 1:
        report.invalid(path + ".apiVersion", version, f"unexpected GroupVersion string: {version}")
    else:
        group, slash, name = version.rpartition("/")
        if slash:
            report.each_invalid(path + ".apiVersion", group, formats.subdomain(group))
        report.each_invalid(path + ".apiVersion", version, formats.label1035(name))
    if not kind:
        report.required(path + ".kind")
    else:
        mixed = "may have mixed case, but should otherwise match: "
        report.each_invalid(path + ".kind", kind, [mixed + problem for problem in formats.label1035(kind.lower())])


def _variables(items: Any, path: str, report: Report, expressions: PolicyExpressions, *, mutating: bool) -> None:
    for index, item in enumerate(items or ()):
        at = f"{path}[{index}]"
        name = item.get("name") or ""
        if not name:
            report.required(at + ".name", "name is not specified")
        elif formats.identifier(name):
            report.invalid(at + ".name", name, "must be a valid CEL identifier")
        if not (item.get("expression") or "").strip():
            report.required(at + ".expression", "expression is not specified")
        else:
            expressions.variable(name, item["expression"], at + ".expression", patches=mutating)


def _policy_start(spec: Tree, report: Report, expressions: PolicyExpressions, *, mutating: bool) -> None:
    """What both kinds of policies have."""
    if spec.get("failurePolicy") is None:
        report.required(".spec.failurePolicy")
    else:
        FAILURE(spec, ".spec", report)
    if spec.get("paramKind") is not None:
        _parameter_kind(spec["paramKind"], ".spec.paramKind", report)
    constraints = spec.get("matchConstraints")
    if constraints is None:
        report.required(".spec.matchConstraints")
    else:
        _match_resources(constraints, ".spec.matchConstraints", report, mutating=mutating)
        if not constraints.get("resourceRules"):
            report.required(".spec.matchConstraints.resourceRules")
    match_conditions(spec.get("matchConditions") or [], ".spec.matchConditions", report, expressions.condition)
    _variables(spec.get("variables"), ".spec.variables", report, expressions, mutating=mutating)


_REASON = choice("reason", "Forbidden", "Invalid", "RequestEntityTooLarge", empty=CHECK)


def _validation(item: Tree, path: str, report: Report, expressions: PolicyExpressions) -> None:
    expression, message = item.get("expression") or "", item.get("message") or ""
    if not expression.strip():
        report.required(path + ".expression", "expression is not specified")
    else:
        expressions.validation(expression, path + ".expression")
    told = item.get("messageExpression") or ""
    if told and not told.strip():
        report.invalid(path + ".messageExpression", told, "must be non-empty if specified")
    elif told:
        expressions.message(told, path + ".messageExpression")
    if message and not message.strip():
        report.invalid(path + ".message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        report.invalid(path + ".message", message, "must not contain line breaks")
    _REASON(item, path, report)


def _audit(items: list[Tree], name: str, path: str, report: Report, expressions: PolicyExpressions) -> None:
    if len(items) > 20:
        told = [shown("admissionregistration.k8s.io/v1.AuditAnnotation", item) for item in items]
        report.invalid(path, told, "must not have more than 20 auditAnnotations")
    keys: set[str] = set()
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        key = item.get("key") or ""
        if not name:
            report.invalid(at + ".key", key, "requires metadata.name be non-empty")
        else:
            full = f"{name}/{key}"
            report.each_invalid(at + ".key", full, formats.qualified(full))
        if not (item.get("valueExpression") or "").strip():
            report.required(at + ".valueExpression", "valueExpression is not specified")
        else:
            expressions.annotation(item["valueExpression"], at + ".valueExpression")
        if key in keys:
            report.duplicate(at + ".key", key)
        keys.add(key)


def validating_policy(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    expressions = PolicyExpressions(spec, report)
    _policy_start(spec, report, expressions, mutating=False)
    validations, audit = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not audit:
        text_ = "validations or auditAnnotations must contain at least one item"
        report.required(".spec.validations", text_)
        report.required(".spec.auditAnnotations", text_)
    for index, item in enumerate(validations):
        _validation(item, f".spec.validations[{index}]", report, expressions)
    _audit(audit, (tree.get("metadata") or {}).get("name") or "", ".spec.auditAnnotations", report, expressions)


_PATCHES: Final = (("ApplyConfiguration", "applyConfiguration"), ("JSONPatch", "jsonPatch"))


def validating_policy_status(tree: Tree, path: str, report: Report) -> None:
    status: Tree = tree.get("status") or {}
    at = ".status.typeChecking.expressionWarnings"
    for index, item in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        for member in ("warning", "fieldRef"):
            if not item.get(member):
                report.required(f"{at}[{index}].{member}")
    conditions(status.get("conditions"), ".status.conditions", report)


def _mutation(item: Tree, path: str, report: Report, expressions: PolicyExpressions) -> None:
    kind = item.get("patchType") or ""
    if not kind:
        report.required(path + ".patchType")
        return
    if kind not in ("ApplyConfiguration", "JSONPatch"):
        report.unsupported(path + ".patchType", kind, ("ApplyConfiguration", "JSONPatch"))
        return
    for name, member in _PATCHES if kind == "ApplyConfiguration" else _PATCHES[::-1]:
        part = item.get(member)
        at = f"{path}.{member}"
        if name != kind:
            if part is not None:
                report.invalid(at, f"{{{member}}}", f"must not be specified when patchType is {kind}")
        elif part is None:
            report.required(at, f"must be specified when patchType is {kind}")
        elif not (part.get("expression") or "").strip():
            report.required(at + ".expression")
        else:
            expressions.mutation(part["expression"], kind, at + ".expression")


_POLICY_REINVOCATION = choice("reinvocationPolicy", "IfNeeded", "Never", empty=REQUIRED)


def mutating_policy(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    expressions = PolicyExpressions(spec, report)
    _policy_start(spec, report, expressions, mutating=True)
    mutations = spec.get("mutations") or ()
    if not mutations:
        report.required(".spec.mutations", "mutations must contain at least one item")
    for index, item in enumerate(mutations):
        _mutation(item, f".spec.mutations[{index}]", report, expressions)
    _POLICY_REINVOCATION(spec, ".spec", report)


_POLICY_NAME = text("policyName", formats.subdomain, empty=REQUIRED)
_NOT_FOUND = choice("parameterNotFoundAction", "Deny", "Allow", empty=REQUIRED)


def _parameter(tree: Tree, path: str, report: Report) -> None:
    name, chosen = tree.get("name") or "", tree.get("selector")
    text_ = "name and selector are mutually exclusive"
    if name:
        report.each_invalid(path + ".name", name, names.path_segment(name))
        if chosen is not None:
            report.forbidden(path + ".name", text_)
    if chosen is not None:
        selector(chosen, path + ".selector", report)
        if name:
            report.forbidden(path + ".selector", text_)
    elif not name:
        report.required(path, "one of name or selector must be specified")
    _NOT_FOUND(tree, path, report)


def _binding(tree: Tree, report: Report, *, mutating: bool) -> Tree:
    spec: Tree = tree.get("spec") or {}
    _POLICY_NAME(spec, ".spec", report)
    if spec.get("paramRef") is not None:
        _parameter(spec["paramRef"], ".spec.paramRef", report)
    if spec.get("matchResources") is not None:
        _match_resources(spec["matchResources"], ".spec.matchResources", report, mutating=mutating)
    return spec


def mutating_binding(tree: Tree, path: str, report: Report) -> None:
    _binding(tree, report, mutating=True)


def validating_binding(tree: Tree, path: str, report: Report) -> None:
    actions = _binding(tree, report, mutating=False).get("validationActions") or []
    at = ".spec.validationActions"
    if not actions:
        report.required(at, "at least one validation action is required")
    seen: set[str] = set()
    for index, action in enumerate(actions):
        if action not in ("Audit", "Deny", "Warn"):
            report.unsupported(f"{at}[{index}]", action, ("Audit", "Deny", "Warn"))
        if action in seen:
            report.duplicate(f"{at}[{index}]", action)
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        text_ = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        report.invalid(at, actions, text_)
