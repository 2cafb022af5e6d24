"""The spec of a pod, in a pod or in a template."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import containers, formats, quantities, scheduling, security
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.labelling import annotations_at, labels, labels_at
from fastapi_core.apis.validation.pod_annotations import annotated, consistent
from fastapi_core.apis.validation.rules import (
    CHECK,
    INT32_MAX,
    REQUIRED,
    Report,
    Tree,
    between,
    choice,
    text,
)
from fastapi_core.apis.validation.volumes import volumes

_RESTART = choice("restartPolicy", "Always", "OnFailure", "Never", empty=REQUIRED)
_DNS = choice("dnsPolicy", "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None", empty=REQUIRED)
_PREEMPTION = choice("preemptionPolicy", "PreemptLowerPriority", "Never", empty=CHECK)
_NODE_LABELS = labels("nodeSelector")
_NODE = text("nodeName", formats.subdomain)
_HOSTNAME = text("hostname", formats.label)
_SUBDOMAIN = text("subdomain", formats.label)
_PRIORITY = text("priorityClassName", formats.subdomain)
_RUNTIME = text("runtimeClassName", formats.subdomain, empty=CHECK)
_CLAIM_MEMBERS: Final = ("resourceClaimName", "resourceClaimTemplateName")
_CLAIM_NAMES: Final = "`resourceClaimName`, `resourceClaimTemplateName`"


def _claims(items: list[Tree], path: str, report: Report) -> None:
    seen: set[str] = set()
    for index, claim in enumerate(items):
        at = f"{path}[{index}]"
        name = claim.get("name") or ""
        if not name:
            report.required(at + ".name")
        elif name in seen:
            report.duplicate(at + ".name", name)
        else:
            report.each_invalid(at + ".name", name, formats.label(name))
            seen.add(name)
        stated = [member for member in _CLAIM_MEMBERS if claim.get(member) is not None]
        if len(stated) > 1:
            text_ = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            report.invalid(at, shown("core/v1.PodResourceClaim", claim), text_)
        elif not stated:
            report.invalid(at, shown("core/v1.PodResourceClaim", claim), f"must specify one of: {_CLAIM_NAMES}")
        for member in stated:
            report.each_invalid(f"{at}.{member}", claim[member], formats.subdomain(claim[member]))


def _host(spec: Tree, path: str, report: Report) -> None:
    """On the host's network a port is the host's port."""
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            for number, port in enumerate(container.get("ports") or ()):
                host = port.get("hostPort") or 0
                if host != port.get("containerPort"):
                    at = f"{path}.{name}[{index}].ports[{number}].hostPort"
                    report.invalid(at, host, "must match `containerPort` when `hostNetwork` is true")


def _dns(spec: Tree, path: str, report: Report) -> None:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            report.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            text_ = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            report.required(path + ".nameservers", text_)
    if config is None:
        return
    servers = config.get("nameservers") or ()
    if len(servers) > 3:
        report.invalid(path + ".nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        report.each_invalid(f"{path}.nameservers[{index}]", server, formats.ip(server))
    searches = config.get("searches") or ()
    if len(searches) > 32:
        report.invalid(path + ".searches", searches, "must not have more than 32 search paths")
    if len(" ".join(searches)) > 2048:
        text_ = "must not have more than 2048 characters (including spaces) in the search list"
        report.invalid(path + ".searches", searches, text_)
    for index, search in enumerate(searches):
        name = search if search == "." else search.removesuffix(".")
        if name != ".":
            report.each_invalid(f"{path}.searches[{index}]", search, formats.underscore(name))
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            report.required(f"{path}.options[{index}]", "must not be empty")


def _gates(spec: Tree, path: str, report: Report) -> None:
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        name = gate.get("conditionType") or ""
        report.each_invalid(f"{path}.readinessGates[{index}].conditionType", name, formats.qualified(name))
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate.get("name") or ""
        report.each_invalid(f"{path}.schedulingGates[{index}]", name, formats.qualified(name))
        if name in seen:
            report.duplicate(f"{path}.schedulingGates[{index}]", name)
        seen.add(name)


def _user_namespace(spec: Tree, path: str, report: Report) -> None:
    text_ = "when `hostUsers` is false"
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            if container.get("volumeDevices"):
                report.forbidden(f"{path}.{name}[{index}].volumeDevices", text_)
    for name, said in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(name):
            report.forbidden(f"{path}.{said}", text_)


def _aliases(items: list[Tree], path: str, report: Report) -> None:
    for index, alias in enumerate(items):
        address = alias.get("ip") or ""
        report.each_invalid(f"{path}[{index}].ip", address, formats.ip(address))
        for number, name in enumerate(alias.get("hostnames") or ()):
            report.each_invalid(f"{path}[{index}].hostnames[{number}]", name, formats.subdomain(name))


_POD_NOT_WINDOWS: Final = (
    "appArmorProfile", "seLinuxOptions", "hostUsers", "hostPID", "hostIPC", "seccompProfile", "fsGroup",
    "fsGroupChangePolicy", "sysctls", "shareProcessNamespace", "runAsUser", "runAsGroup", "supplementalGroups",
    "supplementalGroupsPolicy",
)  # fmt: skip
_OF_SPEC: Final = frozenset({"hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"})
_NOT_WINDOWS: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip
_KINDS: Final = ("containers", "initContainers", "ephemeralContainers")


def _system(spec: Tree, path: str, report: Report) -> None:
    """Settings that the pod's operating system does not have."""
    name = spec["os"].get("name")
    context: Tree = spec.get("securityContext") or {}
    if not name:
        report.required(path + ".os.name")
    elif name not in ("linux", "windows"):
        report.unsupported(path + ".os", name, ("linux", "windows"))
    elif name == "linux":
        _linux(spec, context, path, report)
    else:
        _windows(spec, context, path, report)


