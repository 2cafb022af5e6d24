"""Which rule validates which kind. The modules are loaded by the first object of a kind that they have rules for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from fastapi_core.apis.validation.rules import Report, Rule, Tree
from fastapi_core.errors import FieldError
from fastapi_core.later import later

if TYPE_CHECKING:
    from fastapi_core.apis.validation import (
        access,
        admission,
        admission_policies,
        autoscaling,
        batch,
        definitions,
        device_slices,
        devices,
        events,
        flowcontrol,
        job_status,
        networking,
        pod_status,
        pods,
        quotas,
        services,
        storage,
        storage_kinds,
        workloads,
    )
else:
    access = later("fastapi_core.apis.validation.access")
    admission = later("fastapi_core.apis.validation.admission")
    admission_policies = later("fastapi_core.apis.validation.admission_policies")
    autoscaling = later("fastapi_core.apis.validation.autoscaling")
    batch = later("fastapi_core.apis.validation.batch")
    definitions = later("fastapi_core.apis.validation.definitions")
    device_slices = later("fastapi_core.apis.validation.device_slices")
    devices = later("fastapi_core.apis.validation.devices")
    events = later("fastapi_core.apis.validation.events")
    flowcontrol = later("fastapi_core.apis.validation.flowcontrol")
    job_status = later("fastapi_core.apis.validation.job_status")
    networking = later("fastapi_core.apis.validation.networking")
    pod_status = later("fastapi_core.apis.validation.pod_status")
    pods = later("fastapi_core.apis.validation.pods")
    quotas = later("fastapi_core.apis.validation.quotas")
    services = later("fastapi_core.apis.validation.services")
    storage = later("fastapi_core.apis.validation.storage")
    storage_kinds = later("fastapi_core.apis.validation.storage_kinds")
    workloads = later("fastapi_core.apis.validation.workloads")


class Rules(NamedTuple):
    """The rules of a kind: for a new object, for a change (the same when None), and for a changed status."""

    create: Rule
    update: Rule | None = None
    status: Rule | None = None


RULES: Final[dict[tuple[str, str], Callable[[], Rules]]] = {
    ("", "Pod"): lambda: Rules(pods.pod, pods.pod_update, pod_status.pod_status),
    ("", "PodTemplate"): lambda: Rules(workloads.pod_template_kind),
    ("", "ReplicationController"): lambda: Rules(workloads.replication_controller, None, workloads.replicas_status),
    ("apps", "ControllerRevision"): lambda: Rules(workloads.controller_revision, workloads.controller_revision_update),
    ("apps", "DaemonSet"): lambda: Rules(workloads.daemon_set, workloads.daemon_set_update, workloads.daemon_status),
    ("apps", "Deployment"): lambda: Rules(
        workloads.deployment, workloads.deployment_update, workloads.deployment_status
    ),
    ("apps", "ReplicaSet"): lambda: Rules(
        workloads.replica_set, workloads.replica_set_update, workloads.replicas_status
    ),
    ("apps", "StatefulSet"): lambda: Rules(
        workloads.stateful_set, workloads.stateful_set_update, workloads.stateful_status
    ),
    ("batch", "Job"): lambda: Rules(batch.job, batch.job_update, job_status.job_status),
    ("batch", "CronJob"): lambda: Rules(batch.cron_job),
    ("", "Endpoints"): lambda: Rules(services.endpoints),
    ("", "Event"): lambda: Rules(events.core_event),
    ("events.k8s.io", "Event"): lambda: Rules(events.event, events.event_update),
    ("", "LimitRange"): lambda: Rules(quotas.limit_range),
    ("", "Node"): lambda: Rules(quotas.node, quotas.node_update, quotas.node_status),
    ("", "PersistentVolume"): lambda: Rules(storage.volume, storage.volume_update),
    ("", "PersistentVolumeClaim"): lambda: Rules(storage.claim, storage.claim_update, storage.claim_status),
    ("", "ResourceQuota"): lambda: Rules(
        quotas.resource_quota, quotas.resource_quota_update, quotas.resource_quota_status
    ),
    ("", "Service"): lambda: Rules(services.service, services.service_update, services.service_status),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): lambda: Rules(admission_policies.mutating_policy),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): lambda: Rules(
        admission_policies.mutating_binding
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): lambda: Rules(admission.mutating_configuration),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): lambda: Rules(
        admission_policies.validating_policy, None, admission_policies.validating_policy_status
    ),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): lambda: Rules(
        admission_policies.validating_binding
    ),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): lambda: Rules(
        admission.validating_configuration
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): lambda: Rules(
        definitions.definition, definitions.definition_update
    ),
    ("apiregistration.k8s.io", "APIService"): lambda: Rules(access.api_service, None, access.api_service_status),
    ("autoscaling", "HorizontalPodAutoscaler"): lambda: Rules(
        autoscaling.autoscaler, None, autoscaling.autoscaler_status
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): lambda: Rules(
        access.certificate_request, access.certificate_request_update
    ),
    ("coordination.k8s.io", "Lease"): lambda: Rules(access.lease),
    ("discovery.k8s.io", "EndpointSlice"): lambda: Rules(services.endpoint_slice, services.endpoint_slice_update),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): lambda: Rules(
        flowcontrol.flow_schema, None, flowcontrol.typed_conditions
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): lambda: Rules(
        flowcontrol.priority_level, None, flowcontrol.typed_conditions
    ),
    ("networking.k8s.io", "IPAddress"): lambda: Rules(networking.ip_address, networking.ip_address_update),
    ("networking.k8s.io", "Ingress"): lambda: Rules(networking.ingress, None, services.balancer_status),
    ("networking.k8s.io", "IngressClass"): lambda: Rules(networking.ingress_class, networking.ingress_class_update),
    ("networking.k8s.io", "NetworkPolicy"): lambda: Rules(networking.network_policy),
    ("networking.k8s.io", "ServiceCIDR"): lambda: Rules(networking.service_cidr, networking.service_cidr_update),
    ("node.k8s.io", "RuntimeClass"): lambda: Rules(access.runtime_class, access.runtime_class_update),
    ("policy", "PodDisruptionBudget"): lambda: Rules(access.pod_disruption_budget, None, access.budget_status),
    ("rbac.authorization.k8s.io", "ClusterRole"): lambda: Rules(access.cluster_role),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): lambda: Rules(
        access.cluster_role_binding, access.cluster_role_binding_update
    ),
    ("rbac.authorization.k8s.io", "Role"): lambda: Rules(access.role),
    ("rbac.authorization.k8s.io", "RoleBinding"): lambda: Rules(access.role_binding, access.role_binding_update),
    ("resource.k8s.io", "DeviceClass"): lambda: Rules(devices.device_class),
    ("resource.k8s.io", "ResourceClaim"): lambda: Rules(devices.claim, devices.claim_update, devices.claim_status),
    ("resource.k8s.io", "ResourceClaimTemplate"): lambda: Rules(devices.claim_template, devices.claim_template_update),
    ("resource.k8s.io", "ResourceSlice"): lambda: Rules(device_slices.resource_slice),
    ("scheduling.k8s.io", "PriorityClass"): lambda: Rules(access.priority_class, access.priority_class_update),
    ("storage.k8s.io", "CSIDriver"): lambda: Rules(storage_kinds.csi_driver_kind, storage_kinds.csi_driver_update),
    ("storage.k8s.io", "CSINode"): lambda: Rules(storage_kinds.csi_node, storage_kinds.csi_node_update),
    ("storage.k8s.io", "CSIStorageCapacity"): lambda: Rules(
        storage_kinds.storage_capacity, storage_kinds.storage_capacity_update
    ),
    ("storage.k8s.io", "StorageClass"): lambda: Rules(storage_kinds.storage_class, storage_kinds.storage_class_update),
    ("storage.k8s.io", "VolumeAttachment"): lambda: Rules(
        storage_kinds.volume_attachment,
        storage_kinds.volume_attachment_update,
        storage_kinds.volume_attachment_status,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): lambda: Rules(
        storage_kinds.attributes_class, storage_kinds.attributes_class_update
    ),
}

Validate = Callable[[Tree, Tree | None], list[FieldError]]


def validator(group: str, kind: str) -> Validate | None:
    """The compiled validation of a kind; None for one without rules."""
    rules = RULES.get((group, kind))
    if rules is None:
        return None
    found: Rules | None = None

    def validate(new: Tree, old: Tree | None) -> list[FieldError]:
        nonlocal found
        if found is None:
            found = rules()
        report = Report(old)
        if old is None:
            found.create(new, "", report)
            return report
        (found.update or found.create)(new, "", report)
        if found.status is not None and new.get("status") != old.get("status"):
            found.status(new, "", report)
        return report

    return validate
