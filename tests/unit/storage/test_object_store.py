"""Objects in key order, however their changes come and whenever somebody looks."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext.objects import CachedObject
from fastapi_core.storage.cacher import store as module
from fastapi_core.storage.cacher.store import ObjectStore
from fastapi_core.storage.keys import prefix_end

KEYS = [f"/registry/x/{namespace}/{name}" for namespace in ("a", "a-b", "b") for name in ("m", "n", "o")]
PREFIXES = ["/registry/x/", "/registry/x/a/", "/registry/x/a-b/", "/registry/x/c/"]
STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(KEYS)),
    st.tuples(st.just("remove"), st.sampled_from(KEYS)),
    st.tuples(st.just("list"), st.sampled_from(PREFIXES)),
)


def made(key: str, revision: int) -> CachedObject:
    return CachedObject(key, "n", "m", b'{"kind":"X","apiVersion":"v1","metadata":{"name":"m"}}', revision, revision)


@pytest.mark.parametrize(("few", "late"), [(64, 1024), (0, 1024), (2, 3), (0, 1)])
def test_as_a_sorted_dictionary(few: int, late: int) -> None:
    @given(st.lists(STEPS, max_size=40))
    @settings(max_examples=60)
    def run(steps: list[tuple[str, str]]) -> None:
        store, model = ObjectStore(), {}
        for number, (what, key) in enumerate(steps, 1):
            if what == "put":
                obj = made(key, number)
                assert store.put(obj) is model.get(key)
                model[key] = obj
            elif what == "remove":
                assert store.remove(key) is model.pop(key, None)
            else:
                low, high = store.bounds(key)
                wanted = sorted(each for each in model if key <= each < prefix_end(key))
                assert store.keys[low:high] == wanted
                assert store.objects[low:high] == [model[each] for each in wanted]
            assert store.by_key == model
            assert store.size == sum(len(obj.body) for obj in model.values())

    with mock.patch.multiple(module, FEW=few, LATE=late):
        run()


def test_old_states_are_let_go() -> None:
    """Objects that change again and again, with nobody listing them, do not pile up."""
    store = ObjectStore()
    for key in (f"/registry/x/a/{number:05}" for number in range(3 * module.LATE)):
        store.append(made(key, 1))
    for revision in (2, 3):
        for key in list(store.by_key):
            store.put(made(key, revision))
    assert sum(obj.revision < 3 for obj in store.objects) <= module.LATE
