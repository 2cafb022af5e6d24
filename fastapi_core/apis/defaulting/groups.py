"""Defaults of the named groups that OpenAPI does not state."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi_core.apis.defaulting.rules import (
    Rule,
    Tree,
    absent,
    empty,
    equals,
    filled,
    fresh,
    has,
    lacks,
    when,
    within,
)
from fastapi_core.meta.names import TEMPLATE_GENERATION

_RETAIN = empty(whenDeleted="Retain", whenScaled="Retain")


def _stateful_strategy(tree: Tree) -> None:
    """The rolling update settings appear only when the strategy was left out altogether."""
    if not tree.get("type"):
        tree["type"] = "RollingUpdate"
        if tree.get("rollingUpdate") is None:
            tree["rollingUpdate"] = {}
    if tree["type"] == "RollingUpdate" and tree.get("rollingUpdate") is not None:
        tree["rollingUpdate"].setdefault("partition", 0)


def _template_generation(tree: Tree) -> None:
    """What the first API versions had in a field is an annotation whenever such an object is read; writers own it."""
    metadata: Tree = tree.setdefault("metadata", {})
    annotations = metadata.get("annotations") or {}
    if TEMPLATE_GENERATION not in annotations:
        metadata["annotations"] = {**annotations, TEMPLATE_GENERATION: "0"}


def _claim_templates(tree: Tree) -> None:
    for claim in tree.get("volumeClaimTemplates") or ():
        if not claim.get("apiVersion"):
            claim["apiVersion"] = "v1"
        if not claim.get("kind"):
            claim["kind"] = "PersistentVolumeClaim"


def _job(tree: Tree) -> None:
    """Jobs only: the job template of a cron job keeps what the user wrote."""
    spec: Tree = tree.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    for rule in _JOB_SPEC:
        rule(spec)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = tree.setdefault("metadata", {})
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)


_JOB_SPEC = (
    absent(parallelism=1),
    when(lacks("backoffLimitPerIndex"), absent(backoffLimit=6)),
    when(has("backoffLimitPerIndex"), absent(backoffLimit=2147483647)),
    absent(completionMode="NonIndexed", suspend=False, manualSelector=False),
    when(has("podFailurePolicy"), absent(podReplacementPolicy="Failed")),
    when(lacks("podFailurePolicy"), absent(podReplacementPolicy="TerminatingOrFailed")),
)

_CPU = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]
_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _scaling(name: str, values: Tree) -> Rule:
    def rule(tree: Tree) -> None:
        rules = tree.get(name)
        if rules is None:
            rules = tree[name] = {}
        for member, value in values.items():
            if rules.get(member) is None:
                rules[member] = fresh(value)

    return rule


def _old_autoscaler(tree: Tree) -> None:
    """The v1 form of the default metric, unless metrics are kept in the annotation."""
    annotations = (tree.get("metadata") or {}).get("annotations") or {}
    spec: Tree = tree.setdefault("spec", {})
    if "autoscaling.alpha.kubernetes.io/metrics" not in annotations:
        spec.setdefault("targetCPUUtilizationPercentage", 80)


def _policy_types(tree: Tree) -> None:
    if not tree.get("policyTypes"):
        tree["policyTypes"] = ["Ingress", "Egress"] if tree.get("egress") else ["Ingress"]


def _definition_names(tree: Tree) -> None:
    """Names of a CustomResourceDefinition's spec; those accepted in its status stay as they are."""
    names: Tree = (tree.get("names") or {}) if "names" in tree else tree.setdefault("names", {})
    kind = names.get("kind") or ""
    if not names.get("singular"):
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = kind + "List"


