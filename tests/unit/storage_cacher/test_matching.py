"""Matchers are shared by selector, and selectors of any length are taken."""

from __future__ import annotations

from fastapi_core._ext.objects import CachedObject
from fastapi_core.meta.selectors import parse_fields, parse_labels
from fastapi_core.storage.cacher.matching import matcher
from tests.unit.storage_cacher.support import PODS, encode, node_of, pod

KEY = PODS + "x/a"


def test_a_selector_gives_one_matcher() -> None:
    labels, fields = parse_labels("app=a,!b"), parse_fields("spec.nodeName=n")
    assert matcher((), ()) is None
    assert matcher(labels, fields, node_of) is matcher(parse_labels("!b, app = a"), fields, node_of)
    assert matcher(labels, fields, node_of) is not matcher(labels, fields)
    assert matcher(labels, ()) is not matcher((), fields)


def test_long_selectors_are_not_kept() -> None:
    fields = parse_fields("metadata.name!=" + "n" * 5000)
    first, second = matcher((), fields), matcher((), fields)
    assert first is not second
    assert first is not None
    assert first.matches(CachedObject(KEY, "x", "a", encode(pod(KEY)), 1, 1))
