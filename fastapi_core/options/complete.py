"""From options to what a server is made of: directories, certificates, authenticators, ServerConfig."""

from __future__ import annotations

import os
import resource
from contextlib import suppress

from fastapi_core.authn.base import MASTERS
from fastapi_core.authz.base import AlwaysAllow, PrivilegedGroup
from fastapi_core.http.tls import NamedCertificate
from fastapi_core.obs import logs
from fastapi_core.obs.catalog import Metrics
from fastapi_core.options import credentials
from fastapi_core.options.audit import auditor
from fastapi_core.options.certificates import FRONT_PROXY, CertificatesError, Pki, ensure, front_proxy
from fastapi_core.options.flags import OptionsError
from fastapi_core.options.gates import ACTING, KNOWN
from fastapi_core.options.inert import PROTECTIVE
from fastapi_core.options.kubeconfig import server_url, write_kubeconfig
from fastapi_core.options.options import Options
from fastapi_core.records import dataclass
from fastapi_core.server.config import ServerConfig, TLSFiles

log = logs.get("options")

#: More open files than this are not asked for.
_OPEN_FILES = 65_536
_OWN_FILES = 128
_PROXY_FOLDER = "front-proxy"
"""Below the certificates: those of --aggregator-make-proxy-certificate."""

LOGS_DIRECTORY = "/var/log"
"""What --enable-logs-handler serves."""

SERVICE_NAMES = (
    "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
)  # fmt: skip


@dataclass(slots=True)
class Completed:
    """Everything the composition needs. `close` removes what only this run needed."""

    options: Options
    config: ServerConfig
    credentials: credentials.Credentials
    pki: Pki
    home: str
    """Directory of certificates and admin.kubeconfig: the data directory, or a temporary one."""
    temporary: bool

    @property
    def data_dir(self) -> str | None:
        """Where objects are kept; None keeps them in memory."""
        return None if self.temporary else self.home

    @property
    def kubeconfig(self) -> str:
        return os.path.join(self.home, "admin.kubeconfig")

    def url(self, port: int) -> str:
        return server_url(self.options.serving.bind_address, port)

    def external_url(self, port: int) -> str:
        """How others reach this server, as far as the flags tell."""
        serving = self.options.serving
        host = serving.external_hostname or serving.advertise_address
        return server_url(host, port) if host else self.url(port)

    def write_kubeconfig(self, port: int) -> str:
        """Write the admin's kubeconfig once the port is known; answers its path."""
        write_kubeconfig(self.kubeconfig, self.pki, self.url(port), self.options.serving.tls_cert_file)
        return self.kubeconfig

    def renew(self, port: int) -> None:
        """Renew what expires soon, as a start would. Raises OSError, OptionsError."""
        try:
            ensure(self.pki.directory, *_names(self.options))
            if self.options.aggregation.aggregator_make_proxy_certificate:
                front_proxy(os.path.join(self.pki.directory, _PROXY_FOLDER))
        except CertificatesError as error:
            raise OptionsError([str(error)]) from None
        self.write_kubeconfig(port)

    def close(self) -> None:
        if self.temporary:
            _remove(self.home)


def complete(options: Options) -> Completed:
    """Prepare a server. Raises OptionsError for files and directories that cannot be used."""
    temporary = not options.storage.data_dir
    if temporary:
        import tempfile

        home = tempfile.mkdtemp(prefix="fastapi-core-")
    else:
        home = os.path.abspath(options.storage.data_dir)
        try:
            os.makedirs(home, mode=0o700, exist_ok=True)
        except OSError as error:
            raise OptionsError([f"--data-dir: {home!r} cannot be made ({error.strerror})"]) from None
    try:
        pki = ensure(os.path.join(home, "pki"), *_names(options))
        if options.aggregation.aggregator_make_proxy_certificate:
            _own_front_proxy(options, os.path.join(home, "pki", _PROXY_FOLDER))
        known = credentials.load(options, pki)
        config = _config(options, pki, known)
    except (OSError, CertificatesError, OptionsError) as error:
        if temporary:
            _remove(home)
        if isinstance(error, OptionsError):
            raise
        raise OptionsError([f"--data-dir: {error}"]) from None
    _announce(options)
    return Completed(options, config, known, pki, home, temporary)


def _remove(home: str) -> None:
    import shutil

    shutil.rmtree(home, ignore_errors=True)


def _names(options: Options) -> tuple[list[str], list[str]]:
    """Names and addresses the serving certificate is for."""
    import ipaddress
    import socket

    names = ["localhost", *SERVICE_NAMES]
    addresses = ["127.0.0.1", "::1"]
    for given in (socket.gethostname(), options.serving.external_hostname, options.serving.advertise_address):
        if given:
            try:
                addresses.append(str(ipaddress.ip_address(given)))
            except ValueError:
                names.append(given.lower())
    bind = ipaddress.ip_address(options.serving.bind_address)
    if not bind.is_unspecified:
        addresses.append(str(bind))
    for text in options.network.service_cluster_ip_range.split(","):
        addresses.append(str(ipaddress.ip_network(text.strip(), strict=False)[1]))
    return names, addresses


