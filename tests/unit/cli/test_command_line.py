from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fastapi_core import __version__
from fastapi_core.cli.main import main

ROOT = Path(__file__).parents[3]


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert main(["serve", "--version"]) == 0
    assert capsys.readouterr().out == f"fastapi-core {__version__}\n" * 2
    assert main(["--help"]) == 0
    assert "fastapi-core serve" in capsys.readouterr().out
    assert main(["serve", "-h"]) == 0
    assert "--secure-port int" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", ["--help", "--version", "serve --help"])
def test_readers_may_stop_reading(arguments: str) -> None:
    """As in `fastapi-core serve --help | head`: the other end is closed before anything is written."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "fastapi_core.cli.main", *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [[], ["fly"]])
def test_no_or_an_unknown_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert "usage: fastapi-core serve" in captured.err


def test_wrong_flags_are_reported_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--secure-prt=1", "--request-timeout=x"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "fastapi-core: unknown flag --secure-prt, did you mean --secure-port?"
    assert lines[1].startswith("fastapi-core: --request-timeout: ")


def test_import_is_cheap() -> None:
    code = "import sys, fastapi_core.cli.main; print(len(set(sys.modules)), *sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    assert int(loaded[0]) < 70
    assert not {"asyncio", "uvloop", "ssl", "orjson", "json", "cryptography", "ipaddress"} & set(loaded)