def _taint(tree: Tree) -> None:
    if tree.get("timeAdded") is None:
        tree["timeAdded"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_DEVICES = (empty(allocationMode="ExactCount"), when(equals("allocationMode", "ExactCount"), empty(count=1)))
_PORT = (absent(port=443),)
_EXEMPT = (absent(nominalConcurrencyShares=0, lendablePercent=0),)
_WEBHOOK = absent(
    failurePolicy="Fail", matchPolicy="Equivalent", namespaceSelector={}, objectSelector={}, timeoutSeconds=10
)

#: Type -> its rules, run before those of its members.
RULES: dict[str, tuple[Rule, ...]] = {
    "apps/v1.DeploymentSpec": (absent(replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600),),
    "apps/v1.DeploymentStrategy": (
        empty(type="RollingUpdate"),
        when(equals("type", "RollingUpdate"), within("rollingUpdate", absent(maxUnavailable="25%", maxSurge="25%"))),
    ),
    "apps/v1.DaemonSet": (_template_generation,),
    "apps/v1.DaemonSetSpec": (absent(revisionHistoryLimit=10),),
    "apps/v1.DaemonSetUpdateStrategy": (
        empty(type="RollingUpdate"),
        when(equals("type", "RollingUpdate"), within("rollingUpdate", absent(maxUnavailable=1, maxSurge=0))),
    ),
    "apps/v1.StatefulSetSpec": (
        empty(podManagementPolicy="OrderedReady"),
        within("persistentVolumeClaimRetentionPolicy", _RETAIN),
        absent(replicas=1, revisionHistoryLimit=10),
        _claim_templates,
    ),
    "apps/v1.StatefulSetUpdateStrategy": (_stateful_strategy,),
    "apps/v1.ReplicaSetSpec": (absent(replicas=1),),
    "batch/v1.Job": (_job,),
    "batch/v1.CronJobSpec": (
        empty(concurrencyPolicy="Allow"),
        absent(suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1),
    ),
    "batch/v1.PodFailurePolicyOnPodConditionsPattern": (empty(status="True"),),
    "autoscaling/v1.HorizontalPodAutoscaler": (_old_autoscaler,),
    "autoscaling/v1.HorizontalPodAutoscalerSpec": (absent(minReplicas=1),),
    "autoscaling/v2.HorizontalPodAutoscalerSpec": (absent(minReplicas=1), empty(metrics=_CPU)),
    "autoscaling/v2.HorizontalPodAutoscalerBehavior": (_scaling("scaleUp", _UP), _scaling("scaleDown", _DOWN)),
    "networking.k8s.io/v1.NetworkPolicyPort": (absent(protocol="TCP"),),
    "networking.k8s.io/v1.NetworkPolicySpec": (_policy_types,),
    "networking.k8s.io/v1.IngressClassParametersReference": (absent(scope="Cluster"),),
    "rbac.authorization.k8s.io/v1.RoleRef": (empty(apiGroup="rbac.authorization.k8s.io"),),
    "rbac.authorization.k8s.io/v1.Subject": (
        when(equals("kind", "User", "Group"), empty(apiGroup="rbac.authorization.k8s.io")),
    ),
    "storage.k8s.io/v1.StorageClass": (absent(reclaimPolicy="Delete", volumeBindingMode="Immediate"),),
    "storage.k8s.io/v1.CSIDriverSpec": (
        absent(
            attachRequired=True,
            podInfoOnMount=False,
            storageCapacity=False,
            fsGroupPolicy="ReadWriteOnceWithFSType",
            requiresRepublish=False,
            seLinuxMount=False,
        ),
        empty(volumeLifecycleModes=["Persistent"]),
    ),
    "scheduling.k8s.io/v1.PriorityClass": (absent(preemptionPolicy="PreemptLowerPriority"),),
    "discovery.k8s.io/v1.EndpointPort": (absent(name="", protocol="TCP"),),
    "admissionregistration.k8s.io/v1.ValidatingWebhook": (_WEBHOOK,),
    "admissionregistration.k8s.io/v1.MutatingWebhook": (_WEBHOOK, absent(reinvocationPolicy="Never")),
    "admissionregistration.k8s.io/v1.Rule": (absent(scope="*"),),
    "admissionregistration.k8s.io/v1.ServiceReference": _PORT,
    "admissionregistration.k8s.io/v1.ValidatingAdmissionPolicySpec": (absent(failurePolicy="Fail"),),
    "admissionregistration.k8s.io/v1.MutatingAdmissionPolicySpec": (absent(failurePolicy="Fail"),),
    "admissionregistration.k8s.io/v1.MatchResources": (
        absent(matchPolicy="Equivalent", namespaceSelector={}, objectSelector={}),
    ),
    "flowcontrol.apiserver.k8s.io/v1.FlowSchemaSpec": (empty(matchingPrecedence=1000),),
    "flowcontrol.apiserver.k8s.io/v1.ExemptPriorityLevelConfiguration": _EXEMPT,
    "flowcontrol.apiserver.k8s.io/v1.LimitedPriorityLevelConfiguration": (
        absent(nominalConcurrencyShares=30, lendablePercent=0),
    ),
    "flowcontrol.apiserver.k8s.io/v1.QueuingConfiguration": (empty(handSize=8, queues=64, queueLengthLimit=50),),
    "resource.k8s.io/v1.ExactDeviceRequest": _DEVICES,
    "resource.k8s.io/v1.DeviceSubRequest": _DEVICES,
    "resource.k8s.io/v1.DeviceTaint": (_taint,),
    "authentication.k8s.io/v1.TokenRequestSpec": (absent(expirationSeconds=3600),),
    "apiextensions.k8s.io/v1.CustomResourceDefinitionSpec": (
        _definition_names,
        absent(conversion={"strategy": "None"}),
    ),
    "apiextensions.k8s.io/v1.ServiceReference": _PORT,
    "apiregistration.k8s.io/v1.ServiceReference": _PORT,
}

#: Older and newer versions of types above, served on demand, with the same rules.
_SAME = {
    "resource.k8s.io/v1beta1": ("DeviceSubRequest", "DeviceTaint"),
    "resource.k8s.io/v1beta2": ("ExactDeviceRequest", "DeviceSubRequest", "DeviceTaint"),
    "resource.k8s.io/v1alpha3": ("DeviceTaint",),
    "admissionregistration.k8s.io/v1beta1": ("MutatingAdmissionPolicySpec", "MatchResources"),
    "admissionregistration.k8s.io/v1alpha1": ("MutatingAdmissionPolicySpec", "MatchResources"),
}
RULES |= {
    f"{group_version}.{name}": RULES[f"{group_version.partition('/')[0]}/v1.{name}"]
    for group_version, names in _SAME.items()
    for name in names
}
RULES["resource.k8s.io/v1beta1.DeviceRequest"] = (when(lambda tree: not tree.get("firstAvailable"), *_DEVICES),)

__all__ = ["RULES", "filled"]
