"""Flags of aggregation: how API groups that other servers answer for are reached, probed and given up."""

from __future__ import annotations

import os

from fastapi_core.options.flags import BOOL, DURATION, INT, STRING, flag
from fastapi_core.records import dataclass


@dataclass(slots=True)
class Aggregation:
    """Servers behind this one."""

    proxy_client_cert_file: str = flag(
        "proxy-client-cert-file",
        STRING,
        "",
        "PEM file of the certificate that tells aggregated servers who calls them.",
    )
    proxy_client_key_file: str = flag("proxy-client-key-file", STRING, "", "PEM file of its key.")
    aggregator_make_proxy_certificate: bool = flag(
        "aggregator-make-proxy-certificate",
        BOOL,
        False,
        "Make that certificate here, and a CA for it (in DATA_DIR/pki/front-proxy), and set the --requestheader-* flags to "
        "it and to the usual names.",
    )
    enable_aggregator_routing: bool = flag(
        "enable-aggregator-routing", BOOL, False, "Call the ready endpoints of a service instead of its cluster IP."
    )
    aggregator_reject_forwarding_redirect: bool = flag(
        "aggregator-reject-forwarding-redirect", BOOL, True, "Answer 502 instead of an aggregated server's redirects."
    )
    egress_selector_config_file: str = flag(
        "egress-selector-config-file", STRING, "", "File that names the proxy to other networks."
    )
    aggregator_proxy_timeout: float = flag(
        "aggregator-proxy-timeout",
        DURATION,
        0.0,
        "Time for an aggregated server to begin its answer; 0: --request-timeout.",
    )
    aggregator_idle_connections_per_backend: int = flag(
        "aggregator-idle-connections-per-backend", INT, 64, "Connections kept open to an aggregated server."
    )
    aggregator_idle_connection_timeout: float = flag(
        "aggregator-idle-connection-timeout", DURATION, 90.0, "Time after which an unused one of them is closed."
    )
    aggregator_connections_per_backend: int = flag(
        "aggregator-connections-per-backend", INT, 0, "Connections open to an aggregated server at once; 0: no limit."
    )
    aggregator_health_path: str = flag(
        "aggregator-health-path", STRING, "", "Path probed on aggregated servers; empty: that of the group version."
    )
    aggregator_health_period: float = flag(
        "aggregator-health-period", DURATION, 30.0, "Time between two probes of an aggregated server."
    )
    aggregator_health_failures: int = flag(
        "aggregator-health-failures", INT, 1, "Failed probes in a row that make an aggregated server unavailable."
    )
    aggregator_health_successes: int = flag(
        "aggregator-health-successes", INT, 1, "Passed probes in a row that make it available again."
    )
    aggregator_circuit_breaker_failures: int = flag(
        "aggregator-circuit-breaker-failures",
        INT,
        0,
        "Requests in a row an aggregated server must fail for further ones to get 503 at once until a probe passes; 0: off.",
    )
    aggregator_retry_after: int = flag(
        "aggregator-retry-after", INT, 0, "Seconds of the Retry-After told while a server is unavailable; 0: none."
    )


_COUNTS = (
    ("aggregator-idle-connections-per-backend", 0),
    ("aggregator-connections-per-backend", 0),
    ("aggregator-health-failures", 1),
    ("aggregator-health-successes", 1),
    ("aggregator-circuit-breaker-failures", 0),
    ("aggregator-retry-after", 0),
)


def check(group: Aggregation) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    wrong = []
    for name, least in _COUNTS:
        if getattr(group, name.replace("-", "_")) < least:
            wrong.append(f"--{name}: must be at least {least}")
    for name in ("aggregator-health-period", "aggregator-idle-connection-timeout"):
        if getattr(group, name.replace("-", "_")) <= 0:
            wrong.append(f"--{name}: must be longer than nothing, use for example 30s")
    if group.aggregator_proxy_timeout < 0:
        wrong.append("--aggregator-proxy-timeout: cannot be negative, use 0 for none")
    if group.aggregator_health_path and not group.aggregator_health_path.startswith("/"):
        wrong.append(f"--aggregator-health-path: {group.aggregator_health_path!r} must begin with a slash")
    if bool(group.proxy_client_cert_file) != bool(group.proxy_client_key_file):
        lacking = "proxy-client-key-file" if group.proxy_client_cert_file else "proxy-client-cert-file"
        wrong.append(f"--{lacking}: is needed too, certificate and key come together")
    for name in ("proxy-client-cert-file", "proxy-client-key-file", "egress-selector-config-file"):
        path = getattr(group, name.replace("-", "_"))
        if path and not os.access(path, os.R_OK):
            found = os.path.exists(path)
            reason = "cannot be read, check its permissions" if found else "does not exist, check the path"
            wrong.append(f"--{name}: {path!r} {reason}")
    return wrong
