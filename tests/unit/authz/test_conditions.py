from __future__ import annotations

import pytest

from fastapi_core.authz.conditions import ConditionError, compile_condition
from fastapi_core.authz.webhook import question
from fastapi_core.request.context import User
from tests.fixtures.policies import asked

ALICE = User("alice", groups=("devs",), extra={"scope": ("a",)})
POD = question(asked(ALICE, "get", "pods", namespace="kube-system"))
PATH = question(asked(ALICE, "get", path="/healthz"))


@pytest.mark.parametrize(
    ("expression", "pod", "path"),
    [
        ("has(request.resourceAttributes)", True, False),
        ("has(request.resourceAttributes) && request.resourceAttributes.namespace == 'kube-system'", True, False),
        ("!('system:serviceaccounts:kube-system' in request.groups)", True, True),
        ("request.user == 'alice' && request.extra['scope'] == ['a']", True, True),
        ("has(request.nonResourceAttributes) && request.nonResourceAttributes.path.startsWith('/h')", False, True),
    ],
)
def test_conditions_of_the_documentation(expression: str, pod: bool, path: bool) -> None:
    condition = compile_condition(expression)
    assert (condition(POD), condition(PATH)) == (pod, path)


def test_a_missing_member_is_an_error() -> None:
    condition = compile_condition("request.extra['x'] == ['y']")
    with pytest.raises(ConditionError, match="no such key"):
        condition(POD)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("request.", "compilation failed: "),
        ("request.nosuch == 1", "undefined field 'nosuch'"),
        ("other", "undeclared reference to 'other'"),
        ("request.user", "must evaluate to bool"),
    ],
)
def test_what_does_not_compile(expression: str, text: str) -> None:
    with pytest.raises(ConditionError) as caught:
        compile_condition(expression)
    assert text in str(caught.value)
