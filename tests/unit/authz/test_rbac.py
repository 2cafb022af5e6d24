from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from fastapi_core.authz.base import Decision, Verdict
from fastapi_core.request.context import User
from tests.fixtures.policies import Policies, asked, subject

ALICE = User("alice", groups=("devs", "system:authenticated"))
READ_PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


@pytest_asyncio.fixture
async def policies() -> AsyncIterator[Policies]:
    store = await Policies().open()
    yield store
    await store.close()


def reason(verdict: Verdict) -> str:
    assert verdict.decision is Decision.ALLOW
    return verdict.reason


async def test_the_reason_names_binding_role_and_subject(policies: Policies) -> None:
    await policies.role("", "reader", READ_PODS)
    await policies.role("ns", "local", {**READ_PODS, "verbs": ["list"]})
    await policies.bind("", "all", "reader", subject("User", "bob"), subject("Group", "devs"))
    await policies.bind("ns", "some", "local", subject("User", "alice"))
    await policies.bind("ns", "robots", "reader", subject("ServiceAccount", "robot"), kind="ClusterRole")
    authorize = policies.index.authorize
    assert reason(authorize(asked(ALICE, "get", "pods"))) == (
        'RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to Group "devs"'
    )
    assert reason(authorize(asked(ALICE, "list", "pods", namespace="ns"))) == (
        'RBAC: allowed by RoleBinding "some/ns" of Role "local" to User "alice"'
    )
    robot = User("system:serviceaccount:ns:robot")
    assert reason(authorize(asked(robot, "get", "pods", namespace="ns"))) == (
        'RBAC: allowed by RoleBinding "robots/ns" of ClusterRole "reader" to ServiceAccount "robot/ns"'
    )
    assert authorize(asked(robot, "get", "pods")) == Verdict(Decision.NO_OPINION)


async def test_a_binding_to_a_missing_role_says_so_and_counts_once_the_role_is_there(policies: Policies) -> None:
    await policies.bind("ns", "b", "later", subject("User", "alice"))
    await policies.bind("", "c", "gone", subject("User", "alice"))
    await policies.bind("ns", "d", "later", subject("Group", "devs"))
    question = asked(ALICE, "get", "pods", namespace="ns")
    role = 'role.rbac.authorization.k8s.io "later" not found'
    cluster = 'clusterrole.rbac.authorization.k8s.io "gone" not found'
    assert policies.index.authorize(question) == Verdict(Decision.NO_OPINION, f"RBAC: [{cluster}, {role}]")
    before = policies.index.generation
    await policies.role("ns", "later", READ_PODS)
    assert policies.index.generation > before
    assert policies.index.authorize(question).decision is Decision.ALLOW
    await policies.remove("Role", "ns", "later")
    assert policies.index.authorize(question).decision is Decision.NO_OPINION


async def test_every_change_of_a_policy_and_nothing_else_changes_the_generation(policies: Policies) -> None:
    policies.index.load()
    seen = [policies.index.generation]
    await policies.role("", "r", READ_PODS)
    seen.append(policies.index.generation)
    await policies.bind("", "b", "r", subject("User", "alice"))
    seen.append(policies.index.generation)
    await policies.bind("", "b", "r")
    seen.append(policies.index.generation)
    await policies.remove("ClusterRoleBinding", "", "b")
    seen.append(policies.index.generation)
    assert seen == sorted(set(seen))
    await policies.put("/registry/pods/", "ns", "p", spec={})
    assert policies.index.generation == seen[-1]


async def test_a_changed_binding_forgets_its_former_subjects(policies: Policies) -> None:
    await policies.role("", "r", READ_PODS)
    await policies.bind("", "b", "r", subject("User", "alice"))
    question = asked(ALICE, "get", "pods")
    assert policies.index.authorize(question).decision is Decision.ALLOW
    await policies.bind("", "b", "r", subject("User", "bob"))
    assert policies.index.authorize(question).decision is Decision.NO_OPINION


@pytest.mark.parametrize(
    "members",
    [{"roleRef": 1, "subjects": []}, {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [1]}, {}],
)
async def test_an_object_that_makes_no_sense_grants_nothing(policies: Policies, members: dict[str, object]) -> None:
    await policies.role("", "r", READ_PODS)
    await policies.bind("", "b", "r", subject("User", "alice"))
    question = asked(ALICE, "get", "pods")
    assert policies.index.authorize(question).decision is Decision.ALLOW
    await policies.put("ClusterRoleBinding", "", "b", **members)
    assert policies.index.authorize(question).decision is Decision.NO_OPINION
    await policies.put("ClusterRole", "", "r", rules=[{"verbs": 1}])
    await policies.bind("", "b", "r", subject("User", "alice"))
    assert policies.index.authorize(question).decision is Decision.NO_OPINION


async def test_a_value_that_is_no_object_takes_its_kind_out_of_force_until_it_is_mended(policies: Policies) -> None:
    await policies.role("", "r", READ_PODS)
    await policies.bind("", "b", "r", subject("User", "alice"))
    await policies.storage.create("/registry/clusterrolebindings/broken", b"nonsense")
    question = asked(ALICE, "get", "pods")
    assert policies.index.authorize(question).decision is Decision.NO_OPINION
    await policies.bind("", "broken", "r")
    assert policies.index.authorize(question).decision is Decision.ALLOW


async def test_rules_of_a_user_come_cluster_first_and_once_each(policies: Policies) -> None:
    other = {"verbs": ["list"], "apiGroups": ["apps"], "resources": ["deployments"]}
    paths = {"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}
    await policies.role("", "z", READ_PODS, paths)
    await policies.role("ns", "a", other)
    await policies.bind("", "z", "z", subject("User", "alice"), subject("Group", "devs"))
    await policies.bind("ns", "a", "a", subject("User", "alice"))
    await policies.bind("ns", "lost", "lost", subject("User", "alice"))
    grants = policies.index.grants(ALICE, "ns")
    assert (grants.resource_rules, grants.path_rules) == ([READ_PODS, other], [paths])
    assert (grants.incomplete, grants.error) == (False, 'role.rbac.authorization.k8s.io "lost" not found')
