"""The order in which health checks are listed: the reference's, whoever registers them when."""

from __future__ import annotations

_HOOKS = """
    start-apiserver-admission-initializer generic-apiserver-start-informers priority-and-fairness-config-consumer
    priority-and-fairness-filter max-in-flight-filter storage-object-count-tracker-hook
    start-encryption-provider-config-automatic-reload start-apiextensions-informers start-apiextensions-controllers
    crd-informer-synced start-system-namespaces-controller peer-endpoint-reconciler-controller
    start-cluster-authentication-info-controller start-kube-apiserver-identity-lease-controller
    start-kube-apiserver-identity-lease-garbage-collector storage-readiness start-legacy-token-tracking-controller
    start-service-ip-repair-controllers rbac/bootstrap-roles scheduling/bootstrap-system-priority-classes
    priority-and-fairness-config-producer bootstrap-controller start-kubernetes-service-cidr-controller
    aggregator-reload-proxy-client-cert start-kube-aggregator-informers apiservice-status-local-available-controller
    apiservice-status-remote-available-controller apiservice-registration-controller apiservice-wait-for-first-sync
    apiservice-discovery-controller kube-apiserver-autoregistration
"""

ORDER: tuple[str, ...] = (
    "ping",
    "log",
    "loopback-serving-certificate",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    *(f"poststarthook/{name}" for name in _HOOKS.split()),
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
