"""Which certificate a client sees, and with which versions and suites it may ask."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from fastapi_core.http.ciphers import KNOWN, openssl_ciphers
from fastapi_core.http.tls import (
    Authorities,
    NamedCertificate,
    ServerTLS,
    TLSFiles,
    build,
    build_context,
    certificate_names,
)
from fastapi_core.obs.files import FileWatcher
from tests.unit.http.http_support import Authority


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority("test")
        self.ca = self.authority.write_ca(folder / "ca.pem")

    def pair(self, name: str) -> tuple[str, str]:
        return self.authority.write_pair(self.folder / f"{name}.crt", self.folder / f"{name}.key", name)

    def shown(self, context: ssl.SSLContext, name: str | None) -> str:
        """Common name of the certificate of a handshake in memory."""
        client_context = ssl.create_default_context(cafile=self.ca)
        client_context.check_hostname = False
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = client_context.wrap_bio(to_client, to_server, server_hostname=name)
        server = context.wrap_bio(to_server, to_client, server_side=True)
        for _ in range(4):
            for side in (client, server):
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    continue
        subject = client.getpeercert()
        assert subject is not None
        return str(subject["subject"][0][0][1])  # type: ignore[index]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        (None, "default"), ("elsewhere.org", "default"), ("example.com", "exact"), ("EXAMPLE.com", "exact"),
        ("a.example.com", "wild"), ("b.example.com", "second"), ("a.b.example.com", "default"), ("localhost", "unnamed"),
    ],
)  # fmt: skip
def test_the_certificate_goes_by_the_name(bench: Bench, name: str | None, seen: str) -> None:
    files = TLSFiles(
        *bench.pair("default"),
        named=(
            NamedCertificate(*bench.pair("unnamed")),  # for the names in it: localhost
            NamedCertificate(*bench.pair("wild"), ("*.example.com",)),
            NamedCertificate(*bench.pair("exact"), ("Example.com",)),
            NamedCertificate(*bench.pair("second"), ("b.example.com", "example.com")),
        ),
    )
    assert bench.shown(build(files), name) == seen


def test_names_given_win_over_names_found(bench: Bench) -> None:
    unnamed, given = NamedCertificate(*bench.pair("unnamed")), NamedCertificate(*bench.pair("given"), ("localhost",))
    context = build(TLSFiles(*bench.pair("default"), named=(unnamed, given)))
    assert bench.shown(context, "localhost") == "given"


def test_names_of_a_certificate(bench: Bench) -> None:
    assert list(certificate_names(bench.pair("x")[0])) == ["localhost"]
    assert list(certificate_names(bench.ca)) == ["test"]
    (bench.folder / "bad").write_text("no")
    with pytest.raises(ValueError, match="PEM"):
        certificate_names(str(bench.folder / "bad"))


def test_every_file_is_followed(bench: Bench) -> None:
    files = TLSFiles("c", "k", ("ca1", "ca2"), (NamedCertificate("nc", "nk"),))
    assert files.paths == ["c", "k", "ca1", "ca2", "nc", "nk"]


def test_suites_by_their_names_in_go(bench: Bench) -> None:
    assert openssl_ciphers([]) is None
    assert openssl_ciphers(["TLS_AES_128_GCM_SHA256"]) == ""
    assert openssl_ciphers(["TLS_RSA_WITH_RC4_128_SHA", "TLS_RSA_WITH_AES_128_GCM_SHA256"]) == "AES128-GCM-SHA256"
    pair = bench.pair("x")
    for name in sorted(KNOWN):
        context = build_context(*pair, cipher_suites=[name])
        wanted = openssl_ciphers([name])
        offered = {str(c["name"]) for c in context.get_ciphers() if not str(c["name"]).startswith("TLS_")}
        assert offered == {wanted} if wanted else context.minimum_version == ssl.TLSVersion.TLSv1_3
    assert build_context(*pair, min_version="VersionTLS13").minimum_version == ssl.TLSVersion.TLSv1_3
    assert build_context(*pair, min_version="VersionTLS10").minimum_version == ssl.TLSVersion.TLSv1_2


def test_authorities_from_elsewhere_count_from_the_next_handshake_on(bench: Bench) -> None:
    authorities = Authorities()
    tls = ServerTLS(TLSFiles(*bench.pair("default"), authorities=authorities), FileWatcher())
    assert tls.context.current.verify_mode is ssl.CERT_NONE
    # The same one twice, and remarks, as bundles have them.
    pem = "# Zertifikate für Prüfungen\n".encode() + Path(bench.ca).read_bytes() * 2
    authorities.replace(pem)
    assert tls.context.current.verify_mode is ssl.CERT_OPTIONAL
    assert [ca["subject"] for ca in tls.context.current.get_ca_certs()] == [((("commonName", "test"),),)]
    before = tls.context.current
    with pytest.raises(ssl.SSLError):
        authorities.replace(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    assert (authorities.pem, tls.context.current) == (pem, before)
    authorities.replace(pem)
    assert tls.context.current is before
    tls.close()
    authorities.replace(b"")
    assert tls.context.current is before
