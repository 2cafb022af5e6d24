"""Options: a command line, parsed and validated. Nothing below this package reads flags or the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from fastapi_core.obs.logs import FORMATS
from fastapi_core.options import (
    admission,
    aggregation,
    audit,
    authentication,
    authorization,
    etcd,
    features,
    flowcontrol,
    gates,
    inert,
    serving,
)
from fastapi_core.options.flags import Flag, OptionsError, flags_of, parse, shown
from fastapi_core.options.groups import GROUPS, Generic, Kubelet, Logging, Network, Storage
from fastapi_core.records import dataclass


@dataclass(slots=True)
class Options:
    """Every setting of a server; made by `Options.parse`, or filled by hand in tests."""

    serving: serving.Serving = field(default_factory=serving.Serving)
    generic: Generic = field(default_factory=Generic)
    storage: Storage = field(default_factory=Storage)
    etcd: etcd.Etcd = field(default_factory=etcd.Etcd)
    authentication: authentication.Authentication = field(default_factory=authentication.Authentication)
    authorization: authorization.Authorization = field(default_factory=authorization.Authorization)
    audit: audit.Audit = field(default_factory=audit.Audit)
    flowcontrol: flowcontrol.FlowControl = field(default_factory=flowcontrol.FlowControl)
    admission: admission.Admission = field(default_factory=admission.Admission)
    aggregation: aggregation.Aggregation = field(default_factory=aggregation.Aggregation)
    kubelet: Kubelet = field(default_factory=Kubelet)
    network: Network = field(default_factory=Network)
    features: features.Features = field(default_factory=features.Features)
    logging: Logging = field(default_factory=Logging)
    inert: dict[str, Any] = field(default_factory=dict)
    """Flags that were given and change nothing, with their values."""

    @property
    def gates(self) -> gates.Gates:
        """The feature gates; GateError unless the options are valid."""
        return gates.parse(self.features.feature_gates)

    def shown(self) -> dict[str, str]:
        """Every flag of the command line and of the reference with the text of its value, for /flagz."""
        known = flags()
        found = {name: shown(f.kind, getattr(getattr(self, f.group), f.attribute)) for name, f in known.items()}
        for name, quiet in inert.inert(known).items():
            given = self.inert.get(name)
            found[name] = quiet.default if given is None else shown(quiet.kind, given)
        return found

    @classmethod
    def parse(cls, arguments: Iterable[str]) -> Options:
        """Read and check a command line (behind the subcommand). Raises OptionsError with all errors."""
        table = flags()
        parsed = parse(arguments, table, inert.inert(table))
        options = cls(inert=parsed.inert)
        for name, value in parsed.values.items():
            setattr(getattr(options, table[name].group), table[name].attribute, value)
        wrong = [*parsed.errors, *options.validate()]
        if wrong:
            raise OptionsError(wrong)
        return options

    def validate(self) -> list[str]:
        """Everything that is wrong, each line with the flag and the fix."""
        return [
            *serving.check(self.serving),
            *check_generic(self.generic),
            *_check_network(self.network),
            *_check_kubelet(self.kubelet),
            *etcd.check(self.etcd),
            *authentication.check(self.authentication),
            *authorization.check(self.authorization),
            *audit.check(self.audit),
            *flowcontrol.check(self.flowcontrol, self.generic),
            *admission.check(self.admission),
            *aggregation.check(self.aggregation),
            *features.check(self.features),
            *_check_files(self),
            *_check_rest(self),
        ]


def flags() -> dict[str, Flag]:
    """All flags with an effect, by name."""
    return flags_of(GROUPS)


def usage() -> str:
    """Help text, made from the flags."""
    quiet = len(inert.inert(flags()))
    return f"{described(GROUPS)}\n\n{quiet} further flags of kube-apiserver are accepted without effect."


def described(groups: Mapping[str, type]) -> str:
    """Help text of the flags of some groups."""
    lines: list[str] = []
    heading = ""
    for name, known in sorted(flags_of(groups).items(), key=lambda item: (list(groups).index(item[1].group), item[0])):
        if known.group != heading:
            heading = known.group
            lines += ["", f"{heading.capitalize()} flags:"]
        tail = "" if known.default in ("", (), False) else f" (default {_shown(known.default)})"
        lines.append(f"  --{name} {'' if known.kind.is_bool else known.kind.name}".rstrip())
        lines.append(f"      {known.help}{tail}")
    return "\n".join(lines).lstrip("\n")


def _shown(value: Any) -> str:
    return f"{value:g}s" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def check_generic(generic: Generic) -> list[str]:
    wrong = []
    for name, number in (
        ("max-requests-inflight", generic.max_requests_inflight),
        ("max-mutating-requests-inflight", generic.max_mutating_requests_inflight),
        ("min-request-timeout", generic.min_request_timeout),
        ("shutdown-delay-duration", generic.shutdown_delay_duration),
        ("shutdown-watch-termination-grace-period", generic.shutdown_watch_termination_grace_period),
        ("livez-grace-period", generic.livez_grace_period),
    ):
        if number < 0:
            wrong.append(f"--{name}: cannot be negative, use 0 or more")
    if generic.request_timeout <= 0:
        wrong.append("--request-timeout: must be longer than nothing, use for example 1m")
    for pattern in generic.cors_allowed_origins:
        try:
            re.compile(pattern)
        except re.error as error:
            wrong.append(f"--cors-allowed-origins: {pattern!r} is not a regular expression ({error})")
        else:
            if not (pattern.startswith(("^", "//")) or "://" in pattern):
                fix = "anchor it: ^https://host$ or //host$"
                wrong.append(f"--cors-allowed-origins: {pattern!r} matches anywhere in an origin, {fix}")
    for directive in generic.strict_transport_security_directives:
        if not re.fullmatch(r"max-age=\d+|includeSubDomains|preload", directive):
            known = "max-age=SECONDS, includeSubDomains, preload"
            wrong.append(f"--strict-transport-security-directives: {directive!r} is none of {known}")
    return wrong


_RECONCILERS = ("lease", "master-count", "none")


def _check_network(network: Network) -> list[str]:
    import ipaddress

    wrong, families = [], []
    own_port = network.kubernetes_service_node_port
    ranges = network.service_cluster_ip_range.split(",")
    for text in ranges:
        try:
            families.append(ipaddress.ip_network(text.strip(), strict=False).version)
        except ValueError:
            wrong.append(f"--service-cluster-ip-range: {text!r} is not a CIDR, use for example 10.0.0.0/24")
    if len(ranges) > 2 or len(set(families)) < len(families):
        wrong.append("--service-cluster-ip-range: at most one CIDR of each IP family, as in 10.0.0.0/24,fd00::/108")
    first, _, last = network.service_node_port_range.partition("-")
    numbers = first.isdecimal() and last.isdecimal()
    if not numbers or not 1 <= int(first) <= int(last) <= 65535:
        given = network.service_node_port_range
        wrong.append(f"--service-node-port-range: {given!r} is not a range of ports, use for example 30000-32767")
    elif own_port and not int(first) <= own_port <= int(last):
        given = network.service_node_port_range
        wrong.append(f"--kubernetes-service-node-port: must be in --service-node-port-range, {given}")
    if network.endpoint_reconciler_type not in _RECONCILERS:
        given = network.endpoint_reconciler_type
        wrong.append(f"--endpoint-reconciler-type: {given!r} is none of {', '.join(_RECONCILERS)}")
    return wrong


_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


def _check_kubelet(kubelet: Kubelet) -> list[str]:
    wrong = []
    if bool(kubelet.kubelet_client_certificate) != bool(kubelet.kubelet_client_key):
        lacking = "kubelet-client-key" if kubelet.kubelet_client_certificate else "kubelet-client-certificate"
        wrong.append(f"--{lacking}: is needed too, certificate and key come together")
    for kind in kubelet.kubelet_preferred_address_types:
        if kind not in _ADDRESS_TYPES:
            wrong.append(f"--kubelet-preferred-address-types: {kind!r} is none of {', '.join(_ADDRESS_TYPES)}")
    return wrong


def _check_files(options: Options) -> list[str]:
    wrong = []
    for name, path in (
        ("tls-cert-file", options.serving.tls_cert_file),
        ("tls-private-key-file", options.serving.tls_private_key_file),
        ("client-ca-file", options.authentication.client_ca_file),
        ("token-auth-file", options.authentication.token_auth_file),
        ("service-account-signing-key-file", options.authentication.service_account_signing_key_file),
        ("kubelet-certificate-authority", options.kubelet.kubelet_certificate_authority),
        ("kubelet-client-certificate", options.kubelet.kubelet_client_certificate),
        ("kubelet-client-key", options.kubelet.kubelet_client_key),
        *(("tls-sni-cert-key", path) for cert, key, _ in options.serving.tls_sni_cert_key for path in (cert, key)),
    ):
        if path and not os.access(path, os.R_OK):
            found = os.path.exists(path)
            reason = "cannot be read, check its permissions" if found else "does not exist, check the path"
            wrong.append(f"--{name}: {path!r} {reason}")
    return wrong


def _check_rest(options: Options) -> list[str]:
    wrong = []
    given = options.aggregation.proxy_client_cert_file or options.authentication.requestheader_client_ca_file
    if options.aggregation.aggregator_make_proxy_certificate and given:
        wrong.append(
            "--aggregator-make-proxy-certificate: makes what --proxy-client-cert-file and --requestheader-client-ca-file name, "
            "leave these out"
        )
    if options.logging.logging_format not in FORMATS:
        wrong.append(f"--logging-format: {options.logging.logging_format!r} is none of {', '.join(FORMATS)}")
    if options.storage.event_ttl <= 0:
        wrong.append("--event-ttl: must be longer than nothing, use for example 1h")
    path = options.storage.data_dir
    if path and os.path.exists(path) and not os.path.isdir(path):
        wrong.append(f"--data-dir: {path!r} is a file, give a directory (it is made when it does not exist)")
    return wrong
