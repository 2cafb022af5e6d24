"""What a delete of a namespace says, and refuses."""

from __future__ import annotations

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.errors import APIError
from fastapi_core.registry import lifecycle

NAMESPACES = next(d for d in builtin() if (d.group, d.kind) == ("", "Namespace"))


def test_preconditions_of_a_namespace_are_those_of_an_update() -> None:
    space = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}
    lifecycle.check_preconditions(space, NAMESPACES, "u", "7")
    with pytest.raises(APIError) as caught:
        lifecycle.check_preconditions(space, NAMESPACES, "u", "8")
    assert caught.value.message == (
        'Operation cannot be fulfilled on namespaces "a": Precondition failed: '
        "ResourceVersion in precondition: 8, ResourceVersion in object meta: 7"
    )


@pytest.mark.parametrize(
    ("orphan", "propagation", "left"),
    [
        (None, "", ["x.y/z"]),
        (None, "Orphan", ["x.y/z", "orphan"]),
        (True, "", ["x.y/z", "orphan"]),
        (False, "", ["x.y/z", "foregroundDeletion"]),
    ],
)
def test_an_orphaned_namespace_says_so(orphan: bool | None, propagation: str, left: list[str]) -> None:
    space = {"metadata": {"name": "a", "finalizers": ["x.y/z"]}, "spec": {"finalizers": ["kubernetes"]}}
    plan = lifecycle.plan_deletion(NAMESPACES, space, grace=None, orphan=orphan, propagation=propagation)
    assert plan.tree["metadata"]["finalizers"] == left
    assert space["metadata"]["finalizers"] == ["x.y/z"]  # type: ignore[index]
