"""Results as JSON, and the names of messages in them."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core import cel
from fastapi_core.cel.results import misnamed, to_json
from fastapi_core.cel.types import DYN

ENVIRONMENT = cel.Environment({"object": DYN}, patches=True)


def evaluate(text: str) -> Any:
    return cel.compile_expression(text, ENVIRONMENT).evaluate({"object": {"a": [1, None]}})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("object.a", [1, None]),
        ("{'u': 1u, 't': dyn(timestamp('2020-01-01T00:00:00Z'))}", {"u": 1, "t": "2020-01-01T00:00:00Z"}),
        ("[duration('90s')]", ["90s"]),
        ("b'hi'", "aGk="),
        ("optional.of(1)", 1),
        ("optional.none()", None),
        ("Object{spec: Object.spec{n: 1}}", {"spec": {"n": 1}}),
    ],
)
def test_json(text: str, wanted: Any) -> None:
    text = text.replace("{'u': 1u,", "{'u': dyn(1u),")
    assert to_json(evaluate(text)) == wanted


@pytest.mark.parametrize("text", ["{1: 2}", "type(1)", "quantity('1')"])
def test_what_json_cannot_hold(text: str) -> None:
    with pytest.raises(cel.EvalError):
        to_json(evaluate(text))


def test_names_of_messages() -> None:
    text = "Object{spec: Object.spec{items: [Object.spec.items{a: 1}], other: Object.wrong{}}}"
    assert misnamed(evaluate(text)) == [
        'unexpected type name "Object.wrong", expected "Object.spec.other", '
        "which matches field name path from root Object type"
    ]
    assert misnamed(evaluate("Object{metadata: Object.metadata{labels: {'a': 'b'}}}")) == []
