from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.authz.base import Decision
from fastapi_core.authz.config import ConfigError, load, read
from fastapi_core.authz.modes import AuthorizerConfig, Settings
from fastapi_core.options.flags import OptionsError
from fastapi_core.options.options import Options

V1 = {"matchConditionSubjectAccessReviewVersion": "v1"}
HEAD = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration"}


def webhook(file: str, **more: Any) -> dict[str, Any]:
    found = {
        "timeout": "3s", "subjectAccessReviewVersion": "v1", "failurePolicy": "Deny",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": file}, **more,
    }  # fmt: skip
    return {name: value for name, value in found.items() if value is not None}


def problems(tree: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(tree)
    return caught.value.problems


def test_a_configuration(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "k"
    kubeconfig.write_text("x")
    file = tmp_path / "config.yaml"
    file.write_text(f"""
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Node
  name: node
- type: Webhook
  name: one.example.com
  webhook:
    timeout: 3s
    authorizedTTL: 1m
    cacheUnauthorizedRequests: false
    subjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo:
      type: KubeConfigFile
      kubeConfigFile: {kubeconfig}
- type: Webhook
  name: two
  webhook: {{timeout: 30s, subjectAccessReviewVersion: v1beta1, failurePolicy: Deny,
             connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {kubeconfig}}}}}
- type: RBAC
  name: rbac
""")
    one = Settings("v1", 60.0, 0.0, 3.0)
    assert load(str(file)) == (
        AuthorizerConfig("Node", "node"),
        AuthorizerConfig("Webhook", "one.example.com", str(kubeconfig), one),
        AuthorizerConfig("Webhook", "two", str(kubeconfig), Settings("v1beta1", 300.0, 30.0, 30.0, Decision.DENY)),
        AuthorizerConfig("RBAC", "rbac"),
    )


@pytest.mark.parametrize(
    ("authorizers", "texts"),
    [
        ([], ["authorizers: Required value: at least one authorization mode must be defined"]),
        (
            [{"type": "Rbac", "name": "x"}, {"name": "x"}],
            [
                'authorizers[0].type: Unsupported value: "Rbac": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", '
                '"Node", "RBAC", "Webhook"',
                "authorizers[1].type: Required value",
                'authorizers[1].name: Duplicate value: "x"',
            ],
        ),
        (
            [{"type": "RBAC", "name": "a"}, {"type": "RBAC", "name": "b"}],
            ['authorizers[1].type: Duplicate value: "RBAC"'],
        ),
        ([{"type": "RBAC"}], ["authorizers[0].name: Required value"]),
        (
            [{"type": "RBAC", "name": "a", "webhook": {}}],
            ['authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook'],
        ),
        ([{"type": "Webhook", "name": "a"}], ["authorizers[0].webhook: Required value: required when type=Webhook"]),
        ([{"type": "RBAC", "name": "a", "webhok": {}}], ['unknown field "authorizers[0].webhok"']),
        (
            [{"type": 1, "name": "a"}],
            ["authorizers[0].type: a text is expected", "authorizers[0].type: Required value"],
        ),
        (
            {},
            [
                "authorizers: a list is expected",
                "authorizers: Required value: at least one authorization mode must be defined",
            ],
        ),
    ],
)
def test_what_is_wrong(authorizers: Any, texts: list[str]) -> None:
    assert problems({**HEAD, "authorizers": authorizers}) == texts


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"timeout": None}, "timeout: Required value"),
        ({"timeout": "31s"}, 'timeout: Invalid value: "31s": must be > 0s and <= 30s'),
        ({"timeout": "soon"}, 'timeout: time: invalid duration "soon"'),
        ({"authorizedTTL": "-1s"}, 'authorizedTTL: Invalid value: "-1s": must be > 0s'),
        ({"failurePolicy": "Allow"}, 'failurePolicy: Unsupported value: "Allow": supported values: "NoOpinion", "Deny"'),
        ({"subjectAccessReviewVersion": "v2"}, 'subjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", "v1beta1"'),
        (
            {"connectionInfo": {"type": "InClusterConfig", "kubeConfigFile": "/dev/null/x"}},
            'connectionInfo.type: Unsupported value: "InClusterConfig": supported values: "KubeConfigFile"',
        ),
        (
            {"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "relative"}},
            'connectionInfo.kubeConfigFile: Invalid value: "relative": must be an absolute path',
        ),
        (
            {"matchConditions": [{"expression": "true"}]},
            "matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
        ),
        (
            {**V1, "matchConditions": [{"expression": "true"}, {"expression": "true"}]},
            'matchConditions[1].expression: Duplicate value: "true"',
        ),
        (
            {**V1, "matchConditions": [{"expression": f"request.user == '{n}'"} for n in range(65)]},
            "matchConditions: Too many: 65: must have at most 64 items",
        ),
        (
            {**V1, "matchConditions": [{"expression": "request.user"}]},
            'matchConditions[0].expression: Invalid value: "request.user": must evaluate to bool but got string',
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_webhook(tmp_path: Path, more: dict[str, Any], text: str) -> None:
    file = tmp_path / "k"
    file.write_text("x")
    entry = {"type": "Webhook", "name": "a", "webhook": webhook(str(file), **more)}
    assert problems({**HEAD, "authorizers": [entry]})[0] == f"authorizers[0].webhook.{text}"


@pytest.mark.parametrize("head", [{}, {**HEAD, "kind": "X"}, {**HEAD, "apiVersion": "apiserver.config.k8s.io/v2"}])
def test_other_documents_are_refused(head: dict[str, str]) -> None:
    assert problems({**head, "authorizers": [{"type": "RBAC", "name": "r"}]})[-1].startswith("apiVersion: ")


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["RBAC", "Webhook", "v1", "1s", "", "é x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "name", "webhook", "authorizers", "timeout", "connectionInfo", "matchConditions"]),
            inner,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@given(TREES)
def test_any_tree_is_a_configuration_or_an_error(tree: Any) -> None:
    with contextlib.suppress(ConfigError):
        read({**HEAD, "authorizers": tree})


def wrong(*arguments: str) -> list[str]:
    with pytest.raises(OptionsError) as caught:
        Options.parse(arguments)
    return caught.value.errors


def test_modes_on_the_command_line(tmp_path: Path) -> None:
    assert Options.parse([]).authorization.authorization_mode == ("Node", "RBAC")
    both = Options.parse(["--authorization-mode=RBAC", "--authorization-mode=Node"])
    assert [entry.type for entry in both.authorization.authorizers()] == ["RBAC", "Node"]
    assert wrong("--authorization-mode=RBAC,RBAC,Rbac,ABAC,Webhook", "--authorization-webhook-version=v2") == [
        "--authorization-mode: 'RBAC' is given more than once, name each mode once",
        "--authorization-mode: 'Rbac' is not a valid mode, use some of ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook",
        "--authorization-webhook-config-file: is needed for mode Webhook",
        "--authorization-policy-file: is needed for mode ABAC",
        "--authorization-webhook-version: 'v2' is none of v1, v1beta1",
    ]
    assert wrong("--authorization-policy-file=x", "--authorization-webhook-cache-authorized-ttl=-1s") == [
        "--authorization-policy-file: means nothing without mode ABAC, add it to --authorization-mode",
        "--authorization-webhook-cache-authorized-ttl: cannot be negative, use 0 to remember nothing",
    ]
    missing = tmp_path / "missing"
    assert wrong("--authorization-mode=ABAC", f"--authorization-policy-file={missing}") == [
        f"--authorization-policy-file: {str(missing)!r} cannot be read (No such file or directory)"
    ]
    policies = tmp_path / "policies"
    policies.write_text("x")
    assert wrong("--authorization-mode=ABAC", f"--authorization-policy-file={policies}")[0].startswith(
        f"--authorization-policy-file: {str(policies)!r}: line 1: not JSON"
    )
    assert wrong("--authorization-mode=Webhook", f"--authorization-webhook-config-file={policies}")[0].startswith(
        f"--authorization-webhook-config-file: {str(policies)!r}: "
    )


def test_a_configuration_file_stands_alone(tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: RBAC, name: r}]"
    )
    found = Options.parse([f"--authorization-config={file}"]).authorization
    assert ([entry.type for entry in found.authorizers()], found.open) == (["RBAC"], False)
    assert wrong(f"--authorization-config={file}", "--authorization-mode=RBAC") == [
        "--authorization-mode: cannot be given together with --authorization-config, leave one of them out"
    ]
    file.write_text("apiVersion: x")
    assert wrong(f"--authorization-config={file}")[0].startswith(f"--authorization-config: {str(file)!r}: apiVersion: ")
