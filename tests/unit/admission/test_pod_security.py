"""Pod security: the checks of each level and version, and what the plugin makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.admission.podsecurity.plugin import Exemptions, PodSecurity, Settings
from fastapi_core.admission.podsecurity.policy import LEVELS, Policy, Standard, is_version, policy_of
from fastapi_core.admission.podsecurity.standards import CHECKS, checks_of, detailed, judge
from fastapi_core.errors import APIError
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.context import User
from tests.fixtures.admission import World, handled, pod, request, validate

Tree = dict[str, Any]
P = "pod-security.kubernetes.io/"
LATEST = Standard("baseline")


def container(name: str = "c", **security: Any) -> Tree:
    return {"name": name, "image": "i", "securityContext": security}


def said(level: str, spec: Tree, version: str = "latest", annotations: dict[str, str] | None = None) -> str:
    return detailed(judge(Standard(level, version), annotations or {}, spec))


SAFE = {
    "containers": [container(allowPrivilegeEscalation=False, capabilities={"drop": ["ALL"]})],
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"hostNetwork": True, "hostIPC": True}, "host namespaces (hostNetwork=true, hostIPC=true)"),
        ({"volumes": [{"name": "v", "hostPath": {}}]}, 'hostPath volumes (volume "v")'),
        (
            {"containers": [container("a", privileged=True), container("b", privileged=True)]},
            'privileged (containers "a", "b" must not set securityContext.privileged=true)',
        ),
        (
            {"containers": [{"name": "a", "ports": [{"hostPort": 81}, {"hostPort": 80}]}]},
            'hostPort (container "a" uses hostPorts 80, 81)',
        ),
        (
            {"containers": [{"name": "a", "livenessProbe": {"tcpSocket": {"host": "h"}}}]},
            'probe or lifecycle host (container "a" uses probe or lifecycle host "h")',
        ),
        (
            {"containers": [container(capabilities={"add": ["SYS_ADMIN", "CHOWN"]})]},
            'non-default capabilities (container "c" must not include "SYS_ADMIN" in securityContext.capabilities.add)',
        ),
        (
            {"containers": [container(procMount="Unmasked")]},
            'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            {"securityContext": {"seLinuxOptions": {"type": "t", "role": "r"}}, "containers": []},
            'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "t"; role may not be set)',
        ),
        (
            {"containers": [container(seccompProfile={"type": "Unconfined"})]},
            'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
        (
            {"securityContext": {"sysctls": [{"name": "a"}, {"name": "net.ipv4.tcp_rmem"}, {"name": "b"}]}},
            "forbidden sysctls (a, b)",
        ),
        (
            {"securityContext": {"windowsOptions": {"hostProcess": True}}},
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (
            {"containers": [container(appArmorProfile={"type": "Unconfined"})]},
            'forbidden AppArmor profile (container "c" must not set AppArmor profile type to "Unconfined")',
        ),
    ],
)
def test_baseline(spec: Tree, text: str) -> None:
    assert said("baseline", spec) == text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({}, ""),
        (
            {"securityContext": {}},
            'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or '
            'container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
        ),
        (
            {"securityContext": {**SAFE["securityContext"], "runAsNonRoot": False, "runAsUser": 0}},  # type: ignore[dict-item]
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), runAsUser=0 (pod must not set "
            "runAsUser=0)",
        ),
        ({"securityContext": {"seccompProfile": {"type": "Localhost"}}, "hostUsers": False}, ""),
        (
            {"containers": [container(capabilities={"add": ["CHOWN"]})]},
            'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
            'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; container "c" must '
            'not include "CHOWN" in securityContext.capabilities.add)',
        ),
        (
            {"volumes": [{"name": "a", "hostPath": {}}, {"name": "b", "nfs": {}}, {"name": "e", "emptyDir": {}}]},
            'restricted volume types (volumes "a", "b" use restricted volume types "hostPath", "nfs")',
        ),
        ({"volumes": [{"name": "a"}]}, 'restricted volume types (volume "a" uses restricted volume type "unknown")'),
    ],
)
def test_restricted(change: Tree, text: str) -> None:
    assert said("restricted", {**SAFE, **change}) == text


@pytest.mark.parametrize(
    ("level", "spec", "passes", "fails"),
    [
        ("baseline", {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"host": "h"}}}]}, "v1.33", "v1.34"),
        ("baseline", {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}}, "v1.32", "v1.31"),
        ("baseline", {"securityContext": {"seLinuxOptions": {"type": "container_engine_t"}}}, "v1.31", "v1.30"),
        ("baseline", {"hostUsers": False, "containers": [container(procMount="Unmasked")]}, "v1.35", "v1.34"),
        ("restricted", {**SAFE, "hostUsers": False, "securityContext": SAFE["securityContext"]}, "v1.35", ""),
        ("restricted", {**SAFE, "securityContext": {"runAsNonRoot": True}}, "v1.18", "v1.19"),
        ("restricted", {**SAFE, "containers": [container(capabilities={"drop": ["ALL"]})]}, "v1.7", "v1.8"),
        ("restricted", {"os": {"name": "windows"}, **SAFE, "containers": [container()]}, "v1.25", "v1.24"),
    ],
)
def test_versions(level: str, spec: Tree, passes: str, fails: str) -> None:
    assert said(level, spec, passes) == ""
    assert not fails or said(level, spec, fails)


def test_old_versions_read_annotations() -> None:
    notes = {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}
    text = 'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")'
    assert said("baseline", {"containers": []}, "v1.18", notes) == text
    assert said("baseline", {"containers": []}, "v1.19", notes) == ""


def test_a_stricter_level_checks_more_and_later_versions_are_the_newest() -> None:
    for minor in range(0, 40):
        version = f"v1.{minor}"
        assert len(checks_of(Standard("restricted", version))) >= len(checks_of(Standard("baseline", version)))
    assert checks_of(Standard("baseline", "v1.99")) == checks_of(LATEST)
    assert checks_of(Standard("privileged")) == ()
    assert [check.name for check in CHECKS if check.level == "baseline"] == sorted(
        check.name for check in CHECKS if check.level == "baseline"
    )


words = st.sampled_from(
    ["", "latest", "v1.0", "v1.24", "v1.01", "1.24", "v2.0", "v1.", "baseline", "restricted", "odd"]
)


@settings(max_examples=150)
@given(
    st.dictionaries(
        st.sampled_from([P + mode + end for mode in ("enforce", "audit", "warn") for end in ("", "-version")]), words
    )
)
def test_labels_always_make_a_policy(labels: dict[str, str]) -> None:
    policy, problems = policy_of(labels, Policy())
    for standard in (policy.enforce, policy.audit, policy.warn):
        assert standard.level in LEVELS
        assert is_version(standard.version)
    wrong = {
        key for key, value in labels.items() if not (is_version(value) if key.endswith("-version") else value in LEVELS)
    }
    assert {problem.field for problem in problems} == {f"metadata.labels[{key}]" for key in wrong}


def test_enforcing_more_than_is_warned_about_warns_too() -> None:
    policy, _ = policy_of({P + "enforce": "restricted", P + "enforce-version": "v1.24"}, Policy())
    assert policy.warn == Standard("restricted", "v1.24")
    policy, _ = policy_of({P + "enforce": "restricted", P + "warn": "privileged"}, Policy())
    assert policy.warn.level == "privileged"
    policy, _ = policy_of({P + "enforce": "odd"}, Policy())
    assert (policy.enforce.level, policy.warn.level) == ("restricted", "privileged")


# The plugin


async def made(world: World, labels: dict[str, str], settings: Settings | None = None) -> PodSecurity:
    await world.add("namespaces", "ns", labels=labels)
    return PodSecurity(world.see("namespaces"), world.see("pods"), settings, Metrics())


async def test_pods_are_refused_noted_and_warned_about(world: World) -> None:
    plugin = await made(world, {P + "enforce": "baseline", P + "audit": "restricted", P + "warn": "restricted"})
    attributes = request("pods", pod(hostNetwork=True))
    with pytest.raises(APIError) as raised:
        await validate(plugin, attributes)
    assert raised.value.message == (
        'pods "x" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
    )
    assert attributes.context.warnings is None
    assert set(attributes.context.annotations or {}) == {P + "enforce-policy", P + "audit-violations"}
    attributes = request("pods", pod())
    await validate(plugin, attributes)
    assert (attributes.context.warnings or [""])[0].startswith('would violate PodSecurity "restricted:latest": ')


async def test_templates_are_only_warned_about(world: World) -> None:
    plugin = await made(world, {P + "enforce": "restricted"})
    template = {"spec": {"containers": [], "hostPID": True}}
    job = request("jobs", {"metadata": {}, "spec": {"template": template}}, group="batch")
    await validate(plugin, job)
    assert job.context.warnings == ['would violate PodSecurity "restricted:latest": host namespaces (hostPID=true)']
    nested = {"metadata": {}, "spec": {"jobTemplate": {"spec": {"template": template}}}}
    cron = request("cronjobs", nested, group="batch")
    await validate(plugin, cron)
    assert cron.context.warnings == job.context.warnings
    empty = request("replicationcontrollers", {"metadata": {}, "spec": {}})
    await validate(plugin, empty)
    assert empty.context.warnings is None


async def test_only_updates_that_matter_are_judged(world: World) -> None:
    plugin = await made(world, {P + "enforce": "baseline"})
    old = pod(hostPID=True)
    new = pod(hostPID=True, labels={"a": "b"})
    await validate(plugin, request("pods", new, operation="UPDATE", old=old))
    for change in (
        {"containers": [{"name": "c", "image": "other"}]},
        {"ephemeralContainers": [{"name": "e", "image": "i"}]},
        {"initContainers": [{"name": "n", "image": "i"}]},
    ):
        with pytest.raises(APIError):
            await validate(plugin, request("pods", pod(hostPID=True, **change), operation="UPDATE", old=old))
    assert not handled(plugin, request("pods", new, operation="UPDATE", subresource="status", old=old))


async def test_who_is_exempt(world: World) -> None:
    exempt = Settings(exemptions=Exemptions(frozenset({"root"}), frozenset({"free"}), frozenset({"vm"})))
    plugin = await made(world, {P + "enforce": "restricted"}, exempt)
    await world.add("namespaces", "free", labels={P + "enforce": "restricted"})
    for reason, attributes in (
        ("user", request("pods", pod(), user=User("root"))),
        ("namespace", request("pods", pod(), namespace="free")),
        ("runtimeClass", request("pods", pod(runtimeClassName="vm"))),
    ):
        await validate(plugin, attributes)
        assert attributes.context.annotations == {P + "exempt": reason}
    with pytest.raises(APIError):
        await validate(plugin, request("pods", pod()))


async def test_labels_of_namespaces_are_checked(world: World) -> None:
    plugin = PodSecurity(world.see("namespaces"), world.see("pods"))

    def space(labels: dict[str, str]) -> Tree:
        return {"metadata": {"name": "x", "labels": labels}}

    with pytest.raises(APIError) as raised:
        await validate(plugin, request("namespaces", space({P + "warn": "odd", P + "enforce-version": "1.2"})))
    assert (raised.value.code, raised.value.reason) == (422, "Invalid")
    odd = space({P + "warn": "odd"})
    await validate(plugin, request("namespaces", odd, operation="UPDATE", old=odd))
    with pytest.raises(APIError):
        await validate(plugin, request("namespaces", odd, operation="UPDATE", old=space({})))


async def test_pods_that_are_there_already(world: World) -> None:
    plugin = PodSecurity(world.see("namespaces"), world.see("pods"))
    for name, spec in (("b", {"hostPID": True}), ("a", {"hostPID": True}), ("c", {"hostNetwork": True}), ("d", {})):
        await world.add("pods", name, "x", spec={"containers": [{"name": "c", "image": "i"}], **spec})
    old = {"metadata": {"name": "x"}}
    new = {"metadata": {"name": "x", "labels": {P + "enforce": "restricted", P + "enforce-version": "v1.0"}}}
    attributes = request("namespaces", new, operation="UPDATE", old=old)
    await validate(plugin, attributes)
    assert attributes.context.warnings == [
        'existing pods in namespace "x" violate the new PodSecurity enforce level "restricted:v1.0"',
        "a (and 2 other pods): host namespaces, runAsNonRoot != true",
        "d: runAsNonRoot != true",
    ]
    for before, after in ((new, new), (new, old)):
        attributes = request("namespaces", after, operation="UPDATE", old=before)
        await validate(plugin, attributes)
        assert attributes.context.warnings is None
