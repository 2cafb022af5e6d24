"""Which rule validates which kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from fastapi_core.apis.validation import (
    access,
    admission,
    autoscaling,
    batch,
    definitions,
    devices,
    flowcontrol,
    networking,
    pods,
    quotas,
    services,
    storage,
    storage_kinds,
    workloads,
)
from fastapi_core.apis.validation.rules import Report, Rule, Tree
from fastapi_core.errors import FieldError


class Rules(NamedTuple):
    """The rules of a kind: for a new object, for a change (the same when None), and for a changed status."""

    create: Rule
    update: Rule | None = None
    status: Rule | None = None


RULES: Final[dict[tuple[str, str], Rules]] = {
    ("", "Pod"): Rules(pods.pod, pods.pod_update, pods.pod_status),
    ("", "PodTemplate"): Rules(workloads.pod_template_kind),
    ("", "ReplicationController"): Rules(workloads.replication_controller, None, workloads.replicas_status),
    ("apps", "ControllerRevision"): Rules(workloads.controller_revision, workloads.controller_revision_update),
    ("apps", "DaemonSet"): Rules(workloads.daemon_set, workloads.daemon_set_update, workloads.daemon_status),
    ("apps", "Deployment"): Rules(workloads.deployment, workloads.deployment_update, workloads.deployment_status),
    ("apps", "ReplicaSet"): Rules(workloads.replica_set, workloads.replica_set_update, workloads.replicas_status),
    ("apps", "StatefulSet"): Rules(workloads.stateful_set, workloads.stateful_set_update, workloads.stateful_status),
    ("batch", "Job"): Rules(batch.job, batch.job_update),
    ("batch", "CronJob"): Rules(batch.cron_job),
    ("", "Endpoints"): Rules(services.endpoints),
    ("", "Event"): Rules(access.core_event),
    ("", "LimitRange"): Rules(quotas.limit_range),
    ("", "Node"): Rules(quotas.node, quotas.node_update, quotas.node_status),
    ("", "PersistentVolume"): Rules(storage.volume, storage.volume_update),
    ("", "PersistentVolumeClaim"): Rules(storage.claim, storage.claim_update),
    ("", "ResourceQuota"): Rules(quotas.resource_quota, quotas.resource_quota_update),
    ("", "Service"): Rules(services.service, services.service_update, services.balancer_status),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): Rules(admission.mutating_policy),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): Rules(admission.mutating_binding),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): Rules(admission.mutating_configuration),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): Rules(admission.validating_policy),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): Rules(admission.validating_binding),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): Rules(admission.validating_configuration),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Rules(definitions.definition, definitions.definition_update),
    ("apiregistration.k8s.io", "APIService"): Rules(access.api_service),
    ("autoscaling", "HorizontalPodAutoscaler"): Rules(autoscaling.autoscaler),
    ("certificates.k8s.io", "CertificateSigningRequest"): Rules(
        access.certificate_request, access.certificate_request_update
    ),
    ("coordination.k8s.io", "Lease"): Rules(access.lease),
    ("discovery.k8s.io", "EndpointSlice"): Rules(services.endpoint_slice, services.endpoint_slice_update),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): Rules(flowcontrol.flow_schema),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): Rules(flowcontrol.priority_level),
    ("networking.k8s.io", "IPAddress"): Rules(networking.ip_address, networking.ip_address_update),
    ("networking.k8s.io", "Ingress"): Rules(networking.ingress, None, services.balancer_status),
    ("networking.k8s.io", "IngressClass"): Rules(networking.ingress_class, networking.ingress_class_update),
    ("networking.k8s.io", "NetworkPolicy"): Rules(networking.network_policy),
    ("networking.k8s.io", "ServiceCIDR"): Rules(networking.service_cidr, networking.service_cidr_update),
    ("node.k8s.io", "RuntimeClass"): Rules(access.runtime_class, access.runtime_class_update),
    ("policy", "PodDisruptionBudget"): Rules(access.pod_disruption_budget, None, access.budget_status),
    ("rbac.authorization.k8s.io", "ClusterRole"): Rules(access.cluster_role),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): Rules(
        access.cluster_role_binding, access.cluster_role_binding_update
    ),
    ("rbac.authorization.k8s.io", "Role"): Rules(access.role),
    ("rbac.authorization.k8s.io", "RoleBinding"): Rules(access.role_binding, access.role_binding_update),
    ("resource.k8s.io", "DeviceClass"): Rules(devices.device_class),
    ("resource.k8s.io", "ResourceClaim"): Rules(devices.claim, devices.claim_update),
    ("resource.k8s.io", "ResourceClaimTemplate"): Rules(devices.claim_template, devices.claim_update),
    ("resource.k8s.io", "ResourceSlice"): Rules(devices.resource_slice),
    ("scheduling.k8s.io", "PriorityClass"): Rules(access.priority_class, access.priority_class_update),
    ("storage.k8s.io", "CSIDriver"): Rules(storage_kinds.csi_driver_kind, storage_kinds.csi_driver_update),
    ("storage.k8s.io", "CSINode"): Rules(storage_kinds.csi_node, storage_kinds.csi_node_update),
    ("storage.k8s.io", "CSIStorageCapacity"): Rules(
        storage_kinds.storage_capacity, storage_kinds.storage_capacity_update
    ),
    ("storage.k8s.io", "StorageClass"): Rules(storage_kinds.storage_class, storage_kinds.storage_class_update),
    ("storage.k8s.io", "VolumeAttachment"): Rules(
        storage_kinds.volume_attachment, storage_kinds.volume_attachment_update
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): Rules(
        storage_kinds.attributes_class, storage_kinds.attributes_class_update
    ),
}

Validate = Callable[[Tree, Tree | None], list[FieldError]]


def validator(group: str, kind: str) -> Validate | None:
    """The compiled validation of a kind; None for one without rules."""
    rules = RULES.get((group, kind))
    if rules is None:
        return None
    create, update, status = rules.create, rules.update or rules.create, rules.status

    def validate(new: Tree, old: Tree | None) -> list[FieldError]:
        report = Report(old)
        if old is None:
            create(new, "", report)
            return report
        update(new, "", report)
        if status is not None and new.get("status") != old.get("status"):
            status(new, "", report)
        return report

    return validate
