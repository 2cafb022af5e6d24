"""The checks of the pod security standards, by level and by the version each form of them begins with.

A check takes a pod's annotations and spec and answers None, or a finding: the reason in short and its details.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from fastapi_core.errors import go_quote
from fastapi_core.registry.definition import Tree


class Finding(NamedTuple):
    reason: str
    detail: str


Annotations = Mapping[str, str]
Run = Callable[[Annotations, Tree], Finding | None]


# Words


def quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def plural(word: str, count: int, many: str = "") -> str:
    return word if count == 1 else many or word + "s"


def named(word: str, items: list[str]) -> str:
    """`container "a"`, `containers "a", "b"`."""
    return f"{plural(word, len(items))} {quoted(items)}"


def containers(spec: Tree) -> Iterator[Tree]:
    for member in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(member) or ()


def context(tree: Tree) -> Tree:
    return tree.get("securityContext") or {}


def setters(spec: Tree, wrong: Callable[[Tree], bool]) -> str:
    """Who sets something wrong in a security context: `pod and containers "a", "b"`; empty for nobody."""
    found = ["pod"] if wrong(context(spec)) else []
    bad = [c["name"] for c in containers(spec) if wrong(context(c))]
    if bad:
        found.append(named("container", bad))
    return " and ".join(found)


def in_user_namespace(spec: Tree) -> bool:
    return spec.get("hostUsers") is False


def on_windows(spec: Tree) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


def unless(exempt: Callable[[Tree], bool], run: Run) -> Run:
    """A check that some pods are spared."""
    return lambda annotations, spec: None if exempt(spec) else run(annotations, spec)


# Baseline

_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def app_armor(annotations: Annotations, spec: Tree) -> Finding | None:
    values: set[str] = set()

    def wrong(of: Tree) -> bool:
        profile = of.get("appArmorProfile")
        if profile is None or profile.get("type") in ("RuntimeDefault", "Localhost"):
            return False
        values.add(profile.get("type", ""))
        return True

    who = setters(spec, wrong)
    notes = sorted(
        f"{key}={go_quote(value)}"
        for key, value in annotations.items()
        if key.startswith(_APPARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    if notes:
        word = plural("annotation", len(notes))
        who = f"{who} and {word}" if who else word
    if not who:
        return None
    shown = [*sorted(values), *notes]
    detail = f"{who} must not set AppArmor profile type to {quoted(shown)}"
    return Finding(plural("forbidden AppArmor profile", len(shown)), detail)


_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
        "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip


def _adding(spec: Tree, allowed: frozenset[str]) -> str:
    """Containers that add other capabilities than these."""
    bad: list[str] = []
    added: set[str] = set()
    for container in containers(spec):
        wrong = [c for c in (context(container).get("capabilities") or {}).get("add") or () if c not in allowed]
        if wrong:
            bad.append(container["name"])
            added.update(wrong)
    if not bad:
        return ""
    return f"{named('container', bad)} must not include {quoted(sorted(added))} in securityContext.capabilities.add"


def default_capabilities(annotations: Annotations, spec: Tree) -> Finding | None:
    detail = _adding(spec, _CAPABILITIES)
    return Finding("non-default capabilities", detail) if detail else None


def host_namespaces(annotations: Annotations, spec: Tree) -> Finding | None:
    used = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return Finding("host namespaces", ", ".join(used)) if used else None


def host_paths(annotations: Annotations, spec: Tree) -> Finding | None:
    bad = [volume["name"] for volume in spec.get("volumes") or () if volume.get("hostPath") is not None]
    return Finding("hostPath volumes", named("volume", bad)) if bad else None


def host_ports(annotations: Annotations, spec: Tree) -> Finding | None:
    bad: list[str] = []
    ports: set[str] = set()
    for container in containers(spec):
        used = [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")]
        if used:
            bad.append(container["name"])
            ports.update(used)
    if not bad:
        return None
    uses = plural("uses", len(bad), "use")
    word = plural("hostPort", len(ports))
    return Finding("hostPort", f"{named('container', bad)} {uses} {word} {', '.join(sorted(ports))}")


def _hosts(container: Tree) -> Iterator[str]:
    lifecycle = container.get("lifecycle") or {}
    handlers = [container.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
    for handler in [*handlers, lifecycle.get("postStart"), lifecycle.get("preStop")]:
        for kind in ("httpGet", "tcpSocket"):
            host = ((handler or {}).get(kind) or {}).get("host")
            if host:
                yield host


def probe_hosts(annotations: Annotations, spec: Tree) -> Finding | None:
    bad: set[str] = set()
    hosts: set[str] = set()
    for container in containers(spec):
        found = set(_hosts(container))
        if found:
            bad.add(container["name"])
            hosts |= found
    if not bad:
        return None
    uses = plural("uses", len(bad), "use")
    what = f"{plural('probe or lifecycle host', len(hosts))} {quoted(sorted(hosts))}"
    return Finding("probe or lifecycle host", f"{named('container', sorted(bad))} {uses} {what}")


def privileged(annotations: Annotations, spec: Tree) -> Finding | None:
    bad = [container["name"] for container in containers(spec) if context(container).get("privileged")]
    return (
        Finding("privileged", f"{named('container', bad)} must not set securityContext.privileged=true")
        if bad
        else None
    )


def proc_mount(annotations: Annotations, spec: Tree) -> Finding | None:
    found = [(c["name"], context(c).get("procMount")) for c in containers(spec)]
    bad = [(name, kind) for name, kind in found if kind not in (None, "Default")]
    if not bad:
        return None
    kinds = quoted(sorted({kind for _, kind in bad}))
    who = named("container", [name for name, _ in bad])
    return Finding("procMount", f"{who} must not set securityContext.procMount to {kinds}")


SELINUX = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})


def se_linux(allowed: frozenset[str]) -> Run:
    def run(annotations: Annotations, spec: Tree) -> Finding | None:
        types: set[str] = set()
        members: set[str] = set()

        def wrong(of: Tree) -> bool:
            options = of.get("seLinuxOptions")
            if options is None:
                return False
            kind = options.get("type") or ""
            bad = {member for member in ("user", "role") if options.get(member)}
            members.update(bad)
            if kind not in allowed:
                types.add(kind)
            return bool(bad) or kind not in allowed

        who = setters(spec, wrong)
        if not who:
            return None
        said = [f"{plural('type', len(types))} {quoted(sorted(types))}"] if types else []
        said += [f"{member} may not be set" for member in ("user", "role") if member in members]
        return Finding("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(said)}")

    return run


_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_SECCOMP = ("RuntimeDefault", "Localhost")


def seccomp_annotations(annotations: Annotations, spec: Tree) -> Finding | None:
    keys = [_SECCOMP_POD, *(_SECCOMP_CONTAINER + container["name"] for container in containers(spec))]
    bad = sorted(
        {
            f"{key}={go_quote(annotations[key])}"
            for key in keys
            if key in annotations
            and annotations[key] not in ("runtime/default", "docker/default")
            and not annotations[key].startswith("localhost/")
        }
    )
    return Finding("seccompProfile", f"forbidden {plural('annotation', len(bad))} {', '.join(bad)}") if bad else None


def _bad_seccomp(spec: Tree) -> str:
    values: set[str] = set()

    def wrong(of: Tree) -> bool:
        profile = of.get("seccompProfile")
        if profile is None or profile.get("type") in _SECCOMP:
            return False
        values.add(profile.get("type", ""))
        return True

    who = setters(spec, wrong)
    return f"{who} must not set securityContext.seccompProfile.type to {quoted(sorted(values))}" if who else ""


def seccomp(annotations: Annotations, spec: Tree) -> Finding | None:
    detail = _bad_seccomp(spec)
    return Finding("seccompProfile", detail) if detail else None


SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    }
)
SYSCTLS_27 = SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
SYSCTLS_29 = SYSCTLS_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
SYSCTLS_32 = SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def sysctls(allowed: frozenset[str]) -> Run:
    def run(annotations: Annotations, spec: Tree) -> Finding | None:
        bad = [s["name"] for s in context(spec).get("sysctls") or () if s["name"] not in allowed]
        return Finding("forbidden sysctls", ", ".join(bad)) if bad else None

    return run


def host_process(annotations: Annotations, spec: Tree) -> Finding | None:
    who = setters(spec, lambda of: bool((of.get("windowsOptions") or {}).get("hostProcess")))
    return (
        Finding("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true") if who else None
    )


# Restricted


def no_escalation(annotations: Annotations, spec: Tree) -> Finding | None:
    bad = [c["name"] for c in containers(spec) if context(c).get("allowPrivilegeEscalation") is not False]
    detail = f"{named('container', bad)} must set securityContext.allowPrivilegeEscalation=false"
    return Finding("allowPrivilegeEscalation != false", detail) if bad else None


def dropped_capabilities(annotations: Annotations, spec: Tree) -> Finding | None:
    keeping = [
        container["name"]
        for container in containers(spec)
        if "ALL" not in ((context(container).get("capabilities") or {}).get("drop") or ())
    ]
    said = [f'{named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    added = _adding(spec, frozenset({"NET_BIND_SERVICE"}))
    if added:
        said.append(added)
    return Finding("unrestricted capabilities", "; ".join(said)) if said else None


_VOLUMES = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip
_OTHER_VOLUMES = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd", "flexVolume",
    "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk",
    "portworxVolume", "scaleIO", "storageos",
)  # fmt: skip


def volume_types(annotations: Annotations, spec: Tree) -> Finding | None:
    bad: list[str] = []
    kinds: set[str] = set()
    for volume in spec.get("volumes") or ():
        if not any(volume.get(kind) is not None for kind in _VOLUMES):
            bad.append(volume["name"])
            kinds.add(next((kind for kind in _OTHER_VOLUMES if volume.get(kind) is not None), "unknown"))
    if not bad:
        return None
    uses = plural("uses", len(bad), "use")
    what = f"{plural('restricted volume type', len(kinds))} {quoted(sorted(kinds))}"
    return Finding("restricted volume types", f"{named('volume', bad)} {uses} {what}")


def non_root(annotations: Annotations, spec: Tree) -> Finding | None:
    who = setters(spec, lambda of: of.get("runAsNonRoot") is False)
    if who:
        return Finding("runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false")
    if context(spec).get("runAsNonRoot"):
        return None
    bad = [c["name"] for c in containers(spec) if context(c).get("runAsNonRoot") is None]
    detail = f"pod or {named('container', bad)} must set securityContext.runAsNonRoot=true"
    return Finding("runAsNonRoot != true", detail) if bad else None


def not_user_zero(annotations: Annotations, spec: Tree) -> Finding | None:
    who = setters(spec, lambda of: of.get("runAsUser") == 0)
    return Finding("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp_set(annotations: Annotations, spec: Tree) -> Finding | None:
    detail = _bad_seccomp(spec)
    if not detail and context(spec).get("seccompProfile") is None:
        bad = [c["name"] for c in containers(spec) if context(c).get("seccompProfile") is None]
        if bad:
            wanted = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
            detail = f"pod or {named('container', bad)} {wanted}"
    return Finding("seccompProfile", detail) if detail else None
