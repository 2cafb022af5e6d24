"""Flags of kube-apiserver 1.36 that change nothing here (yet): accepted, so that existing command lines start.

`INERT` tells whether a flag is a switch, which may stand without a value. Those in `PROTECTIVE` ask for protection or
for another store; leaving them out of force is worth a warning instead of a notice.
"""

from __future__ import annotations

_VALUES = """
    admission-control admission-control-config-file allow-metric-labels allow-metric-labels-manifest
    audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait
    audit-log-batch-throttle-burst audit-log-batch-throttle-qps audit-log-format audit-log-maxage
    audit-log-maxbackup audit-log-maxsize audit-log-mode audit-log-path audit-log-truncate-max-batch-size
    audit-log-truncate-max-event-size audit-log-version audit-policy-file audit-webhook-batch-buffer-size
    audit-webhook-batch-max-size audit-webhook-batch-max-wait audit-webhook-batch-throttle-burst
    audit-webhook-batch-throttle-qps audit-webhook-config-file audit-webhook-initial-backoff audit-webhook-mode
    audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size audit-webhook-version
    authorization-config cert-dir
    coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
    coordinated-leadership-retry-period debug-socket-path default-not-ready-toleration-seconds
    default-unreachable-toleration-seconds delete-collection-workers disable-admission-plugins disabled-metrics
    egress-selector-config-file emulated-version enable-admission-plugins encryption-provider-config
    endpoint-reconciler-type etcd-cafile etcd-certfile etcd-compaction-interval etcd-count-metric-poll-period
    etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile etcd-prefix etcd-readycheck-timeout
    etcd-servers etcd-servers-overrides feature-gates goaway-chance http2-max-streams-per-connection
    kubernetes-service-node-port lease-reuse-duration-seconds log-flush-frequency
    log-json-info-buffer-size log-text-info-buffer-size max-connection-bytes-per-sec min-compatibility-version
    peer-advertise-ip peer-advertise-port
    peer-ca-file proxy-client-cert-file proxy-client-key-file
    runtime-config
    service-account-signing-endpoint show-hidden-metrics-for-version
    shutdown-watch-termination-grace-period storage-backend storage-initialization-timeout storage-media-type
    tls-cipher-suites tls-curve-preferences tls-min-version tls-sni-cert-key tracing-config-file vmodule
    watch-cache-sizes
"""
_SWITCHES = """
    aggregator-reject-forwarding-redirect allow-privileged audit-log-batch-throttle-enable audit-log-compress
    audit-log-truncate-enabled audit-webhook-batch-throttle-enable audit-webhook-truncate-enabled
    contention-profiling disable-http2-serving emulation-forward-compatible enable-aggregator-routing
    enable-garbage-collector enable-logs-handler enable-priority-and-fairness
    encryption-provider-config-automatic-reload log-json-split-stream log-text-split-stream profiling
    runtime-config-emulation-forward-compatible
    shutdown-send-retry-after watch-cache permit-address-sharing permit-port-sharing
"""

INERT: dict[str, bool] = dict.fromkeys(_VALUES.split(), False) | dict.fromkeys(_SWITCHES.split(), True)

_PROTECTIVE = """
    admission-control admission-control-config-file audit-log-path audit-policy-file audit-webhook-config-file
    authorization-config egress-selector-config-file enable-admission-plugins
    encryption-provider-config etcd-servers etcd-servers-overrides
    tls-cipher-suites tls-min-version
"""
PROTECTIVE = frozenset(_PROTECTIVE.split())