def _linux(spec: Tree, context: Tree, path: str, report: Report) -> None:
    text_ = "windows options cannot be set for a linux pod"
    if context.get("windowsOptions") is not None:
        report.forbidden(path + ".securityContext.windowsOptions", text_)
    for kind in _KINDS:
        for index, container in enumerate(spec.get(kind) or ()):
            if (container.get("securityContext") or {}).get("windowsOptions") is not None:
                report.forbidden(f"{path}.{kind}[{index}].securityContext.windowsOptions", text_)


def _windows(spec: Tree, context: Tree, path: str, report: Report) -> None:
    text_ = "cannot be set for a windows pod"
    for member in _POD_NOT_WINDOWS:
        if member in _OF_SPEC:
            if spec.get(member) or (member == "hostUsers" and spec.get(member) is not None):
                report.forbidden(f"{path}.{member}", text_)
        elif context.get(member) is not None:
            report.forbidden(f"{path}.securityContext.{member}", text_)
    for kind in _KINDS:
        for index, container in enumerate(spec.get(kind) or ()):
            inner: Tree = container.get("securityContext") or {}
            for member in _NOT_WINDOWS:
                if inner.get(member) is not None:
                    report.forbidden(f"{path}.{kind}[{index}].securityContext.{member}", text_)


def _pod_resources(spec: Tree, path: str, report: Report) -> None:
    """Resources of the pod as a whole bound those of its containers."""
    whole: Tree = spec["resources"]
    at = path + ".resources"
    for side in ("limits", "requests"):
        for name in whole.get(side) or ():
            if name not in ("cpu", "memory") and not name.startswith(quantities.HUGE):
                report.unsupported(f"{at}.{side}[{name}]", name, ("cpu", "hugepages-", "memory"))
    quantities.requirements(whole, at, report)
    limits = whole.get("limits") or {}
    for index, container in enumerate(spec.get("containers") or ()):
        for name, value in ((container.get("resources") or {}).get("limits") or {}).items():
            limit = limits.get(name)
            if limit is not None and quantities.amount(limit) < quantities.amount(value):
                text_ = f"must be less than or equal to pod limits of {limit}"
                report.invalid(f"{at}.containers[{index}][{name}].limits", value, text_)
    totals: dict[str, Any] = {}
    for container in spec.get("containers") or ():
        for name, value in ((container.get("resources") or {}).get("requests") or {}).items():
            amount = quantities.amount(value)
            totals[name] = totals[name] + amount if name in totals else amount
    for name, total in totals.items():
        request = (whole.get("requests") or {}).get(name)
        if request is not None and quantities.amount(request) < total:
            text_ = f"must be greater than or equal to aggregate container requests of {total}"
            report.invalid(f"{at}.requests[{name}]", request, text_)


def _facts(spec: Tree, report: Report) -> None:
    report.facts["restart"] = spec.get("restartPolicy")
    report.facts["grace"] = spec.get("terminationGracePeriodSeconds")
    report.facts["host users"] = spec.get("hostUsers")
    report.facts["os"] = (spec.get("os") or {}).get("name")
    report.facts["claims"] = {claim.get("name") for claim in spec.get("resourceClaims") or () if claim.get("name")}


