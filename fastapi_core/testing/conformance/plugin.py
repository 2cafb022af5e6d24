"""The kit as tests of pytest: `pytest -p fastapi_core.testing.conformance.plugin --conformance '--kubeconfig ... --group ...'`.

Each check of each resource is a test of its own, and so is that nothing is left behind. The value of the option is the
command line of the kit. Rules that should hold are skips with their reason unless it has `--strict`.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any

import pytest

from fastapi_core.testing.conformance.cli import parser_of, session
from fastapi_core.testing.conformance.report import Outcome
from fastapi_core.testing.conformance.runner import Session
from fastapi_core.testing.conformance.target import TargetError
from fastapi_core.testing.conformance.verdicts import Check, Level

_KIT = pytest.StashKey[Session]()


class Broken(Exception):  # noqa: N818 - shown as it is
    """A rule is broken."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("conformance").addoption(
        "--conformance", default="", metavar="ARGUMENTS", help="test a server; the command line of the conformance kit"
    )


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    given = config.getoption("--conformance")
    if not given:
        return
    options = _parsed(given)
    try:
        kit = _session(options)
    except TargetError as error:
        raise pytest.UsageError(f"--conformance: {error}") from None
    config.stash[_KIT] = kit
    for check, number in kit.cases():
        about = kit.title(check, number)
        name = f"{check.name}[{about}]" if about else check.name
        items.append(CheckItem.from_parent(session, name=name, kit=kit, case=(check, number), strict=options.strict))
    items.append(TidyItem.from_parent(session, name="nothing-left-behind", kit=kit))


def pytest_unconfigure(config: pytest.Config) -> None:
    kit = config.stash.get(_KIT, None)
    if kit is not None:
        kit.end()


def _parsed(given: str) -> argparse.Namespace:
    try:
        return parser_of("--conformance").parse_args(shlex.split(given))
    except SystemExit:
        raise pytest.UsageError(f"--conformance {given}") from None


_session = session


class _Item(pytest.Item):
    def __init__(self, *, kit: Session, **options: Any) -> None:
        super().__init__(**options)
        self.kit = kit

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Broken):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, int | None, str]:
        return "conformance", None, self.name


class CheckItem(_Item):
    """One check of one resource."""

    def __init__(self, *, case: tuple[Check, int], strict: bool, **options: Any) -> None:
        super().__init__(**options)
        self.case, self.strict = case, strict

    def runtest(self) -> None:
        result = self.kit.one(*self.case)
        if result.outcome is Outcome.SKIP:
            pytest.skip(result.reason[0])
        if result.outcome is Outcome.FAIL:
            if result.level is Level.SHOULD and not self.strict:
                pytest.skip(f"should: {result.reason[0]}")
            raise Broken("\n".join([result.rule, *result.reason]))


class TidyItem(_Item):
    """Nothing is left behind."""

    def runtest(self) -> None:
        left = self.kit.end().leftovers
        if left:
            raise Broken("\n".join(["left behind:", *left]))
