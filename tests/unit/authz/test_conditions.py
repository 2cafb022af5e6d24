from __future__ import annotations

import pytest

from fastapi_core.authz.conditions import ConditionError, compile_condition, hold
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


def test_what_is_left_out_is_empty() -> None:
    assert compile_condition("request.uid == '' && request.resourceAttributes.subresource == ''")(POD)
    nobody = question(asked(User("x"), "get", path="/"))
    assert compile_condition("request.groups.size() == 0 && request.extra == {}")(nobody)
    assert not compile_condition("has(request.resourceAttributes.fieldSelector)")(POD)


def test_the_text_of_a_failure() -> None:
    condition = compile_condition("request.groups[7] == 'a'")
    with pytest.raises(ConditionError) as caught:
        condition(POD)
    text = "cel evaluation error: expression 'request.groups[7] == 'a'' resulted in error: index out of bounds: 7"
    assert str(caught.value) == text


def test_one_that_does_not_hold_beats_those_that_fail() -> None:
    fails, no = compile_condition("request.groups[7] == 'a'"), compile_condition("request.user == 'bob'")
    other, yes = compile_condition("request.groups[8] == 'a'"), compile_condition("request.user == 'alice'")
    assert hold([yes], POD)
    assert not hold([fails, no], POD)
    with pytest.raises(ConditionError, match=r"^cel evaluation error: .*: 7$"):
        hold([fails, yes, fails], POD)
    with pytest.raises(ConditionError, match=r"^\[cel .*: 7, cel .*: 8\]$"):
        hold([fails, other], POD)