def pod_spec(spec: Tree, path: str, report: Report) -> None:
    """Everything of a spec, in the reference's order."""
    _facts(spec, report)
    volumes(spec.get("volumes"), path + ".volumes", report)
    if spec.get("resourceClaims"):
        _claims(spec["resourceClaims"], path + ".resourceClaims", report)
    containers.regular(spec.get("containers"), path + ".containers", report)
    if spec.get("initContainers"):
        containers.initial(spec["initContainers"], path + ".initContainers", report)
    if spec.get("ephemeralContainers"):
        containers.ephemeral(spec["ephemeralContainers"], path + ".ephemeralContainers", report)
    for kind in _KINDS:
        if spec.get(kind):
            containers.file_references(spec[kind], f"{path}.{kind}", report)
    if spec.get("resources"):
        _pod_resources(spec, path, report)
    if spec.get("hostNetwork"):
        _host(spec, path, report)
    _RESTART(spec, path, report)
    _DNS(spec, path, report)
    _NODE_LABELS(spec, path, report)
    context = spec.get("securityContext")
    if context or spec.get("shareProcessNamespace"):
        security.of_pod(spec, context or {}, path + ".securityContext", report)
    if spec.get("affinity"):
        scheduling.affinity(spec["affinity"], path + ".affinity", report)
    if spec.get("dnsPolicy") == "None" or spec.get("dnsConfig") is not None:
        _dns(spec, path + ".dnsConfig", report)
    _gates(spec, path, report)
    if spec.get("topologySpreadConstraints"):
        scheduling.spread(spec["topologySpreadConstraints"], path + ".topologySpreadConstraints", report)
    if report.facts.get("host process"):
        security.host_processes(spec, path, report)
    if spec.get("hostUsers") is False:
        _user_namespace(spec, path, report)
    _names(spec, path, report)
    _rest(spec, path, report)


def _names(spec: Tree, path: str, report: Report) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        report.each_invalid(path + ".serviceAccountName", account, formats.subdomain(account))
    _NODE(spec, path, report)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= INT32_MAX:
        report.invalid(path + ".activeDeadlineSeconds", deadline, between(1, INT32_MAX))
    if not report.facts.get("named by index"):
        _HOSTNAME(spec, path, report)
        _SUBDOMAIN(spec, path, report)
    override = spec.get("hostnameOverride")
    if override is not None:
        at = path + ".hostnameOverride"
        if len(override) > 64:
            report.too_long(at, 64)
        report.each_invalid(at, override, formats.subdomain(override))
        if spec.get("setHostnameAsFQDN"):
            report.forbidden(at, "may not be specified when `setHostnameAsFQDN` is true")
        if spec.get("hostNetwork"):
            report.forbidden(at, "may not be specified when `hostNetwork` is true")


def _rest(spec: Tree, path: str, report: Report) -> None:
    if spec.get("tolerations"):
        scheduling.tolerations(spec["tolerations"], path + ".tolerations", report)
    if spec.get("hostAliases"):
        _aliases(spec["hostAliases"], path + ".hostAliases", report)
    _PRIORITY(spec, path, report)
    _RUNTIME(spec, path, report)
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        if policy:
            _PREEMPTION(spec, path, report)
        else:
            report.required(path + ".preemptionPolicy")
    if spec.get("overhead"):
        quantities.requirements({"limits": spec["overhead"]}, path + ".overhead", report)
    if spec.get("os") is not None:
        _system(spec, path, report)


def pod_template(template: Tree, path: str, report: Report) -> None:
    """A template: labels and annotations have a path of their own."""
    metadata: Tree = template.get("metadata") or {}
    labels_at(metadata.get("labels"), path + ".labels", report)
    annotations = metadata.get("annotations")
    annotations_at(annotations, path + ".annotations", report)
    if annotations:
        annotated(template, report, path + ".annotations")
    spec: Tree = template.get("spec") or {}
    report.facts["name"] = None
    report.facts["labels"] = None
    pod_spec(spec, path + ".spec", report)
    if annotations:
        consistent(template, report, path + ".spec")
    if spec.get("ephemeralContainers"):
        report.forbidden(path + ".spec.ephemeralContainers", "ephemeral containers not allowed in pod template")
