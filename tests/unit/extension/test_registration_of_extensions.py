"""Registering with a real server: made once, unchanged the second time, taken back exactly."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.extension.certificates import made
from fastapi_core.extension.description import Description, GroupVersion
from fastapi_core.extension.register import register, unregister
from fastapi_core.testing.server import RunningServer
from tests.fixtures.server import Api

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
GONE = ["--endpoint=192.0.2.77:9", "--insecure-skip-tls-verify", "--timeout=0"]


class Registered:
    """An extension of the test's own."""

    def __init__(self, server: RunningServer, api: Api, namespace: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._server, self.api, self._capsys = server, api, capsys
        group = f"g{uuid.uuid4().hex[:8]}.example.test"
        self.about = Description("ext", namespace, (GroupVersion(group, "v1"),), ())
        self.service = f"/api/v1/namespaces/{namespace}/services/ext"
        self.apiservice = f"{SERVICES}/v1.{group}"

    def run(self, *flags: str, code: int = 0, about: Description | None = None) -> str:
        return self._run(register, flags, code, about)

    def withdraw(self, *flags: str, code: int = 0) -> str:
        return self._run(unregister, flags, code, None)

    def _run(self, command: Any, flags: tuple[str, ...], code: int, about: Description | None) -> str:
        found = command(about or self.about, [*flags, f"--kubeconfig={self._server.kubeconfig}"])
        said = self._capsys.readouterr()
        assert found == code, said
        return said.out + said.err


@pytest.fixture
def ext(server: RunningServer, api: Api, namespace: str, capsys: pytest.CaptureFixture[str]) -> Iterator[Registered]:
    made = Registered(server, api, namespace, capsys)
    yield made
    made.withdraw()


def words(said: str) -> list[str]:
    return [line.rsplit(" ", 1)[1] for line in said.splitlines()]


def test_twice_is_the_same_as_once(ext: Registered) -> None:
    assert words(ext.run(*GONE)) == ["created"] * 6
    assert words(ext.run(*GONE)) == ["unchanged"] * 6
    status, service = ext.api("GET", ext.service)
    assert (status, service["metadata"]["managedFields"][0]["manager"]) == (200, "ext-registration")
    assert words(ext.withdraw()) == ["deleted"] * 6
    assert [ext.api("GET", path)[0] for path in (ext.service, ext.apiservice)] == [404, 404]
    assert ext.withdraw() == f"Nothing is registered as {ext.about.namespace}/ext\n"


def test_what_is_not_needed_any_more_goes(ext: Registered) -> None:
    ext.run(*GONE)
    said = ext.run("--endpoint=192.0.2.78:10", *GONE[1:])
    assert "endpointslice.discovery.k8s.io/ext-ipv4-10 created" in said
    assert "endpointslice.discovery.k8s.io/ext-ipv4-9 deleted" in said
    version = ext.about.versions[0]
    other = replace(ext.about, versions=(replace(version, version="v2"),))
    assert f"apiservice.apiregistration.k8s.io/{version.name} deleted" in ext.run(*GONE, about=other)


def test_what_was_there_before_stays(ext: Registered) -> None:
    namespace = ext.about.namespace
    before = {"metadata": {"name": "ext"}, "spec": {"ports": [{"port": 443, "name": "https"}], "selector": {"a": "b"}}}
    assert ext.api("POST", f"/api/v1/namespaces/{namespace}/services", before)[0] == 201
    flags = ["--insecure-skip-tls-verify", "--timeout=0", "--selector=a=b"]
    conflict = ext.run(*flags, code=1)
    assert "service/ext: Apply failed with 1 conflict" in conflict
    assert "Use --force-conflicts to take them over" in conflict
    said = ext.run(*flags, "--force-conflicts")
    assert "service/ext configured (it was there before and will stay)" in said
    said = ext.withdraw()
    assert "service/ext left, it was there before; our fields are gone from it" in said
    status, service = ext.api("GET", ext.service)
    assert (status, service["metadata"].get("annotations")) == (200, None)
    assert not [e for e in service["metadata"]["managedFields"] if e["manager"] == "ext-registration"]
    assert ext.withdraw() == f"Nothing is registered as {ext.about.namespace}/ext\n"
    assert ext.api("DELETE", ext.service)[0] == 200


def test_objects_of_another_registration_are_not_touched(ext: Registered) -> None:
    ext.run(*GONE)
    other = replace(ext.about, name="other", versions=(GroupVersion(f"o{ext.about.versions[0].group}", "v1"),))
    ext.run(*GONE, about=other)
    ext.withdraw()
    assert ext.api("GET", ext.service.replace("/ext", "/other"))[0] == 200
    assert ext._run(unregister, (), 0, other).count("deleted") == 6


def test_a_second_registration_of_a_group_version_is_a_conflict(ext: Registered) -> None:
    other = replace(ext.about, namespace=f"t-{uuid.uuid4().hex[:10]}")
    shown = f"apiservice.apiregistration.k8s.io/{ext.about.versions[0].name}"
    ext.run(*GONE)
    said = ext.run(*GONE, "--create-namespace", code=1, about=other)
    mine = f"{ext.about.namespace}/ext"
    assert f"{shown} belongs to the registration {mine}: take that back first" in said
    assert ext.api("GET", f"/api/v1/namespaces/{other.namespace}")[0] == 404
    said = ext.run(*GONE, "--create-namespace", "--force-conflicts", about=other)
    assert f"{shown} moved here from the registration {mine}" in said
    assert f"{shown} left, it belongs to the registration {other.namespace}/ext" in ext.withdraw()
    assert ext.api("GET", ext.apiservice)[1]["spec"]["service"]["namespace"] == other.namespace
    assert f"{shown} deleted" in ext._run(unregister, ("--delete-namespace",), 0, other)
    assert ext.api("GET", ext.apiservice)[0] == 404


def test_an_object_that_nobody_else_wants_goes_with_us(ext: Registered) -> None:
    ext.run(*GONE)
    mark = {"metadata": {"annotations": {"extension.fastapi-core/registration": None}}}
    merge = {"Content-Type": "application/merge-patch+json"}
    assert ext.api("PATCH", ext.apiservice, mark, merge)[0] == 200
    assert ext.api("PATCH", ext.service, mark, merge)[0] == 200
    said = ext.withdraw(code=1)
    assert f"apiservice.apiregistration.k8s.io/{ext.about.versions[0].name} deleted" in said
    assert "service/ext left as it is, though it should be given up: it is not valid without our fields" in said
    assert max(map(len, said.splitlines())) < 200
    assert ext.api("DELETE", ext.service)[0] == 200


def test_a_group_that_is_served_already(ext: Registered) -> None:
    local = replace(ext.about, versions=(GroupVersion("events.k8s.io", "v1"),))
    said = ext.run(*GONE, code=1, about=local)
    assert "the API server serves this group version itself" in said


def test_a_namespace_is_made_and_only_deleted_when_that_is_said(ext: Registered) -> None:
    name = f"t-{uuid.uuid4().hex[:10]}"
    about = replace(ext.about, namespace=name)
    said = ext.run(*GONE, code=1, about=about)
    assert f'namespaces "{name}" not found: make it first, or use --create-namespace' in said
    assert f"namespace/{name} created" in ext.run(*GONE, "--create-namespace", about=about)
    assert f"namespace/{name} left with all that is in it" in ext._run(unregister, (), 0, about)
    assert ext.api("GET", f"/api/v1/namespaces/{name}")[1]["status"]["phase"] == "Active"
    assert f"namespace/{name} deleted" in ext._run(unregister, ("--delete-namespace",), 0, about)


def test_a_certificate_in_a_secret_is_made_once(ext: Registered) -> None:
    flags = ["--endpoint=192.0.2.77:9", "--timeout=0", "--tls-secret=serving"]
    assert "secret/serving created" in ext.run(*flags)
    path = f"/api/v1/namespaces/{ext.about.namespace}/secrets/serving"
    secret = ext.api("GET", path)[1]
    assert (secret["type"], sorted(secret["data"])) == ("kubernetes.io/tls", ["ca.crt", "tls.crt", "tls.key"])
    bundle = ext.api("GET", ext.apiservice)[1]["spec"]["caBundle"]
    assert bundle == secret["data"]["ca.crt"]
    assert "secret" not in ext.run(*flags)
    # One that is for somebody else is replaced, and its CA trusted once more while pods still show it.
    ext.api(
        "PATCH", path, {"data": {"tls.crt": secret["data"]["ca.crt"]}}, {"Content-Type": "application/merge-patch+json"}
    )
    ext.run(*flags, "--force-conflicts")
    fresh = ext.api("GET", path)[1]["data"]["ca.crt"]
    both = base64.b64decode(fresh) + base64.b64decode(bundle)
    assert base64.b64decode(ext.api("GET", ext.apiservice)[1]["spec"]["caBundle"]) == both
    ext.run(*flags)
    assert ext.api("GET", ext.apiservice)[1]["spec"]["caBundle"] == fresh
    assert "secret/serving deleted" in ext.withdraw()


def test_the_ca_of_a_data_directory(ext: Registered, tmp_path: Path) -> None:
    ext.run("--endpoint=192.0.2.77:9", "--timeout=0", f"--data-dir={tmp_path}")
    # The server finds what the registration has made, and makes nothing else.
    files = made(str(tmp_path / "pki"), ext.about.service_names())
    bundle = base64.b64encode(Path(files.ca).read_bytes()).decode()
    assert ext.api("GET", ext.apiservice)[1]["spec"]["caBundle"] == bundle


def test_what_is_wrong_is_said(ext: Registered, tmp_path: Path) -> None:
    flags = ["--external-name=localhost:9", "--insecure-skip-tls-verify"]
    ext.run(*flags, "--timeout=0")
    until(lambda: ext.api("GET", ext.apiservice)[1].get("status", {}).get("conditions"))
    lines = ext.run(*flags, "--timeout=0.1s", code=1).splitlines()
    assert f"apiservice/{ext.about.versions[0].name} is not available: FailedDiscoveryCheck" in lines[-2]
    assert lines[-1].endswith("nothing listens there: is the server running, and on this port?")
    (tmp_path / "ca").write_text("?")
    said = ext.run("--external-name=localhost:9", f"--ca-file={tmp_path / 'ca'}", code=1)
    assert "no certificates found: PEM certificates are expected" in said


def until(true: Callable[[], Any]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_who_may_not_register(
    server: RunningServer, ext: Registered, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kubeconfig"
    ca = server.data_dir / "pki/ca.crt"
    document = {
        "clusters": [{"name": "c", "cluster": {"server": server.url, "certificate-authority": str(ca)}}],
        "users": [{"name": "u", "user": {"token": "usertoken"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    config.write_text(json.dumps(document))
    assert register(ext.about, [*GONE, f"--kubeconfig={config}"]) == 1
    assert 'is forbidden: User "alice" cannot get resource "apiservices"' in capsys.readouterr().err
