"""What a node and the scheduler may report about a pod."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.internal import shown
from fastapi_core.apis.validation.pod_annotations import annotations_update
from fastapi_core.apis.validation.rules import IMMUTABLE, INT32_MAX, Report, Tree, between

_NOT_NEGATIVE: Final = "must be a non-negative integer"
_KINDS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_SYSTEM: Final = frozenset({"PodScheduled", "Ready", "Initialized"})
_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")
_CLAIM: Final = (
    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' "
    "if request is empty"
)


def pod_status(tree: Tree, path: str, report: Report) -> None:
    """A changed status; the rest of the pod is the old one."""
    old: Tree = report.old or {}
    status: Tree = tree.get("status") or {}
    before: Tree = old.get("status") or {}
    spec: Tree = tree.get("spec") or {}
    annotations_update(tree, report)
    _conditions(status.get("conditions") or (), report)
    _nominated(status, before, spec, report)
    if (status.get("observedGeneration") or 0) < 0:
        report.invalid(".status.observedGeneration", status["observedGeneration"], _NOT_NEGATIVE)
    if (status.get("qosClass") or "") != (before.get("qosClass") or ""):
        report.invalid(".status.qosClass", status.get("qosClass") or "", IMMUTABLE)
    for kind in _KINDS:
        _transitions(status, before, kind, spec, report)
    _claims(status.get("resourceClaimStatuses") or (), spec, report)
    if status.get("extendedResourceClaimStatus") is not None:
        _extended(status["extendedResourceClaimStatus"], spec, report)
    _addresses(status.get("podIPs") or [], before.get("podIPs") or (), ".status.podIPs", "core/v1.PodIP", report)
    hosts = status.get("hostIPs") or []
    if hosts:
        first = hosts[0].get("ip") or ""
        if (status.get("hostIP") or "") != first:
            report.invalid(".status.hostIPs[0].ip", first, "must be equal to `hostIP`")
        _addresses(hosts, before.get("hostIPs") or (), ".status.hostIPs", "core/v1.HostIP", report)
    for kind in _KINDS:
        _users(status.get(kind) or (), f".status.{kind}", (spec.get("os") or {}).get("name") or "linux", report)
    for kind, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        _allocated(status.get(kind) or (), f".status.{kind}", spec.get(containers) or (), report)
    for index, item in enumerate(status.get("ephemeralContainerStatuses") or ()):
        if item.get("allocatedResourcesStatus"):
            at = f".status.ephemeralContainerStatuses[{index}].allocatedResourcesStatus"
            report.forbidden(at, "must not be specified in container status")


def _conditions(items: Any, report: Report) -> None:
    for index, condition in enumerate(items):
        at = f".status.conditions[{index}]"
        if (condition.get("observedGeneration") or 0) < 0:
            report.invalid(at + ".observedGeneration", condition["observedGeneration"], _NOT_NEGATIVE)
        kind = condition.get("type") or ""
        if kind not in _SYSTEM:
            report.each_invalid(at + ".Type", kind, formats.qualified(kind))


def _nominated(status: Tree, before: Tree, spec: Tree, report: Report) -> None:
    """The node that the scheduler has in mind, until there is one."""
    name = status.get("nominatedNodeName")
    if name and name != before.get("nominatedNodeName"):
        at = ".status.nominatedNodeName"
        report.each_invalid(at, name, formats.subdomain(name))
        if spec.get("nodeName"):
            report.forbidden(at, "may not be set on pods that are already bound to a node")


def _transitions(status: Tree, before: Tree, kind: str, spec: Tree, report: Report) -> None:
    """A container that has ended comes back only when it may be restarted."""
    earlier = before.get(kind) or ()
    ended = [(index, item) for index, item in enumerate(earlier) if (item.get("state") or {}).get("terminated")]
    if not ended:
        return
    debugging = kind == "ephemeralContainerStatuses"
    containers = spec.get("containers" if kind == "containerStatuses" else "initContainers") or ()
    if not debugging and any(
        rule.get("action") == "RestartAllContainers"
        for group in ("containers", "initContainers")
        for container in spec.get(group) or ()
        for rule in container.get("restartPolicyRules") or ()
    ):
        return
    now = {item.get("name"): item for item in reversed(status.get(kind) or ())}
    for index, item in ended:
        name = item.get("name")
        if name not in now or (now[name].get("state") or {}).get("terminated"):
            continue
        container = None if debugging else next((c for c in containers if c.get("name") == name), None)
        code = item["state"]["terminated"].get("exitCode") or 0
        if container is None or not restarts(container, spec, code):
            report.forbidden(f".status.{kind}[{index}].state", "may not be transitioned to non-terminated state")


def restarts(container: Tree, spec: Tree, code: int) -> bool:
    """Whether a container that ended with an exit code is started again."""
    policy = container.get("restartPolicy")
    if policy is not None:
        for rule in container.get("restartPolicyRules") or ():
            codes: Tree = rule.get("exitCodes") or {}
            listed = code in (codes.get("values") or ())
            if rule.get("action") == "Restart" and codes and listed == (codes.get("operator") == "In"):
                return True
    policy = policy or spec.get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _claims(items: Any, spec: Tree, report: Report) -> None:
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, item in enumerate(items):
        at = f".status.resourceClaimStatuses[{index}]"
        name = item.get("name") or ""
        if name not in known:
            report.invalid(at + ".name", name, "must match the name of an entry in `spec.resourceClaims`")
        if name in seen:
            report.duplicate(at + ".name", name)
        seen.add(name)
        claim = item.get("resourceClaimName")
        if claim is not None:
            report.each_invalid(at + ".resourceClaimName", claim, formats.subdomain(claim))


def _extended(claim: Tree, spec: Tree, report: Report) -> None:
    """The claim that stands for extended resources of containers."""
    at = ".status.extendedResourceClaimStatus"
    requests = {
        container.get("name"): (container.get("resources") or {}).get("requests") or {}
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
    }
    mappings = claim.get("requestMappings") or ()
    if not mappings:
        report.required(at + ".requestMappings", "at least one request mapping is required")
    seen: set[tuple[str, ...]] = set()
    for index, item in enumerate(mappings):
        where = f"{at}.requestMappings[{index}]"
        key = tuple(item.get(name) or "" for name in ("containerName", "resourceName", "requestName"))
        if key[0] not in requests:
            text = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            report.invalid(where + ".containerName", key[0], text)
        elif key[1] not in requests[key[0]]:
            text = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
                "spec.containers.resources.requests"
            )
            report.invalid(where + ".resourceName", key[1], text)
        report.each_invalid(at + ".requestName", key[2], formats.label(key[2]))
        if key in seen:
            for name, value in zip(("containerName", "resourceName", "requestName"), key, strict=True):
                report.duplicate(f"{where}.{name}", value)
        seen.add(key)
    name = claim.get("resourceClaimName") or ""
    if not name:
        report.required(at + ".resourceClaimName")
    else:
        report.each_invalid(at + ".resourceClaimName", name, formats.subdomain(name))


def _addresses(items: list[Tree], earlier: Any, path: str, ref: str, report: Report) -> None:
    """One address of each family at most; what was there before may stay as it is."""
    kept = {item.get("ip") or "" for item in earlier}
    values = [item.get("ip") or "" for item in items]
    for index, value in enumerate(values):
        if value not in kept:
            report.each_invalid(f"{path}[{index}]", value, formats.ip(value))
    if len(values) > 1:
        found = [formats.sloppy(value) for value in values]
        bad = next((index for index, address in enumerate(found) if address is None), None)
        if bad is not None:
            text = f"failed to check for dual stack with error:invalid IP[{bad}]: {values[bad]}"
            report.internal(path, text)
        if bad is not None or len(values) > 2 or len({address.version for address in found if address}) < 2:
            whole = [shown(ref, item) for item in items]
            report.invalid(path, whole, "may specify no more than one IP for each IP family")


def _users(items: Any, path: str, system: str, report: Report) -> None:
    for index, item in enumerate(items):
        user = (item.get("user") or {}).get("linux")
        at = f"{path}[{index}].user.linux"
        if user is None:
            continue
        if system == "windows":
            report.forbidden(at, "cannot be set for a windows pod")
            continue
        numbers = [(".uid", user.get("uid") or 0), (".gid", user.get("gid") or 0)]
        numbers += ((f".supplementalGroups[{n}]", g) for n, g in enumerate(user.get("supplementalGroups") or ()))
        for member, value in numbers:
            if not 0 <= value <= INT32_MAX:
                report.invalid(at + member, value, between(0, INT32_MAX))


def _allocated(items: Any, path: str, containers: Any, report: Report) -> None:
    """Devices of a container are among those it asks for."""
    by_name = {container.get("name"): container for container in reversed(containers)}
    for index, item in enumerate(items):
        container = by_name.get(item.get("name"))
        for number, device in enumerate(item.get("allocatedResourcesStatus") or ()):
            at = f"{path}[{index}].allocatedResourcesStatus[{number}]"
            name = device.get("name") or ""
            if container is not None:
                resources: Tree = container.get("resources") or {}
                claims = {
                    "claim:" + "/".join(filter(None, (claim.get("name"), claim.get("request"))))
                    for claim in resources.get("claims") or ()
                }
                if name.startswith("claim:"):
                    if name not in claims:
                        report.invalid(at + ".name", name, _CLAIM)
                elif name not in (resources.get("requests") or ()):
                    report.invalid(at + ".name", name, "must match one of the container's resource requests")
            _devices(device.get("resources") or (), at + ".resources", report)


def _devices(items: Any, path: str, report: Report) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        if item.get("health") not in _HEALTH:
            report.unsupported(at + ".health", item.get("health") or "", _HEALTH)
        message = item.get("message")
        if message is not None and not message:
            report.required(at + ".message", "must be non-empty if specified")
        elif message is not None and len(message.encode()) > 1024:
            report.too_long(at + ".message", 1024)
        identity = item.get("resourceID") or ""
        if identity in seen:
            report.duplicate(at + ".resourceID", identity)
        seen.add(identity)
