"""Rows of access, admission, certificate, API and device kinds."""

from __future__ import annotations

from typing import Any

from fastapi_core.meta.time import human_duration
from fastapi_core.registry.printers.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Reader,
    at,
    condition,
    condition_true,
    count,
    filled,
    labels,
    number,
    top,
    value,
    wide,
)
from fastapi_core.registry.printers.engine import Cell, Column, Tree, since


def role(tree: Tree) -> Cell:
    reference: Tree = tree.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def subjects(kind: str) -> Reader:
    """Names of the binding's subjects of one kind."""

    def cell(tree: Tree) -> Cell:
        found = [subject for subject in tree.get("subjects") or () if subject.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{s.get('namespace', '')}/{s.get('name', '')}" for s in found)
        return ", ".join(subject.get("name", "") for subject in found)

    return cell


def service_reference(tree: Tree) -> Cell:
    service = at(tree, "spec.service")
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"


def availability(tree: Tree) -> Cell:
    found = condition(tree, "Available")
    if found is None:
        return "Unknown"
    if found.get("status") == "True":
        return "True"
    reason = found.get("reason")
    return (found.get("status") or "") + (f" ({reason})" if reason else "")


def request_duration(tree: Tree) -> Cell:
    seconds = at(tree, "spec.expirationSeconds")
    return NONE if seconds is None else human_duration(seconds)


def request_condition(tree: Tree) -> Cell:
    kinds = {entry.get("type") for entry in at(tree, "status.conditions") or ()}
    text = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    if "Failed" in kinds:
        text += ",Failed"
    return text + ",Issued" if at(tree, "status.certificate") else text


def last_condition(*kinds: str, absent: str, true_only: bool = False) -> Reader:
    """Type of the last status condition that is one of `kinds`."""

    def cell(tree: Tree) -> Cell:
        text: str = absent
        for entry in at(tree, "status.conditions") or ():
            if entry.get("type") in kinds and (not true_only or entry.get("status") == "True"):
                text = entry["type"]
        return text

    return cell


def param_kind(tree: Tree) -> Cell:
    kind = at(tree, "spec.paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _go_selector(selector: Tree | None) -> str:
    """A label selector as the reference's generated `String` method prints it."""
    if selector is None:
        return "nil"
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key', '')},Operator:{e.get('operator', '')},"
        f"Values:[{' '.join(e.get('values') or ())}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    pairs = "".join(f"{key}: {val}," for key, val in sorted((selector.get("matchLabels") or {}).items()))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def param_reference(tree: Tree) -> Cell:
    reference = at(tree, "spec.paramRef")
    if not reference:
        return UNSET
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    return _go_selector(reference.get("selector"))


def _component(member: str) -> Reader:
    """Member of a component's Healthy condition."""

    def cell(tree: Tree) -> Cell:
        for entry in tree.get("conditions") or ():
            if entry.get("type") == "Healthy":
                return entry.get(member) or ""
        return ""

    return cell


def component_health(tree: Tree) -> Cell:
    status = _component("status")(tree)
    if not any(entry.get("type") == "Healthy" for entry in tree.get("conditions") or ()):
        return "Unknown"
    return "Healthy" if status == "True" else "Unhealthy"


def missing_priority_level(tree: Tree) -> Cell:
    found = condition(tree, "Dangling")
    return "?" if found is None else found.get("status") or ""


def claim_state(tree: Tree) -> Cell:
    states = []
    deleted = bool(at(tree, "metadata.deletionTimestamp"))
    if deleted:
        states.append("deleted")
    if at(tree, "status.allocation") is not None:
        states.append("allocated")
        if at(tree, "status.reservedFor"):
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return ",".join(states)


def storage_versions(tree: Tree) -> Cell:
    found = at(tree, "status.storageVersions") or ()
    return top(f"{v.get('apiServerID', '')}={v.get('encodingVersion', '')}" for v in found) or UNSET


def migrated_resource(tree: Tree) -> Cell:
    resource: dict[str, str] = at(tree, "spec.resource") or {}
    group = resource.get("group")
    return resource.get("resource", "") + (f".{group}" if group else "")


def group_policy(tree: Tree) -> Cell:
    return "Basic" if at(tree, "spec.schedulingPolicy.gang") is None else "Gang"


def group_status(tree: Tree) -> Cell:
    disrupted = condition(tree, "DisruptionTarget")
    if disrupted is not None:
        return disrupted.get("reason") or ""
    scheduled = condition(tree, "PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


def pool_total(member: str) -> Reader:
    """Devices of that sort over all pools, or the number of pools with an error."""

    def cell(tree: Tree) -> Cell:
        if tree.get("status") is None or condition_true(tree, "Failed"):
            return "-"
        pools: list[Tree] = at(tree, "status.pools") or []
        if member == "validationError":
            return str(sum(pool.get(member) is not None for pool in pools))
        return str(sum(pool.get(member) or 0 for pool in pools))

    return cell


def pool_status(tree: Tree) -> Cell:
    if condition_true(tree, "Complete"):
        total, shown = at(tree, "status.poolCount") or 0, len(at(tree, "status.pools") or ())
        return f"Complete ({shown}/{total} pools)" if total > shown else "Complete"
    return "Failed" if condition_true(tree, "Failed") else "Pending"


def pool_completed(tree: Tree) -> Cell:
    found: dict[str, Any] | None = condition(tree, "Complete")
    return since(found.get("lastTransitionTime")) if found and found.get("status") == "True" else NONE


_BINDING = (
    NAME,
    Column("Role", role),
    AGE,
    wide("Users", subjects("User")),
    wide("Groups", subjects("Group")),
    wide("ServiceAccounts", subjects("ServiceAccount")),
)
_WEBHOOKS = (NAME, Column("Webhooks", count("webhooks"), "integer"), AGE)
_POLICY_BINDING = (NAME, Column("PolicyName", value("spec.policyName")), Column("ParamRef", param_reference), AGE)
_QUEUING = "spec.limited.limitResponse.queuing."

TABLES: dict[str, tuple[Column, ...]] = {
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "APIService": (NAME, Column("Service", service_reference), Column("Available", availability), AGE),
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicy": (
        NAME,
        Column("Validations", count("spec.validations"), "integer"),
        Column("ParamKind", param_kind),
        AGE,
    ),
    "MutatingAdmissionPolicy": (
        NAME,
        Column("Mutations", count("spec.mutations"), "integer"),
        Column("ParamKind", param_kind),
        AGE,
    ),
    "ValidatingAdmissionPolicyBinding": _POLICY_BINDING,
    "MutatingAdmissionPolicyBinding": _POLICY_BINDING,
    "CertificateSigningRequest": (
        NAME,
        AGE,
        Column("SignerName", filled("spec.signerName")),
        Column("Requestor", value("spec.username")),
        Column("RequestedDuration", request_duration),
        Column("Condition", request_condition),
    ),
    "ClusterTrustBundle": (NAME, Column("SignerName", filled("spec.signerName"))),
    "PodCertificateRequest": (
        NAME,
        Column("PodName", value("spec.podName")),
        Column("ServiceAccountName", value("spec.serviceAccountName")),
        Column("NodeName", value("spec.nodeName")),
        Column("SignerName", value("spec.signerName")),
        Column("State", last_condition("Issued", "Denied", "Failed", absent="Pending")),
        Column("UnverifiedUserAnnotations", labels("spec.unverifiedUserAnnotations")),
    ),
    "ComponentStatus": (
        NAME,
        Column("Status", component_health),
        Column("Message", _component("message")),
        Column("Error", _component("error")),
    ),
    "FlowSchema": (
        NAME,
        Column("PriorityLevel", value("spec.priorityLevelConfiguration.name")),
        Column("MatchingPrecedence", number("spec.matchingPrecedence")),
        Column("DistinguisherMethod", value("spec.distinguisherMethod.type", NONE)),
        AGE,
        Column("MissingPL", missing_priority_level),
    ),
    "PriorityLevelConfiguration": (
        NAME,
        Column("Type", value("spec.type")),
        Column("NominalConcurrencyShares", value("spec.limited.nominalConcurrencyShares", NONE)),
        Column("Queues", value(_QUEUING + "queues", NONE)),
        Column("HandSize", value(_QUEUING + "handSize", NONE)),
        Column("QueueLengthLimit", value(_QUEUING + "queueLengthLimit", NONE)),
        AGE,
    ),
    "StorageVersion": (
        NAME,
        Column("CommonEncodingVersion", value("status.commonEncodingVersion", UNSET)),
        Column("StorageVersions", storage_versions),
        AGE,
    ),
    "StorageVersionMigration": (
        Column("Name", value("metadata.name"), description=NAME.description),
        Column("Resource", migrated_resource),
        Column("Status", last_condition("Running", "Failed", "Succeeded", absent="Unknown", true_only=True)),
    ),
    "Status": (
        Column("Status", value("status")),
        Column("Reason", value("reason")),
        Column("Message", value("message")),
    ),
    "DeviceClass": (NAME, AGE),
    "ResourceClaimTemplate": (NAME, AGE),
    "Workload": (NAME, AGE),
    "ResourceClaim": (NAME, Column("State", claim_state), AGE),
    "ResourceSlice": (
        NAME,
        Column("Node", value("spec.nodeName")),
        Column("Driver", value("spec.driver")),
        Column("Pool", value("spec.pool.name")),
        AGE,
    ),
    "ResourcePoolStatusRequest": (
        NAME,
        Column("Driver", value("spec.driver")),
        Column("Total", pool_total("totalDevices")),
        Column("Available", pool_total("availableDevices")),
        Column("Allocated", pool_total("allocatedDevices")),
        Column("Unavailable", pool_total("unavailableDevices")),
        Column("Errors", pool_total("validationError")),
        Column("Pools", number("status.poolCount"), "integer"),
        Column("Status", pool_status),
        Column("Completed", pool_completed),
    ),
    "PodGroup": (
        NAME,
        Column("Policy", group_policy),
        Column("Workload", value("spec.podGroupTemplateRef.workload.workloadName", NONE)),
        Column("Status", group_status),
        AGE,
    ),
}
