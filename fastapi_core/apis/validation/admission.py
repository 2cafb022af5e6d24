"""Webhook configurations and admission policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.expressions import PolicyExpressions, match_condition
from fastapi_core.apis.validation.labelling import selector
from fastapi_core.apis.validation.rules import CHECK, REQUIRED, Report, Tree, choice, text

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MUTATING_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_SCOPE = choice("scope", "*", "Cluster", "Namespaced", empty=CHECK)
_FAILURE = choice("failurePolicy", "Fail", "Ignore", empty=CHECK)
_MATCH = choice("matchPolicy", "Equivalent", "Exact", empty=CHECK)
_REINVOCATION = choice("reinvocationPolicy", "IfNeeded", "Never", empty=CHECK)
_VERSIONS: Final = ("v1", "v1beta1")
_URL_FORM: Final = "; desired format: https://host[/path]"


def _wildcard_alone(items: list[str], what: str, path: str, report: Report) -> None:
    if len(items) > 1 and "*" in items:
        report.invalid(path, items, f"if '*' is present, must not specify other {what}")


def _resources(items: list[str], path: str, report: Report) -> None:
    plain = [item for item in items if "/" not in item]
    if "*/*" in items and len(items) > 1:
        report.invalid(path, items, "if '*/*' is present, must not specify other resources")
    if "*" in items and len(plain) > 1:
        text_ = "if '*' is present, must not specify other resources without subresources"
        report.invalid(path, items, text_)
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        if not item:
            report.required(at)
        resource, slash, sub = item.partition("/")
        if not slash:
            continue
        if resource != "*" and f"{resource}/*" in items and sub != "*":
            report.invalid(at, item, f"if '{resource}/*' is present, must not specify {item}")
        elif resource != "*" and f"*/{sub}" in items:
            report.invalid(at, item, f"if '*/{sub}' is present, must not specify {item}")


def _rule(rule: Tree, path: str, report: Report) -> None:
    operations = rule.get("operations") or []
    if not operations:
        report.required(path + ".operations")
    _wildcard_alone(operations, "operations", path + ".operations", report)
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            report.unsupported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    groups, versions, resources = (rule.get(name) or [] for name in ("apiGroups", "apiVersions", "resources"))
    if not groups:
        report.required(path + ".apiGroups")
    _wildcard_alone(groups, "API groups", path + ".apiGroups", report)
    if not versions:
        report.required(path + ".apiVersions")
    _wildcard_alone(versions, "API versions", path + ".apiVersions", report)
    for index, version in enumerate(versions):
        if not version:
            report.required(f"{path}.apiVersions[{index}]")
    if not resources:
        report.required(path + ".resources")
    _resources(resources, path + ".resources", report)
    _SCOPE(rule, path, report)


def _conditions(items: list[Tree], path: str, report: Report, compile_: Callable[[str, str], None]) -> None:
    names: set[str] = set()
    if len(items) > 64:
        report.too_many(path, len(items), 64)
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        name = item.get("name") or ""
        expression = (item.get("expression") or "").strip()
        if not expression:
            report.required(at + ".expression")
        else:
            compile_(expression, at + ".expression")
        if not name:
            report.required(at + ".name")
        else:
            report.each_invalid(at + ".name", name, formats.qualified(name))
            if name in names:
                report.duplicate(at + ".name", name)
            names.add(name)


def _condition_of(report: Report) -> Callable[[str, str], None]:
    """Compiles the conditions of webhooks."""

    def compile_(text: str, path: str) -> None:
        match_condition(text, path, report, params=False)

    return compile_


def webhook_service(service: Tree, path: str, report: Report) -> None:
    """Where a webhook is in the cluster; the reference names the two members crosswise in its errors."""
    if not service.get("namespace"):
        report.required(path + ".name")
    if not service.get("name"):
        report.required(path + ".namespace")
    port, target = service.get("port"), service.get("path")
    if port is not None and not 1 <= port <= 65535:
        report.invalid(path + ".port", port, "port is not valid: " + formats.PORT)
    if target and target != "/":
        service_path(target, path + ".path", report)


def service_path(target: str, path: str, report: Report) -> None:
    if not target.startswith("/"):
        report.invalid(path, target, "must start with a '/'")
    for index, step in enumerate(target[1:].removesuffix("/").split("/")):
        if not step:
            report.invalid(path, target, f"segment[{index}] may not be empty")
            continue
        report.each_invalid(path, target, [f"segment[{index}]: {problem}" for problem in formats.subdomain(step)])


def webhook_url(url: str, path: str, report: Report) -> None:
    """A webhook outside: https, without anything but host and path."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        report.required(path, f"url must be a valid URL: {error}{_URL_FORM}")
        return
    if parts.scheme != "https":
        report.invalid(path, parts.scheme, "'https' is the only allowed URL scheme" + _URL_FORM)
    if not parts.netloc:
        report.invalid(path, parts.netloc, "host must be specified" + _URL_FORM)
    if "@" in parts.netloc:
        report.invalid(path, parts.netloc.rpartition("@")[0], "user information is not permitted in the URL")
    if parts.fragment:
        report.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        report.invalid(path, parts.query, "query parameters are not permitted in the URL")


