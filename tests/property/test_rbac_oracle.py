"""The indexed RBAC against the obvious one, over random policies that change in between."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.authz.base import Decision
from fastapi_core.request.context import User
from tests.fixtures.policies import Policies, asked
from tests.oracles import rbac as oracle

NAMESPACES = ("", "a", "b")
NAMES = ("x", "y")
USERS = (
    User("u1", groups=("g1",)), User("u2", groups=("g1", "g2")), User("system:serviceaccount:a:x", groups=()),
    User("system:serviceaccount:b:x", groups=("g2",)), User("nobody"),
)  # fmt: skip


def some(*values: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)


RULES = st.one_of(
    st.fixed_dictionaries(
        {
            "verbs": some("get", "list", "*"),
            "apiGroups": some("", "apps", "*"),
            "resources": some("pods", "pods/log", "*/log", "*", "things"),
        },
        optional={"resourceNames": some("n1", "n2")},
    ),
    st.fixed_dictionaries({"verbs": some("get", "post", "*"), "nonResourceURLs": some("/x", "/x/*", "/x*", "*", "/y")}),
)
SUBJECTS = st.one_of(
    st.fixed_dictionaries({"kind": st.just("User"), "name": st.sampled_from(("u1", "u2"))}),
    st.fixed_dictionaries({"kind": st.just("Group"), "name": st.sampled_from(("g1", "g2"))}),
    st.fixed_dictionaries(
        {"kind": st.just("ServiceAccount"), "name": st.just("x")}, optional={"namespace": st.sampled_from(("a", "b"))}
    ),
)
ROLE = st.tuples(st.just("role"), st.sampled_from(NAMESPACES), st.sampled_from(NAMES), st.lists(RULES, max_size=3))
BINDING = st.tuples(
    st.just("binding"),
    st.sampled_from(NAMESPACES),
    st.sampled_from(NAMES),
    st.tuples(st.sampled_from(("Role", "ClusterRole")), st.sampled_from(NAMES), st.lists(SUBJECTS, max_size=3)),
)
REMOVAL = st.tuples(
    st.sampled_from(("no role", "no binding")), st.sampled_from(NAMESPACES), st.sampled_from(NAMES), st.none()
)
QUESTIONS = st.one_of(
    st.builds(
        lambda user, verb, resource, namespace, group, subresource, name: asked(
            user, verb, resource, namespace=namespace, api_group=group, subresource=subresource, name=name
        ),
        st.sampled_from(USERS),
        st.sampled_from(("get", "list", "delete", "*")),
        st.sampled_from(("pods", "things", "*")),
        st.sampled_from(NAMESPACES),
        st.sampled_from(("", "apps")),
        st.sampled_from(("", "log")),
        st.sampled_from(("", "n1", "n3")),
    ),
    st.builds(
        lambda user, verb, path: asked(user, verb, path=path),
        st.sampled_from(USERS),
        st.sampled_from(("get", "post")),
        st.sampled_from(("/x", "/x/y", "/xy", "/y", "/", "/X")),
    ),
)


@settings(max_examples=120, deadline=None)
@given(
    steps=st.lists(st.one_of(ROLE, BINDING, REMOVAL), max_size=14),
    questions=st.lists(QUESTIONS, min_size=3, max_size=8),
)
def test_every_state_judges_like_the_oracle(steps: list[Any], questions: list[Any]) -> None:
    asyncio.run(_compare(steps, questions))


async def _compare(steps: list[Any], questions: list[Any]) -> None:
    policies = await Policies().open()
    roles: dict[tuple[str, str], list[Any]] = {}
    bindings: dict[tuple[str, str], Any] = {}
    # Half of what there is was there before anybody asked.
    for number, (what, namespace, name, content) in enumerate(steps):
        key = (namespace, name)
        if what == "role":
            roles[key] = content
            await policies.role(namespace, name, *content)
        elif what == "binding":
            kind, role, subjects = content
            kind = kind if namespace else "ClusterRole"
            bindings[key] = (namespace, {"kind": kind, "name": role}, subjects)
            await policies.bind(namespace, name, role, *subjects, kind=kind)
        elif what == "no role" and roles.pop(key, None) is not None:
            await policies.remove("Role" if namespace else "ClusterRole", namespace, name)
        elif what == "no binding" and bindings.pop(key, None) is not None:
            await policies.remove("RoleBinding" if namespace else "ClusterRoleBinding", namespace, name)
        if number >= len(steps) // 2:
            for question in questions:
                wanted = oracle.allows(roles, list(bindings.values()), question)
                verdict = policies.index.authorize(question)
                assert (verdict.decision is Decision.ALLOW) == wanted, (question, verdict)
    await policies.close()
