"""Flags of kube-apiserver 1.36 that change nothing here (yet): accepted, so that existing command lines start.

`INERT` tells whether a flag is a switch, which may stand without a value. Those in `PROTECTIVE` ask for protection or
for another store; leaving them out of force is worth a warning instead of a notice.
"""

from __future__ import annotations

_VALUES = """
    admission-control admission-control-config-file allow-metric-labels allow-metric-labels-manifest
    authentication-config authentication-token-webhook-cache-ttl authentication-token-webhook-config-file
    authentication-token-webhook-version authorization-config cert-dir
    coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
    coordinated-leadership-retry-period debug-socket-path default-not-ready-toleration-seconds
    default-unreachable-toleration-seconds delete-collection-workers disable-admission-plugins disabled-metrics
    egress-selector-config-file emulated-version enable-admission-plugins encryption-provider-config
    endpoint-reconciler-type etcd-cafile etcd-certfile etcd-compaction-interval etcd-count-metric-poll-period
    etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile etcd-prefix etcd-readycheck-timeout
    etcd-servers etcd-servers-overrides feature-gates goaway-chance http2-max-streams-per-connection
    kubernetes-service-node-port lease-reuse-duration-seconds log-flush-frequency
    log-json-info-buffer-size log-text-info-buffer-size max-connection-bytes-per-sec min-compatibility-version
    oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url oidc-required-claim
    oidc-signing-algs oidc-username-claim oidc-username-prefix peer-advertise-ip peer-advertise-port
    peer-ca-file proxy-client-cert-file proxy-client-key-file requestheader-allowed-names
    requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers
    requestheader-uid-headers requestheader-username-headers runtime-config
    service-account-jwks-uri service-account-key-file
    service-account-signing-endpoint show-hidden-metrics-for-version
    shutdown-watch-termination-grace-period storage-backend storage-initialization-timeout storage-media-type
    tls-cipher-suites tls-curve-preferences tls-min-version tls-sni-cert-key tracing-config-file vmodule
    watch-cache-sizes
"""
_SWITCHES = """
    aggregator-reject-forwarding-redirect allow-privileged
    contention-profiling disable-http2-serving emulation-forward-compatible enable-aggregator-routing
    enable-bootstrap-token-auth enable-garbage-collector enable-logs-handler enable-priority-and-fairness
    encryption-provider-config-automatic-reload log-json-split-stream log-text-split-stream profiling
    runtime-config-emulation-forward-compatible service-account-lookup
    shutdown-send-retry-after watch-cache permit-address-sharing permit-port-sharing
"""

INERT: dict[str, bool] = dict.fromkeys(_VALUES.split(), False) | dict.fromkeys(_SWITCHES.split(), True)

_PROTECTIVE = """
    admission-control admission-control-config-file
    authentication-config authentication-token-webhook-config-file authorization-config egress-selector-config-file enable-admission-plugins
    encryption-provider-config etcd-servers etcd-servers-overrides oidc-issuer-url requestheader-client-ca-file
    tls-cipher-suites tls-min-version
"""
PROTECTIVE = frozenset(_PROTECTIVE.split())