def _client(config: Tree, path: str, report: Report) -> None:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        report.required(path, "exactly one of url or service is required")
    elif url is not None:
        webhook_url(url, path + ".url", report)
    else:
        webhook_service(service or {}, path + ".service", report)


def review_versions(versions: list[str], path: str, report: Report, known: tuple[str, ...] = _VERSIONS) -> None:
    listed = ", ".join(known)
    if not versions:
        report.required(path, f"must specify one of {listed}")
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            report.invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        seen.add(version)
        report.each_invalid(f"{path}[{index}]", version, formats.label1035(version))
    if not any(version in known for version in versions):
        report.invalid(path, versions, f"must include at least one of {listed}")


def _webhook(hook: Tree, mutating: bool, path: str, report: Report) -> None:
    name = hook.get("name") or ""
    if not name:
        report.required(path + ".name")
    else:
        problems = formats.subdomain(name)
        if not problems and name.count(".") < 2:
            problems = ["should be a domain with at least three segments separated by dots"]
        report.each_invalid(path + ".name", name, problems)
    for index, rule in enumerate(hook.get("rules") or ()):
        _rule(rule, f"{path}.rules[{index}]", report)
    _FAILURE(hook, path, report)
    _MATCH(hook, path, report)
    effects = hook.get("sideEffects")
    if effects is None:
        report.required(path + ".sideEffects", "must specify one of None, NoneOnDryRun")
    elif effects not in ("None", "NoneOnDryRun"):
        report.unsupported(path + ".sideEffects", effects, ("None", "NoneOnDryRun"))
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        report.invalid(path + ".timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
    for member in ("namespaceSelector", "objectSelector"):
        if hook.get(member) is not None:
            selector(hook[member], f"{path}.{member}", report)
    _client(hook.get("clientConfig") or {}, path + ".clientConfig", report)
    if mutating:
        _REINVOCATION(hook, path, report)
    _conditions(hook.get("matchConditions") or [], path + ".matchConditions", report, _condition_of(report))


def _configuration(tree: Tree, mutating: bool, report: Report) -> None:
    names: set[str] = set()
    for index, hook in enumerate(tree.get("webhooks") or ()):
        at = f".webhooks[{index}]"
        _webhook(hook, mutating, at, report)
        review_versions(hook.get("admissionReviewVersions") or [], at + ".admissionReviewVersions", report)
        name = hook.get("name") or ""
        if name:
            if name in names:
                report.duplicate(at + ".name", name)
            names.add(name)


def mutating_configuration(tree: Tree, path: str, report: Report) -> None:
    _configuration(tree, True, report)


def validating_configuration(tree: Tree, path: str, report: Report) -> None:
    _configuration(tree, False, report)


# Policies


def _match_resources(tree: Tree, path: str, report: Report, *, mutating: bool) -> None:
    if tree.get("matchPolicy") is None:
        report.required(path + ".matchPolicy")
    else:
        _MATCH(tree, path, report)
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
                if name in seen:
                    report.duplicate(f"{at}.resourceNames[{number}]", name)
                seen.add(name)
            _rule(rule, at, report)
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
        _FAILURE(spec, ".spec", report)
    if spec.get("paramKind") is not None:
        _parameter_kind(spec["paramKind"], ".spec.paramKind", report)
    constraints = spec.get("matchConstraints")
    if constraints is None:
        report.required(".spec.matchConstraints")
    else:
        _match_resources(constraints, ".spec.matchConstraints", report, mutating=mutating)
        if not constraints.get("resourceRules"):
            report.required(".spec.matchConstraints.resourceRules")
    _conditions(spec.get("matchConditions") or [], ".spec.matchConditions", report, expressions.condition)
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
        report.invalid(path + ".message", message, "message must be non-empty if specified")
    elif "\n" in message:
        report.invalid(path + ".message", message, "must not contain line breaks")
    elif "\n" in expression and not message:
        text_ = "message must be specified if expression contains line breaks"
        report.required(path + ".message", text_)
    _REASON(item, path, report)


def _audit(items: list[Tree], name: str, path: str, report: Report, expressions: PolicyExpressions) -> None:
    if len(items) > 20:
        report.invalid(path, items, "must not have more than 20 auditAnnotations")
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


def _mutation(item: Tree, path: str, report: Report, expressions: PolicyExpressions) -> None:
    kind = item.get("patchType") or ""
    if not kind:
        report.required(path + ".patchType")
        return
    if kind not in ("ApplyConfiguration", "JSONPatch"):
        report.unsupported(path + ".patchType", kind, ("ApplyConfiguration", "JSONPatch"))
        return
    for name, member in _PATCHES:
        part = item.get(member)
        at = f"{path}.{member}"
        if name != kind:
            if part is not None:
                report.invalid(at, part, f"must not be specified when patchType is {kind}")
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
    if name:
        if chosen is not None:
            text_ = "name and selector are mutually exclusive"
            report.forbidden(path + ".name", text_)
            report.forbidden(path + ".selector", text_)
    elif chosen is not None:
        selector(chosen, path + ".selector", report)
    else:
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
