"""TLS for the server: contexts built from files, and built again when the files change.

New handshakes use the newest files that could be loaded; connections keep what they were made with. A file that is
broken or half written is reported once and the last good state stays.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fastapi_core.http.ciphers import DEFAULT_CIPHERS, VERSIONS, openssl_ciphers
from fastapi_core.http.plaintext import Handshake
from fastapi_core.obs.files import FileWatcher
from fastapi_core.records import dataclass


@dataclass(frozen=True, slots=True)
class NamedCertificate:
    """A further certificate and the host names it is shown to; without names those in the certificate count."""

    cert: str
    key: str
    names: tuple[str, ...] = ()


class Authorities:
    """CAs of client certificates that are known from somewhere else than files, and who wants to know of other ones."""

    def __init__(self, pem: bytes = b"") -> None:
        self.pem = pem
        self._listeners: list[Callable[[], None]] = []

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` after every change; answers a function that ends it."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def replace(self, pem: bytes) -> None:
        """Other CAs from the next handshake on. Raises ssl.SSLError for a broken bundle, the old one stays then."""
        before, self.pem = self.pem, pem
        if pem == before:
            return
        try:
            for changed in tuple(self._listeners):
                changed()
        except Exception:
            self.pem = before
            raise


@dataclass(frozen=True, slots=True)
class TLSFiles:
    """PEM files and settings of the serving side; the files are reread when they change."""

    cert: str
    key: str
    client_cas: tuple[str, ...] = ()
    """CA bundles whose client certificates are accepted; none: client certificates are not asked for."""
    named: tuple[NamedCertificate, ...] = ()
    """Certificates for clients that name one of these hosts (SNI); all others see `cert`."""
    min_version: str = ""
    """A name of `ciphers.VERSIONS`; empty for TLS 1.2."""
    cipher_suites: tuple[str, ...] = ()
    """Names of `ciphers.KNOWN`; empty for the default ones. Those of TLS 1.3 are fixed."""
    authorities: Authorities | None = None
    """Further CAs whose client certificates are accepted."""

    @property
    def paths(self) -> list[str]:
        """Every file, for those who follow them."""
        return [self.cert, self.key, *self.client_cas, *(p for n in self.named for p in (n.cert, n.key))]


def build_context(
    cert_file: str,
    key_file: str,
    client_ca_files: Sequence[str] = (),
    client_cas: bytes = b"",
    *,
    min_version: str = "",
    cipher_suites: Sequence[str] = (),
) -> ssl.SSLContext:
    """A server context: TLS 1.2 or newer, ALPN http/1.1, a client certificate asked for but not required.

    A certificate the client does send must be signed by one of `client_ca_files` or `client_cas` (PEM); without any none
    is asked for.
    Raises OSError or ssl.SSLError when a file is missing or broken.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ciphers = openssl_ciphers(cipher_suites)
    # Only suites of TLS 1.3 were named: nothing is left to speak 1.2 with.
    newest = ciphers == ""
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if newest else VERSIONS[min_version or "VersionTLS12"]
    context.set_ciphers(ciphers or DEFAULT_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # A resumed session would carry a client certificate past a change of the client CA.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.load_cert_chain(cert_file, key_file)
    for name in client_ca_files:
        context.load_verify_locations(cafile=name)
    if client_cas:
        context.load_verify_locations(cadata=client_cas.decode("ascii", "ignore"))
    # Whatever stands in a bundle is trusted, an intermediate authority without its root, too (as in Go).
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = ssl.CERT_OPTIONAL if client_ca_files or client_cas else ssl.CERT_NONE
    return context


def build(files: TLSFiles) -> ssl.SSLContext:
    """The context of all settings: the default certificate, and the others by the name a client asks for."""

    more = files.authorities.pem if files.authorities is not None else b""

    def context(cert: str, key: str) -> ssl.SSLContext:
        return build_context(
            cert, key, files.client_cas, more, min_version=files.min_version, cipher_suites=files.cipher_suites
        )

    default = context(files.cert, files.key)
    if files.named:
        # Names that were given win over names that stand in certificates; the certificate named first wins.
        by_name: dict[str, ssl.SSLContext] = {}
        made = [(named, context(named.cert, named.key)) for named in files.named]
        for given in (True, False):
            for named, found in made:
                if bool(named.names) == given:
                    for name in named.names or certificate_names(named.cert):
                        by_name.setdefault(name.lower().rstrip("."), found)
        default.sni_callback = _chooser(by_name)
    return default


def _chooser(by_name: dict[str, ssl.SSLContext]) -> Callable[[ssl.SSLObject, str | None, ssl.SSLContext], None]:
    """Gives a handshake the context of the exact name, else of the name with its first label as a wildcard."""

    def choose(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        if name:
            wanted = name.lower().rstrip(".")
            found = by_name.get(wanted) or by_name.get("*." + wanted.partition(".")[2])
            if found is not None:
                connection.context = found

    return choose


def certificate_names(cert_file: str) -> Iterable[str]:
    """DNS names of the first certificate of a PEM file; its common name when it has none. Raises OSError, ValueError."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    with open(cert_file, "rb") as file:
        certificate = x509.load_pem_x509_certificate(file.read())
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return [str(attribute.value) for attribute in common]
    return extension.value.get_values_for_type(x509.DNSName)


class ReloadingContext(ssl.SSLContext):
    """The context given to the event loop; each handshake is made by the newest context behind it."""

    current: ssl.SSLContext

    def __new__(cls, current: ssl.SSLContext) -> ReloadingContext:
        self = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        self.current = current
        return self

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        context = self.current
        context.sslobject_class = Handshake
        made = context.wrap_bio(incoming, outgoing, *args, **kwargs)
        if isinstance(made, Handshake):
            made.outgoing = outgoing
        return made


class ServerTLS:
    """Certificates, keys and client CAs of a server, followed on disk by `watcher`.

    `context` goes to `HTTPServer.start`; `close` ends the following.
    """

    def __init__(self, files: TLSFiles, watcher: FileWatcher) -> None:
        """Load the files; raises OSError, ValueError or ssl.SSLError when they cannot be used."""
        self._files = files
        self._ends = [watcher.follow(files.paths, self.reload)]
        if files.authorities is not None:
            self._ends.append(files.authorities.listen(self.reload))
        self.context = ReloadingContext(build(files))

    def close(self) -> None:
        for end in self._ends:
            end()

    def reload(self) -> None:
        """Load the files again; raises as the constructor does, and the old ones stay in use."""
        self.context.current = build(self._files)
