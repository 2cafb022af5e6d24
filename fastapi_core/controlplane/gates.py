"""The admission chain of this server: every enabled plugin, given what it reads and its configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from fastapi_core.admission.catalog import OFF
from fastapi_core.admission.chain import AdmissionChain, Plugin
from fastapi_core.later import later

if TYPE_CHECKING:
    from fastapi_core.admission import configuration, objects, questions
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
    from fastapi_core.admission.podsecurity import plugin as podsecurity
    from fastapi_core.admission.policies import mutating, validating
    from fastapi_core.admission.quota import plugin as quota
    from fastapi_core.admission.quota.check import Limited
    from fastapi_core.admission.webhooks import gate
    from fastapi_core.admission.webhooks.hooks import Hooks
    from fastapi_core.admission.webhooks.plugin import Surroundings, WebhookPlugin
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.controlplane import bootstrap
    from fastapi_core.controlplane.resources import Resources
    from fastapi_core.obs.catalog import Metrics
    from fastapi_core.options.admission import Admission
    from fastapi_core.options.options import Options
    from fastapi_core.registry.definition import ResourceDefinition, Tree
    from fastapi_core.rest import defaulting
else:
    configuration = later("fastapi_core.admission.configuration")
    objects = later("fastapi_core.admission.objects")
    questions = later("fastapi_core.admission.questions")
    accounts = later("fastapi_core.admission.plugins.accounts")
    certificates = later("fastapi_core.admission.plugins.certificates")
    classes = later("fastapi_core.admission.plugins.classes")
    limits = later("fastapi_core.admission.plugins.limits")
    namespaces = later("fastapi_core.admission.plugins.namespaces")
    nodes = later("fastapi_core.admission.plugins.nodes")
    pods = later("fastapi_core.admission.plugins.pods")
    simple = later("fastapi_core.admission.plugins.simple")
    storage = later("fastapi_core.admission.plugins.storage")
    podsecurity = later("fastapi_core.admission.podsecurity.plugin")
    mutating = later("fastapi_core.admission.policies.mutating")
    validating = later("fastapi_core.admission.policies.validating")
    quota = later("fastapi_core.admission.quota.plugin")
    gate = later("fastapi_core.admission.webhooks.gate")
    bootstrap = later("fastapi_core.controlplane.bootstrap")
    defaulting = later("fastapi_core.rest.defaulting")

T = TypeVar("T")


#: Plugins that stand behind a feature gate.
_GATES = {
    "PodTopologyLabels": "PodTopologyLabelsAdmission",
    "NodeDeclaredFeatureValidator": "NodeDeclaredFeatures",
    "MutatingAdmissionPolicy": "MutatingAdmissionPolicy",
}


def chain(options: Options, resources: Resources, authorizer: Authorizer, metrics: Metrics) -> AdmissionChain:
    """All enabled plugins in order, made with the first write. What is configured by hand is made, and judged, now."""

    def make() -> list[Plugin]:
        makers = _Makers(options.admission, resources, authorizer, metrics).table()
        shut = {name for name, gate in _GATES.items() if not options.gates.enabled(gate)}
        plugins = [makers[name]() for name in enabled if name in makers and name not in shut]
        for plugin in plugins:
            plugin.follow(made.refresh)
        return plugins

    enabled = options.admission.plugins
    made = AdmissionChain(make, metrics)
    resources.served.listen(made.refresh)
    if options.admission.admission_control_config_file or not OFF.isdisjoint(enabled):
        made.prepare()
    return made


class _Makers:
    """How each plugin is made; what only one needs is imported there."""

    def __init__(self, options: Admission, resources: Resources, authorizer: Authorizer, metrics: Metrics) -> None:
        self.options = options
        self.resources = resources
        self.metrics = metrics
        self.questions = questions.Questions(authorizer)
        self._objects: dict[str, Objects] = {}
        self._sources = _sources(options)

    def configured(self, name: str, read: Callable[[configuration.Source], T]) -> T:
        """A plugin's configuration, as `read` understands it."""
        return read(self._sources.get(name, configuration.Source({}, name, "")))

    def objects(self, prefix: str) -> Objects:
        """What plugins see of a resource, one for all of them; `prefix` below /registry/."""
        known = self._objects.get(prefix)
        if known is None:
            known = self._objects[prefix] = objects.Objects(self.resources.stores[f"/registry/{prefix}/"])
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
            "NodeRestriction": self._node_restriction,
            "ImagePolicyWebhook": self._image_policy,
            "PodSecurity": self._pod_security,
            "PodNodeSelector": self._node_selector,
            "PodTolerationRestriction": self._toleration_restriction,
            "EventRateLimit": self._event_limits,
            "OwnerReferencesPermissionEnforcement": self._owner_rights,
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
            "MutatingAdmissionPolicy": self._mutating_policies,
            "MutatingAdmissionWebhook": self._mutating_webhooks,
            "ValidatingAdmissionPolicy": self._validating_policies,
            "ValidatingAdmissionWebhook": self._validating_webhooks,
            "ResourceQuota": self._quota,
            "AlwaysDeny": simple.AlwaysDeny,
        }

    def _auto_provision(self) -> Plugin:
        store = self.resources.namespaces
        return namespaces.NamespaceAutoProvision(
            self.objects("namespaces"), lambda name: bootstrap.ensure(store, {"metadata": {"name": name}})
        )

    def _pod_security(self) -> Plugin:
        settings = None
        if "PodSecurity" in self._sources:
            from fastapi_core.admission.settings import pod_security

            settings = self.configured("PodSecurity", pod_security)
        return podsecurity.PodSecurity(self.objects("namespaces"), self.objects("pods"), settings, self.metrics)

    def _quota(self) -> Plugin:
        limited: list[Limited] = []
        if "ResourceQuota" in self._sources:
            from fastapi_core.admission.settings import limited_resources

            limited = self.configured("ResourceQuota", limited_resources)
        return quota.ResourceQuota(self.objects("resourcequotas"), limited)

    def _mutating_policies(self) -> Plugin:
        return mutating.MutatingAdmissionPolicy(
            self.objects("mutatingadmissionpolicies"),
            self.objects("mutatingadmissionpolicybindings"),
            self.objects("namespaces"),
            self.resources.served,
            self.questions.authorizer,
            _complete,
            self.resources.conversions.convert,
        )

    def _validating_policies(self) -> Plugin:
        return validating.ValidatingAdmissionPolicy(
            self.objects("validatingadmissionpolicies"),
            self.objects("validatingadmissionpolicybindings"),
            self.objects("namespaces"),
            self.resources.served,
            self.questions.authorizer,
            self.resources.conversions.convert,
            self.metrics,
        )

    def _mutating_webhooks(self) -> Plugin:
        def make() -> WebhookPlugin:
            from fastapi_core.admission.webhooks.mutating import MutatingWebhooks

            return MutatingWebhooks(hooks(), self._surroundings("MutatingAdmissionWebhook"))

        hooks, configurations = self._hooks("mutatingwebhookconfigurations")
        return self._followed(gate.MutatingAdmissionWebhook(configurations, make))

    def _validating_webhooks(self) -> Plugin:
        def make() -> WebhookPlugin:
            from fastapi_core.admission.webhooks.validating import ValidatingWebhooks

            return ValidatingWebhooks(hooks(), self._surroundings("ValidatingAdmissionWebhook"))

        hooks, configurations = self._hooks("validatingwebhookconfigurations")
        return self._followed(gate.ValidatingAdmissionWebhook(configurations, make))

    def _hooks(self, plural: str) -> tuple[Callable[[], Hooks], Objects]:
        configurations = self.objects(plural)

        def make() -> Hooks:
            from fastapi_core.admission.webhooks.hooks import Hooks

            return Hooks(configurations, self.resources.served.equivalents)

        return make, configurations

    def _followed(self, plugin: gate.Gate) -> Plugin:
        self.resources.served.listen(plugin.forget)
        return plugin

    def _surroundings(self, plugin: str) -> Surroundings:
        """What webhooks need; credentials are those of the plugin."""
        from fastapi_core.admission.webhooks import credentials
        from fastapi_core.admission.webhooks.caller import Caller
        from fastapi_core.admission.webhooks.plugin import Surroundings
        from fastapi_core.registry.services import Resolver, Way

        resolver = Resolver(self.resources.backends.services, Way.NEAREST)
        caller = Caller(self.configured(plugin, credentials.read), resolver)
        convert = self.resources.conversions.convert
        authorizer = self.questions.authorizer
        return Surroundings(caller, self.objects("namespaces"), authorizer, self.metrics, convert, _complete)

    def _node_restriction(self) -> Plugin:
        from fastapi_core.admission.plugins.node_restriction import NodeRestriction

        return NodeRestriction(self.objects("pods"), self.objects("minions"), self.questions)

    def _image_policy(self) -> Plugin:
        from fastapi_core.admission.plugins.images import ImagePolicyWebhook, reviewer
        from fastapi_core.admission.settings import image_policy

        policy = self.configured("ImagePolicyWebhook", image_policy)
        return ImagePolicyWebhook(policy, reviewer(policy))

    def _node_selector(self) -> Plugin:
        from fastapi_core.admission.plugins.namespaced_pods import PodNodeSelector
        from fastapi_core.admission.settings import node_selectors

        return PodNodeSelector(self.objects("namespaces"), self.configured("PodNodeSelector", node_selectors))

    def _toleration_restriction(self) -> Plugin:
        from fastapi_core.admission.plugins.namespaced_pods import PodTolerationRestriction
        from fastapi_core.admission.settings import toleration_lists

        lists = self.configured("PodTolerationRestriction", toleration_lists)
        return PodTolerationRestriction(self.objects("namespaces"), *lists)

    def _event_limits(self) -> Plugin:
        from fastapi_core.admission.plugins.events import EventRateLimit
        from fastapi_core.admission.settings import event_limits

        return EventRateLimit(self.configured("EventRateLimit", event_limits))

    def _owner_rights(self) -> Plugin:
        from fastapi_core.admission.plugins.owners import OwnerReferencesPermissionEnforcement

        def find(group: str, version: str, kind: str) -> list[ResourceDefinition]:
            wanted = (group, version, kind)
            return [d for d in self.resources.definitions if (d.group, d.version, d.kind) == wanted]

        return OwnerReferencesPermissionEnforcement(self.questions, find)


def _sources(options: Admission) -> dict[str, configuration.Source]:
    path = options.admission_control_config_file
    if not path:
        return {}
    return configuration.read(path)


def _complete(definition: ResourceDefinition, tree: Tree) -> None:
    """What decoding does to an object: fills in defaults, and drops what a custom resource does not know."""
    defaulting.apply_defaults(definition, tree)
    if definition.form is not None:
        definition.form.prune(tree)
