from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.authz.abac import Policy, PolicyError, PolicyFile, load, parse
from fastapi_core.authz.base import ALLOWED, Attributes, Decision, Verdict
from fastapi_core.request.context import User
from tests.fixtures.policies import asked

ALICE = User("alice", groups=("devs", "system:authenticated"))
STRANGER = User("system:anonymous", groups=("system:unauthenticated",))


def policy(**spec: Any) -> Policy:
    tree = {"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": spec}
    return parse(json.dumps(tree).encode())


PODS = asked(ALICE, "get", "pods", namespace="ns")


@pytest.mark.parametrize(
    ("spec", "question", "allowed"),
    [
        ({"user": "alice", "namespace": "ns", "resource": "pods"}, PODS, True),
        ({"user": "bob", "namespace": "ns", "resource": "pods"}, PODS, False),
        ({"group": "devs", "namespace": "*", "resource": "*", "apiGroup": "*"}, PODS, True),
        ({"user": "alice", "group": "ops", "namespace": "*", "resource": "*"}, PODS, False),
        ({"namespace": "*", "resource": "*", "apiGroup": "*"}, PODS, False),
        ({"user": "alice", "resource": "pods"}, PODS, False),
        ({"user": "alice", "namespace": "ns", "resource": "pods"}, PODS._replace(api_group="apps"), False),
        ({"user": "alice", "namespace": "ns", "resource": "pods", "readonly": True}, PODS, True),
        ({"user": "alice", "namespace": "ns", "resource": "pods", "readonly": True}, PODS._replace(verb="watch"), True),
        (
            {"user": "alice", "namespace": "ns", "resource": "pods", "readonly": True},
            PODS._replace(verb="create"),
            False,
        ),
        ({"user": "*", "namespace": "ns", "resource": "pods"}, PODS, True),
        ({"user": "*", "namespace": "ns", "resource": "pods"}, PODS._replace(user=STRANGER), False),
        ({"user": "alice", "nonResourcePath": "/x/*"}, asked(ALICE, "get", path="/x/y"), True),
        ({"user": "alice", "nonResourcePath": "/x"}, asked(ALICE, "get", path="/x/y"), False),
        ({"user": "alice", "nonResourcePath": "*"}, asked(ALICE, "post", path="/y"), True),
        ({"user": "alice", "nonResourcePath": "*"}, PODS, False),
        ({"user": "alice", "namespace": "*", "resource": "*", "apiGroup": "*"}, asked(ALICE, "get", path="/x"), False),
    ],
)
def test_policies(spec: dict[str, Any], question: Attributes, allowed: bool) -> None:
    expected = ALLOWED if allowed else Verdict(Decision.NO_OPINION, "No policy matched.")
    assert PolicyFile([policy(**spec)]).authorize(question) == expected


def test_policies_from_before_versions_leave_open_what_they_do_not_say() -> None:
    assert parse(b"{}") == Policy("", "system:authenticated", "*", "*", "*", "*")
    assert parse(b'{"user":"bob","namespace":"a"}') == Policy("bob", "", "a", "*", "*", "")
    assert parse(b'{"group":"*","readonly":true}') == Policy("", "system:authenticated", "*", "*", "*", "*", True)


@pytest.mark.parametrize(
    "text",
    ["nonsense", "[]", '{"usr":"x"}', '{"user":1}', '{"readonly":"yes"}', '{"kind":"Policy"}',
     '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"readOnly":true}}'],
)  # fmt: skip
def test_a_file_with_a_line_that_is_not_understood_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "policies"
    file.write_text(f'# comment\n\n{{"user":"x"}}\n{text}\n')
    with pytest.raises(PolicyError, match=r"^line 4: "):
        load(str(file))
    file.write_text('# comment\n\n{"user":"alice"}\n')
    assert load(str(file)).authorize(PODS) == ALLOWED


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_any_line_is_a_policy_or_an_error(text: bytes) -> None:
    try:
        assert isinstance(parse(text), Policy)
    except ValueError:
        pass


def test_grants() -> None:
    found = PolicyFile(
        [
            policy(user="alice", namespace="ns", resource="pods", readonly=True),
            policy(user="alice", namespace="other", resource="pods"),
            policy(group="devs", nonResourcePath="/x"),
            policy(user="bob", namespace="*", resource="*"),
        ]
    ).grants(ALICE, "ns")
    assert found.resource_rules == [{"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]}]
    assert found.path_rules == [{"verbs": ["*"], "nonResourceURLs": ["/x"]}]
