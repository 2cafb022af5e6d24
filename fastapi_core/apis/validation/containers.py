"""Containers: the regular ones, those that run first, and those that are added later."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import downward, formats, probes, security
from fastapi_core.apis.validation.labelling import backsteps, local_path
from fastapi_core.apis.validation.quantities import requirements
from fastapi_core.apis.validation.rules import (
    CHECK,
    REQUIRED,
    Report,
    Tree,
    choice,
    number,
)

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICY = choice("terminationMessagePolicy", "File", "FallbackToLogsOnError", empty=REQUIRED)
_PULL_POLICY = choice("imagePullPolicy", *PULL_POLICIES, empty=REQUIRED)
_PORT = number("containerPort", 1, 65535, zero=REQUIRED, absent=CHECK)
_HOST_PORT = number("hostPort", 1, 65535, zero=0)
_PROTOCOL = choice("protocol", *PROTOCOLS, empty=REQUIRED)
_RESTART = choice("restartPolicy", "Always", "Never", "OnFailure", empty=CHECK)
_SOURCES: Final = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_PROPAGATION = choice("mountPropagation", "Bidirectional", "HostToContainer", "None", empty=CHECK)
_RECURSIVE = choice("recursiveReadOnly", "Disabled", "Enabled", "IfPossible", empty=CHECK)
_EXCLUSIVE: Final = "subPathExpr and subPath are mutually exclusive"
ONLY_RESTARTABLE: Final = "may not be set for init containers without restartPolicy=Always"


def _ports(ports: list[Tree], path: str, report: Report) -> None:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        name = port.get("name")
        if name:
            problems = formats.port_name(name)
            if problems:
                report.each_invalid(at + ".name", name, problems)
            elif name in seen:
                report.duplicate(at + ".name", name)
            else:
                seen.add(name)
        _PORT(port, at, report)
        _HOST_PORT(port, at, report)
        _PROTOCOL(port, at, report)


def _key_reference(tree: Tree, path: str, report: Report) -> None:
    """A key of a ConfigMap or Secret."""
    name, key = tree.get("name") or "", tree.get("key") or ""
    report.each_invalid(path + ".name", name, formats.subdomain(name))
    if not key:
        report.required(path + ".key")
    else:
        report.each_invalid(path + ".key", key, formats.config_key(key))


def _file_reference(tree: Tree, path: str, report: Report) -> None:
    """A key of a file in a volume."""
    key, volume, file = tree.get("key") or "", tree.get("volumeName") or "", tree.get("path") or ""
    if not key:
        report.required(path + ".key")
    else:
        report.each_invalid(path + ".key", key, formats.environment_name(key))
    if not volume:
        report.required(path + ".volumeName")
    else:
        report.each_invalid(path + ".volumeName", volume, formats.label(volume))
    if not file:
        report.required(path + ".path")
    else:
        local_path(file, path + ".path", report)


def _value_from(source: Tree, value: str, path: str, report: Report) -> None:
    count = sum(part is not None for part in source.values())
    if (part := source.get("fieldRef")) is not None:
        downward.field_selector(part, path + ".fieldRef", report, downward.IN_ENVIRONMENT)
    if (part := source.get("resourceFieldRef")) is not None:
        downward.resource_selector(part, path + ".resourceFieldRef", report, in_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if (part := source.get(name)) is not None:
            _key_reference(part, f"{path}.{name}", report)
    if (part := source.get("fileKeyRef")) is not None:
        _file_reference(part, path + ".fileKeyRef", report)
    if count == 0:
        report.invalid(path, "", f"must specify one of: {_SOURCES}")
    elif value:
        report.invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        report.invalid(path, "", "may not have more than one field specified at a time")


def _environment(items: list[Tree], path: str, report: Report) -> None:
    for index, item in enumerate(items):
        name = item.get("name")
        if not name:
            report.required(f"{path}[{index}].name")
        elif not (name.isascii() and name.isidentifier()):
            report.each_invalid(f"{path}[{index}].name", name, formats.environment_name(name))
        source = item.get("valueFrom")
        if source is not None:
            _value_from(source, item.get("value") or "", f"{path}[{index}].valueFrom", report)


def _environment_from(items: list[Tree], path: str, report: Report) -> None:
    for index, item in enumerate(items):
        prefix = item.get("prefix")
        if prefix:
            report.each_invalid(f"{path}[{index}].prefix", prefix, formats.environment_name(prefix))
        count = 0
        for name in ("configMapRef", "secretRef"):
            part = item.get(name)
            if part is not None:
                count += 1
                if not part.get("name"):
                    report.required(f"{path}[{index}].{name}.name")
                else:
                    report.each_invalid(f"{path}[{index}].{name}.name", part["name"], formats.subdomain(part["name"]))
        if count == 0:
            report.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif count > 1:
            report.invalid(path, "", "may not have more than one field specified at a time")


def _mounts(container: Tree, path: str, report: Report) -> None:
    mounts = container.get("volumeMounts") or ()
    devices = container.get("volumeDevices") or ()
    device_names = {device.get("name") for device in devices}
    device_paths = {device.get("devicePath") for device in devices}
    volumes = report.facts["volumes"]
    points: set[str] = set()
    for index, mount in enumerate(mounts):
        at = f"{path}[{index}]"
        name, point = mount.get("name"), mount.get("mountPath")
        if not name:
            report.required(at + ".name")
        if name in device_names:
            report.invalid(at + ".name", name, "must not already exist in volumeDevices")
        if (name or "") not in volumes:
            report.not_found(at + ".name", name or "")
        if not point:
            report.required(at + ".mountPath")
        if point in points:
            report.invalid(at + ".mountPath", point, "must be unique")
        points.add(point or "")
        if point in device_paths:
            report.invalid(at + ".mountPath", point, "must not already exist as a path in volumeDevices")
        if len(mount) > 2:
            _mount_options(mount, container, path, at, report)


def _mount_options(mount: Tree, container: Tree, path: str, at: str, report: Report) -> None:
    """Most of these errors stand at the list, as the reference has them."""
    sub, expression = mount.get("subPath"), mount.get("subPathExpr")
    if sub:
        local_path(sub, path + ".subPath", report)
    if expression:
        if sub:
            report.invalid(at + ".subPathExpr", expression, _EXCLUSIVE)
        local_path(expression, path + ".subPathExpr", report)
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        _PROPAGATION(mount, path, report)
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            text = "Bidirectional mount propagation is available only to privileged containers"
            report.forbidden(path + ".mountPropagation", text)
    recursive = mount.get("recursiveReadOnly")
    if recursive is not None:
        _RECURSIVE(mount, path, report)
        if recursive in ("Enabled", "IfPossible"):
            if not mount.get("readOnly"):
                report.forbidden(path + ".recursiveReadOnly", "may only be specified when readOnly is true")
            if propagation not in (None, "None"):
                text = "may only be specified when mountPropagation is None or not specified"
                report.forbidden(path + ".recursiveReadOnly", text)


def _devices(container: Tree, path: str, report: Report) -> None:
    mounts = container.get("volumeMounts") or ()
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(container["volumeDevices"]):
        at = f"{path}[{index}]"
        name, target = device.get("name") or "", device.get("devicePath") or ""
        if not name:
            report.required(at + ".name")
        if name in names:
            report.invalid(at + ".name", name, "must be unique")
        volume = report.facts["volumes"].get(name)
        if volume is None:
            report.not_found(at + ".name", name)
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            report.invalid(at + ".name", name, text)
        if not target:
            report.required(at + ".devicePath")
        elif target in paths:
            report.invalid(at + ".devicePath", target, "must be unique")
        else:
            backsteps_in_device(target, at + ".devicePath", report)
        if any(mount.get("name") == name for mount in mounts):
            report.invalid(at + ".name", name, "must not already exist in volumeMounts")
        if any(mount.get("mountPath") == target for mount in mounts):
            report.invalid(at + ".devicePath", target, "must not already exist as a path in volumeMounts")
        names.add(name)
        paths.add(target)


def backsteps_in_device(target: str, path: str, report: Report) -> None:
    if ".." in target.split("/"):
        report.invalid(path, target, "can not contain backsteps ('..')")


def _resize(policies: list[Tree], path: str, report: Report) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            report.duplicate(f"{path}[{index}]", name)
        seen.add(name)
        if not name:
            report.required(path)
        elif name not in ("cpu", "memory"):
            report.unsupported(path, name, ("cpu", "memory"))
        if not restart:
            report.required(path)
        elif restart not in ("NotRequired", "RestartContainer"):
            report.unsupported(path, restart, ("NotRequired", "RestartContainer"))
        if report.facts.get("restart") == "Never" and restart != "NotRequired":
            report.invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def _common(container: Tree, path: str, report: Report) -> None:
    """What holds for containers of any sort."""
    name, image = container.get("name"), container.get("image")
    if not name:
        report.required(path + ".name")
    else:
        for problem in formats.label(name):
            report.invalid(path + ".name", name, problem)
    if not image:
        report.required(path + ".image")
    _MESSAGE_POLICY(container, path, report)
    if container.get("ports"):
        _ports(container["ports"], path + ".ports", report)
    if container.get("env"):
        _environment(container["env"], path + ".env", report)
    if container.get("envFrom"):
        _environment_from(container["envFrom"], path + ".envFrom", report)
    if container.get("volumeMounts"):
        _mounts(container, path + ".volumeMounts", report)
    if container.get("volumeDevices"):
        _devices(container, path + ".volumeDevices", report)
    _PULL_POLICY(container, path, report)
    if container.get("resources"):
        requirements(container["resources"], path + ".resources", report)
    if container.get("resizePolicy"):
        _resize(container["resizePolicy"], path + ".resizePolicy", report)
    if container.get("securityContext"):
        security.of_container(container["securityContext"], path + ".securityContext", report)


def _probes(container: Tree, path: str, report: Report) -> None:
    if container.get("lifecycle") is not None:
        probes.lifecycle(container["lifecycle"], path + ".lifecycle", report)
    if container.get("livenessProbe") is not None:
        probes.liveness(container["livenessProbe"], path + ".livenessProbe", report)
    if container.get("readinessProbe") is not None:
        probes.readiness(container["readinessProbe"], path + ".readinessProbe", report)
    if container.get("startupProbe") is not None:
        probes.liveness(container["startupProbe"], path + ".startupProbe", report)


def _restart(container: Tree, path: str, report: Report, *, first: bool = False) -> None:
    _RESTART(container, path, report)
    rules = container.get("restartPolicyRules")
    if not rules:
        return
    if container.get("restartPolicy") is None:
        report.required(path + ".restartPolicy", "must specify restartPolicy when restart rules are used")
        if first:
            return
    if len(rules) > 20:
        report.too_many(path + ".restartPolicyRules", len(rules), 20)
    for index, rule in enumerate(rules):
        _restart_rule(rule, f"{path}.restartPolicyRules[{index}]", report)


def _restart_rule(rule: Tree, path: str, report: Report) -> None:
    actions = ("Restart", "RestartAllContainers")
    if rule.get("action") not in actions:
        report.unsupported(path + ".action", rule.get("action") or "", actions)
    codes = rule.get("exitCodes")
    if codes is None:
        report.required(path + ".exitCodes", "must be specified")
        return
    if codes.get("operator") not in ("In", "NotIn"):
        report.unsupported(path + ".exitCodes.operator", codes.get("operator") or "", ("In", "NotIn"))
    if len(codes.get("values") or ()) > 255:
        report.too_many(path + ".exitCodes.values", len(codes["values"]), 255)


def _host_ports(items: list[Tree], path: str, first: int, report: Report) -> None:
    """A port of the host is taken once."""
    taken: set[tuple[Any, ...]] = set()
    for index, container in enumerate(items, first):
        for number_, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort")
            if not host:
                continue
            key = (port.get("protocol") or "", port.get("hostIP") or "", host)
            if key in taken:
                report.duplicate(f"{path}[{index}].ports[{number_}].hostPort", "/".join(map(str, key)))
            taken.add(key)


def regular(items: list[Tree] | None, path: str, report: Report) -> None:
    names: set[str] = set()
    report.facts["names"] = names
    if not items:
        report.required(path)
        return
    ports = False
    for index, container in enumerate(items):
        at = f"{path}[{index}]"
        _common(container, at, report)
        name = container.get("name") or ""
        if name in names:
            report.duplicate(at + ".name", name)
        else:
            names.add(name)
        ports = ports or bool(container.get("ports"))
        _probes(container, at, report)
        if container.get("restartPolicy") is not None or container.get("restartPolicyRules"):
            _restart(container, at, report)
    if ports:
        _host_ports(items, path, 0, report)


def initial(items: list[Tree], path: str, report: Report) -> None:
    names = report.facts["names"]
    for index, container in enumerate(items):
        at = f"{path}[{index}]"
        _common(container, at, report)
        if container.get("restartPolicy") is not None or container.get("restartPolicyRules"):
            _restart(container, at, report, first=True)
        name = container.get("name") or ""
        if name in names:
            report.duplicate(at + ".name", name)
        elif name:
            names.add(name)
        if container.get("ports"):
            _host_ports([container], path, index, report)
        if container.get("restartPolicy") == "Always":
            _probes(container, at, report)
            continue
        for member in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.get(member) is not None:
                report.forbidden(f"{at}.{member}", ONLY_RESTARTABLE)


_EPHEMERAL_NOT: Final = (
    "ports", "resources", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "resizePolicy",
    "restartPolicy", "restartPolicyRules",
)  # fmt: skip


def ephemeral(items: list[Tree], path: str, report: Report) -> None:
    """Containers for looking into a running pod: without ports, probes and resources."""
    names = set(report.facts["names"])
    targets = frozenset(names)
    for index, container in enumerate(items):
        at = f"{path}[{index}]"
        _common(container, at, report)
        name = container.get("name") or ""
        if name in names:
            report.duplicate(at + ".name", name)
        else:
            names.add(name)
        target = container.get("targetContainerName")
        if target and target not in targets:
            report.not_found(at + ".targetContainerName", target)
        for member in _EPHEMERAL_NOT:
            if container.get(member):
                report.forbidden(f"{at}.{member}", "cannot be set for an Ephemeral Container")
        for number_, mount in enumerate(container.get("volumeMounts") or ()):
            for member in ("subPath", "subPathExpr"):
                if mount.get(member):
                    text = "cannot be set for an Ephemeral Container"
                    report.forbidden(f"{at}.volumeMounts[{number_}].{member}", text)


def file_references(items: list[Tree], path: str, report: Report) -> None:
    """Files that variables come from lie in volumes of the pod."""
    volumes = report.facts["volumes"]
    for index, container in enumerate(items):
        for number_, item in enumerate(container.get("env") or ()):
            reference = (item.get("valueFrom") or {}).get("fileKeyRef")
            if reference is not None and (reference.get("volumeName") or "") not in volumes:
                at = f"{path}[{index}].env[{number_}].valueFrom.fileKeyRef.volumeName"
                report.not_found(at, reference.get("volumeName") or "")


__all__ = ["backsteps", "ephemeral", "file_references", "initial", "regular"]
