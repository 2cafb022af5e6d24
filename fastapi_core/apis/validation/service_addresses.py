"""How the members of a service about its addresses fit together; the allocator asks before it does anything."""

from __future__ import annotations

from typing import Any, Final

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.rules import CHECK, Report, Tree, choice

_POLICY = choice("ipFamilyPolicy", "PreferDualStack", "RequireDualStack", "SingleStack", empty=CHECK)
_AT: Final = ".spec.clusterIPs"
_ONCE: Final = "may not change once set"
_RELEASE: Final = "must be set to 'SingleStack' when releasing the secondary {}"


def headless(spec: Tree) -> bool:
    return (spec.get("clusterIPs") or [spec.get("clusterIP")]) == ["None"]


def address_members(spec: Tree, before: Tree, report: Report) -> None:
    """Single address, addresses, families and policy of a service that has addresses."""
    families, ips = spec.get("ipFamilies") or [], spec.get("clusterIPs") or []
    first = spec.get("clusterIP") or ""
    if ips and not first:
        report.invalid(_AT, ips, "must be empty when `clusterIP` is not specified")
    elif ips and first != ips[0]:
        report.invalid(_AT, ips, "first value must match `clusterIP`")
    elif first and not ips:
        report.required(_AT)
    for index, family in enumerate(families):
        if family not in ("IPv4", "IPv6"):
            report.unsupported(f".spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
        if families.index(family) < index:
            report.duplicate(f".spec.ipFamilies[{index}]", family)
    _POLICY(spec, ".spec", report)
    if _written(ips, before.get("clusterIPs") or (), report):
        return
    if len(ips) > 1:
        found = [formats.sloppy(value) for value in ips]
        if len({address.version for address in found if address}) < 2:
            report.invalid(_AT, ips, "may specify no more than one IP for each IP family")
    if ips != ["None"]:
        for index, (value, family) in enumerate(zip(ips, families, strict=False)):
            other = {"IPv4": ":" in value, "IPv6": ":" not in value}
            if other.get(family):
                text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                report.invalid(f"{_AT}[{index}]", value, text)


def _written(ips: list[str], kept: Any, report: Report) -> bool:
    """Whether an address is not written as one should be; what was there before may stay."""
    bad = False
    for index, value in enumerate(ips):
        if not index and value == "None":
            if len(ips) > 1:
                bad = True
                report.invalid(_AT, ips, "'None' must be the first and only value")
        elif value not in kept:
            problems = formats.ip(value)
            bad = bad or bool(problems)
            report.each_invalid(f"{_AT}[{index}]", value, problems)
    if len(ips) > 2:
        report.invalid(_AT, ips, "may only hold up to 2 values")
    return bad


def changed_addresses(spec: Tree, before: Tree, report: Report) -> None:
    """A second address and family may come and go; the first stay."""
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return
    now, earlier = headless(spec), headless(before)
    if not (now and earlier):
        _changed_ips(spec, before, report)
    if not now and not earlier:
        _changed_families(spec, before, report)


def _changed_ips(spec: Tree, before: Tree, report: Report) -> None:
    ips, kept = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    if len(ips) == len(kept):
        for index, value in enumerate(kept):
            if ips[index] != value:
                report.invalid(f"{_AT}[{index}]", ips, _ONCE)
        return
    if not ips:
        report.invalid(_AT + "[0]", None, "primary clusterIP can not be unset")
    if ips and kept and ips[0] != kept[0]:
        report.invalid(_AT + "[0]", ips, _ONCE)
    _released(len(ips), len(kept), "clusterIP", spec, report)


def _changed_families(spec: Tree, before: Tree, report: Report) -> None:
    families, kept = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    ips = spec.get("clusterIPs")
    at = ".spec.ipFamilies[0]"
    if len(families) == len(kept):
        for family, earlier in zip(families, kept, strict=True):
            if family != earlier:
                report.invalid(at, families, _ONCE)
        return
    if len(families) < len(kept) and not ips:
        report.invalid(at, families or None, "primary ipFamily can not be unset")
    if families and kept and families[0] != kept[0]:
        report.invalid(at, ips, _ONCE)
    _released(len(families), len(kept), "ipFamily", spec, report)


def _released(count: int, before: int, what: str, spec: Tree, report: Report) -> None:
    policy = spec.get("ipFamilyPolicy")
    if count == 1 < before and policy != "SingleStack":
        report.invalid(".spec.ipFamilyPolicy", policy, _RELEASE.format(what))
