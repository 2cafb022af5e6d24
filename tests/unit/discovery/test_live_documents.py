"""Documents joined from groups are those that would be made of all definitions at once."""

from __future__ import annotations

from dataclasses import replace

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.apis.resources import builtin
from fastapi_core.discovery.documents import DiscoveryDocuments
from fastapi_core.discovery.live import LiveDocuments
from fastapi_core.registry.definition import ResourceDefinition

OWN = [definition for definition in builtin() if definition.group in ("", "apps", "storage.k8s.io")]
BUILTIN = DiscoveryDocuments(OWN)
MODEL = next(definition for definition in OWN if definition.plural == "deployments")
GROUPS = ("a.example.com", "b.example.com", "zz.io", "storage.k8s.io")


def custom(group: str, version: str, plural: str) -> ResourceDefinition:
    return replace(
        MODEL, group=group, version=version, plural=plural, kind=plural.title(), custom=True, subresources={},
        storage_version_hash="",
    )  # fmt: skip


states = st.dictionaries(
    st.tuples(
        st.sampled_from(GROUPS), st.sampled_from(["v1", "v2beta1", "v7", "odd"]), st.sampled_from(["foos", "bars"])
    ),
    st.none(),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(states, min_size=1, max_size=5))
def test_whatever_comes_and_goes(history: list[dict[tuple[str, str, str], None]]) -> None:
    live = LiveDocuments(BUILTIN, OWN)
    now: list[ResourceDefinition] = []
    for state in history:
        now = [custom(*key) for key in state]
        for group in GROUPS:
            live.put(group, [definition for definition in now if definition.group == group])
    expected = DiscoveryDocuments([*OWN, *now])
    assert orjson.loads(live.group_list.json) == expected.group_list.tree
    assert orjson.loads(live.aggregated_groups.json) == expected.aggregated_groups.tree
    assert live.group_list.json == expected.group_list.json
    assert live.group_list.etag == expected.group_list.etag
    for group, versions in expected.versions.items():
        if group:
            own, theirs = live.group(group), expected.group(group)
            assert own is not None
            assert theirs is not None
            assert own.json == theirs.json
        for version in versions:
            listed = live.resource_list(group, version)
            assert listed is not None
            assert listed.json == expected.resource_lists[(group, version)].json
    assert live.group("nobody.example.com") is None


def test_versions_of_their_own_are_told() -> None:
    live = LiveDocuments(BUILTIN, OWN)
    added = [custom("storage.k8s.io", "v1", "foos"), custom("storage.k8s.io", "v9", "foos")]
    assert live.put("storage.k8s.io", added) == ("v9",)
    assert live.put("storage.k8s.io", []) == ()
    assert live.group_list.json == BUILTIN.group_list.json
    other = DiscoveryDocuments(OWN, server_address="h:1")
    live.rebase(other)
    assert live.core.json == other.core.json
