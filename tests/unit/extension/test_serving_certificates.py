"""Serving certificates of extensions: mounted ones, and those made for the names of a Service."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509

from fastapi_core.extension.certificates import ServingFiles, made, serving_files
from fastapi_core.extension.description import Description, GroupVersion
from fastapi_core.options.flags import OptionsError
from fastapi_core.options.serving import Serving

NAMES = Description("metrics", "monitoring", (GroupVersion("metrics.k8s.io", "v1beta1"),), ()).service_names()


def certificate(files: ServingFiles) -> x509.Certificate:
    return x509.load_pem_x509_certificate(Path(files.cert).read_bytes())


def names(files: ServingFiles) -> set[str]:
    found = certificate(files).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


def test_one_is_made_for_the_service_and_kept(tmp_path: Path) -> None:
    serving = Serving(external_hostname="ext.example.com", advertise_address="10.1.2.3")
    files = serving_files(serving, NAMES, str(tmp_path))
    assert names(files) >= {"metrics.monitoring.svc", "localhost", "127.0.0.1", "ext.example.com", "10.1.2.3"}
    ca = x509.load_pem_x509_certificate(Path(files.ca).read_bytes())
    certificate(files).verify_directly_issued_by(ca)
    before = Path(files.cert).read_bytes()
    assert serving_files(serving, NAMES, str(tmp_path)) == files
    assert Path(files.cert).read_bytes() == before
    # Nobody gets in by what lies there: the server knows callers by the API server in front alone.
    assert sorted(os.listdir(tmp_path / "pki")) == ["apiserver.crt", "apiserver.key", "ca.crt", "ca.key", "state.json"]


def test_other_names_get_another_certificate_of_the_same_ca(tmp_path: Path) -> None:
    files = serving_files(Serving(), NAMES, str(tmp_path))
    ca, before = Path(files.ca).read_bytes(), Path(files.cert).read_bytes()
    again = serving_files(Serving(), ("other.default.svc",), str(tmp_path))
    assert "other.default.svc" in names(again)
    assert (Path(again.ca).read_bytes() == ca, Path(again.cert).read_bytes() == before) == (True, False)


def test_one_that_expires_soon_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from fastapi_core.options import certificates

    files = serving_files(Serving(), NAMES, str(tmp_path))
    ca, before = Path(files.ca).read_bytes(), Path(files.cert).read_bytes()
    later = time.time() + 336 * 86400
    monkeypatch.setattr(certificates.time, "time", lambda: later)
    serving_files(Serving(), NAMES, str(tmp_path))
    assert (Path(files.ca).read_bytes() == ca, Path(files.cert).read_bytes() == before) == (True, False)


def test_names_of_services_may_be_long(tmp_path: Path) -> None:
    long = Description("a" * 63, "b" * 63, (), ()).service_names()
    assert f"{'a' * 63}.{'b' * 63}.svc" in names(serving_files(Serving(), long, str(tmp_path)))


def test_mounted_ones_are_taken_as_they_are(tmp_path: Path) -> None:
    cert, key = str(tmp_path / "tls.crt"), str(tmp_path / "tls.key")
    serving = Serving(tls_cert_file=cert, tls_private_key_file=key)
    assert serving_files(serving, NAMES, "") == ServingFiles(cert, key)
    (tmp_path / "ca.crt").write_text("who signed it")
    assert serving_files(serving, NAMES, "").ca == str(tmp_path / "ca.crt")


def test_directories_that_cannot_be_used(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(
        OptionsError, match=r"--data-dir: .*: give a directory this user may write to, or mounted files"
    ):
        serving_files(Serving(), NAMES, str(file))
    home = tmp_path / "home"
    files = serving_files(Serving(), NAMES, str(home))
    Path(files.ca).write_text("?")
    with pytest.raises(OptionsError, match=r"--data-dir: the CA in .* is damaged"):
        serving_files(Serving(), NAMES, str(home))


def test_two_who_make_them_at_once_have_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: Path(made(str(tmp_path / "pki"), NAMES).ca).read_bytes(), range(4)))
    assert len(set(found)) == 1
