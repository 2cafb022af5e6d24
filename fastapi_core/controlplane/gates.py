"""The admission chain of this server: every enabled plugin, given what it reads and its configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi_core.admission.chain import AdmissionChain, Plugin
from fastapi_core.admission.objects import Objects
from fastapi_core.admission.plugins import (
    accounts,
    certificates,
    classes,
    limits,
    namespaces,
    nodes,
    pods,
    simple,
    storage,
)
from fastapi_core.admission.podsecurity.plugin import PodSecurity
from fastapi_core.admission.questions import Questions
from fastapi_core.admission.quota.plugin import ResourceQuota
from fastapi_core.controlplane import bootstrap

if TYPE_CHECKING:
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.obs.catalog import Metrics
    from fastapi_core.options.admission import Admission


def chain(options: Admission, resources: Resources, authorizer: Authorizer, metrics: Metrics) -> AdmissionChain:
    """All enabled plugins in order."""
    makers = _Makers(options, resources, authorizer, metrics).table()
    return AdmissionChain([makers[name]() for name in options.plugins if name in makers], metrics)


class _Makers:
    """How each plugin is made; what only one needs is imported there."""

    def __init__(self, options: Admission, resources: Resources, authorizer: Authorizer, metrics: Metrics) -> None:
        self.options = options
        self.resources = resources
        self.metrics = metrics
        self.questions = Questions(authorizer)
        self._objects: dict[str, Objects] = {}

    def objects(self, prefix: str) -> Objects:
        """What plugins see of a resource, one for all of them; `prefix` below /registry/."""
        known = self._objects.get(prefix)
        if known is None:
            known = self._objects[prefix] = Objects(self.resources.stores[f"/registry/{prefix}/"])
        return known

    def table(self) -> dict[str, Callable[[], Plugin]]:
        see = self.objects
        options = self.options
        toleration = (options.default_not_ready_toleration_seconds, options.default_unreachable_toleration_seconds)
        return {
            "AlwaysAdmit": simple.AlwaysAdmit,
            "NamespaceAutoProvision": self._auto_provision,
            "NamespaceLifecycle": lambda: namespaces.NamespaceLifecycle(see("namespaces")),
            "NamespaceExists": lambda: namespaces.NamespaceExists(see("namespaces")),
            "LimitPodHardAntiAffinityTopology": pods.LimitPodHardAntiAffinityTopology,
            "LimitRanger": lambda: limits.LimitRanger(see("limitranges")),
            "ServiceAccount": lambda: accounts.ServiceAccount(see("serviceaccounts")),
            "TaintNodesByCondition": nodes.TaintNodesByCondition,
            "AlwaysPullImages": pods.AlwaysPullImages,
            "PodSecurity": lambda: PodSecurity(see("namespaces"), see("pods"), None, self.metrics),
            "Priority": lambda: pods.Priority(see("priorityclasses")),
            "DefaultTolerationSeconds": lambda: pods.DefaultTolerationSeconds(*toleration),
            "ExtendedResourceToleration": pods.ExtendedResourceToleration,
            "DefaultStorageClass": lambda: storage.DefaultStorageClass(see("storageclasses")),
            "StorageObjectInUseProtection": storage.StorageObjectInUseProtection,
            "PersistentVolumeClaimResize": lambda: storage.PersistentVolumeClaimResize(see("storageclasses")),
            "RuntimeClass": lambda: classes.RuntimeClass(see("runtimeclasses")),
            "CertificateApproval": lambda: certificates.CertificateApproval(self.questions),
            "CertificateSigning": lambda: certificates.CertificateSigning(self.questions),
            "ClusterTrustBundleAttest": lambda: certificates.ClusterTrustBundleAttest(self.questions),
            "CertificateSubjectRestriction": certificates.CertificateSubjectRestriction,
            "DefaultIngressClass": lambda: classes.DefaultIngressClass(see("ingressclasses")),
            "DenyServiceExternalIPs": simple.DenyServiceExternalIPs,
            "PodTopologyLabels": lambda: pods.PodTopologyLabels(see("minions")),
            "NodeDeclaredFeatureValidator": lambda: nodes.NodeDeclaredFeatureValidator(see("minions")),
            "PodResizeValidator": lambda: nodes.PodResizeValidator(see("minions")),
            "ResourceQuota": lambda: ResourceQuota(see("resourcequotas")),
            "AlwaysDeny": simple.AlwaysDeny,
        }

    def _auto_provision(self) -> Plugin:
        store = self.resources.namespaces
        return namespaces.NamespaceAutoProvision(
            self.objects("namespaces"), lambda name: bootstrap.ensure(store, {"metadata": {"name": name}})
        )
