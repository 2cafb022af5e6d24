"""Every test of the HTTP server leaves no request, connection or protocol behind, and needs no collector for that."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fastapi_core._ext import http1


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    gc.collect()
    yield
    assert set(http1.live().values()) == {0}
