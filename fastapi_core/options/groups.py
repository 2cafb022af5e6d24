"""The flags, by subject. Names and defaults are kube-apiserver's where the meaning is the same.

Subjects with rules of their own have a module each: `authentication.py`, `authorization.py`, ...
"""

from __future__ import annotations

from fastapi_core.options.admission import Admission
from fastapi_core.options.aggregation import Aggregation
from fastapi_core.options.audit import Audit
from fastapi_core.options.authentication import Authentication
from fastapi_core.options.authorization import Authorization
from fastapi_core.options.etcd import Etcd
from fastapi_core.options.features import Features
from fastapi_core.options.flags import BOOL, DURATION, INT, STRING, STRINGS, flag
from fastapi_core.options.flowcontrol import FlowControl
from fastapi_core.options.serving import Serving
from fastapi_core.records import dataclass


@dataclass(slots=True)
class Generic:
    """Limits and timeouts of requests, and shutting down."""

    max_requests_inflight: int = flag(
        "max-requests-inflight", INT, 400, "Reads served at once before further ones get 429; 0 for no limit."
    )
    max_mutating_requests_inflight: int = flag(
        "max-mutating-requests-inflight", INT, 200, "Writes served at once before further ones get 429; 0 for no limit."
    )
    request_timeout: float = flag("request-timeout", DURATION, 60.0, "Time after which a request is answered 504.")
    min_request_timeout: int = flag(
        "min-request-timeout", INT, 1800, "Seconds a watch lasts at least when its client gives no timeout."
    )
    shutdown_delay_duration: float = flag(
        "shutdown-delay-duration", DURATION, 0.0, "Time to go on serving after SIGTERM, with /readyz failing."
    )
    shutdown_send_retry_after: bool = flag(
        "shutdown-send-retry-after",
        BOOL,
        False,
        "While shutting down answer 429 with Retry-After until all is drained.",
    )
    shutdown_watch_termination_grace_period: float = flag(
        "shutdown-watch-termination-grace-period", DURATION, 0.0, "Time over which watches are ended at shutdown."
    )
    livez_grace_period: float = flag(
        "livez-grace-period", DURATION, 0.0, "Time after the start in which /livez overlooks unfinished start hooks."
    )
    cors_allowed_origins: tuple[str, ...] = flag(
        "cors-allowed-origins", STRINGS, (), "Regular expressions of origins that browsers may call from; empty: none."
    )
    strict_transport_security_directives: tuple[str, ...] = flag(
        "strict-transport-security-directives", STRINGS, (), "Directives of the HSTS header, such as max-age=31536000."
    )


@dataclass(slots=True)
class Storage:
    """What is kept and where."""

    data_dir: str = flag(
        "data-dir",
        STRING,
        "",
        "Directory of objects (without --etcd-servers), certificates, admin.kubeconfig; empty: all in memory.",
    )
    event_ttl: float = flag("event-ttl", DURATION, 3600.0, "Time events are kept.")


@dataclass(slots=True)
class Kubelet:
    """How the server reaches the kubelets: logs, exec, port forwarding."""

    kubelet_certificate_authority: str = flag(
        "kubelet-certificate-authority",
        STRING,
        "",
        "PEM bundle that kubelets' certificates are checked with; empty: unchecked.",
    )
    kubelet_client_certificate: str = flag(
        "kubelet-client-certificate", STRING, "", "PEM file of the client certificate shown to kubelets."
    )
    kubelet_client_key: str = flag("kubelet-client-key", STRING, "", "PEM file of its key.")
    kubelet_preferred_address_types: tuple[str, ...] = flag(
        "kubelet-preferred-address-types",
        STRINGS,
        ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"),
        "Kinds of node addresses, the first that a node has is used.",
    )
    kubelet_timeout: float = flag("kubelet-timeout", DURATION, 5.0, "Time to connect to a kubelet.")


@dataclass(slots=True)
class Network:
    """Addresses of services."""

    service_cluster_ip_range: str = flag(
        "service-cluster-ip-range", STRING, "10.0.0.0/24", "CIDR of service addresses, at most one of each IP family."
    )
    service_node_port_range: str = flag("service-node-port-range", STRING, "30000-32767", "Node ports of services.")
    kubernetes_service_node_port: int = flag(
        "kubernetes-service-node-port", INT, 0, "Node port of the kubernetes service; 0: it has none."
    )
    endpoint_reconciler_type: str = flag(
        "endpoint-reconciler-type", STRING, "lease", "lease or master-count keep the endpoints of it; none leaves them."
    )


@dataclass(slots=True)
class Logging:
    """What is logged and how."""

    logging_format: str = flag("logging-format", STRING, "text", "text or json.")
    v: int = flag("v", INT, 0, "Verbosity: 0 is quiet, 4 is debugging.")


GROUPS: dict[str, type] = {
    "serving": Serving,
    "generic": Generic,
    "storage": Storage,
    "etcd": Etcd,
    "authentication": Authentication,
    "authorization": Authorization,
    "audit": Audit,
    "flowcontrol": FlowControl,
    "admission": Admission,
    "aggregation": Aggregation,
    "kubelet": Kubelet,
    "network": Network,
    "features": Features,
    "logging": Logging,
}
