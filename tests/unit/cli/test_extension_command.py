"""`fastapi-core extension`: which extension, which command, and what is said when either is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastapi_core.cli.main import main

APP = """
from dataclasses import dataclass
from fastapi_core.extension import Extension, ObjectMeta, Request

app = other = Extension("cli.example.test/v1", name="from-a-file")

@dataclass
class Thing:
    metadata: ObjectMeta

things = app.kind(Thing, "things", namespaced=False)

@things.list
def listing(request: Request) -> list[Thing]:
    return []
"""


def test_an_extension_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my_api.py"
    file.write_text(APP)
    for target in (str(file), f"{file}:other"):
        assert main(["extension", "register", target, "--print", "--insecure-skip-tls-verify"]) == 0
        said = capsys.readouterr().out
        assert "name: v1.cli.example.test" in said
        assert "name: default:from-a-file:view" in said


def test_an_extension_in_a_module_of_the_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cli_example_api.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere", *__import__("sys").path])
    assert main(["extension", "register", "cli_example_api:app", "--print", "--insecure-skip-tls-verify"]) == 0
    assert "name: from-a-file" in capsys.readouterr().out


def test_one_that_is_no_extension(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "empty.py"
    file.write_text("app = 1\n")
    assert main(["extension", "serve", str(file)]) == 2
    assert "is no Extension, use MODULE:ATTRIBUTE" in capsys.readouterr().err
    assert main(["extension", "serve", "no.such.module:app"]) == 2
    assert "cannot be imported" in capsys.readouterr().err


def test_servers_in_other_languages(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--name=ms", "--group-version=metrics.k8s.io/v1beta1", "--print", "--insecure-skip-tls-verify"]
    assert main(["extension", "register", *flags]) == 0
    assert "name: v1beta1.metrics.k8s.io" in capsys.readouterr().out


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extension", "--help"]) == 0
    assert "register" in capsys.readouterr().out
    assert main(["extension"]) == main(["extension", "frobnicate"]) == main(["extension", "serve"]) == 2
    err = capsys.readouterr().err
    assert "unknown command 'frobnicate'" in err
    assert "serve needs an extension" in err
