"""Address families of services: what a service leaves out follows from what it says and what the cluster has."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address

from fastapi_core.apis.claims import HEADLESS
from fastapi_core.apis.validation.rules import Report
from fastapi_core.apis.validation.service_addresses import address_members
from fastapi_core.errors import FieldError
from fastapi_core.registry.definition import Tree

IPV4, IPV6 = "IPv4", "IPv6"
SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"
_OTHER = {IPV4: IPV6, IPV6: IPV4}


def family_of(address: str) -> str:
    return IPV4 if ip_address(address).version == 4 else IPV6


def open_ended(spec: Tree) -> bool:
    """Headless and without selector: the endpoints are somebody else's, in whatever family."""
    return spec.get("clusterIP") == HEADLESS and not spec.get("selector")


def settle(
    spec: Tree, before: Tree, configured: Collection[str], default: str, *, known: bool = False
) -> list[FieldError]:
    """Fill in policy and families of a service that has addresses; what cannot be had is refused.

    `before` is the old spec, empty on create and when it had no addresses; `known` tells an update. `configured` are the
    families the cluster has, `default` the one that a service gets which does not care.
    """
    if before and _unchanged_preference(spec, before):
        return []
    if spec.get("ipFamilyPolicy") is None:
        spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or (REQUIRE if open_ended(spec) else SINGLE)
    report = Report()
    address_members(spec, before, report)
    if report:
        return report
    errors = _reductions(spec, before) if known else []
    errors += _contradictions(spec)
    errors += _from_addresses(spec, configured)
    if errors:
        return errors
    families: list[str] = spec.get("ipFamilies") or []
    dual = spec["ipFamilyPolicy"] != SINGLE
    if open_ended(spec):
        families = families or [default]
        spec["ipFamilies"] = [*families, _OTHER[families[0]]] if dual and len(families) < 2 else families
        return []
    if spec["ipFamilyPolicy"] == REQUIRE and len(configured) < 2:
        text = "this cluster is not configured for dual-stack services"
        errors.append(FieldError("Invalid value", "spec.ipFamilyPolicy", text, REQUIRE))
    for index, family in enumerate(families):
        if family not in configured:
            text = "not configured on this cluster"
            errors.append(FieldError("Invalid value", f"spec.ipFamilies[{index}]", text, family))
    if errors:
        return errors
    families = families or [default]
    spec["ipFamilies"] = [*families, _OTHER[families[0]]] if dual and len(families) == 1 < len(configured) else families
    return []


def _unchanged_preference(spec: Tree, before: Tree) -> bool:
    """A service that only prefers two families keeps what it has, whatever the cluster has become."""
    if spec.get("ipFamilyPolicy") != PREFER or before.get("ipFamilyPolicy") not in (None, PREFER):
        return False
    return all(
        (spec.get(member) or None) == (before.get(member) or None) for member in ("type", "clusterIPs", "ipFamilies")
    )


def _reductions(spec: Tree, before: Tree) -> list[FieldError]:
    """Going back to one family takes the policy's word, and then happens by itself."""
    errors = []
    policy = spec["ipFamilyPolicy"]
    for member, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        now, earlier = spec.get(member) or [], before.get(member) or []
        if policy == SINGLE:
            if now == earlier and len(now) > 1:
                spec[member] = now[:1]
        elif 0 < len(now) < len(earlier):
            text = f"must be 'SingleStack' to release the secondary {what}"
            errors.append(FieldError("Invalid value", "spec.ipFamilyPolicy", text, policy))
    return errors


def _contradictions(spec: Tree) -> list[FieldError]:
    if spec["ipFamilyPolicy"] != SINGLE:
        return []
    text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
    return [
        FieldError("Invalid value", "spec.ipFamilyPolicy", text.format(what), SINGLE)
        for member, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families"))
        if len(spec.get(member) or ()) == 2
    ]


def _from_addresses(spec: Tree, configured: Collection[str]) -> list[FieldError]:
    """Addresses that are given say which families are meant."""
    errors = []
    families = list(spec.get("ipFamilies") or ())
    addresses = spec.get("clusterIPs") or []
    for index, address in enumerate(addresses):
        if address == HEADLESS:
            break
        if index < len(families):
            continue
        try:
            family = family_of(address)
        except ValueError:
            # The validation, which comes next, says so.
            continue
        if family in configured:
            families.append(family)
        else:
            text = f"{family} is not configured on this cluster"
            errors.append(FieldError("Invalid value", f"spec.clusterIPs[{index}]", text, addresses))
    if families:
        spec["ipFamilies"] = families
    return errors
