"""The pod security standards: which check, in which form, belongs to which level and version."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from fastapi_core.admission.podsecurity import checks
from fastapi_core.admission.podsecurity.checks import Annotations, Finding, Run, unless
from fastapi_core.admission.podsecurity.policy import BASELINE, PRIVILEGED, RESTRICTED, Standard, minor
from fastapi_core.registry.definition import Tree


class Check(NamedTuple):
    """`forms`: (first minor version, what runs from it on); `replaces`: the baseline check it makes superfluous."""

    name: str
    level: str
    forms: tuple[tuple[int, Run], ...]
    replaces: str = ""


CHECKS: Final = (
    Check("appArmorProfile", BASELINE, ((0, checks.app_armor),)),
    Check("capabilities_baseline", BASELINE, ((0, checks.default_capabilities),)),
    Check("hostNamespaces", BASELINE, ((0, checks.host_namespaces),)),
    Check("hostPathVolumes", BASELINE, ((0, checks.host_paths),)),
    Check("hostPorts", BASELINE, ((0, checks.host_ports),)),
    Check("hostProbesAndHostLifecycle", BASELINE, ((34, checks.probe_hosts),)),
    Check("privileged", BASELINE, ((0, checks.privileged),)),
    Check("procMount", BASELINE, ((0, checks.proc_mount), (35, unless(checks.in_user_namespace, checks.proc_mount)))),
    Check(
        "seLinuxOptions",
        BASELINE,
        ((0, checks.se_linux(checks.SELINUX)), (31, checks.se_linux(checks.SELINUX | {"container_engine_t"}))),
    ),
    Check("seccompProfile_baseline", BASELINE, ((0, checks.seccomp_annotations), (19, checks.seccomp))),
    Check(
        "sysctls",
        BASELINE,
        (
            (0, checks.sysctls(checks.SYSCTLS)),
            (27, checks.sysctls(checks.SYSCTLS_27)),
            (29, checks.sysctls(checks.SYSCTLS_29)),
            (32, checks.sysctls(checks.SYSCTLS_32)),
        ),
    ),
    Check("windowsHostProcess", BASELINE, ((0, checks.host_process),)),
    Check(
        "allowPrivilegeEscalation",
        RESTRICTED,
        ((8, checks.no_escalation), (25, unless(checks.on_windows, checks.no_escalation))),
    ),
    Check(
        "capabilities_restricted",
        RESTRICTED,
        ((22, checks.dropped_capabilities), (25, unless(checks.on_windows, checks.dropped_capabilities))),
        "capabilities_baseline",
    ),
    Check("procMount_restricted", RESTRICTED, ((35, checks.proc_mount),), "procMount"),
    Check("restrictedVolumes", RESTRICTED, ((0, checks.volume_types),), "hostPathVolumes"),
    Check("runAsNonRoot", RESTRICTED, ((0, checks.non_root), (35, unless(checks.in_user_namespace, checks.non_root)))),
    Check(
        "runAsUser",
        RESTRICTED,
        ((23, checks.not_user_zero), (35, unless(checks.in_user_namespace, checks.not_user_zero))),
    ),
    Check(
        "seccompProfile_restricted",
        RESTRICTED,
        ((19, checks.seccomp_set), (25, unless(checks.on_windows, checks.seccomp_set))),
        "seccompProfile_baseline",
    ),
)
"""In the order in which findings are told: baseline before restricted, each by name."""

NEWEST: Final = max(first for check in CHECKS for first, _ in check.forms)


@lru_cache(maxsize=128)
def checks_of(standard: Standard) -> tuple[Run, ...]:
    """What a standard checks, in order. Versions newer than the newest change mean the same as that."""
    if standard.level == PRIVILEGED:
        return ()
    asked = minor(standard.version)
    version = NEWEST if asked is None else min(asked, NEWEST)
    chosen: dict[str, Run] = {}
    for check in CHECKS:
        forms = [run for first, run in check.forms if first <= version]
        if forms and (check.level == BASELINE or standard.level == RESTRICTED):
            chosen.pop(check.replaces, None)
            chosen[check.name] = forms[-1]
    return tuple(chosen.values())


def judge(standard: Standard, annotations: Annotations, spec: Tree) -> list[Finding]:
    """All findings against a pod; none when it conforms."""
    findings: list[Finding] = []
    for run in checks_of(standard):
        found = run(annotations, spec)
        if found is not None:
            findings.append(found)
    return findings


def detailed(findings: list[Finding]) -> str:
    return ", ".join(
        f"{finding.reason} ({finding.detail})" if finding.detail else finding.reason for finding in findings
    )


def reasons(findings: list[Finding]) -> str:
    return ", ".join(finding.reason for finding in findings)
