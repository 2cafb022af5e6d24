"""Flags of serving: where the server listens, and with which certificates."""

from __future__ import annotations

from fastapi_core.options.flags import BOOL, INT, IP, NAMED_CERTS, STRING, STRINGS, flag
from fastapi_core.records import dataclass


@dataclass(slots=True)
class Serving:
    """Where and how the server listens."""

    bind_address: str = flag("bind-address", IP, "0.0.0.0", "IP address to listen on; 0.0.0.0 or :: for all.")
    secure_port: int = flag("secure-port", INT, 6443, "Port for HTTPS; 0 takes any free port.")
    tls_cert_file: str = flag(
        "tls-cert-file", STRING, "", "PEM file of the serving certificate and its chain; empty: one is generated."
    )
    tls_private_key_file: str = flag("tls-private-key-file", STRING, "", "PEM file of the key of --tls-cert-file.")
    tls_sni_cert_key: tuple[tuple[str, str, tuple[str, ...]], ...] = flag(
        "tls-sni-cert-key",
        NAMED_CERTS,
        (),
        "Certificate, key and host names (CERT,KEY:*.example.com,example.com) for clients that ask for one of the names; "
        "without names those of the certificate. May be given several times.",
    )
    tls_min_version: str = flag(
        "tls-min-version", STRING, "", "VersionTLS12 or VersionTLS13; older ones are known and never offered."
    )
    tls_cipher_suites: tuple[str, ...] = flag(
        "tls-cipher-suites", STRINGS, (), "Cipher suites of TLS 1.2, by Go's names; those of TLS 1.3 are fixed."
    )
    permit_port_sharing: bool = flag(
        "permit-port-sharing", BOOL, False, "Let several processes listen on the port (SO_REUSEPORT)."
    )
    permit_address_sharing: bool = flag(
        "permit-address-sharing", BOOL, False, "Listen although old connections linger (SO_REUSEADDR): always on."
    )
    max_connections: int = flag(
        "max-connections", INT, 0, "Connections served at once; 0 for as many as there may be open files."
    )
    max_stream_backlog_mib: int = flag(
        "max-stream-backlog-mib",
        INT,
        256,
        "MiB that all watches and other streams together may owe clients that do not read; those that owe most are cut. "
        "0 for no limit.",
    )
    external_hostname: str = flag(
        "external-hostname", STRING, "", "Further host name of the server, put into its certificate."
    )
    advertise_address: str = flag(
        "advertise-address", IP, "", "IP address clients reach the server by, put into its certificate."
    )


def check(serving: Serving) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    from fastapi_core.http.ciphers import KNOWN, VERSIONS

    wrong = []
    if not 0 <= serving.secure_port <= 65535:
        wrong.append(f"--secure-port: {serving.secure_port} is not a port, use 1 to 65535, or 0 for any free port")
    if serving.max_connections < 0:
        wrong.append("--max-connections: cannot be negative, use 0 for as many as there may be open files")
    if serving.max_stream_backlog_mib < 0:
        wrong.append("--max-stream-backlog-mib: cannot be negative, use 0 for no limit")
    if not serving.bind_address:
        wrong.append("--bind-address: '' is not an IP address, use for example 127.0.0.1")
    if bool(serving.tls_cert_file) != bool(serving.tls_private_key_file):
        lacking = "tls-private-key-file" if serving.tls_cert_file else "tls-cert-file"
        wrong.append(f"--{lacking}: is needed too, certificate and key come together")
    if serving.tls_min_version and serving.tls_min_version not in VERSIONS:
        known = ", ".join(sorted(VERSIONS))
        wrong.append(f'--tls-min-version: unknown tls version "{serving.tls_min_version}", it is one of {known}')
    for suite in serving.tls_cipher_suites:
        if suite not in KNOWN:
            wrong.append(f"--tls-cipher-suites: Cipher suite {suite} not supported or doesn't exist")
    return wrong


def explain(error: Exception, serving: Serving, store: str = "data-dir") -> str:
    """A failed start in terms of flags, where it was one of them. `store` is the one that says where objects are."""
    import errno

    from fastapi_core.storage.interface import StorageError

    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"--secure-port: {serving.secure_port} is taken, choose another, or 0 for any free port"
    if isinstance(error, OSError) and error.errno == errno.EACCES:
        return f"--secure-port: {serving.secure_port} may not be used by this user, choose one above 1023"
    if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
        return f"--bind-address: {serving.bind_address} is no address of this machine, use 0.0.0.0 or 127.0.0.1"
    if isinstance(error, StorageError):
        return f"--{store}: {error}"
    return str(error)
