"""Declarations that cannot be served, descriptions, and the command line of an extension."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from fastapi_core.extension import Extension, GroupVersion, ModelError, ObjectMeta
from fastapi_core.extension.cli import load, main
from fastapi_core.extension.options import Options
from fastapi_core.options.flags import OptionsError
from fastapi_core.schema.tables import type_of
from tests.fixtures.extension import serving

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Thing:
    metadata: ObjectMeta
    status: str = ""


def test_what_a_description_tells() -> None:
    app = Extension("a.example.com/v1", namespace="apps", group_priority=7, version_priority=3)
    app.stored(Thing, "things", namespaced=False)
    app.stored(type_of("apps/v1.Deployment"), "deployments", group_version="b.example.com/v1beta1")
    described = app.description
    assert described.name == "a-example-com"
    assert described.versions == (
        GroupVersion("a.example.com", "v1", 7, 3),
        GroupVersion("b.example.com", "v1beta1", 7, 3),
    )
    assert described.service_names()[0] == "a-example-com.apps.svc"
    assert [(r.group, r.name, r.kind) for r in described.resources] == [
        ("a.example.com", "things", "Thing"),
        ("b.example.com", "deployments", "Deployment"),
    ]


@pytest.mark.parametrize(
    ("plural", "options", "text"),
    [
        ("Things", {}, "'Things' cannot be a plural"),
        ("things", {"singular": "a b"}, "cannot be a singular"),
        ("things", {"group_version": "b.example.com/V1"}, "cannot be a version"),
        ("things", {"group_version": "B.example.com/v1"}, "cannot be a group"),
        ("things", {"selectable": ["status"]}, "paths like"),
        ("taken", {}, "has Thing"),
    ],
)
def test_names_that_cannot_be(plural: str, options: dict[str, object], text: str) -> None:
    app = Extension("a.example.com/v1")
    if plural == "taken":
        app.stored(Thing, "things")
    with pytest.raises(ModelError, match=text):
        app.stored(Thing, plural, **options)  # type: ignore[call-overload]


def test_objects_are_kept_in_one_version() -> None:
    app = Extension("a.example.com/v1")
    app.stored(Thing, "things")
    with pytest.raises(ModelError, match="are kept in version v1 already"):
        app.stored(Thing, "things", group_version="a.example.com/v2")
    assert app.kind(Thing, "things", group_version="a.example.com/v2")


def test_group_versions_that_cannot_be() -> None:
    for text in ("example", "example/v1", "a.example.com/", "a.example.com/v1/x"):
        with pytest.raises(ValueError, match="no group and version"):
            Extension(text)

    @dataclass
    class Bare:
        metadata: ObjectMeta

    with pytest.raises(ModelError, match="no member 'status'"):
        Extension("a.example.com/v1").stored(Bare, "bares", status=True)


async def test_kinds_of_type_tables_are_served() -> None:
    app = Extension("b.example.com/v1")
    app.stored(type_of("apps/v1.Deployment"), "deployments", status=True)
    path = "/apis/b.example.com/v1/namespaces/default/deployments"
    template = {"spec": {"containers": [{"name": "c", "image": "x", "resources": {"limits": {"cpu": 1}}}]}}
    tree = {
        "apiVersion": "b.example.com/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    async with serving(app) as served:
        made = await served.good("POST", path, tree)
        assert made["spec"]["template"]["spec"]["containers"][0]["resources"] == {"limits": {"cpu": 1}}
        status, answer = await served.call("POST", path, {**tree, "spec": {"replicas": "two"}})
        assert (status, answer["reason"]) == (422, "Invalid")


def test_flags() -> None:
    options = Options.parse(["--secure-port=4443", "--data-dir=/tmp/x", "--request-timeout=5s", "--kubeconfig=/x"][:3])
    assert (options.serving.secure_port, options.generic.request_timeout) == (4443, 5.0)
    with pytest.raises(OptionsError) as wrong:
        Options.parse(["--secure-port=99999", "--nothing", "--request-timeout=0s"])
    assert len(wrong.value.errors) == 3


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    app = Extension("a.example.com/v1")
    app.stored(Thing, "things")
    assert main(app, ["dance"]) == 2
    assert "unknown command 'dance'" in capsys.readouterr().err
    assert main(app, ["--help"]) == 0
    out = capsys.readouterr().out
    assert "--authentication-kubeconfig" in out
    assert "register" in out
    assert main(app, ["serve", "--secure-port=x"]) == 2
    assert capsys.readouterr().err.startswith("a-example-com: --secure-port")
    assert re.search(r"^usage: .+ \[serve\] \[flags\]", out, re.MULTILINE)
    assert main(app, ["register", "--help"]) == 0
    assert re.match(r"usage: .+ register \[flags\]", capsys.readouterr().out)
    app.kind(Thing, "others", kind="Other")
    assert main(app, ["register"]) == 1
    assert "Other: there is no handler" in capsys.readouterr().err


def test_extensions_named_on_command_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from fastapi_core.extension import Extension\napi = Extension('a.example.com/v1')\nother = 3\n")
    assert load(f"{file}:api").name == "a-example-com"
    for target, text in (
        (f"{file}:other", "is no Extension"),
        (f"{file}:nothing", "is no Extension"),
        (str(tmp_path / "none.py"), "cannot be imported"),
        ("no.such.module:app", "cannot be imported"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            load(target)


SCRIPT = """
from dataclasses import dataclass
from fastapi_core.extension import Extension, ObjectMeta
app = Extension("a.example.com/v1")

@dataclass
class Thing:
    metadata: ObjectMeta

app.stored(Thing, "things")
raise SystemExit(app.main())
"""


def test_a_process_from_start_to_end(tmp_path: Path) -> None:
    script = tmp_path / "api.py"
    script.write_text(SCRIPT)
    config = tmp_path / "config"
    config.write_text(
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {token: x}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
    )
    command = [sys.executable, str(script), "--bind-address=127.0.0.1", f"--kubeconfig={config}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def start(*flags: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )

    unreachable = start("--secure-port=0")
    assert unreachable.stderr is not None
    line = unreachable.stderr.readline()
    assert "Waiting for the API server in front" in line
    assert "connection refused" in line
    unreachable.send_signal(signal.SIGTERM)
    unreachable.communicate(timeout=60)
    assert unreachable.returncode == 0
    server = start("--secure-port=0", "--authentication-skip-lookup", f"--data-dir={tmp_path / 'data'}")
    assert server.stdout is not None
    found = re.fullmatch(r"Serving a.example.com/v1 on https://127.0.0.1:(\d+)\n", server.stdout.readline())
    assert found
    second = start(f"--secure-port={found[1]}", "--authentication-skip-lookup")
    _, said = second.communicate(timeout=60)
    assert second.returncode == 1
    assert f"a-example-com: --secure-port: {found[1]} is taken" in said
    third = start("--secure-port=0", "--authentication-skip-lookup", f"--data-dir={tmp_path / 'data'}")
    _, said = third.communicate(timeout=60)
    assert third.returncode == 1
    assert "a-example-com: --data-dir: " in said
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=60)
    assert server.returncode == 0
    assert (tmp_path / "data/pki").is_dir()
