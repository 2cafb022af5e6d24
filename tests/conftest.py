"""Fixtures are plugins by topic; nothing else lives here."""

import pytest

# The contract suites are library code; their assertions should explain themselves all the same.
pytest.register_assert_rewrite("fastapi_core.testing")

pytest_plugins = (
    "tests.fixtures.server",
    "tests.fixtures.kubelet",
    "tests.fixtures.admission",
    "tests.fixtures.aggregated",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gaps", action="store_true", help="run the recorded cases that are known not to pass, too")
