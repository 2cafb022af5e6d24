from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from fastapi_core.audit.destination import DestinationError, load
from tests.unit.http.http_support import Authority


def kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None) -> str:
    tree: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
    }
    (folder / "config").write_text(yaml.safe_dump(tree))
    return str(folder / "config")


def test_plain_http_with_credentials_of_each_kind(tmp_path: Path) -> None:
    found = load(kubeconfig(tmp_path, {"server": "http://127.0.0.1:99/a/b?c=d"}, {"token": "t"}))
    assert (found.target.host, found.target.port, found.target.tls, found.path) == ("127.0.0.1", 99, None, "/a/b?c=d")
    assert found.credentials() == [(b"Authorization", b"Bearer t")]
    found = load(kubeconfig(tmp_path, {"server": "http://h"}, {"username": "u", "password": "p"}))
    assert (found.target.port, found.path) == (80, "/")
    assert found.credentials() == [(b"Authorization", b"Basic dTpw")]
    (tmp_path / "token").write_text("first\n")
    found = load(kubeconfig(tmp_path, {"server": "http://h"}, {"tokenFile": "token", "token": "no"}))
    assert found.credentials() == [(b"Authorization", b"Bearer first")]
    (tmp_path / "token").write_text("second")
    assert found.credentials() == [(b"Authorization", b"Bearer second")]
    assert load(kubeconfig(tmp_path, {"server": "http://h"})).credentials() == []


def test_tls(tmp_path: Path) -> None:
    authority = Authority("ca")
    ca = authority.write_ca(tmp_path / "ca.crt")
    cert, key = authority.write_pair(tmp_path / "c.crt", tmp_path / "c.key", "client")
    cluster = {"server": "https://h", "certificate-authority": ca}
    tls = load(kubeconfig(tmp_path, cluster, {"client-certificate": "c.crt", "client-key": "c.key"})).target.tls
    assert tls is not None
    assert tls.verify_mode == ssl.CERT_REQUIRED
    assert len(tls.get_ca_certs()) == 1

    def data(path: str) -> str:
        return base64.b64encode(Path(path).read_bytes()).decode()

    cluster = {"server": "https://h:8443", "certificate-authority-data": data(ca)}
    user = {"client-certificate-data": data(cert), "client-key-data": data(key)}
    assert load(kubeconfig(tmp_path, cluster, user)).target.port == 8443
    tls = load(kubeconfig(tmp_path, {"server": "https://h", "insecure-skip-tls-verify": True})).target.tls
    assert tls is not None
    assert tls.verify_mode == ssl.CERT_NONE


@pytest.mark.parametrize(
    ("cluster", "text"),
    [
        ({}, "'' is not the URL of a server"),
        ({"server": "ftp://h"}, "'ftp://h' is not the URL"),
        ({"server": "https://h:x"}, "no usable port"),
        ({"server": "https://h", "certificate-authority-data": "%%"}, "is no base64"),
        ({"server": "https://h", "certificate-authority-data": "aGk="}, "cannot be used"),
    ],
)
def test_files_that_lead_nowhere(tmp_path: Path, cluster: dict[str, Any], text: str) -> None:
    with pytest.raises(DestinationError, match=text):
        load(kubeconfig(tmp_path, cluster))


@pytest.mark.parametrize("document", [b"", b"- a", b"a: [", b"kind: Config\ncurrent-context: x\n", b"contexts: [1]"])
def test_documents_that_are_no_kubeconfig(tmp_path: Path, document: bytes) -> None:
    (tmp_path / "config").write_bytes(document)
    with pytest.raises(DestinationError):
        load(str(tmp_path / "config"))
