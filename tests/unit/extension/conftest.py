"""No test of extensions leaves a request or connection behind: what a kind keeps must not keep who asked first."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fastapi_core._ext import http1


@pytest.fixture(autouse=True, scope="module")
def nothing_leaks() -> Iterator[None]:
    gc.collect()
    before = http1.live()
    yield
    gc.collect()
    assert http1.live() == before
