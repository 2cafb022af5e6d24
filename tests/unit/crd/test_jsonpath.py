"""JSONPath of printer columns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.crd import jsonpath

DOCUMENT = {
    "spec": {"a": 1, "dotted.name": "d", "list": [{"n": "p", "v": 1}, {"n": "q", "v": 2}, {"v": 3}], "empty": []},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
    "metadata": {"labels": {"x/y": "1", "k": "v"}},
}


def found(path: str, document: Any = DOCUMENT) -> list[Any]:
    return list(jsonpath.find(jsonpath.parse(path), document))


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.a", [1]),
        ("{.spec.a}", [1]),
        ("spec.a", [1]),
        ("$.spec.a", [1]),
        (".spec.nothing.more", []),
        (r".spec.dotted\.name", ["d"]),
        (r".spec['dotted\.name']", ["d"]),
        (".metadata.labels['x/y']", ["1"]),
        (".metadata.labels.*", ["v", "1"]),
        (".spec['dotted.name']", []),
        (".spec.list[0:9]", []),
        (".spec.list[1:1]", []),
        ('.spec.list[?(@.v=="1")]', []),
        (".spec.list[?(@.v==1.0)]", []),
        (".spec.list[]", [{"n": "p", "v": 1}]),
        (".spec.list.n", []),
        (".spec.a .b", []),
        (".", []),
        (".spec.list[0].n", ["p"]),
        (".spec.list[-1].v", [3]),
        (".spec.list[7]", []),
        (".spec.list[0:2].v", [1, 2]),
        (".spec.list[::2].v", [1, 3]),
        (".spec.list[0,2].v", [1, 3]),
        (".spec.list[*].n", ["p", "q"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?(@.type == "No")].status', []),
        (".spec.list[?(@.v>1)].v", [2, 3]),
        (".spec.list[?(@.v<=1)].n", ["p"]),
        (".spec.list[?(@.n)].v", [1, 2]),
        ('.spec.list[?(@.n!="p")].v', [2]),
        ('.spec.list[?(@.v>"a")].v', []),
        ("..n", ["p", "q"]),
        (".spec.a[0]", []),
    ],
)
def test_paths(path: str, values: list[Any]) -> None:
    assert found(path) == values


@pytest.mark.parametrize(
    "path", [".spec[", "....", "[?@.a]", "[x]", '.a["b"]', ".a,b", ".a{b}", '[?(@.a=="b")', "[?(@.a", "[-]"]
)
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(jsonpath.PathError):
        jsonpath.parse(path)


@settings(max_examples=200)
@given(st.text(alphabet=".[]{}()?@*'\"\\ab01:,<>=!&| -", max_size=24))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        steps = jsonpath.parse(text)
    except jsonpath.PathError:
        return
    list(jsonpath.find(steps, DOCUMENT))
