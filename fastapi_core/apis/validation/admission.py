"""Webhook configurations, and what they have in common with admission policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.expressions import match_condition
from fastapi_core.apis.validation.labelling import selector
from fastapi_core.apis.validation.rules import CHECK, Report, Tree, choice
from fastapi_core.errors import go_quote
from fastapi_core.meta.patterns import Pattern

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPE = choice("scope", "*", "Cluster", "Namespaced", empty=CHECK)
FAILURE = choice("failurePolicy", "Fail", "Ignore", empty=CHECK)
MATCH = choice("matchPolicy", "Equivalent", "Exact", empty=CHECK)
_REINVOCATION = choice("reinvocationPolicy", "IfNeeded", "Never", empty=CHECK)
_VERSIONS: Final = ("v1", "v1beta1")
_URL_FORM: Final = "; desired format: https://host[/path]"


def _wildcard_alone(items: list[str], what: str, path: str, report: Report) -> None:
    if len(items) > 1 and "*" in items:
        report.invalid(path, items, f"if '*' is present, must not specify other {what}")


def _resources(items: list[str], path: str, report: Report) -> None:
    """What a wildcard before an item already says; of plain ones, the last decides whether a star stands alone."""
    whole: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        if not item:
            report.required(at)
            continue
        resource, slash, sub = item.partition("/")
        if not slash:
            plain = item != "*"
            continue
        if resource in whole:
            report.invalid(at, item, f"if '{resource}/*' is present, must not specify {item}")
        if sub in everywhere:
            report.invalid(at, item, f"if '*/{sub}' is present, must not specify {item}")
        if sub == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(sub)
    if "*/*" in items and len(items) > 1:
        report.invalid(path, items, "if '*/*' is present, must not specify other resources")
    if "*" in items and plain:
        text_ = "if '*' is present, must not specify other resources without subresources"
        report.invalid(path, items, text_)


def rule_checks(rule: Tree, path: str, report: Report) -> None:
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


def match_conditions(items: list[Tree], path: str, report: Report, compile_: Callable[[str, str], None]) -> None:
    taken: set[str] = set()
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
            if name in taken:
                report.duplicate(at + ".name", name)
            taken.add(name)


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


_ESCAPE = Pattern("%(?![0-9A-Fa-f]{2}).{0,2}")


def _unparsable(host: str, url: str) -> str:
    """Why a URL is none for the reference's parser, though it is for ours."""
    odd = next((char for char in host if char in ' "<>^`{|}\\'), "")
    if odd:
        return f"invalid character {go_quote(odd)} in host name"
    found = _ESCAPE.search(url)
    return f"invalid URL escape {go_quote(found[0])}" if found else ""


def webhook_url(url: str, path: str, report: Report) -> None:
    """A webhook outside: https, without anything but host and path."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        report.required(path, f"url must be a valid URL: {error}{_URL_FORM}")
        return
    wrong = _unparsable(parts.netloc, url)
    if wrong:
        report.required(path, f"url must be a valid URL: parse {go_quote(url)}: {wrong}{_URL_FORM}")
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
        rule_checks(rule, f"{path}.rules[{index}]", report)
    FAILURE(hook, path, report)
    MATCH(hook, path, report)
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
    match_conditions(hook.get("matchConditions") or [], path + ".matchConditions", report, _condition_of(report))


def _configuration(tree: Tree, mutating: bool, report: Report) -> None:
    taken: set[str] = set()
    for index, hook in enumerate(tree.get("webhooks") or ()):
        at = f".webhooks[{index}]"
        _webhook(hook, mutating, at, report)
        review_versions(hook.get("admissionReviewVersions") or [], at + ".admissionReviewVersions", report)
        name = hook.get("name") or ""
        if name:
            if name in taken:
                report.duplicate(at + ".name", name)
            taken.add(name)


def mutating_configuration(tree: Tree, path: str, report: Report) -> None:
    _configuration(tree, True, report)


def validating_configuration(tree: Tree, path: str, report: Report) -> None:
    _configuration(tree, False, report)
