"""Fixtures are plugins by topic; nothing else lives here."""

import pytest

# The contract suites are library code; their assertions should explain themselves all the same.
pytest.register_assert_rewrite("fastapi_core.testing")

pytest_plugins = ("tests.fixtures.server",)
