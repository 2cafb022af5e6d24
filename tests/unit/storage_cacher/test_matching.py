"""Matchers are shared by selector, and selectors of any length are taken."""

from __future__ import annotations

import gc
import weakref

from fastapi_core._ext.objects import CachedObject
from fastapi_core.meta.selectors import parse_fields, parse_labels
from fastapi_core.storage.cacher.matching import Matchers
from tests.unit.storage_cacher.support import PODS, encode, node_of, pod

KEY = PODS + "x/a"


def test_a_selector_gives_one_matcher() -> None:
    labels, fields = parse_labels("app=a,!b"), parse_fields("spec.nodeName=n")
    pods = Matchers(node_of)
    assert pods.of((), ()) is None
    assert pods.of(labels, fields) is pods.of(parse_labels("!b, app = a"), fields)
    assert pods.of(labels, fields) is not Matchers(node_of).of(labels, fields)
    assert pods.of(labels, ()) is not pods.of((), fields)


def test_long_selectors_are_not_kept() -> None:
    fields = parse_fields("metadata.name!=" + "n" * 5000)
    pods = Matchers()
    first, second = pods.of((), fields), pods.of((), fields)
    assert first is not second
    assert first is not None
    assert first.matches(CachedObject(KEY, "x", "a", encode(pod(KEY)), 1, 1))


def test_what_is_remembered_ends_with_its_resource() -> None:
    class Resource:
        def __init__(self) -> None:
            self.matchers = Matchers(self.extract)

        def extract(self, obj: CachedObject) -> dict[str, str]:
            return node_of(obj)

    resource = Resource()
    assert resource.matchers.of(parse_labels("app=a"), ()) is not None
    gone = weakref.ref(resource)
    del resource
    gc.collect()
    assert gone() is None
