"""Contract suites are library code; their assertions are rewritten all the same."""

import pytest

pytest.register_assert_rewrite("fastapi_core.testing")
