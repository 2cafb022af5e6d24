"""The spec of a claim for storage, on its own and as a template."""

from __future__ import annotations

from typing import Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.labelling import selector
from fastapi_core.apis.validation.quantities import positive
from fastapi_core.apis.validation.rules import CHECK, Report, Tree, choice, text

MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
MIXED: Final = "may not use ReadWriteOncePod with other access modes"
_CLASS = text("storageClassName", formats.subdomain)
VOLUME_MODE = choice("volumeMode", "Block", "Filesystem", empty=CHECK)
_ATTRIBUTES = text("volumeAttributesClassName", formats.subdomain)


def access_modes(modes: list[str], path: str, report: Report) -> None:
    single = several = False
    for mode in modes:
        if mode == "ReadWriteOncePod":
            single = True
        elif mode in MODES:
            several = True
        else:
            report.unsupported(path, mode, MODES)
    if single and several:
        report.forbidden(path, MIXED)


def source(tree: Tree, path: str, report: Report) -> None:
    """What a new volume is filled from."""
    if not tree.get("name"):
        report.required(path + ".name")
    if not tree.get("kind"):
        report.required(path + ".kind")
    group = tree.get("apiGroup") or ""
    if group:
        report.each_invalid(path + ".apiGroup", group, formats.subdomain(group))
    elif tree.get("kind") != "PersistentVolumeClaim":
        report.invalid(
            path, tree.get("kind") or "", "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        )


def _sources(spec: Tree, path: str, report: Report) -> None:
    old, new = spec.get("dataSource"), spec.get("dataSourceRef")
    if old is not None:
        source(old, path + ".dataSource", report)
    if new is not None:
        source(new, path + ".dataSourceRef", report)
        namespace = new.get("namespace")
        if namespace:
            report.each_invalid(path + ".dataSourceRef.namespace", namespace, formats.label(namespace))
            if old is not None:
                report.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
        elif old is not None and any(old.get(name) != new.get(name) for name in ("apiGroup", "kind", "name")):
            report.invalid(path, {}, "must match dataSourceRef")


def claim_spec(spec: Tree, path: str, report: Report) -> None:
    modes = spec.get("accessModes")
    if not modes:
        report.required(path + ".accessModes", "at least 1 access mode is required")
    if spec.get("selector") is not None:
        selector(spec["selector"], path + ".selector", report)
    if modes:
        access_modes(modes, path + ".accessModes", report)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        report.required(path + ".resources[storage]")
    else:
        positive(size, path + ".resources[storage]", report)
    _CLASS(spec, path, report)
    VOLUME_MODE(spec, path, report)
    _sources(spec, path, report)
    _ATTRIBUTES(spec, path, report)
