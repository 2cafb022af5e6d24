"""Security settings of pods and containers."""

from __future__ import annotations

import re
from typing import Final

from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.labelling import local_path
from fastapi_core.apis.validation.policy import Policy
from fastapi_core.apis.validation.rules import CHECK, INT32_MAX, Report, Tree, between, choice

_ID: Final = between(0, INT32_MAX)
_PROC_MOUNT = choice("procMount", "Default", "Unmasked", empty=CHECK)
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL_FORM: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_sysctl = re.compile(_SYSCTL_FORM, re.ASCII)
_CHANGE = choice("fsGroupChangePolicy", "Always", "OnRootMismatch", empty=CHECK)
_GROUPS = choice("supplementalGroupsPolicy", "Merge", "Strict", empty=CHECK)
_SELINUX = choice("seLinuxChangePolicy", "Recursive", empty=CHECK)


def ids(tree: Tree, path: str, report: Report, *names: str) -> None:
    """Numbers of users and groups."""
    for name in names:
        value = tree.get(name)
        if value is not None and not 0 <= value <= INT32_MAX:
            report.invalid(f"{path}.{name}", value, _ID)


def _seccomp(tree: Tree, path: str, report: Report) -> None:
    kind, profile = tree.get("type"), tree.get("localhostProfile")
    if not kind:
        report.required(path + ".type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        report.unsupported(path + ".type", kind, _PROFILES)
    if kind == "Localhost":
        if profile is None:
            report.required(path + ".localhostProfile", "must be set when seccomp type is Localhost")
        else:
            local_path(profile, path + ".localhostProfile", report)
    elif profile is not None:
        value = shown("core/v1.SeccompProfile", tree)
        report.invalid(path + ".localhostProfile", value, "can only be set when seccomp type is Localhost")


def _app_armor(tree: Tree, path: str, report: Report) -> None:
    kind, profile = tree.get("type"), tree.get("localhostProfile")
    text = profile or ""
    at = path + ".localhostProfile"
    if kind == "Localhost":
        if not text.strip():
            report.required(at, "must be set when AppArmor type is Localhost")
        else:
            if text.strip() != text:
                report.invalid(at, profile, "must not be padded with whitespace")
            if len(text) > 4095:
                report.too_long(at, 4095)
    elif kind in _PROFILES:
        if profile is not None:
            report.invalid(at, profile, "can only be set when AppArmor type is Localhost")
    elif not kind:
        report.required(path + ".type", "type is required when appArmorProfile is set")
    else:
        report.unsupported(path + ".type", kind, _PROFILES)


def _windows(tree: Tree, path: str, report: Report) -> None:
    spec = tree.get("gmsaCredentialSpec")
    if spec is not None and not 0 < len(spec.encode()) <= 64 * 1024:
        text = (
            "gmsaCredentialSpec cannot be an empty string"
            if not spec
            else "gmsaCredentialSpec size must be under 64 KiB"
        )
        report.invalid(path + ".gmsaCredentialSpec", spec, text)
    if tree.get("hostProcess"):
        report.facts["host process"] = True
    user = tree.get("runAsUserName")
    if user is not None and not user:
        report.invalid(path + ".runAsUserName", user, "runAsUserName cannot be an empty string")


def host_processes(spec: Tree, path: str, report: Report) -> None:
    """Containers that are processes of a Windows host: all of a pod or none, and where the cluster lets them."""
    of_pod_ = ((spec.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    every = hosted = 0
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            every += 1
            own = ((container.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
            if own is not None and of_pod_ is not None and own != of_pod_:
                at = f"{path}.{kind}[{index}].securityContext.windowsOptions.hostProcess"
                text = f"pod hostProcess value must be identical if both are specified, was {str(of_pod_).lower()}"
                report.invalid(at, own, text)
            hosted += bool(of_pod_ if own is None else own)
    if not hosted:
        return
    if hosted != every:
        text = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        report.invalid(path, "", text)
    if not spec.get("hostNetwork"):
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        report.invalid(path + ".hostNetwork", False, text)
    if not Policy.privileged:
        report.forbidden(path, "hostProcess containers are disallowed by cluster policy")


def of_container(tree: Tree, path: str, report: Report) -> None:
    if tree.get("privileged") and not Policy.privileged:
        report.forbidden(path + ".privileged", "disallowed by cluster policy")
    ids(tree, path, report, "runAsUser", "runAsGroup")
    mount = tree.get("procMount")
    if mount is not None:
        _PROC_MOUNT(tree, path, report)
        if mount == "Unmasked" and report.facts.get("host users") is not False:
            report.invalid(path + ".procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    if tree.get("seccompProfile") is not None:
        _seccomp(tree["seccompProfile"], path + ".seccompProfile", report)
    if tree.get("allowPrivilegeEscalation") is False:
        if tree.get("privileged"):
            _contradiction(tree, path, "`privileged` to true", report)
        if "CAP_SYS_ADMIN" in ((tree.get("capabilities") or {}).get("add") or ()):
            _contradiction(tree, path, "`capabilities.Add` CAP_SYS_ADMIN", report)
    if tree.get("windowsOptions") is not None:
        _windows(tree["windowsOptions"], path + ".windowsOptions", report)
    if tree.get("appArmorProfile") is not None:
        _app_armor(tree["appArmorProfile"], path + ".appArmorProfile", report)


def _contradiction(tree: Tree, path: str, what: str, report: Report) -> None:
    value = shown("core/v1.SecurityContext", tree)
    report.invalid(path, value, f"cannot set `allowPrivilegeEscalation` to false and {what}")


def _sysctls(spec: Tree, context: Tree, path: str, report: Report) -> None:
    seen: set[str] = set()
    for index, item in enumerate(context["sysctls"]):
        at = f"{path}[{index}].name"
        name = item.get("name") or ""
        if not name:
            report.required(at)
        elif len(name) > 253 or not _sysctl.fullmatch(name):
            report.invalid(at, name, f"must have at most 253 characters and match regex ^{_SYSCTL_FORM}$")
        elif name in seen:
            report.duplicate(at, name)
        seen.add(name)
        plain = name.replace("/", ".")
        if spec.get("hostNetwork") and plain.startswith("net."):
            report.invalid(at, name, "may not be specified when 'hostNetwork' is true")
        if spec.get("hostIPC") and plain.startswith(("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")):
            report.invalid(at, name, "may not be specified when 'hostIPC' is true")


def of_pod(spec: Tree, context: Tree, path: str, report: Report) -> None:
    """`hostPID`, `hostIPC` and `shareProcessNamespace` are part of the internal security context."""
    ids(context, path, report, "fsGroup", "runAsUser", "runAsGroup")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= INT32_MAX:
            report.invalid(f"{path}.supplementalGroups[{index}]", group, _ID)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        report.invalid(path + ".shareProcessNamespace", True, text)
    if context.get("sysctls"):
        _sysctls(spec, context, path + ".sysctls", report)
    _CHANGE(context, path, report)
    if context.get("seccompProfile") is not None:
        _seccomp(context["seccompProfile"], path + ".seccompProfile", report)
    if context.get("windowsOptions") is not None:
        _windows(context["windowsOptions"], path + ".windowsOptions", report)
    if context.get("appArmorProfile") is not None:
        _app_armor(context["appArmorProfile"], path + ".appArmorProfile", report)
    _GROUPS(context, path, report)
    _SELINUX(context, path, report)
