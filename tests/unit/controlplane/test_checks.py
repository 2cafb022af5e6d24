from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastapi_core.controlplane.checks import ORDER
from fastapi_core.obs.catalog import Metrics
from fastapi_core.server.health import ALL, Check, Health

FACTS = Path(__file__).parents[3].parent / "shared/facts/health.json"


def test_the_order_is_the_recorded_one() -> None:
    if not FACTS.exists():
        pytest.skip("facts are not here")
    facts = json.loads(FACTS.read_text())
    for endpoint in ALL:
        recorded = [name for name in facts["order"][endpoint] if name != "shutdown"]
        assert [name for name in ORDER if name in recorded] == recorded


def test_registration_decides_nothing_that_is_arranged() -> None:
    health = Health(Metrics())
    health.arrange(ORDER)
    for name in ("own", "poststarthook/rbac/bootstrap-roles", "etcd", "other", "ping"):
        health.add(Check(name, lambda: None))
    health.add(Check("shutdown", lambda: None, ("readyz",), last=True))
    health.add(Check("late", lambda: None))
    assert [c.name for c in health.of("readyz")] == [
        "ping", "etcd", "poststarthook/rbac/bootstrap-roles", "own", "other", "late", "shutdown",
    ]  # fmt: skip
