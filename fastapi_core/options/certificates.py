"""The certificates and the token a server makes for itself: a CA, a serving and an admin certificate, an admin token.

Everything is made on the first start, kept in one directory and used again until it expires soon or the names in it
change. `state.json` is written last and holds what the files must be, so a start that was cut short is noticed. The
cryptography library is imported only when something has to be made: it would dominate the start otherwise.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from fastapi_core.authn.base import MASTERS
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

ADMIN = "kubernetes-admin"
FRONT_PROXY = "front-proxy-client"
_CA_NAME, _PROXY_CA_NAME = "fastapi-core-ca", "fastapi-core-front-proxy-ca"
_DAY = 86400.0
_CA_DAYS, _LEAF_DAYS, _RENEW_DAYS = 3650, 365, 30


class CertificatesError(Exception):
    """Files that cannot be used; the text names them and the way out."""


@dataclass(frozen=True, slots=True)
class Pki:
    """Paths of the files of one directory."""

    directory: str

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    @property
    def ca(self) -> str:
        return self.path("ca.crt")

    @property
    def serving_cert(self) -> str:
        return self.path("apiserver.crt")

    @property
    def serving_key(self) -> str:
        return self.path("apiserver.key")

    @property
    def admin_cert(self) -> str:
        return self.path("admin.crt")

    @property
    def admin_key(self) -> str:
        return self.path("admin.key")

    @property
    def proxy_cert(self) -> str:
        return self.path("proxy.crt")

    @property
    def proxy_key(self) -> str:
        return self.path("proxy.key")

    def admin_token(self) -> str:
        with open(self.path("admin.token"), encoding="ascii") as file:
            return file.read().strip()


def ensure(
    directory: str,
    names: Sequence[str],
    addresses: Sequence[str],
    *,
    subject: str = "kube-apiserver",
    admin: bool = True,
) -> Pki:
    """Make what is missing, expires within 30 days or was made for other names. Raises OSError, CertificatesError.

    `subject` is the common name of the serving certificate; without `admin` nobody can come in by what is made.
    """
    os.makedirs(directory, mode=0o700, exist_ok=True)
    pki = Pki(directory)
    state = _load(pki.path("state.json"))
    wanted = {"names": sorted(set(names)), "addresses": sorted(set(addresses))}
    if admin and not os.path.exists(pki.path("admin.token")):
        write(pki.path("admin.token"), os.urandom(32).hex().encode() + b"\n", 0o600)
    ca_holds = _holds(pki, state.get("ca"))
    serving_holds = ca_holds and _holds(pki, state.get("serving")) and state["serving"].get("for") == wanted
    admin_holds = not admin or (ca_holds and _holds(pki, state.get("admin")))
    if ca_holds and serving_holds and admin_holds:
        return pki
    maker = _Maker(pki, state)
    maker.authority(ca_holds)
    if not serving_holds:
        maker.serving(wanted, subject)
    if not admin_holds:
        maker.admin()
    write(pki.path("state.json"), json.dumps(state, indent=1).encode() + b"\n", 0o600)
    return pki


def front_proxy(directory: str) -> Pki:
    """A CA for front proxies alone, and the certificate and key of one.

    Made and renewed as by `ensure`, with the same errors.
    """
    os.makedirs(directory, mode=0o700, exist_ok=True)
    pki = Pki(directory)
    state = _load(pki.path("state.json"))
    ca_holds = _holds(pki, state.get("ca"))
    if ca_holds and _holds(pki, state.get("proxy")):
        return pki
    maker = _Maker(pki, state, _PROXY_CA_NAME)
    maker.authority(ca_holds)
    maker.proxy()
    write(pki.path("state.json"), json.dumps(state, indent=1).encode() + b"\n", 0o600)
    return pki


def write(path: str, data: bytes, mode: int) -> None:
    """Replace a file atomically; its content is never readable to more people than `mode` allows."""
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _load(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            state = json.load(file)
    except (FileNotFoundError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _holds(pki: Pki, entry: dict[str, Any] | None) -> bool:
    """True when the files are those that were made, and good for another while."""
    if entry is None or entry["expires"] < time.time() + _RENEW_DAYS * _DAY:
        return False
    return all(_digest(pki.path(name)) == digest for name, digest in entry["files"].items())


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return sha256(file.read()).hexdigest()
    except FileNotFoundError:
        return ""


class _Maker:
    """Makes certificates and notes them in `state`."""

    def __init__(self, pki: Pki, state: dict[str, Any], authority: str = _CA_NAME) -> None:
        self._authority = authority
        self._pki = pki
        self._state = state

    def authority(self, holds: bool) -> None:
        """Load the CA, or make one. Only a CA made here is ever replaced, and only when it expires soon."""
        cert_path, key_path = self._pki.ca, self._pki.path("ca.key")
        entry = self._state.get("ca")
        ours = entry is not None and entry["made"] and self._unchanged(entry)
        if os.path.exists(cert_path) and os.path.exists(key_path) and (holds or not ours):
            self._load_authority(cert_path, key_path)
            made = ours
        else:
            self._key = _new_key()
            self._cert = _sign_authority(self._authority, self._key)
            write(key_path, _pem_key(self._key), 0o600)
            write(cert_path, _pem(self._cert), 0o644)
            made = True
        self._note("ca", ["ca.crt", "ca.key"], self._cert)
        self._state["ca"]["made"] = made

    def _unchanged(self, entry: dict[str, Any]) -> bool:
        return all(_digest(self._pki.path(name)) == digest for name, digest in entry["files"].items())

    def _load_authority(self, cert_path: str, key_path: str) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            with open(cert_path, "rb") as file:
                self._cert = x509.load_pem_x509_certificate(file.read())
            with open(key_path, "rb") as file:
                key = load_pem_private_key(file.read(), None)
        except (ValueError, TypeError) as error:
            raise CertificatesError(self._advice(f"is damaged ({error})")) from None
        if not isinstance(key, EllipticCurvePrivateKey) or key.public_key() != self._cert.public_key():
            raise CertificatesError(self._advice("holds a certificate and a key that do not belong together"))
        self._key = key

    def _advice(self, problem: str) -> str:
        way_out = "restore ca.crt and ca.key, or remove the directory for a new CA"
        return f"the CA in {self._pki.directory} {problem}: {way_out}"

    def serving(self, wanted: dict[str, list[str]], subject: str) -> None:
        import ipaddress

        from cryptography import x509

        names: list[x509.GeneralName] = [x509.DNSName(name) for name in wanted["names"]]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in wanted["addresses"]]
        key = _new_key()
        builder = _builder(subject, [], key, _LEAF_DAYS)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        self._leaf("serving", "apiserver", builder, key, server=True)
        self._state["serving"]["for"] = wanted

    def admin(self) -> None:
        key = _new_key()
        self._leaf("admin", "admin", _builder(ADMIN, [MASTERS], key, _LEAF_DAYS), key, server=False)

    def proxy(self) -> None:
        key = _new_key()
        self._leaf("proxy", "proxy", _builder(FRONT_PROXY, [], key, _LEAF_DAYS), key, server=False)

    def _leaf(
        self, entry: str, file: str, builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey, *, server: bool
    ) -> None:
        cert = _sign_leaf(builder, key, self._cert, self._key, server=server)
        write(self._pki.path(f"{file}.key"), _pem_key(key), 0o600)
        write(self._pki.path(f"{file}.crt"), _pem(cert), 0o644)
        self._note(entry, [f"{file}.crt", f"{file}.key"], cert)

    def _note(self, entry: str, files: list[str], cert: x509.Certificate) -> None:
        self._state[entry] = {
            "expires": cert.not_valid_after_utc.timestamp(),
            "files": {name: _digest(self._pki.path(name)) for name in files},
        }


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _builder(name: str, organizations: list[str], key: EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.x509.oid import NameOID

    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
        + [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )
    # Clocks of clients may be behind ours by a little.
    start = datetime.now(UTC) - timedelta(minutes=5)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=sign_certificates, crl_sign=False, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _sign_authority(name: str, key: EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return (
        _builder(name, [], key, _CA_DAYS)
        .issuer_name(issuer)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _sign_leaf(
    builder: x509.CertificateBuilder,
    key: EllipticCurvePrivateKey,
    issuer: x509.Certificate,
    issuer_key: EllipticCurvePrivateKey,
    *,
    server: bool,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID as Usage

    purpose = Usage.SERVER_AUTH if server else Usage.CLIENT_AUTH
    return (
        builder.issuer_name(issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )


def _pem(cert: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return cert.public_bytes(Encoding.PEM)


def _pem_key(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
