"""What clients are told of versions: warnings, and objects of versions that are no more."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.crd.definitions import _warning

Tree = dict[str, Any]


def versions(*names: str, **members: Any) -> list[Tree]:
    return [{"name": name, "served": True, **members} for name in names]


@pytest.mark.parametrize(
    ("name", "others", "better"),
    [
        ("v1", versions("v1", "v2"), "; use g/v2 K"),
        ("v1", versions("v1", "v2", "v10", "v11beta1"), "; use g/v10 K"),
        ("v1beta1", versions("v1alpha1", "v1beta1"), ""),
        ("v1beta1", versions("v1beta1", "v1beta2"), "; use g/v1beta2 K"),
        ("v1", versions("v1", "v2", deprecated=True), ""),
        ("v1", [*versions("v1"), {"name": "v2", "served": False}], ""),
    ],
)
def test_a_deprecated_version_names_the_best_one_that_is_not(name: str, others: list[Tree], better: str) -> None:
    assert _warning("g", "K", name, others) == f"g/{name} K is deprecated{better}"
