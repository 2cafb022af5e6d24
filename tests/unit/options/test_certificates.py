from __future__ import annotations

import json
import os
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from fastapi_core.authn.x509 import user_of
from fastapi_core.options.certificates import FRONT_PROXY, CertificatesError, Pki, ensure, front_proxy, write

NAMES, ADDRESSES = ["localhost", "kubernetes"], ["127.0.0.1", "::1", "10.0.0.1"]


def load(path: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(Path(path).read_bytes())


def contents(pki: Pki) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in Path(pki.directory).iterdir()}


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return ensure(str(tmp_path / "pki"), NAMES, ADDRESSES)


def test_what_is_made(pki: Pki) -> None:
    ca, serving, admin = load(pki.ca), load(pki.serving_cert), load(pki.admin_cert)
    for leaf in (serving, admin):
        leaf.verify_directly_issued_by(ca)
        assert isinstance(leaf.public_key(), ec.EllipticCurvePublicKey)
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.DNSName)) == set(NAMES)
    assert {str(a) for a in names.get_values_for_type(x509.IPAddress)} == set(ADDRESSES)
    assert list(serving.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH
    ]
    assert list(admin.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.CLIENT_AUTH
    ]
    assert ca.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    user = user_of(ssl.PEM_cert_to_DER_cert(Path(pki.admin_cert).read_text()))
    assert user is not None
    assert (user.name, user.groups) == ("kubernetes-admin", ("system:masters", "system:authenticated"))
    assert len(pki.admin_token()) == 64


def test_keys_are_private(pki: Pki) -> None:
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in Path(pki.directory).iterdir()}
    assert {name for name, mode in modes.items() if mode != 0o600} == {"ca.crt", "apiserver.crt", "admin.crt"}
    assert stat.S_IMODE(os.stat(pki.directory).st_mode) == 0o700


def test_used_again_without_the_cryptography_library(pki: Pki) -> None:
    before = contents(pki)
    code = (
        "import sys; from fastapi_core.options.certificates import ensure; "
        f"ensure({pki.directory!r}, {NAMES!r}, {ADDRESSES[::-1]!r}); sys.exit('cryptography' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
    assert contents(pki) == before


def test_new_names_need_a_new_serving_certificate_only(pki: Pki) -> None:
    before = contents(pki)
    ensure(pki.directory, [*NAMES, "other"], ADDRESSES)
    after = contents(pki)
    assert {name for name in before if before[name] != after[name]} == {"apiserver.crt", "apiserver.key", "state.json"}
    load(pki.serving_cert).verify_directly_issued_by(load(pki.ca))


@pytest.mark.parametrize("entry", ["serving", "admin"])
def test_renewed_before_it_expires(pki: Pki, entry: str) -> None:
    before = contents(pki)
    path = Path(pki.path("state.json"))
    state = json.loads(path.read_text())
    state[entry]["expires"] -= 340 * 86400
    path.write_text(json.dumps(state))
    ensure(pki.directory, NAMES, ADDRESSES)
    file = {"serving": "apiserver.crt", "admin": "admin.crt"}[entry]
    changed = {name for name, data in contents(pki).items() if before[name] != data} - {"state.json"}
    assert changed == {file, file.replace(".crt", ".key")}


def test_an_expiring_ca_of_ours_is_replaced_with_everything_it_signed(pki: Pki) -> None:
    before = contents(pki)
    path = Path(pki.path("state.json"))
    state = json.loads(path.read_text())
    state["ca"]["expires"] -= 3640 * 86400
    path.write_text(json.dumps(state))
    ensure(pki.directory, NAMES, ADDRESSES)
    unchanged = {name for name, data in contents(pki).items() if before[name] == data}
    assert unchanged == {"admin.token"}
    load(pki.serving_cert).verify_directly_issued_by(load(pki.ca))


@pytest.mark.parametrize("lost", ["apiserver.key", "admin.crt", "state.json", "ca.key", "admin.token"])
def test_a_start_that_was_cut_short_is_completed(pki: Pki, lost: str) -> None:
    os.unlink(pki.path(lost))
    ensure(pki.directory, NAMES, ADDRESSES)
    assert set(contents(pki)) == {
        "ca.crt", "ca.key", "apiserver.crt", "apiserver.key", "admin.crt", "admin.key", "admin.token", "state.json",
    }  # fmt: skip
    load(pki.serving_cert).verify_directly_issued_by(load(pki.ca))
    load(pki.admin_cert).verify_directly_issued_by(load(pki.ca))
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(pki.serving_cert, pki.serving_key)


def test_a_ca_somebody_brings_is_used_and_kept(pki: Pki, tmp_path: Path) -> None:
    other = ensure(str(tmp_path / "other"), NAMES, ADDRESSES)
    for name in ("ca.crt", "ca.key"):
        Path(other.path(name)).write_bytes(Path(pki.path(name)).read_bytes())
    ensure(other.directory, NAMES, ADDRESSES)
    assert contents(other)["ca.crt"] == contents(pki)["ca.crt"]
    load(other.serving_cert).verify_directly_issued_by(load(pki.ca))
    before = contents(other)
    ensure(other.directory, NAMES, ADDRESSES)
    assert contents(other) == before


def test_a_ca_that_does_not_fit_together_is_an_error_with_a_way_out(pki: Pki, tmp_path: Path) -> None:
    other = ensure(str(tmp_path / "other"), NAMES, ADDRESSES)
    Path(pki.path("ca.key")).write_bytes(Path(other.path("ca.key")).read_bytes())
    with pytest.raises(CertificatesError, match=r"do not belong together: restore ca\.crt and ca\.key, or remove"):
        ensure(pki.directory, NAMES, ADDRESSES)
    Path(pki.path("ca.crt")).write_text("nonsense")
    with pytest.raises(CertificatesError, match="is damaged"):
        ensure(pki.directory, NAMES, ADDRESSES)


def test_writing_is_atomic_and_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write(str(path), b"old", 0o600)

    def fail(source: str, target: str) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write(str(path), b"new", 0o644)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_a_front_proxy_has_a_ca_of_its_own(tmp_path: Path) -> None:
    pki = front_proxy(str(tmp_path / "front-proxy"))
    ca = x509.load_pem_x509_certificate(Path(pki.ca).read_bytes())
    certificate = x509.load_pem_x509_certificate(Path(pki.proxy_cert).read_bytes())
    certificate.verify_directly_issued_by(ca)
    assert certificate.subject.rfc4514_string() == f"CN={FRONT_PROXY}"
    before = contents(pki)
    assert stat.S_IMODE(Path(pki.proxy_key).stat().st_mode) == 0o600
    assert sorted(before) == ["ca.crt", "ca.key", "proxy.crt", "proxy.key", "state.json"]
    assert contents(front_proxy(str(tmp_path / "front-proxy"))) == before
    os.unlink(pki.proxy_key)
    after = contents(front_proxy(str(tmp_path / "front-proxy")))
    assert (after["ca.crt"] == before["ca.crt"], after["proxy.crt"] == before["proxy.crt"]) == (True, False)