def _own_front_proxy(options: Options, directory: str) -> None:
    """What kubeadm sets up: a CA that signs proxies and nothing else, one proxy, the usual headers."""
    pki = front_proxy(directory)
    who = options.authentication
    options.aggregation.proxy_client_cert_file = pki.proxy_cert
    options.aggregation.proxy_client_key_file = pki.proxy_key
    who.requestheader_client_ca_file = pki.ca
    who.requestheader_allowed_names = (FRONT_PROXY,)
    who.requestheader_username_headers = who.requestheader_username_headers or ("X-Remote-User",)
    who.requestheader_uid_headers = who.requestheader_uid_headers or ("X-Remote-Uid",)
    who.requestheader_group_headers = who.requestheader_group_headers or ("X-Remote-Group",)
    who.requestheader_extra_headers_prefix = who.requestheader_extra_headers_prefix or ("X-Remote-Extra-",)


def _config(options: Options, pki: Pki, known: credentials.Credentials) -> ServerConfig:
    serving, generic, who = options.serving, options.generic, options.authentication
    client_cas = tuple(path for path in (pki.ca, who.client_ca_file, who.requestheader_client_ca_file) if path)
    metrics = _metrics(options)
    return ServerConfig(
        audit=auditor(options.audit, metrics),
        # What needs no store, until the composition has opened it and asks those of the options.
        authenticator=known.union([known.static_tokens()])[0],
        authorizer=AlwaysAllow() if options.authorization.open else PrivilegedGroup(MASTERS),
        metrics=metrics,
        tls=TLSFiles(
            serving.tls_cert_file or pki.serving_cert,
            serving.tls_private_key_file or pki.serving_key,
            client_cas,
            tuple(NamedCertificate(cert, key, names) for cert, key, names in serving.tls_sni_cert_key),
            serving.tls_min_version,
            serving.tls_cipher_suites,
        ),
        share_port=serving.permit_port_sharing,
        bind_address=serving.bind_address,
        port=serving.secure_port,
        request_timeout=generic.request_timeout,
        max_requests_inflight=generic.max_requests_inflight,
        max_mutating_requests_inflight=generic.max_mutating_requests_inflight,
        cors_allowed_origins=generic.cors_allowed_origins,
        strict_transport_security=generic.strict_transport_security_directives,
        shutdown_delay=generic.shutdown_delay_duration,
        send_retry_after=generic.shutdown_send_retry_after,
        watch_grace=generic.shutdown_watch_termination_grace_period,
        profiling=options.features.profiling,
        contention_profiling=options.features.contention_profiling,
        logs_directory=LOGS_DIRECTORY if options.features.enable_logs_handler else "",
        drain_timeout=generic.request_timeout,
        livez_grace_period=generic.livez_grace_period,
        max_connections=serving.max_connections or _affordable_connections(),
        max_stream_backlog=serving.max_stream_backlog_mib << 20,
    )


def _metrics(options: Options) -> Metrics:
    """The metrics the flags leave visible, with the feature gates."""
    metrics = Metrics()
    metrics.registry.hidden = frozenset(options.features.disabled_metrics)
    features = metrics.registry.gauge(
        "kubernetes_feature_enabled", "1 for a feature gate that is on.", ("name", "stage"), stability="BETA"
    )
    gates = options.gates
    for name, gate in KNOWN.items():
        features.labels(name, gate.stage).set(float(gates.enabled(name)))
    return metrics


def _affordable_connections() -> int:
    """Raise the limit of open files as far as allowed; connections may use all but what the server itself needs.

    A server that runs into the limit could not even open its own files any more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return max(1, (wanted if soft == resource.RLIM_INFINITY else soft) - _OWN_FILES)


def _announce(options: Options) -> None:
    """Say once which flags were accepted without effect; louder where somebody may rely on them."""
    protective = sorted(set(options.inert) & PROTECTIVE)
    others = sorted(set(options.inert) - PROTECTIVE)
    if protective:
        log.warning("Flags not in force", flags=" ".join("--" + name for name in protective))
    if others:
        log.info("Flags without effect", flags=" ".join("--" + name for name in others))
    idle = sorted(set(options.gates.given) - ACTING)
    if idle:
        log.info("Feature gates without effect", gates=" ".join(idle))
    if options.serving.tls_min_version in ("VersionTLS10", "VersionTLS11"):
        log.warning("TLS before 1.2 is not offered", flag="--tls-min-version")
