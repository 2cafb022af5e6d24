from __future__ import annotations

from typing import Any

import pytest

from fastapi_core._ext.reqinfo import parse
from fastapi_core.authz.base import attributes_of, denied
from fastapi_core.request.context import RequestContext, User
from tests.fixtures.exchange import FakeRequest


def refusal(method: str, target: str) -> Any:
    request: Any = FakeRequest(method, target)
    ctx = RequestContext(request, parse(method, request.path, request.query))
    ctx.user = User("alice")
    return denied(attributes_of(ctx))


@pytest.mark.parametrize(
    ("method", "target", "text", "details"),
    [
        (
            "GET",
            "/api/v1/namespaces/ns/pods/x",
            'pods "x" @ get resource "pods" in API group "" in the namespace "ns"',
            {"name": "x", "kind": "pods"},
        ),
        (
            "GET",
            "/apis/apps/v1/deployments",
            'deployments.apps @ list resource "deployments" in API group "apps" at the cluster scope',
            {"group": "apps", "kind": "deployments"},
        ),
        (
            "POST",
            "/api/v1/namespaces/ns/pods/x/exec",
            'pods "x" @ create resource "pods/exec" in API group "" in the namespace "ns"',
            {"name": "x", "kind": "pods"},
        ),
        ("POST", "/nosuch", 'forbidden: User "alice" cannot post path "/nosuch"', {}),
        (
            "GET",
            "/api/v1/namespaces/ns/pods?fieldSelector=metadata.name%3Dx",
            'pods "x" @ list resource "pods" in API group "" in the namespace "ns"',
            {"name": "x", "kind": "pods"},
        ),
    ],
)
def test_texts_are_the_reference_s(method: str, target: str, text: str, details: dict[str, str]) -> None:
    error = refusal(method, target)
    assert (error.code, error.message, error.details) == (
        403,
        text.replace("@", 'is forbidden: User "alice" cannot'),
        details,
    )


def test_a_reason_follows_the_text() -> None:
    request: Any = FakeRequest("GET", "/x")
    error = denied(attributes_of(RequestContext(request, parse("GET", "/x", ""))), "no rule")
    assert error.message == 'forbidden: User "system:anonymous" cannot get path "/x": no rule'
