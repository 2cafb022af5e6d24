"""What annotations of a pod must look like: settings from before there were fields for them."""

from __future__ import annotations

import re
from typing import Final

import orjson

from fastapi_core.apis.strategies.app_armor import ANNOTATION as APP_ARMOR
from fastapi_core.apis.strategies.app_armor import field_of
from fastapi_core.apis.validation import scheduling
from fastapi_core.apis.validation.labelling import local_path
from fastapi_core.apis.validation.rules import INT32_MAX, Report, Tree
from fastapi_core.errors import go_quote
from fastapi_core.meta.patterns import Pattern

MIRROR: Final = "kubernetes.io/config.mirror"
_TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_SPECIAL: Final = (MIRROR, _TOLERATIONS, _COST, SECCOMP, SECCOMP_CONTAINER, APP_ARMOR)
_AT: Final = ".metadata.annotations"
_KINDS: Final = ("initContainers", "containers", "ephemeralContainers")
_number = Pattern(r"-[0-9]+|0|[1-9][0-9]*", re.ASCII)


def of(tree: Tree) -> dict[str, str]:
    return (tree.get("metadata") or {}).get("annotations") or {}


def annotated(tree: Tree, report: Report, at: str = _AT) -> None:
    """The annotations of a pod or a template that mean something to a kubelet or a controller."""
    stated = of(tree)
    if not any(key.startswith(_SPECIAL) for key in stated):
        return
    spec: Tree = tree.get("spec") or {}
    if MIRROR in stated and not spec.get("nodeName"):
        report.invalid(f"{at}[{MIRROR}]", stated[MIRROR], "must set spec.nodeName if mirror pod annotation is set")
    if stated.get(_TOLERATIONS):
        _tolerations(stated[_TOLERATIONS], at, report)
    cost = stated.get(_COST)
    if cost is not None and not (_number.fullmatch(cost) and -INT32_MAX - 1 <= int(cost) <= INT32_MAX):
        report.invalid(f"{at}[{_COST}]", cost, "must be a 32bit integer")
    for key, value in sorted(stated.items(), key=lambda item: item[0] != SECCOMP):
        if key == SECCOMP or key.startswith(SECCOMP_CONTAINER):
            _seccomp(value, f"{at}.{key}", report)
    names = {container.get("name") for kind in _KINDS for container in spec.get(kind) or ()}
    for key, value in stated.items():
        if key.startswith(APP_ARMOR):
            name = key.removeprefix(APP_ARMOR)
            if name not in names:
                report.invalid(f"{at}[{key}]", name, "container not found")
            if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
                report.invalid(f"{at}[{key}]", value, f"invalid AppArmor profile name: {go_quote(value)}")


def _tolerations(text: str, at: str, report: Report) -> None:
    try:
        items = orjson.loads(text)
    except ValueError as error:
        report.invalid(at, _TOLERATIONS, str(error))
        return
    if isinstance(items, list) and all(isinstance(item, dict) for item in items):
        scheduling.tolerations(items, f"{at}.{_TOLERATIONS}", report)


def _seccomp(value: str, path: str, report: Report) -> None:
    if value.startswith("localhost/"):
        local_path(value.removeprefix("localhost/"), path, report)
    elif value not in ("runtime/default", "docker/default", "unconfined"):
        report.invalid(path, value, "must be a valid seccomp profile")


def consistent(tree: Tree, report: Report, at: str = ".spec") -> None:
    """On create and in templates an annotation and the field that took its place must say the same."""
    stated = of(tree)
    if not any(key.startswith((SECCOMP, SECCOMP_CONTAINER, APP_ARMOR)) for key in stated):
        return
    spec: Tree = tree.get("spec") or {}
    whole: Tree = spec.get("securityContext") or {}
    containers = [
        (container, f"{at}.{kind}[{index}].securityContext")
        for kind in _KINDS
        for index, container in enumerate(spec.get(kind) or ())
    ]
    if whole.get("seccompProfile") and SECCOMP in stated:
        _same(whole["seccompProfile"], stated[SECCOMP], at + ".securityContext.seccompProfile", "seccomp", report)
    for container, path in containers:
        key = SECCOMP_CONTAINER + (container.get("name") or "")
        own = (container.get("securityContext") or {}).get("seccompProfile")
        if own and key in stated:
            _same(own, stated[key], path + ".seccompProfile", "seccomp", report)
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for container, path in containers:
        key = APP_ARMOR + (container.get("name") or "")
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        if key in stated and not own and field_of(stated[key]) is None:
            own = whole.get("appArmorProfile")
        if own and key in stated:
            _same(own, stated[key], path + ".appArmorProfile", "apparmor", report)


def _same(profile: Tree, value: str, path: str, word: str, report: Report) -> None:
    kind, local = profile.get("type"), value.removeprefix("localhost/")
    known = {
        "Unconfined": value == "unconfined",
        "RuntimeDefault": value == "runtime/default" or (word == "seccomp" and value == "docker/default"),
        "Localhost": local != value,
    }
    if not known.get(kind or "", True):
        report.forbidden(path + ".type", f"{word} type in annotation and field must match")
    elif kind == "Localhost" and profile.get("localhostProfile") != local:
        report.forbidden(path + ".localhostProfile", f"{word} profile in annotation and field must match")


def annotations_update(tree: Tree, report: Report) -> None:
    """Some annotations of a pod stay as they were."""
    stated, before = of(tree), of(report.old or {})
    for key, value in before.items():
        if stated.get(key) != value:
            if key.startswith(APP_ARMOR):
                report.forbidden(f"{_AT}[{key}]", "may not remove or update AppArmor annotations")
            if key == MIRROR:
                report.forbidden(f"{_AT}[{key}]", "may not remove or update mirror pod annotation")
    for key in stated:
        if key not in before:
            if key.startswith(APP_ARMOR):
                report.forbidden(f"{_AT}[{key}]", "may not add AppArmor annotations")
            if key == MIRROR:
                report.forbidden(f"{_AT}[{key}]", "may not add mirror pod annotation")
    annotated(tree, report)
