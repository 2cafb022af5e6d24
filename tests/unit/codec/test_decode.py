"""From bytes to a normalised tree: repeated keys, unknown members, both at once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.codec.decode import Decoded, DecodeError, by_name, decode
from fastapi_core.codec.fold import fold
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_of

CONFIG_MAP = type_of("core/v1.ConfigMap")
POD = type_of("core/v1.Pod")


@pytest.mark.parametrize(
    ("body", "data", "complaints"),
    [
        ('{"data":{"a":"1"},"data":{"b":"2"}}', {"a": "1", "b": "2"}, ['duplicate field "data"']),
        ('{"data":{"a":"1","a":"2"}}', {"a": "2"}, ['duplicate field "data.a"']),
        ('{"data":{"a":"1"},"data":null}', None, ['duplicate field "data"']),
        ('{"data":null,"data":{"a":null}}', {"a": ""}, ['duplicate field "data"']),
        ('{"x":{"y":1,"y":2},"x":1}', None, ['unknown field "x"']),
        (
            '{"a":1,"data":{"k":"1","k":"2"},"b":1}',
            {"k": "2"},
            ['unknown field "a"', 'duplicate field "data.k"', 'unknown field "b"'],
        ),
    ],
)
def test_config_maps(body: str, data: Any, complaints: list[str]) -> None:
    result = decode(CONFIG_MAP, body.encode())
    assert result.tree.get("data") == data
    assert result.complaints == complaints


def test_structs_and_lists_are_merged() -> None:
    body = b"""{"metadata":{"name":"a","labels":{"x":"1"}},"metadata":{"labels":{"y":"2"},"creationTimestamp":null},
        "spec":{"containers":[{"name":"a"},{"name":"b"}],"containers":[{"image":"i"}],"hostPID":true,"hostPID":null}}"""
    result = decode(POD, body)
    assert result.tree == {
        "metadata": {"name": "a", "labels": {"x": "1", "y": "2"}},
        "spec": {"containers": [{"name": "a", "image": "i", "resources": {}}], "hostPID": True},
        "status": {},
    }
    assert result.complaints == [
        f'duplicate field "{path}"' for path in ("metadata", "spec.containers", "spec.hostPID")
    ]


def test_untyped_values_are_not_looked_into() -> None:
    revision = type_of("apps/v1.ControllerRevision")
    result = decode(revision, b'{"data":{"a":1,"a":2},"revision":1,"revision":2}')
    assert (result.tree["data"], result.tree["revision"]) == ({"a": 2}, 2)
    assert result.complaints == ['duplicate field "revision"']
    assert decode(None, b'{"a":{"b":1,"b":2}}') == Decoded({"a": {"b": 2}}, ['duplicate field "a.b"'])


def test_the_same_complaint_comes_once_and_no_more_than_a_hundred() -> None:
    assert decode(CONFIG_MAP, b'{"data":{"a":"1","a":"2","a":"3"}}').complaints == ['duplicate field "data.a"']
    many = ",".join(f'"x{i}":1' for i in range(300))
    assert len(decode(CONFIG_MAP, f"{{{many}}}".encode()).complaints) == 100
    assert len(decode(CONFIG_MAP, f'{{{many},"data":null,"data":null}}'.encode()).complaints) == 100


def test_yaml_complains_with_one_text() -> None:
    result = decode(CONFIG_MAP, b"data:\n  a: '1'\n  a: '2'\nnope: 1\n", "yaml")
    assert result.tree["data"] == {"a": "2"}
    assert result.complaints == [
        'yaml: unmarshal errors:\n  line 3: key "a" already set in map',
        'unknown field "nope"',
    ]


def test_failures() -> None:
    with pytest.raises(DecodeError, match=r"unexpected end of JSON input"):
        decode(POD, b"{")
    with pytest.raises(DecodeError, match=r"of type v1\.PodSpec"):
        decode(POD, b'{"spec":1}')
    with pytest.raises(DecodeError, match=r"of type v1\.PodSpec"):
        decode(POD, b'{"spec":{},"spec":1}')
    with pytest.raises(DecodeError, match=r"of type v1\.Pod"):
        decode(POD, b"[]")
    with pytest.raises(DecodeError, match=r"Go struct field ConfigMap\.data of type string"):
        decode(CONFIG_MAP, b'{"data":{"a":1,"a":2}}')


NAMES = st.sampled_from(
    ["metadata", "spec", "status", "containers", "name", "labels", "hostPID", "nope", "priority", "phase"]
)
TREES = st.recursive(
    st.sampled_from([None, True, 1, "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(NAMES, TREES, max_size=4))
def test_folding_changes_nothing_without_duplicates(tree: dict[str, Any]) -> None:
    body = json.dumps(tree).encode()
    try:
        expected = normalize(POD, tree)
    except DecodeError:
        with pytest.raises(DecodeError):
            normalize(POD, fold(body, POD).tree)
        return
    folded = fold(body, POD)
    assert not folded.duplicates
    assert folded.complaints == [f'unknown field "{path}"' for path in expected.unknown]
    assert normalize(POD, folded.tree).tree == expected.tree


def test_yaml_is_read_in_the_order_of_names() -> None:
    body = b"z: 1\nspec:\n  b: 1\n  containers:\n  - {image: x, zz: 1, aa: 1}\n  a1: 1\na: 1\n"
    assert decode(POD, body, "yaml").complaints == [
        'unknown field "a"',
        'unknown field "spec.a1"',
        'unknown field "spec.b"',
        'unknown field "spec.containers[0].aa"',
        'unknown field "spec.containers[0].zz"',
        'unknown field "z"',
    ]
    assert by_name(["a[10].b", "a[2].b", "ab", "a.b"]) == ["a.b", "a[2].b", "a[10].b", "ab"]
