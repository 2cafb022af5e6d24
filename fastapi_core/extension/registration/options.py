"""Flags of `register` and `unregister`."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass

from fastapi_core.extension.description import Description, GroupVersion
from fastapi_core.options.flags import BOOL, DURATION, INT, MAP, STRING, STRINGS, OptionsError, flag, flags_of, parse

APP_LABEL = "app.kubernetes.io/name"
_ONE_OF = (
    "--selector, --endpoint and --external-name exclude each other: they are three ways to say where the server is"
)


@dataclass(slots=True)
class Common:
    """What both commands have to know."""

    kubeconfig: str = flag(
        "kubeconfig", STRING, "", "Kubeconfig file of the API server; empty: $KUBECONFIG, ~/.kube/config, or as a pod."
    )
    name: str = flag("name", STRING, "", "Name of the Service and the ServiceAccount; empty: that of the extension.")
    namespace: str = flag("namespace", STRING, "", "Their namespace; empty: that of the extension.")
    group_version: tuple[str, ...] = flag(
        "group-version",
        STRINGS,
        (),
        "What is served (metrics.k8s.io/v1beta1), for servers that are no Python extension; they need --name, too.",
    )

    def described(self, description: Description | None) -> Description:
        """What is registered, by the extension and the flags. Raises OptionsError."""
        wrong, versions = [], []
        for text in self.group_version:
            try:
                versions.append(GroupVersion.parse(text))
            except ValueError as error:
                wrong.append(f"--group-version: {error}")
        if description is None and not (versions or wrong):
            wrong.append("--group-version: is needed without an extension, or name one as MODULE:ATTRIBUTE")
        if description is None and not self.name:
            wrong.append("--name: is needed without an extension: the name of the Service")
        if wrong:
            raise OptionsError(wrong)
        given = description or Description(self.name, "default", (), ())
        return Description(
            self.name or given.name,
            self.namespace or given.namespace,
            tuple(versions) or given.versions,
            given.resources,
        )


@dataclass(slots=True)
class Registration(Common):
    """Where the server is, how its certificate is known, and what is made for it."""

    selector: tuple[tuple[str, str], ...] = flag(
        "selector", MAP, (), f"Labels of the server's pods; when nothing says where it is: {APP_LABEL}=NAME."
    )
    endpoint: tuple[str, ...] = flag(
        "endpoint", STRINGS, (), "ADDRESS:PORT of a server outside of pods, may be given several times."
    )
    external_name: str = flag("external-name", STRING, "", "HOST:PORT of a server that has a name.")
    port: int = flag("port", INT, 443, "Port of the Service.")
    target_port: int = flag("target-port", INT, 6443, "Port of the pods (--secure-port of the server).")
    ca_file: str = flag("ca-file", STRING, "", "PEM bundle the serving certificate is verified with.")
    data_dir: str = flag(
        "data-dir", STRING, "", "Data directory of a server that makes its own certificate, instead of --ca-file."
    )
    tls_secret: str = flag(
        "tls-secret",
        STRING,
        "",
        "Make a certificate and keep it in this Secret (kubernetes.io/tls), to be mounted into the pods; instead of "
        "--ca-file.",
    )
    insecure_skip_tls_verify: bool = flag(
        "insecure-skip-tls-verify", BOOL, False, "Do not verify the server at all; for trying things out."
    )
    user: tuple[str, ...] = flag(
        "user", STRINGS, (), "Users who get the rights of the server, too, where it does not run as its ServiceAccount."
    )
    create_namespace: bool = flag("create-namespace", BOOL, False, "Make the namespace, too.")
    roles: bool = flag(
        "roles", BOOL, True, "Let the roles view, edit and admin apply to the resources (aggregated ClusterRoles)."
    )
    print: bool = flag("print", BOOL, False, "Print the objects as YAML and change nothing.")
    force_conflicts: bool = flag(
        "force-conflicts", BOOL, False, "Take fields over from others who have set them to something else."
    )
    timeout: float = flag("timeout", DURATION, 60.0, "How long to wait until the API is available; 0 does not wait.")


@dataclass(slots=True)
class Withdrawal(Common):
    """What is taken back."""

    delete_namespace: bool = flag(
        "delete-namespace",
        BOOL,
        False,
        "Delete a namespace that was made by --create-namespace, with all that is in it.",
    )


def usage(cls: type[Common]) -> str:
    """Help text, made from the flags."""
    lines = []
    for name, known in flags_of({"": cls}).items():
        lines.append(f"  --{name} {'' if known.kind.is_bool else known.kind.name}".rstrip())
        lines.append(f"      {known.help}")
    return "\n".join(lines)


def registration(arguments: Iterable[str]) -> Registration:
    """Read and check the flags. Raises OptionsError with all errors."""
    options = Registration()
    wrong = [*_fill(options, arguments), *_check(options)]
    if wrong:
        raise OptionsError(wrong)
    return options


def withdrawal(arguments: Iterable[str]) -> Withdrawal:
    """Read and check the flags. Raises OptionsError with all errors."""
    options = Withdrawal()
    wrong = _fill(options, arguments)
    if wrong:
        raise OptionsError(wrong)
    return options


def _fill(options: Common, arguments: Iterable[str]) -> list[str]:
    table = flags_of({"": type(options)})
    parsed = parse(arguments, table, {})
    for name, value in parsed.values.items():
        setattr(options, table[name].attribute, value)
    if os.path.exists(options.kubeconfig) and not os.access(options.kubeconfig, os.R_OK):
        parsed.errors.append(f"--kubeconfig: {options.kubeconfig!r} cannot be read, check its permissions")
    return parsed.errors


def _check(options: Registration) -> list[str]:
    wrong = []
    if sum(map(bool, (options.selector, options.endpoint, options.external_name))) > 1:
        wrong.append(_ONE_OF)
    known = sum(map(bool, (options.ca_file, options.data_dir, options.tls_secret, options.insecure_skip_tls_verify)))
    if known == 0:
        wrong.append(
            "--ca-file: the API server has to know whose certificate to expect: --ca-file FILE for a mounted one, --data-dir "
            "DIR for one the server makes itself, --tls-secret NAME to have one made (or --insecure-skip-tls-verify)"
        )
    elif known > 1:
        wrong.append("--ca-file, --data-dir, --tls-secret and --insecure-skip-tls-verify exclude each other")
    for name, port in (("port", options.port), ("target-port", options.target_port)):
        if not 1 <= port <= 65535:
            wrong.append(f"--{name}: {port} is not a port, use 1 to 65535")
    if options.timeout < 0:
        wrong.append("--timeout: cannot be negative, use 0 to wait for nothing")
    for text in options.endpoint:
        try:
            address(text)
        except ValueError as error:
            wrong.append(f"--endpoint: {error}")
    if options.external_name:
        try:
            host_port(options.external_name)
        except ValueError as error:
            wrong.append(f"--external-name: {error}")
    return wrong


def host_port(text: str) -> tuple[str, int]:
    """Both parts of HOST:PORT; ValueError says what is wrong."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise ValueError(f"{text!r} is not HOST:PORT, use for example db.example.com:443")
    return host, int(port)


def address(text: str) -> tuple[str, int]:
    """Both parts of ADDRESS:PORT; ValueError for what cannot stand in an EndpointSlice."""
    host, port = host_port(text)
    try:
        found = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        raise ValueError(f"{host!r} is not an IP address; for names there is --external-name HOST:PORT") from None
    if found.is_loopback:
        raise ValueError(
            f"{found} is a loopback address, which no endpoint may have: use another address of the machine, or "
            f"--external-name localhost:{port}"
        )
    return str(found), port
