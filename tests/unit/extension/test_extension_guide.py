"""The guide: its first server is one, its pieces are Python, and what it names exists."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from pathlib import Path

import pytest

from fastapi_core import errors, extension
from fastapi_core.extension.cli import load
from fastapi_core.extension.client import Objects
from tests.fixtures.extension import serving

GUIDE = (Path(__file__).resolve().parents[3] / "docs/extension.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


async def test_the_first_server(tmp_path: Path) -> None:
    script = tmp_path / "quotes.py"
    script.write_text(BLOCKS[0])
    app = load(str(script))
    path = "/apis/fortune.example.com/v1/quotes"
    async with serving(app) as served:
        listed = await served.good("GET", path)
        assert [item["author"] for item in listed["items"]] == ["Tim Peters"]
        assert (await served.good("GET", f"{path}/gray"))["text"] == "Readability counts."
        assert (await served.call("GET", f"{path}/none"))[0] == 404
        assert (await served.call("POST", path, {}))[0] == 405
    del sys.modules["__extension__"]


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_pieces_are_python(number: int) -> None:
    # Where somebody awaits without a function, one is around it.
    ast.parse(f"async def around():\n{textwrap.indent(BLOCKS[number], '    ')}")


def test_names_exist() -> None:
    helpers = re.search(r"`fastapi_core.errors`: (.*?), \.\.\.\)", GUIDE)
    assert helpers
    for name in re.findall(r"`(\w+)`", helpers[1]):
        assert callable(getattr(errors, name))
    methods = re.search(r"`kind.objects` \((.*?)\)", GUIDE)
    assert methods
    for name in methods[1].replace("\n", " ").split(", "):
        assert callable(getattr(Objects, name))
    options = extension.KindOptions.__annotations__
    for name in (
        "kind",
        "group_version",
        "namespaced",
        "short_names",
        "categories",
        "columns",
        "selectable",
        "status",
        "scale",
    ):
        assert name in options
