"""Every flag of kube-apiserver 1.36 with its type and default, so that existing command lines start.

Those that have an effect here are fields of the groups (`groups.py`); the rest is accepted when the value has the right
type, and changes nothing. Those in `PROTECTIVE` ask for protection or for another store; leaving them out of force is
worth a warning instead of a notice.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from fastapi_core.options import flags
from fastapi_core.options.flags import Flag, Kind

#: Type -> flags, each with its default where that is not the type's zero.
_REFERENCE: Mapping[str, str] = {
    "strings": """
        admission-control api-audiences authorization-mode cors-allowed-origins disable-admission-plugins
        disabled-metrics emulated-version enable-admission-plugins etcd-servers etcd-servers-overrides
        kubelet-preferred-address-types=Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP
        min-compatibility-version oidc-signing-algs=RS256 requestheader-allowed-names
        requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers
        requestheader-username-headers strict-transport-security-directives tls-cipher-suites watch-cache-sizes
    """,
    "string": """
        admission-control-config-file allow-metric-labels-manifest audit-log-format=json audit-log-mode=blocking
        audit-log-path audit-log-version=audit.k8s.io/v1 audit-policy-file audit-webhook-config-file
        audit-webhook-mode=batch audit-webhook-version=audit.k8s.io/v1 authentication-config
        authentication-token-webhook-config-file authentication-token-webhook-version=v1beta1 authorization-config
        authorization-policy-file authorization-webhook-config-file authorization-webhook-version=v1beta1
        cert-dir=/var/run/kubernetes client-ca-file debug-socket-path egress-selector-config-file
        encryption-provider-config endpoint-reconciler-type=lease etcd-cafile etcd-certfile etcd-keyfile
        etcd-prefix=/registry external-hostname kubelet-certificate-authority kubelet-client-certificate
        kubelet-client-key logging-format=text oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix
        oidc-issuer-url oidc-username-claim=sub oidc-username-prefix peer-advertise-ip peer-advertise-port
        peer-ca-file proxy-client-cert-file proxy-client-key-file requestheader-client-ca-file
        service-account-jwks-uri service-account-signing-endpoint service-account-signing-key-file
        service-cluster-ip-range show-hidden-metrics-for-version storage-backend
        storage-media-type=application/vnd.kubernetes.protobuf tls-cert-file tls-min-version tls-private-key-file
        token-auth-file tracing-config-file
    """,
    "ip": """
        advertise-address bind-address=0.0.0.0
    """,
    "bool": """
        aggregator-reject-forwarding-redirect=true allow-privileged anonymous-auth=true
        audit-log-batch-throttle-enable audit-log-compress audit-log-truncate-enabled
        audit-webhook-batch-throttle-enable=true audit-webhook-truncate-enabled contention-profiling
        disable-http2-serving emulation-forward-compatible enable-aggregator-routing enable-bootstrap-token-auth
        enable-garbage-collector=true enable-logs-handler enable-priority-and-fairness=true
        encryption-provider-config-automatic-reload log-json-split-stream log-text-split-stream
        permit-address-sharing permit-port-sharing profiling=true runtime-config-emulation-forward-compatible
        service-account-extend-token-expiration=true service-account-lookup=true shutdown-send-retry-after
        watch-cache=true
    """,
    "stringToString": """
        allow-metric-labels
    """,
    "int": """
        audit-log-batch-buffer-size=10000 audit-log-batch-max-size=1 audit-log-batch-throttle-burst
        audit-log-maxage=366 audit-log-maxbackup=100 audit-log-maxsize=100
        audit-log-truncate-max-batch-size=10485760 audit-log-truncate-max-event-size=102400
        audit-webhook-batch-buffer-size=10000 audit-webhook-batch-max-size=400 audit-webhook-batch-throttle-burst=15
        audit-webhook-truncate-max-batch-size=10485760 audit-webhook-truncate-max-event-size=102400
        default-not-ready-toleration-seconds=300 default-unreachable-toleration-seconds=300
        delete-collection-workers=1 http2-max-streams-per-connection kubernetes-service-node-port
        lease-reuse-duration-seconds=60 max-connection-bytes-per-sec max-mutating-requests-inflight=200
        max-requests-inflight=400 min-request-timeout=1800 secure-port=6443
    """,
    "duration": """
        audit-log-batch-max-wait audit-webhook-batch-max-wait=30s audit-webhook-initial-backoff=10s
        authentication-token-webhook-cache-ttl=2m0s authorization-webhook-cache-authorized-ttl=5m0s
        authorization-webhook-cache-unauthorized-ttl=30s coordinated-leadership-lease-duration=15s
        coordinated-leadership-renew-deadline=10s coordinated-leadership-retry-period=2s
        etcd-compaction-interval=5m0s etcd-count-metric-poll-period=1m0s etcd-db-metric-poll-interval=30s
        etcd-healthcheck-timeout=2s etcd-readycheck-timeout=2s event-ttl=1h0m0s kubelet-timeout=5s
        livez-grace-period log-flush-frequency=5s request-timeout=1m0s service-account-max-token-expiration
        shutdown-delay-duration shutdown-watch-termination-grace-period storage-initialization-timeout=1m0s
    """,
    "float32": """
        audit-log-batch-throttle-qps audit-webhook-batch-throttle-qps=10
    """,
    "colonSeparatedMultimapStringString": """
        feature-gates
    """,
    "float": """
        goaway-chance
    """,
    "quantity": """
        log-json-info-buffer-size log-text-info-buffer-size
    """,
    "mapStringString": """
        oidc-required-claim runtime-config
    """,
    "stringArray": """
        service-account-issuer service-account-key-file
    """,
    "portRange": """
        service-node-port-range=30000-32767
    """,
    "int32Slice": """
        tls-curve-preferences
    """,
    "namedCertKey": """
        tls-sni-cert-key
    """,
    "Level": """
        v
    """,
    "pattern=N,...": """
        vmodule
    """,
}

_KINDS: Mapping[str, Kind] = {
    "string": flags.STRING,
    "bool": flags.BOOL,
    "int": flags.INT,
    "Level": flags.INT,
    "duration": flags.DURATION,
    "float": flags.FLOAT,
    "float32": flags.FLOAT,
    "ip": flags.IP,
    "strings": flags.STRINGS,
    "stringArray": flags.STRING_ARRAY,
    "quantity": flags.QUANTITY,
    "portRange": flags.PORT_RANGE,
    "int32Slice": flags.INTS,
    "mapStringString": flags.MAP,
    "stringToString": flags.MAP,
    "colonSeparatedMultimapStringString": flags.MAP,
    "namedCertKey": flags.NAMED_CERTS,
    "pattern=N,...": flags.STRING,
}
_ZERO = {"bool": "false", "int": "0", "Level": "0", "duration": "0s", "float": "0", "float32": "0", "quantity": "0"}


def reference() -> dict[str, tuple[str, str]]:
    """Flag -> (type, default as text), of all flags of the reference but --help and --version."""
    found = {}
    for kind, words in _REFERENCE.items():
        for word in words.split():
            name, equals, default = word.partition("=")
            found[name] = kind, default if equals else _ZERO.get(kind, "")
    return found


def inert(effective: Container[str]) -> dict[str, Flag]:
    """The flags of the reference that are not among the effective ones."""
    return {
        name: Flag(name, _KINDS[kind], "", "", "", default)
        for name, (kind, default) in reference().items()
        if name not in effective
    }


_PROTECTIVE = """
    encryption-provider-config etcd-servers-overrides
    service-account-signing-endpoint tls-curve-preferences
"""
PROTECTIVE = frozenset(_PROTECTIVE.split())
