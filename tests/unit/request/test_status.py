from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.codec import protobuf
from fastapi_core.errors import not_found
from fastapi_core.request.status import render_error
from fastapi_core.schema.tables import type_of
from tests.fixtures.exchange import FakeRequest, header

ERROR = not_found("configmaps", "", "none")
COMPACT = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \\"none\\" not found",'
    b'"reason":"NotFound","details":{"name":"none","kind":"configmaps"},"code":404}\n'
)
PRETTY = (
    b'{\n  "kind": "Status",\n  "apiVersion": "v1",\n  "metadata": {},\n  "status": "Failure",\n'
    b'  "message": "configmaps \\"none\\" not found",\n  "reason": "NotFound",\n  "details": {\n'
    b'    "name": "none",\n    "kind": "configmaps"\n  },\n  "code": 404\n}'
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
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", COMPACT), ("text/html", PRETTY),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", PRETTY),
        ("application/json;q=0", COMPACT), ("application/vnd.kubernetes.protobuf;q=0.2,application/yaml;q=0.5", YAML),
    ],
)  # fmt: skip
def test_failures_come_in_the_accepted_format(accept: str | None, body: bytes) -> None:
    request: Any = FakeRequest(headers={"Accept": accept} if accept else None)
    answer = render_error(ERROR, request)
    assert (answer.status, answer.body) == (404, body)
    assert header(answer, "Content-Type") == ("application/yaml" if body is YAML else "application/json")


def test_failures_in_protobuf() -> None:
    request: Any = FakeRequest(headers={"Accept": "application/vnd.kubernetes.protobuf,application/json"})
    answer = render_error(ERROR, request)
    assert header(answer, "Content-Type") == "application/vnd.kubernetes.protobuf"
    assert isinstance(answer.body, bytes)
    envelope = protobuf.open_envelope(answer.body)
    assert (envelope.api_version, envelope.kind) == ("v1", "Status")
    sent = protobuf.decode(type_of("meta/v1.Status"), envelope.message)
    assert (sent["status"], sent["reason"], sent["code"]) == ("Failure", "NotFound", 404)
    assert sent["message"] == 'configmaps "none" not found'
    assert sent["details"] == {"name": "none", "kind": "configmaps"}


def test_accept_may_ask_for_indentation() -> None:
    request: Any = FakeRequest(headers={"Accept": "application/json;pretty=1"})
    body = render_error(ERROR, request).body
    assert isinstance(body, bytes)
    assert body.startswith(b'{\n  "kind": "Status",\n  "apiVersion": "v1",\n  "metadata": {},\n')
