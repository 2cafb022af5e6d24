from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.audit.policy import LEVEL_NAMES, STAGES
from fastapi_core.audit.policy_file import PolicyError, load
from fastapi_core.request.context import User
from tests.oracles import audit_rules

HEAD = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}

names = st.sampled_from(["a", "b", "c"])
several = st.lists(names, max_size=2)
patterns = st.sampled_from(["a", "b", "*", "a/*", "*/s", "a/s", "b/s", "*/*"])
urls = st.sampled_from(["*", "/", "/a", "/a*", "/a/*", "/b"])
stages = st.lists(st.sampled_from(STAGES), max_size=2, unique=True)
groups = st.builds(
    lambda group, resources, wanted: {
        "group": group,
        "resources": resources,
        **({"resourceNames": wanted} if resources else {}),
    },
    st.sampled_from(["", "apps"]),
    st.lists(patterns, max_size=2),
    several,
)


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    rule: dict[str, Any] = {"level": draw(st.sampled_from(list(LEVEL_NAMES.values())))}
    for name, values in (("users", several), ("userGroups", several), ("verbs", several), ("omitStages", stages)):
        if draw(st.booleans()):
            rule[name] = draw(values)
    kind = draw(st.integers(0, 2))
    if kind == 1:
        rule["nonResourceURLs"] = draw(st.lists(urls, max_size=2))
    elif kind == 2:
        rule["resources"] = draw(st.lists(groups, max_size=2))
        rule["namespaces"] = draw(st.lists(st.sampled_from(["", "a", "b"]), max_size=2))
    if draw(st.booleans()):
        rule["omitManagedFields"] = draw(st.booleans())
    return rule


policies = st.fixed_dictionaries(
    {"rules": st.lists(rules(), min_size=1, max_size=5)},
    optional={"omitStages": stages, "omitManagedFields": st.booleans()},
)
requests = st.fixed_dictionaries(
    {
        "is_resource": st.booleans(),
        "verb": names,
        "namespace": st.sampled_from(["", "a", "b"]),
        "group": st.sampled_from(["", "apps"]),
        "resource": names,
        "subresource": st.sampled_from(["", "s", "t"]),
        "name": st.sampled_from(["", "a", "b"]),
        "path": st.sampled_from(["/", "/a", "/ab", "/a/b", "/b"]),
    }
)
users = st.none() | st.fixed_dictionaries({"name": names, "groups": several})


@given(policies, users, requests)
@settings(max_examples=200, deadline=None)
def test_the_first_rule_that_matches_wins(policy: Any, user: Any, request: Any) -> None:
    loaded = load(yaml.safe_dump(HEAD | policy).encode())
    info: Any = SimpleNamespace(
        is_resource_request=request["is_resource"],
        api_group=request["group"],
        **{name: request[name] for name in ("verb", "namespace", "resource", "subresource", "name", "path")},
    )
    who = None if user is None else User(user["name"], groups=tuple(user["groups"]))
    level, omitted, fields = audit_rules.ruling(policy, user, request)
    found = loaded.rule_on(who, info)
    assert LEVEL_NAMES[found.level] == level
    if level != "None":
        assert found.omit_stages == omitted
        assert found.omit_managed_fields == fields


def problems(policy: Any) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        load(yaml.safe_dump(policy).encode() if not isinstance(policy, bytes) else policy)
    return raised.value.problems


def test_everything_that_is_wrong_is_told() -> None:
    policy = HEAD | {
        "omitStages": ["Never"],
        "rules": [
            {"level": "Loud", "nonResourceURLs": ["healthz", "/a*b", "*"], "namespaces": ["x"]},
            {"users": ["a"]},
            {"level": "None", "resources": [{"group": "Upper", "resourceNames": ["x"]}], "verb": ["get"]},
        ],
    }
    found = problems(policy)
    assert "lowercase RFC 1123 subdomain" in found.pop(7)
    assert found == [
        'strict decoding error: unknown field "rules[2].verb"',
        'omitStages[0]: Invalid value: "Never": allowed stages are '
        "RequestReceived,ResponseStarted,ResponseComplete,Panic",
        'rules[0].level: Unsupported value: "Loud": supported values: "None", "Metadata", "Request", "RequestResponse"',
        "rules[0].nonResourceURLs[0]: Invalid value: \"healthz\": non-resource URL rules must begin with a '/' character",
        'rules[0].nonResourceURLs[1]: Invalid value: "/a*b": '
        "non-resource URL wildcards '*' must be the final character of the rule",
        'rules[0].nonResourceURLs: Invalid value: ["healthz","/a*b","*"]: '
        "rules cannot apply to both regular resources and non-resource URLs",
        "rules[1].level: Required value",
        'rules[2].resources.resourceNames: Invalid value: ["x"]: using resourceNames requires at least one resource',
    ]


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (b"", "the document is not an object"),
        (b"a: [", "failed decoding: yaml"),
        (b"kind: Policy\napiVersion: audit.k8s.io/v1beta1\nrules: []", 'apiVersion "audit.k8s.io/v1beta1"'),
        (b"kind: Policy\napiVersion: audit.k8s.io/v1", "loaded illegal policy with 0 rules"),
        (b"kind: Policy\napiVersion: audit.k8s.io/v1\nrules: [{level: 3}]", "cannot unmarshal number"),
        (b"kind: Policy\napiVersion: audit.k8s.io/v1\nrules: [{level: None, level: None}]", "already set"),
    ],
)
def test_documents_that_are_no_policy(document: bytes, text: str) -> None:
    assert text in " ".join(problems(document))


@given(st.binary(max_size=60) | st.text(alphabet="{}[]:-, \nabkind*&!|'\"", max_size=40).map(str.encode))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_policy_or_refused(data: bytes) -> None:
    for document in (data, b"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- " + data):
        with suppress(PolicyError):
            assert load(document).rules
