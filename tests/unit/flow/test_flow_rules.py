"""Reading the objects, and which requests they match."""

from __future__ import annotations

from typing import Any

import pytest

from fastapi_core.flow.bootstrap import LEVELS, SCHEMAS
from fastapi_core.flow.rules import Digest, level_spec, schema_spec
from fastapi_core.request.context import User

ALICE = User("alice", groups=("devs", "system:authenticated"))
DNS = User("system:serviceaccount:kube-system:dns", groups=("system:serviceaccounts", "system:authenticated"))
OTHER = User("system:serviceaccount:kube-system-2:dns", groups=("system:serviceaccounts",))


def resource(verb: str, name: str, group: str = "", namespace: str = "", sub: str = "") -> Digest:
    return Digest(verb, group, name, sub, namespace, "", True)


def path(verb: str, at: str) -> Digest:
    return Digest(verb, "", "", "", "", at, False)


def schema(subject: dict[str, Any], **rules: Any) -> Any:
    spec = {"priorityLevelConfiguration": {"name": "x"}, "rules": [{"subjects": [subject], **rules}]}
    return schema_spec({"metadata": {"name": "s"}, "spec": spec})


EVERYTHING = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    ]
}


@pytest.mark.parametrize(
    ("subject", "user", "expected"),
    [
        ({"kind": "User", "user": {"name": "alice"}}, ALICE, True),
        ({"kind": "User", "user": {"name": "bob"}}, ALICE, False),
        ({"kind": "User", "user": {"name": "*"}}, ALICE, True),
        ({"kind": "Group", "group": {"name": "devs"}}, ALICE, True),
        ({"kind": "Group", "group": {"name": "ops"}}, ALICE, False),
        ({"kind": "Group", "group": {"name": "*"}}, User("nobody"), True),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "dns"}}, DNS, True),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "proxy"}}, DNS, False),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}, DNS, True),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}, OTHER, False),
        ({"kind": "Robot"}, ALICE, False),
    ],
)
def test_subjects(subject: dict[str, Any], user: User, expected: bool) -> None:
    assert schema(subject, **EVERYTHING).matches(user, resource("get", "pods", namespace="a")) is expected


@pytest.mark.parametrize(
    ("digest", "expected"),
    [
        (resource("get", "pods", namespace="a"), True),
        (resource("list", "pods", namespace="a"), False),
        (resource("get", "pods", namespace="b"), False),
        (resource("get", "pods"), False),
        (resource("get", "pods", group="apps", namespace="a"), False),
        (resource("get", "pods", namespace="a", sub="log"), False),
        (resource("get", "nodes", namespace="a", sub="status"), True),
        (path("get", "/pods"), False),
    ],
)
def test_resource_rules(digest: Digest, expected: bool) -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "nodes/status"], "namespaces": ["a"]}
    assert schema({"kind": "Group", "group": {"name": "*"}}, resourceRules=[rule]).matches(ALICE, digest) is expected


def test_cluster_scope_is_asked_for_by_name() -> None:
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True}
    found = schema({"kind": "Group", "group": {"name": "*"}}, resourceRules=[rule])
    assert found.matches(ALICE, resource("get", "pods"))
    assert not found.matches(ALICE, resource("get", "pods", namespace="a"))


@pytest.mark.parametrize(
    ("url", "asked", "expected"),
    [
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/etcd", True),
        ("/healthz", "/healthzy", False),
        ("/logs/*", "/logs/a/b", True),
        ("/logs/*", "/logs", False),
        ("*", "/anything", True),
        ("/*", "/anything", True),
    ],
)
def test_paths(url: str, asked: str, expected: bool) -> None:
    rule = {"verbs": ["get"], "nonResourceURLs": [url]}
    found = schema({"kind": "Group", "group": {"name": "*"}}, nonResourceRules=[rule])
    assert found.matches(ALICE, path("get", asked)) is expected
    assert not found.matches(ALICE, path("post", asked))


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("exempt", {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}),
        ("mine", {"type": "Exempt", "exempt": {}}),
        ("mine", {"type": "Limited"}),
        ("mine", {"type": "Limited", "limited": {"limitResponse": {"type": "Queue"}}}),
        ("mine", {"type": "Limited", "limited": {"limitResponse": {"type": "Reject", "queuing": {"queues": 1}}}}),
        (
            "mine",
            {
                "type": "Limited",
                "limited": {"limitResponse": {"type": "Queue", "queuing": {"queues": 2, "handSize": 3}}},
            },
        ),
        ("mine", {}),
    ],
)
def test_levels_that_make_no_sense_are_left_out(name: str, spec: dict[str, Any]) -> None:
    assert level_spec({"metadata": {"name": name}, "spec": spec}) is None


def test_the_bootstrap_objects_are_those_of_the_reference(shared: Any) -> None:
    import json

    facts = json.loads((shared / "facts/flowcontrol.json").read_text())
    assert {o.tree["metadata"]["name"]: o.tree["spec"] for o in SCHEMAS} == {
        name: record["spec"] for name, record in facts["flowschemas"].items()
    }
    assert {o.tree["metadata"]["name"]: o.tree["spec"] for o in LEVELS} == {
        name: record["spec"] for name, record in facts["prioritylevelconfigurations"].items()
    }
