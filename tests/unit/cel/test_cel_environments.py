"""The environments that users of the language share."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core import cel
from fastapi_core.cel.admission import base_environment, policy_environment
from fastapi_core.cel.identity import claims_environment, review_environment, user_environment
from fastapi_core.cel.types import BOOL, INT

CLAIMS = {"sub": "me", "groups": ["a"], "email_verified": True, "nested": {"k": 1}}
USER = {"username": "u", "groups": ["g"], "extra": {"k": ["v"]}}
REVIEW = {"user": "u", "resourceAttributes": {"verb": "get", "namespace": "ns"}}


@pytest.mark.parametrize(
    ("environment", "values", "text", "wanted"),
    [
        (claims_environment(), {"claims": CLAIMS}, "claims.sub + '!'", "me!"),
        (claims_environment(), {"claims": CLAIMS}, "claims.groups.exists(g, g == 'a')", True),
        (claims_environment(), {"claims": CLAIMS}, "claims.?nope.orValue('x')", "x"),
        (claims_environment(), {"claims": CLAIMS}, "has(claims.nested) && claims.nested.k == 1", True),
        (user_environment(), {"user": USER}, "!user.username.startsWith('system:')", True),
        (user_environment(), {"user": USER}, "user.extra['k'].all(v, v == 'v')", True),
        (review_environment(), {"request": REVIEW}, "has(request.resourceAttributes)", True),
        (review_environment(), {"request": REVIEW}, "request.resourceAttributes.namespace == 'ns'", True),
        (review_environment(), {"request": REVIEW}, "has(request.nonResourceAttributes)", False),
    ],
)
def test_identity(environment: cel.Environment, values: dict[str, Any], text: str, wanted: Any) -> None:
    assert cel.compile_expression(text, environment).evaluate(values) == wanted


def test_refused() -> None:
    with pytest.raises(cel.CompileError, match="undefined field 'name'"):
        cel.compile_expression("user.name", user_environment())
    with pytest.raises(cel.CompileError, match=r"applied to '\(string, int\)'"):
        cel.compile_expression("request.user == 1", review_environment())


def test_admission() -> None:
    environment = policy_environment({"n": INT}, params=True)
    program = cel.compile_expression(
        "object.metadata.name != 'x' && params.limit > variables.n && request.operation == 'CREATE'"
        " && (namespaceObject == null || namespaceObject.metadata.name == 'ns') && oldObject == null",
        environment,
        [BOOL],
    )
    values = {
        "object": {"metadata": {"name": "y"}},
        "oldObject": None,
        "params": {"limit": 3},
        "variables": {"n": 2},
        "request": {"operation": "CREATE"},
        "namespaceObject": None,
    }
    assert program.evaluate(values) is True
    values["namespaceObject"] = {"metadata": {"name": "other"}}
    assert program.evaluate(values) is False
    with pytest.raises(cel.EvalError, match="no such key: metadata"):
        cel.compile_expression("namespaceObject.metadata.name == 'x'", environment).evaluate({"namespaceObject": None})


def test_environments_are_shared() -> None:
    assert base_environment(params=False, authorizer=True) is base_environment(params=False, authorizer=True)
    with pytest.raises(cel.CompileError, match="undeclared reference to 'params'"):
        cel.compile_expression("params == null", base_environment(params=False, authorizer=True))
