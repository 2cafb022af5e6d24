"""The way to the core API: kubeconfig files, pods, and both as their files change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastapi_core.authn.outbound import kubeconfig_files
from fastapi_core.extension.delegated.access import AccessError, NotInClusterError, by_kubeconfig, find, in_cluster
from fastapi_core.obs.files import FileWatcher
from tests.fixtures.pki import authority

CA = authority("core")
ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def write(folder: Path, server: str = "https://core.example/prefix/", **cluster: str) -> str:
    (folder / "ca.crt").write_bytes(CA.pem)
    CA.issue("me").write(folder, "me")
    document = {
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": "ca.crt", **cluster}}],
        "users": [{"name": "u", "user": {"client-certificate": "me.crt", "client-key": "me.key"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(document))
    return str(file)


def test_a_kubeconfig(tmp_path: Path) -> None:
    found = by_kubeconfig(write(tmp_path, **{"tls-server-name": "kubernetes"}))
    assert (found.target.host, found.target.port, found.target.name) == ("core.example", 443, "kubernetes")
    assert (found.authority, found.prefix) == ("core.example", "/prefix")
    assert found.files == tuple(str(tmp_path / name) for name in ("kubeconfig", "ca.crt", "me.crt", "me.key"))
    assert kubeconfig_files(str(tmp_path / "kubeconfig")) == found.files


def test_changed_files_count_and_broken_ones_do_not(tmp_path: Path) -> None:
    found = by_kubeconfig(write(tmp_path))
    files = FileWatcher()
    found.follow(files)
    before = found.target
    CA.issue("me").write(tmp_path, "me")
    files.check()
    assert found.target != before
    write(tmp_path, "https://other.example:6443")
    files.check()
    assert (found.target.host, found.target.port, found.authority) == ("other.example", 6443, "other.example:6443")
    (tmp_path / "ca.crt").write_text("?")
    files.check()
    assert found.target.host == "other.example"


def test_a_pod(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(CA.pem)
    (tmp_path / "token").write_text("one\n")
    found = in_cluster(ENVIRONMENT, str(tmp_path))
    assert (found.target.host, found.target.port, found.prefix) == ("10.0.0.1", 443, "")
    assert found.remote.authorization() == [(b"authorization", b"Bearer one")]
    (tmp_path / "token").write_text("two")
    assert found.remote.authorization() == [(b"authorization", b"Bearer two")]
    six = in_cluster({**ENVIRONMENT, "KUBERNETES_SERVICE_HOST": "fd00::1"}, str(tmp_path))
    assert (six.target.host, six.authority) == ("fd00::1", "[fd00::1]:443")


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotInClusterError) as caught:
        find("", {})
    assert str(caught.value) == (
        "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
    )
    with pytest.raises(AccessError, match="the pod has no token of a service account"):
        in_cluster(ENVIRONMENT, str(tmp_path))
    (tmp_path / "token").write_text("t")
    with pytest.raises(AccessError, match=r"ca.crt': No such file"):
        in_cluster(ENVIRONMENT, str(tmp_path))
    (tmp_path / "ca.crt").write_text("?")
    with pytest.raises(AccessError, match="unable to load the certificate authorities"):
        in_cluster(ENVIRONMENT, str(tmp_path))
    with pytest.raises(AccessError, match="'/nowhere': No such file or directory"):
        by_kubeconfig("/nowhere")
    broken = tmp_path / "broken"
    broken.write_text("{}")
    with pytest.raises(AccessError, match=r"broken': current-context is not set"):
        by_kubeconfig(str(broken))
