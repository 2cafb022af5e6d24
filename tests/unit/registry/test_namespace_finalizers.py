"""The finalizers that the first delete of a namespace leaves."""

from __future__ import annotations

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.registry.lifecycle import plan_deletion

NAMESPACES = next(d for d in builtin() if d.plural == "namespaces")


@pytest.mark.parametrize(
    ("present", "orphan", "propagation", "left"),
    [
        ([], None, "", []),
        (["orphan"], None, "", ["orphan"]),
        (["a.b/c"], None, "Foreground", ["a.b/c", "foregroundDeletion"]),
        ([], None, "Orphan", ["orphan"]),
        (["orphan"], None, "Background", []),
        ([], True, "", ["orphan"]),
        (["orphan"], False, "", ["foregroundDeletion"]),
    ],
)
def test_finalizers(present: list[str], orphan: bool | None, propagation: str, left: list[str]) -> None:
    old = {"metadata": {"name": "a", "finalizers": present}, "spec": {"finalizers": ["kubernetes"]}}
    plan = plan_deletion(NAMESPACES, old, grace=None, orphan=orphan, propagation=propagation)
    assert (plan.tree["metadata"].get("finalizers") or []) == left
    assert plan.tree["status"]["phase"] == "Terminating"
    assert (plan.changed, plan.remove) == (True, False)
