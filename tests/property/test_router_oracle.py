"""The compiled router equals the oracle for any set of routes and any path."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext.router import Router
from tests.oracles import router as oracle

literal = st.sampled_from(["api", "v1", "watch", "namespaces", "pods", "proxy", "a.b", "x"])
segment = st.one_of(literal, literal, st.sampled_from(["{name}"]))


def _pattern(segments: list[str], end: str) -> str:
    # Parameters are named by their place, so that no two patterns for the same path contradict each other.
    body = "".join(f"/{{p{i}}}" if s == "{name}" else "/" + s for i, s in enumerate(segments))
    if not body:
        return "/" if end != "/{rest...}" else end
    return body + end


patterns = st.builds(_pattern, st.lists(segment, max_size=5), st.sampled_from(["", "{/}", "/", "/{rest...}"]))


def _consistent(found: list[str]) -> list[str]:
    kept: dict[str, str] = {}
    for pattern in found:
        kept.setdefault(pattern.removesuffix("{/}"), pattern)
    return list(kept.values())


tables = st.lists(patterns, max_size=12).map(_consistent)
sent = st.one_of(
    literal,
    literal,
    st.sampled_from(["", "ns", "%61pi", "%2F", "a%2Fb", "%zz", "%", "%ff", "é", "..", "%2e%2e", "x y"]),
)
paths = st.one_of(
    st.builds(
        lambda a, b: "/" + "/".join(a) + b, st.lists(sent, max_size=7), st.sampled_from(["", "", "/", "//", "/%2F"])
    ),
    st.text(max_size=20).map(lambda x: "/" + x),
)


@settings(max_examples=200, deadline=None)
@given(tables, st.lists(paths, min_size=1, max_size=10))
def test_lookup_equals_the_oracle(table: list[str], requests: list[str]) -> None:
    routes: list[tuple[str, dict[str, Any]]] = [(p, {"GET": p}) for p in table]
    router = Router(routes)
    assert router.paths() == sorted(p.removesuffix("{/}") for p in table)
    for path in requests:
        got = router.lookup(path)
        want = oracle.lookup(routes, path)
        assert (None if got is None else (got.methods, got.params)) == want, (path, table)


@settings(max_examples=100, deadline=None)
@given(tables)
def test_every_route_without_rest_is_found_by_an_example_of_itself(table: list[str]) -> None:
    router = Router([(p, {"GET": p}) for p in table])
    for pattern in table:
        if pattern.endswith("...}"):
            continue
        path = pattern.removesuffix("{/}")
        for i in range(5):
            path = path.replace(f"{{p{i}}}", "zzz")
        found = router.lookup(path)
        assert found is not None
        assert found.methods["GET"] in (pattern, pattern.removesuffix("/") + "{/}")
