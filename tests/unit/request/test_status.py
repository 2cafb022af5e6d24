from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.errors import not_found
from fastapi_core.request.status import render_error
from tests.fixtures.exchange import FakeRequest, header

ERROR = not_found("configmaps", "", "none")
COMPACT = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \\"none\\" not found",'
    b'"reason":"NotFound","details":{"name":"none","kind":"configmaps"},"code":404}\n'
)
YAML = (
    b"apiVersion: v1\ncode: 404\ndetails:\n  kind: configmaps\n  name: none\nkind: Status\n"
    b'message: configmaps "none" not found\nmetadata: {}\nreason: NotFound\nstatus: Failure\n'
)


@pytest.mark.parametrize(
    ("accept", "body"),
    [
        (None, COMPACT), ("*/*", COMPACT), ("application/json", COMPACT), ("text/html,application/json", COMPACT),
        ("application/json;q=0.1,application/yaml", YAML), ("application/yaml, application/json", YAML),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", COMPACT), ("text/html", COMPACT),
        ("application/json;q=0", COMPACT), ("application/vnd.kubernetes.protobuf;q=0.2,application/yaml;q=0.5", YAML),
    ],
)  # fmt: skip
def test_failures_come_in_the_accepted_format(accept: str | None, body: bytes) -> None:
    request: Any = FakeRequest(headers={"Accept": accept} if accept else None)
    answer = render_error(ERROR, request)
    assert (answer.status, answer.body) == (404, body)
    assert header(answer, "Content-Type") == ("application/yaml" if body is YAML else "application/json")


def test_accept_may_ask_for_indentation() -> None:
    request: Any = FakeRequest(headers={"Accept": "application/json;pretty=1"})
    body = render_error(ERROR, request).body
    assert isinstance(body, bytes)
    assert body.startswith(b'{\n  "kind": "Status",\n  "apiVersion": "v1",\n  "metadata": {},\n')
