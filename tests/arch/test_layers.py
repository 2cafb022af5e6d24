"""What import-linter cannot see: compiled imports, names, sizes, lonely imports and import time."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "fastapi_core"
MODULES = sorted(p for p in PACKAGE.rglob("*.py"))
PYX = sorted((ROOT / "_ext").glob("*.pyx"))
FILE_LINES, FUNCTION_LINES = 600, 80
#: Files that pass the budget for a reason.
LARGE: dict[str, str] = {}
VAGUE = {"utils", "util", "common", "helpers", "helper", "misc"}


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", MODULES + PYX, ids=str)
def test_file_budget(path: Path) -> None:
    if str(path.relative_to(ROOT)) not in LARGE:
        assert path.read_text().count("\n") <= FILE_LINES


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_function_budget(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < FUNCTION_LINES, f"{node.name} at line {node.lineno}"


def test_names_say_something() -> None:
    assert not [p for p in MODULES if VAGUE & set(p.relative_to(PACKAGE).with_suffix("").parts)]


def test_init_files_are_empty_or_documented() -> None:
    for path in MODULES:
        if path.name == "__init__.py" and path.read_text().strip():
            assert ast.get_docstring(ast.parse(path.read_text())), path


def test_compiled_layout() -> None:
    names = {p.stem for p in PYX}
    table = set(re.findall(r'^    "(\w+)",', (ROOT / "setup.py").read_text(), re.M))
    stubs = {p.stem for p in (PACKAGE / "_ext").glob("*.pyi")}
    checked = set(
        re.search(r"MODULES = \((.*?)\)", (PACKAGE / "_ext/__init__.py").read_text(), re.S)[1].split('"')[1::2]
    )  # type: ignore[index]
    assert names == table == stubs == checked
    assert not list((ROOT / "_ext").glob("*.pxd"))


@pytest.mark.parametrize("path", PYX, ids=str)
def test_compiled_code_is_codec_not_framework(path: Path) -> None:
    text = path.read_text()
    assert "async def" not in text
    assert not re.search(r"^# cython:.*boundscheck=False", text, re.M)
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if re.match(r"cdef class \w", line):
            assert lines[number - 1].strip().startswith("@cython."), f"line {number + 1}: not final"


@pytest.mark.parametrize("name", [dotted(p) for p in MODULES])
def test_imports_alone_without_warnings(name: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", f"import {name}"], check=True, cwd=ROOT)


def test_command_line_starts_fast() -> None:
    """Heavy packages are imported by those who need them, not at start."""
    code = "import sys; import fastapi_core.cli.main; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True)
    heavy = {"yaml", "cryptography", "cbor2", "hypothesis", "Cython", "sqlite3"}
    assert not heavy & set(loaded.stdout.split())
