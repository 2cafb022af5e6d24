"""The delegation chain: who wins, what a change replaces, what thousands of custom resources cost."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core._ext.router import Router
from fastapi_core.apis.resources import builtin
from fastapi_core.controlplane.delegation import Delegation
from fastapi_core.http.exchange import Answer, Response
from fastapi_core.registry.definition import ResourceDefinition, Subresource
from fastapi_core.request.context import RequestContext
from fastapi_core.request.routing import ANY, resource_routes


def named(name: str) -> Any:
    def endpoint(ctx: RequestContext) -> Answer:
        return Response(200, [], name.encode())

    return endpoint


def custom(group: str, plural: str, *, namespaced: bool = True, version: str = "v1") -> ResourceDefinition:
    base = next(d for d in builtin() if d.plural == "configmaps")
    return ResourceDefinition(
        group=group, version=version, kind=plural.title(), plural=plural, singular=plural, namespaced=namespaced,
        verbs=base.verbs, type=base.type, storage_group=group, storage_version=version,
        key_prefix=f"/registry/{group}/{plural}/", custom=True,
        subresources={"status": Subresource("status", ("get",), plural.title())},
    )  # fmt: skip


def verbs(name: str) -> dict[str, Any]:
    return {verb: named(f"{name} {verb}") for verb in ("get", "list", "watch", "create", "status:get")}


def answer(delegation: Delegation, path: str, method: str = "GET") -> str | None:
    match = delegation.current.lookup(path)
    if match is None:
        return None
    endpoint = match.methods.get(method) or match.methods.get(ANY)
    if endpoint is None:
        return "405"
    response: Any = endpoint(None)  # type: ignore[arg-type]
    return f"{response.body.decode()} {match.params}"


@pytest.fixture
def delegation() -> Delegation:
    made = Delegation()
    made.set_builtin(
        [("/apis/apps/v1/deployments{/}", {"GET": named("deployments")}), ("/apis", {ANY: named("groups")})], ["apps"]
    )
    return made


def test_empty_seats_change_nothing(delegation: Delegation) -> None:
    assert answer(delegation, "/apis/apps/v1/deployments") == "deployments {}"
    assert answer(delegation, "/apis/apps/v1/deployments", "POST") == "405"
    assert answer(delegation, "/apis/example.com/v1/foos") is None
    assert answer(delegation, "/nothing") is None
    assert delegation.known_group("apps")
    assert not delegation.known_group("example.com")


def test_a_custom_resource_comes_and_goes(delegation: Delegation) -> None:
    before = delegation.current
    delegation.put_custom(custom("example.com", "foos"), verbs("foos"))
    delegation.put_documents("example.com", [("/apis/example.com", {ANY: named("group")}),
                                             ("/apis/example.com/v1", {ANY: named("version")})])  # fmt: skip
    root = "/apis/example.com/v1"
    assert answer(delegation, f"{root}/namespaces/a/foos/x") == "foos get {'namespace': 'a', 'name': 'x'}"
    assert answer(delegation, f"{root}/namespaces/a/foos/x/status") == "foos status:get {'namespace': 'a', 'name': 'x'}"
    assert answer(delegation, f"{root}/namespaces/a/foos", "POST") == "foos create {'namespace': 'a'}"
    assert answer(delegation, f"{root}/namespaces/a/foos", "PUT") == "405"
    assert answer(delegation, f"{root}/foos") == "foos list {}"
    assert answer(delegation, f"{root}/foos/") == "foos list {}"
    assert answer(delegation, "/apis/example.com") == "group {}"
    assert answer(delegation, root) == "version {}"
    for path in (f"{root}/bars", f"{root}/namespaces/a/foos/x/y", "/apis/example.com/v2/foos", f"{root}//foos"):
        assert answer(delegation, path) is None, path
    assert not delegation.known_group("example.com"), "a miss there is a missing page"
    assert before.lookup(f"{root}/foos") is None, "a snapshot never changes"
    delegation.drop_custom("example.com", "v1", "foos")
    assert answer(delegation, f"{root}/foos") is None
    assert answer(delegation, root) == "version {}"
    delegation.put_documents("example.com", [])
    delegation.drop_custom("example.com", "v1", "foos")
    assert replace(delegation.current) == before


def test_a_resource_named_namespaces(delegation: Delegation) -> None:
    delegation.put_custom(custom("x.io", "namespaces", namespaced=False), verbs("ns"))
    delegation.put_custom(custom("x.io", "foos"), verbs("foos"))
    assert answer(delegation, "/apis/x.io/v1/namespaces/a") == "ns get {'name': 'a'}"
    assert answer(delegation, "/apis/x.io/v1/namespaces/a/status") == "ns status:get {'name': 'a'}"
    assert answer(delegation, "/apis/x.io/v1/namespaces/a/foos") == "foos list {'namespace': 'a'}"
    assert answer(delegation, "/apis/x.io/v1/namespaces/a/foos/b") == "foos get {'namespace': 'a', 'name': 'b'}"


@pytest.mark.parametrize("path", ["/apis/x.io/v1/f%6Fos", "/apis/x%2Eio/v1/foos", "/apis%2Fx.io/v1/foos"])
def test_encoded_paths_reach_what_decoded_ones_reach(delegation: Delegation, path: str) -> None:
    delegation.put_custom(custom("x.io", "foos"), verbs("foos"))
    assert answer(delegation, path) == "foos list {}"


@pytest.mark.parametrize("path", ["/apis/X.io/v1/foos", "/APIS/x.io/v1/foos", "//apis/x.io/v1/foos", "/apis//x.io/v1/foos",
                                  "/apis/x.io/v1/../v1/foos", "/apis/x.io/v1/./foos", "/apis/x.io/v1/%2e%2e/v1/foos",
                                  "apis/x.io/v1/foos"])  # fmt: skip
def test_other_spellings_reach_nothing(delegation: Delegation, path: str) -> None:
    delegation.put_custom(custom("x.io", "foos"), verbs("foos"))
    delegation.put_aggregated("x.io", "v2", named("remote"))
    assert answer(delegation, path) is None
    assert answer(delegation, path.replace("v1", "v2")) is None


def test_an_aggregated_server_wins_and_can_be_taken_back(delegation: Delegation) -> None:
    delegation.put_custom(custom("x.io", "foos"), verbs("foos"))
    delegation.put_aggregated("x.io", "v1", named("remote"))
    delegation.put_aggregated("apps", "v1", named("other"))
    assert answer(delegation, "/apis/x.io/v1/foos", "PATCH") == "remote {'rest': 'foos'}"
    assert answer(delegation, "/apis/x.io/v1") == "remote {}"
    assert answer(delegation, "/apis/x.io/v1/") == "remote {'rest': ''}"
    assert answer(delegation, "/apis/apps/v1/deployments") == "other {'rest': 'deployments'}"
    assert answer(delegation, "/apis/x.io/v10/foos") is None
    assert answer(delegation, "/apis") == "groups {}"
    delegation.drop_aggregated("x.io", "v1")
    delegation.drop_aggregated("apps", "v1")
    assert answer(delegation, "/apis/x.io/v1/foos") == "foos list {}"
    assert answer(delegation, "/apis/apps/v1/deployments") == "deployments {}"


def test_one_change_among_a_thousand_is_cheap(delegation: Delegation) -> None:
    first = custom("x.io", "first")
    started = time.process_time()
    delegation.put_custom(first, verbs("first"))
    alone = time.process_time() - started
    for number in range(1000):
        delegation.put_custom(custom(f"g{number % 50}.io", f"r{number}"), verbs("r"))
    routers = delegation.current.custom["g1.io", "v1"]
    started = time.process_time()
    delegation.put_custom(custom("g1.io", "late"), verbs("late"))
    late = time.process_time() - started
    # Everything else is the same object: nothing was made again.
    assert all(delegation.current.custom["g1.io", "v1"][name] is router for name, router in routers.items())
    assert late < max(50 * alone, 0.005)


SEGMENTS = st.sampled_from(
    [
        "apis",
        "x.io",
        "y.io",
        "v1",
        "v2",
        "foos",
        "bars",
        "namespaces",
        "watch",
        "status",
        "a",
        "",
        "%66oos",
        "x%2Eio",
        "a%2Fb",
        ".",
    ]
)
SERVED = [custom("x.io", "foos"), custom("x.io", "bars", namespaced=False), custom("y.io", "foos", version="v2")]


@given(st.lists(SEGMENTS, max_size=9), st.booleans())
def test_two_levels_find_what_one_router_of_everything_finds(segments: list[str], trailing: bool) -> None:
    path = "/apis/" + "/".join(segments) + ("/" if trailing else "")
    delegation = Delegation()
    for definition in SERVED:
        delegation.put_custom(definition, verbs(definition.plural))
    everything: Router[Any] = Router([route for d in SERVED for route in resource_routes(d, verbs(d.plural))])
    found, wanted = delegation.lookup(path), everything.lookup(path)
    assert (found is None) == (wanted is None), path
    if found is not None and wanted is not None:
        assert found.params == wanted.params
        assert found.methods.keys() == wanted.methods.keys()


def test_documents_of_registered_groups_stand_before_all_others(delegation: Delegation) -> None:
    delegation.put_documents(
        "g.test", [("/apis/g.test{/}", {ANY: named("custom")}), ("/apis/g.test/v1{/}", {ANY: named("v1")})]
    )
    delegation.put_listed("g.test", named("registered"))
    for path in ("/apis/g.test", "/apis/g.test/", "/apis/g%2Etest"):
        assert answer(delegation, path) == "registered {}"
    assert answer(delegation, "/apis/g.test/v1") == "v1 {}"
    assert answer(delegation, "/apis") == "groups {}"
    delegation.put_aggregated("g.test", "v1", named("remote"))
    assert answer(delegation, "/apis/g.test/v1") == "remote {}"
    assert answer(delegation, "/apis/g.test/v1/../x") is None
    delegation.drop_aggregated("g.test", "v1")
    delegation.drop_listed("g.test")
    assert answer(delegation, "/apis/g.test") == "custom {}"


def test_the_old_watch_paths_and_a_resource_named_watch(delegation: Delegation) -> None:
    delegation.put_custom(custom("x.io", "foos"), verbs("foos"))
    delegation.put_custom(custom("x.io", "watch", namespaced=False), verbs("watch"))
    assert answer(delegation, "/apis/x.io/v1/watch/foos") == "foos watch {}"
    assert answer(delegation, "/apis/x.io/v1/watch/namespaces/n/foos") == "foos watch {'namespace': 'n'}"
    assert answer(delegation, "/apis/x.io/v1/watch/namespaces/n/foos/a") == "foos watch {'namespace': 'n', 'name': 'a'}"
    assert answer(delegation, "/apis/x.io/v1/watch") == "watch list {}"
    assert answer(delegation, "/apis/x.io/v1/watch/a") == "watch get {'name': 'a'}"
