"""Modules that are loaded when they are first used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fastapi_core.later import Later

PROGRAM = """
import sys
from fastapi_core import later as module
first = module.later("one")
second = module.later("two", soon=True)
assert module.later("one") is first
assert repr(first) == "<one, later>"
assert not hasattr(first, "__wrapped__")
print("one" in sys.modules)
steps = module.load_all()
print(next(steps), next(steps), next(steps, None))
print(first.value, first.__dict__["value"])
"""


def test_loading(tmp_path: Path) -> None:
    """Nothing at the declaration; `load_all` takes those first that are needed soon, and what they put off in turn."""
    (tmp_path / "one.py").write_text("value = 1\n")
    (tmp_path / "two.py").write_text("value = 2\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "two one None", "1 1"]


def test_a_name_loads_the_module() -> None:
    assert Later("json.tool").__name__ == "json.tool"
    assert Later("json").loads("[1]") == [1]
    with pytest.raises(AttributeError):
        _ = Later("json").nothing
    with pytest.raises(ModuleNotFoundError):
        _ = Later("fastapi_core.nowhere").name
