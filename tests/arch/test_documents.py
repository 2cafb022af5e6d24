"""What the documents name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fastapi_core.options import inert
from fastapi_core.options.options import flags

ROOT = Path(__file__).parents[2]


def test_the_threat_model_names_tests_that_exist() -> None:
    named = re.findall(r"`((?:\w+/)+(?:test_\w+\.py)?)`", (ROOT / "THREAT_MODEL.md").read_text())
    tests = [name for name in named if (ROOT / "tests" / name.split("/")[0]).is_dir()]
    assert len(tests) > 10
    for name in tests:
        assert (ROOT / "tests" / name).exists(), name


@pytest.mark.parametrize(
    "document", ["README.md", "THREAT_MODEL.md", "docs/deployment.md", "deploy/fastapi-core.service"]
)
def test_documents_name_flags_that_exist(document: str) -> None:
    known = flags().keys() | inert.reference().keys() | {"help", "version"}
    text = (ROOT / document).read_text()
    # Only what follows our own command, stands alone in code quotes, or fills a flags file.
    ours = re.findall(r"`--([a-z0-9-]+)", text)
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if re.search(r"fastapi-core (serve|--ext)|FLAGS=", line):
            ours += re.findall(r"(?<!\S)[\"']?--([a-z0-9-]+)", line.split("fastapi-core:/var", 1)[-1])
    unknown = {name for name in ours if name not in known}
    assert not unknown - {"data-dir", "grace-period", "no-new-privileges", "wait"}, unknown


def test_the_guide_to_extensions_names_flags_that_exist() -> None:
    """Those of extension servers, of their registration, and of the server in front."""
    from fastapi_core.extension.options import GROUPS
    from fastapi_core.extension.registration.options import Registration, Withdrawal
    from fastapi_core.options.flags import flags_of

    known = (
        flags().keys()
        | flags_of(GROUPS).keys()
        | flags_of({"": Registration}).keys()
        | flags_of({"": Withdrawal}).keys()
    )
    text = (ROOT / "docs/extension.md").read_text()
    ours = set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])", text)) - {
        "help",
        "server-side",
        "watch",
        "raw",
        "requestheader",
    }
    assert len(ours) > 15
    assert not ours - known


def test_the_unit_starts_what_is_installed() -> None:
    unit = (ROOT / "deploy/fastapi-core.service").read_text()
    assert "ExecStart=/opt/fastapi-core/bin/fastapi-core serve " in unit
    assert "Type=notify" in unit
    assert "/opt/fastapi-core/bin" in (ROOT / "deploy/Containerfile").read_text()
    assert 'fastapi-core = "fastapi_core.cli.main:main"' in (ROOT / "pyproject.toml").read_text()
