"""Roles and their bindings, certificate requests, API services, leases, priority and runtime classes, events."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from typing import Any, Final

from fastapi_core.apis.validation import formats, quantities, scheduling
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.labelling import int_or_percent, labels, selectable, selector
from fastapi_core.apis.validation.networking import segment
from fastapi_core.apis.validation.rules import (
    REQUIRED,
    Check,
    Report,
    Tree,
    choice,
    immutable,
    text,
)
from fastapi_core.errors import go_quote

_SEGMENTS: Final = "should be a domain with at least two segments separated by dots"
RBAC: Final = "rbac.authorization.k8s.io"
_RESOURCES: Final = ("apiGroups", "resources", "resourceNames")


def _policy_rule(rule: Tree, namespaced: bool, path: str, report: Report) -> None:
    if not rule.get("verbs"):
        report.required(path + ".verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        at = path + ".nonResourceURLs"
        if namespaced:
            report.invalid(at, urls, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(name) for name in _RESOURCES):
            report.invalid(at, urls, "rules cannot apply to both regular resources and non-resource URLs")
        return
    if not rule.get("apiGroups"):
        report.required(path + ".apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        report.required(path + ".resources", "resource rules must supply at least one resource")


def role(tree: Tree, path: str, report: Report) -> None:
    for index, rule in enumerate(tree.get("rules") or ()):
        _policy_rule(rule, True, f".rules[{index}]", report)


def cluster_role(tree: Tree, path: str, report: Report) -> None:
    for index, rule in enumerate(tree.get("rules") or ()):
        _policy_rule(rule, False, f".rules[{index}]", report)
    aggregation = tree.get("aggregationRule")
    if aggregation is None:
        return
    at = ".aggregationRule.clusterRoleSelectors"
    if not aggregation.get("clusterRoleSelectors"):
        report.required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, chosen in enumerate(aggregation.get("clusterRoleSelectors") or ()):
        selector(chosen, f"{at}[{index}]", report)
        if not selectable(chosen):
            report.invalid(f"{at}[{index}]", None, "invalid label selector.")


_SUBJECT_KINDS: Final = ("ServiceAccount", "User", "Group")


def _subject(subject: Tree, namespaced: bool, path: str, report: Report) -> None:
    name, kind, group = subject.get("name") or "", subject.get("kind") or "", subject.get("apiGroup") or ""
    if not name:
        report.required(path + ".name")
    if kind == "ServiceAccount":
        if name:
            report.each_invalid(path + ".name", name, formats.subdomain(name))
        if group:
            report.unsupported(path + ".apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            report.required(path + ".namespace")
    elif kind in ("User", "Group"):
        if group != RBAC:
            report.unsupported(path + ".apiGroup", group, (RBAC,))
    else:
        report.unsupported(path + ".kind", kind, _SUBJECT_KINDS)


def _binding(tree: Tree, namespaced: bool, report: Report) -> None:
    reference: Tree = tree.get("roleRef") or {}
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if (reference.get("apiGroup") or "") != RBAC:
        report.unsupported(".roleRef.apiGroup", reference.get("apiGroup") or "", (RBAC,))
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    if kind not in kinds:
        report.unsupported(".roleRef.kind", kind, kinds)
    if not name:
        report.required(".roleRef.name")
    else:
        report.each_invalid(".roleRef.name", name, segment(name))
    for index, subject in enumerate(tree.get("subjects") or ()):
        _subject(subject, namespaced, f".subjects[{index}]", report)


def role_binding(tree: Tree, path: str, report: Report) -> None:
    _binding(tree, True, report)


def cluster_role_binding(tree: Tree, path: str, report: Report) -> None:
    _binding(tree, False, report)


def _kept_role(tree: Tree, report: Report) -> None:
    if tree.get("roleRef") != (report.old or {}).get("roleRef"):
        report.invalid(".roleRef", shown(RBAC + "/v1.RoleRef", tree.get("roleRef") or {}), "cannot change roleRef")


def role_binding_update(tree: Tree, path: str, report: Report) -> None:
    _binding(tree, True, report)
    _kept_role(tree, report)


def cluster_role_binding_update(tree: Tree, path: str, report: Report) -> None:
    _binding(tree, False, report)
    _kept_role(tree, report)


# Certificate requests

_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_SIGNER: Final = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
_pem = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)


def _decoded(value: Any) -> bytes:
    try:
        return base64.b64decode(value or "")
    except (binascii.Error, ValueError):
        return b""


def _segments(text_: str, check: Check, path: str, report: Report) -> None:
    """What is wrong with the first part that is wrong."""
    for part in text_.split("."):
        problems = check(part)
        if problems:
            report.each_invalid(path, text_, [f"validating label {go_quote(part)}: {told}" for told in problems])
            return


def signer_name(name: str, path: str, report: Report) -> None:
    """`domain/name`, the domain of at least two labels."""
    if not name:
        report.required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        report.invalid(path, name, _SIGNER)
        return
    if len(domain) > 253:
        report.too_long(path, 253)
    _segments(domain, formats.label, path, report)
    if "." not in domain:
        report.invalid(path, domain, _SEGMENTS)
    _segments(rest, formats.subdomain, path, report)
    if len(name) > 571:
        report.too_long(path, 571)


def certificate_request(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    found = _pem.search(_decoded(spec.get("request")))
    if found is None or found.group(1) != b"CERTIFICATE REQUEST":
        report.invalid(".spec.request", spec.get("request") or "", "PEM block type must be CERTIFICATE REQUEST")
    usages = spec.get("usages") or ()
    if not usages:
        report.required(".spec.usages")
    seen: set[str] = set()
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            report.unsupported(f".spec.usages[{index}]", usage, _USAGES)
        if usage in seen:
            report.duplicate(f".spec.usages[{index}]", usage)
        seen.add(usage)
    name = spec.get("signerName") or ""
    if name == "kubernetes.io/legacy-unknown" and report.old is None:
        report.invalid(".spec.signerName", name, "the legacy signerName is not allowed via this API version")
    else:
        signer_name(name, ".spec.signerName", report)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        text_ = "may not specify a duration less than 600 seconds (10 minutes)"
        report.invalid(".spec.expirationSeconds", seconds, text_)
    _conditions((tree.get("status") or {}).get("conditions") or (), report)


def _conditions(conditions: Any, report: Report) -> None:
    kinds = [condition.get("type") or "" for condition in conditions]
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at = f".status.conditions[{index}]"
        if not kinds[index]:
            report.required(at + ".type")
        elif kinds[index] in ("Approved", "Denied", "Failed"):
            if not condition.get("status"):
                report.required(at + ".status")
            elif condition.get("status") != "True":
                report.unsupported(at + ".status", condition["status"], ("True",))
        if kinds[index] in seen:
            report.duplicate(at + ".type", kinds[index])
        seen.add(kinds[index])
    if "Approved" in kinds and "Denied" in kinds:
        index = max(kinds.index("Approved"), kinds.index("Denied"))
        text_ = "Approved and Denied conditions are mutually exclusive"
        report.invalid(f".status.conditions[{index}].type", kinds[index], text_)


def certificate_request_update(tree: Tree, path: str, report: Report) -> None:
    certificate_request(tree, path, report)
    status: Tree = tree.get("status") or {}
    before: Tree = (report.old or {}).get("status") or {}
    new = Counter(condition.get("type") for condition in status.get("conditions") or ())
    for condition in before.get("conditions") or ():
        kind = condition.get("type")
        if kind in ("Approved", "Denied", "Failed") and kind not in new:
            report.forbidden(".status.conditions", f'updates may not remove a condition of type "{kind}"')
        elif kind in ("Approved", "Denied", "Failed") and condition not in (status.get("conditions") or ()):
            report.forbidden(".status.conditions", f'updates may not modify a condition of type "{kind}"')
    certificate, earlier = status.get("certificate"), before.get("certificate")
    if certificate != earlier:
        if earlier:
            report.forbidden(".status.certificate", "updates may not modify existing certificate content")
        elif b"-----BEGIN CERTIFICATE-----" not in _decoded(certificate):
            text_ = "must contain at least one CERTIFICATE PEM block"
            report.invalid(".status.certificate", "<certificate data>", text_)


# API services


def api_service(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    group, version = spec.get("group") or "", spec.get("version") or ""
    wanted = f"{version}.{group}"
    for member in ("generateName", "name"):
        given = (tree.get("metadata") or {}).get(member)
        if given and given != wanted and not segment(given):
            detail = f'must be `spec.version+"."+spec.group`: {go_quote(wanted)}'
            report.invalid(f".metadata.{member}", given, detail)
    if not group:
        if version != "v1":
            report.required(".spec.group", "only v1 may have an empty group and it better be legacy kube")
    else:
        report.each_invalid(".spec.group", group, formats.subdomain(group))
    report.each_invalid(".spec.version", version, formats.label1035(version))
    for member, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = spec.get(member) or 0
        if not 0 < value <= most:
            report.invalid(f".spec.{member}", value, f"must be positive and less than {most}")
    service = spec.get("service")
    insecure = spec.get("insecureSkipTLSVerify")
    if service is None:
        if spec.get("caBundle"):
            report.invalid(
                ".spec.caBundle",
                f"{len(_decoded(spec['caBundle']))} bytes",
                "local APIServices may not have a caBundle",
            )
        if insecure:
            text_ = "local APIServices may not have insecureSkipTLSVerify"
            report.invalid(".spec.insecureSkipTLSVerify", insecure, text_)
        return
    for member in ("namespace", "name"):
        if not service.get(member):
            report.required(f".spec.service.{member}")
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        report.invalid(".spec.service.port", port, "port is not valid: " + formats.PORT)
    if insecure and spec.get("caBundle"):
        report.invalid(".spec.insecureSkipTLSVerify", insecure, "may not be true if caBundle is present")


def api_service_status(tree: Tree, path: str, report: Report) -> None:
    for index, condition in enumerate((tree.get("status") or {}).get("conditions") or ()):
        status = condition.get("status") or ""
        if status not in ("True", "False", "Unknown"):
            report.unsupported(f".status.conditions[{index}].status", status, ("True", "False", "Unknown"))


# Leases, classes


def lease(tree: Tree, path: str, report: Report) -> None:
    spec = tree.get("spec")
    if not spec:
        return
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        report.invalid(".spec.leaseDurationSeconds", seconds, "must be greater than 0")
    transitions = spec.get("leaseTransitions")
    if transitions is not None and transitions < 0:
        report.invalid(".spec.leaseTransitions", transitions, "must be greater than or equal to 0")


_SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PREEMPTION = choice("preemptionPolicy", "PreemptLowerPriority", "Never", empty=REQUIRED)


def priority_class(tree: Tree, path: str, report: Report) -> None:
    name, value = (tree.get("metadata") or {}).get("name") or "", tree.get("value") or 0
    if name.startswith("system-"):
        if _SYSTEM_CLASSES.get(name) != value:
            reason = (
                f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
                if name in _SYSTEM_CLASSES
                else f"{name} is not a known system priority class"
            )
            text_ = "priority class names with 'system-' prefix are reserved for system use only. error: " + reason
            report.forbidden(".metadata.name", text_)
    elif value > 1_000_000_000:
        report.forbidden(".value", "maximum allowed value of a user defined priority is 1000000000")
    if tree.get("preemptionPolicy") is not None:
        _PREEMPTION(tree, "", report)


_POLICY_FIXED = immutable("preemptionPolicy")


def priority_class_update(tree: Tree, path: str, report: Report) -> None:
    if (tree.get("value") or 0) != ((report.old or {}).get("value") or 0):
        report.forbidden(".value", "may not be changed in an update.")
    _POLICY_FIXED(tree, "", report)


_HANDLER = text("handler", formats.label, empty=REQUIRED)
_NODE_LABELS = labels("nodeSelector")


def runtime_class(tree: Tree, path: str, report: Report) -> None:
    _HANDLER(tree, "", report)
    overhead = (tree.get("overhead") or {}).get("podFixed")
    if overhead:
        quantities.requirements({"limits": overhead}, ".overhead", report)
    planning: Tree = tree.get("scheduling") or {}
    if planning:
        _NODE_LABELS(planning, ".scheduling", report)
        items = planning.get("tolerations") or []
        scheduling.tolerations(items, ".scheduling.tolerations", report)
        seen: set[frozenset[tuple[str, Any]]] = set()
        for index, item in enumerate(items):
            members = frozenset(item.items())
            if members in seen:
                report.duplicate(f".scheduling.tolerations[{index}]", shown("core/v1.Toleration", item))
            seen.add(members)


_HANDLER_FIXED = immutable("handler")


def runtime_class_update(tree: Tree, path: str, report: Report) -> None:
    runtime_class(tree, path, report)
    _HANDLER_FIXED(tree, "", report)


def pod_disruption_budget(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        value = shown("policy/v1.PodDisruptionBudgetSpec", spec)
        order = ("MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy")
        value = {name: value.get(name) for name in order}
        report.invalid(".spec", value, "minAvailable and maxUnavailable cannot be both set")
    int_or_percent(least, ".spec.minAvailable", report, capped=True)
    int_or_percent(most, ".spec.maxUnavailable", report, capped=True)
    if spec.get("selector") is not None:
        selector(spec["selector"], ".spec.selector", report)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        report.unsupported(".spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def budget_status(tree: Tree, path: str, report: Report) -> None:
    status: Tree = tree.get("status") or {}
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        value = status.get(name) or 0
        if value < 0:
            report.invalid(f".status.{name}", value, "must be greater than or equal to 0")
