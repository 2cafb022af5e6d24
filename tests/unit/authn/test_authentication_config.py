"""The AuthenticationConfiguration file: what it means, and every way in which it can be wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.authn.base import WrongCredential
from fastapi_core.authn.config import SHAPE, AnonymousConfig, ConfigError, Mapped, Rule, load
from fastapi_core.authn.expressions import Expression, ExpressionError
from fastapi_core.authn.oidc import user_of
from tests.fixtures.pki import authority

CA = authority("ca").pem.decode()
GOOD: dict[str, Any] = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AuthenticationConfiguration",
    "jwt": [
        {
            "issuer": {
                "url": "https://a.example", "discoveryURL": "https://b.example/x", "audiences": ["one", "two"],
                "audienceMatchPolicy": "MatchAny", "certificateAuthority": CA,
            },
            "claimValidationRules": [{"claim": "hd", "requiredValue": "acme.com"}],
            "claimMappings": {
                "username": {"claim": "sub", "prefix": ""},
                "groups": {"claim": "roles", "prefix": "r:"},
                "uid": {"claim": "id"},
            },
        }
    ],
    "anonymous": {"enabled": True, "conditions": [{"path": "/livez"}]},
}  # fmt: skip


def compiled(text: str, variable: str, *, condition: bool = False) -> Expression:
    """An expression language of one kind of expression: a path."""
    if not text.startswith(f"{variable}."):
        raise ExpressionError("compilation failed: no such variable")

    def evaluate(value: Mapping[str, Any]) -> Any:
        return value.get(text.removeprefix(f"{variable}."))

    return Expression(text, evaluate, frozenset({text}))


def problems(tree: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(json.dumps(tree).encode(), ["https://kubernetes.default.svc"], compiled)
    return caught.value.problems


def changed(*path: Any, to: Any) -> dict[str, Any]:
    tree = copy.deepcopy(GOOD)
    place: Any = tree
    for step in path[:-1]:
        place = place[step]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return tree


def test_what_it_means() -> None:
    for data in (json.dumps(GOOD).encode(), yaml.safe_dump(GOOD).encode()):
        config = load(data)
        (jwt,) = config.jwt
        assert (jwt.issuer.url, jwt.issuer.discovery_url) == ("https://a.example", "https://b.example/x")
        assert jwt.issuer.audiences == ("one", "two")
        assert (jwt.username, jwt.groups, jwt.uid) == (Mapped("sub"), Mapped("roles", "r:"), Mapped("id"))
        assert jwt.claim_rules == (Rule("hd", "acme.com"),)
        assert config.anonymous == AnonymousConfig(True, ("/livez",))


def test_versions_and_an_empty_one() -> None:
    for version in ("v1", "v1beta1", "v1alpha1"):
        config = load(json.dumps({"apiVersion": f"apiserver.config.k8s.io/{version}", "kind": GOOD["kind"]}).encode())
        assert (config.jwt, config.anonymous) == ((), None)


def test_expressions() -> None:
    tree = changed("jwt", 0, "claimMappings", to={
        "username": {"expression": "claims.email"}, "uid": {"expression": "claims.id"},
        "extra": [{"key": "acme.com/x", "valueExpression": "claims.email_verified"}],
    })  # fmt: skip
    tree["jwt"][0]["userValidationRules"] = [{"expression": "user.username", "message": "who?"}]
    (jwt,) = load(json.dumps(tree).encode(), (), compiled).jwt
    assert jwt.username.expression is not None
    assert jwt.username.expression.evaluate({"email": "x"}) == "x"
    assert [key for key, _ in jwt.extra] == ["acme.com/x"]
    assert jwt.user_rules[0].message == "who?"


ISSUER, MAPPINGS = ("jwt", 0, "issuer"), ("jwt", 0, "claimMappings")
WRONG = [
    (changed("kind", to="Other"), "apiVersion and kind: "),
    (changed("apiVersion", to="apiserver.config.k8s.io/v2"), "apiVersion and kind: "),
    (changed("extra", to=1), 'unknown field "extra"'),
    (changed(*ISSUER, "urls", to="x"), 'unknown field "jwt[0].issuer.urls"'),
    (changed("jwt", to={}), "jwt: a list is expected"),
    (changed("anonymous", "enabled", to="yes"), "anonymous.enabled: true or false is expected"),
    (changed(*ISSUER, "audiences", to=[1]), "jwt[0].issuer.audiences[0]: a text is expected"),
    (changed(*ISSUER, "url", to=None), "jwt[0].issuer.url: Required value"),
    (changed(*ISSUER, "url", to="http://a.example"), 'jwt[0].issuer.url: Invalid value: "http://a.example": URL scheme must be https'),
    (changed(*ISSUER, "url", to="https:a.example"), "URL must contain a host"),
    (changed(*ISSUER, "url", to="https://u:p@a.example"), "URL must not contain a username or password"),
    (changed(*ISSUER, "url", to="https://a.example?x=1"), "URL must not contain a query"),
    (changed(*ISSUER, "url", to="https://a.example#x"), "URL must not contain a fragment"),
    (changed(*ISSUER, "url", to="https://kubernetes.default.svc"), "URL must not overlap with disallowed issuers: [https://kubernetes.default.svc]"),
    (changed(*ISSUER, "discoveryURL", to="https://a.example/"), "discoveryURL must be different from URL"),
    (changed(*ISSUER, "audiences", to=[]), "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required"),
    (changed(*ISSUER, "audiences", to=["a", ""]), "jwt[0].issuer.audiences[1]: Required value"),
    (changed(*ISSUER, "audiences", to=["a", "a"]), 'jwt[0].issuer.audiences[1]: Duplicate value: "a"'),
    (changed(*ISSUER, "audienceMatchPolicy", to=None), "audienceMatchPolicy must be MatchAny for multiple audiences"),
    (changed(*ISSUER, "certificateAuthority", to="junk"), 'jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>"'),
    (changed(*ISSUER, "egressSelectorType", to="moon"), "egress selector must be either controlplane or cluster"),
    (changed(*MAPPINGS, "username", to={}), "jwt[0].claimMappings.username: Required value: claim or expression is required"),
    (changed(*MAPPINGS, "username", to={"claim": "sub"}), "jwt[0].claimMappings.username.prefix: Required value: prefix is required"),
    (changed(*MAPPINGS, "username", to={"claim": "sub", "expression": "claims.sub"}), "claim and expression can't both be set"),
    (changed(*MAPPINGS, "username", to={"expression": "claims.sub", "prefix": ""}), "may not be specified when expression is set"),
    (changed(*MAPPINGS, "username", to={"expression": "claims.email"}), "claims.email_verified must be used"),
    (changed(*MAPPINGS, "username", to={"expression": "nope"}), 'username.expression: Invalid value: "nope": compilation failed'),
    (changed(*MAPPINGS, "extra", to=[{"key": "x", "valueExpression": "claims.x"}]), "must be a domain-prefixed path"),
    (changed(*MAPPINGS, "extra", to=[{"key": "a.k8s.io/x", "valueExpression": "claims.x"}]), "are reserved for Kubernetes use"),
    (changed(*MAPPINGS, "extra", to=[{"key": "acme.com/X", "valueExpression": "claims.x"}]), "must be lowercase"),
    (changed(*MAPPINGS, "extra", to=[{"key": "acme.com/x"}]), "valueExpression: Required value"),
    (changed("jwt", 0, "claimValidationRules", to=[{}]), "claim or expression is required"),
    (changed("jwt", 0, "claimValidationRules", to=[{"claim": "a", "message": "m"}]), "may not be specified when claim is set"),
    (changed("jwt", 0, "claimValidationRules", to=[{"claim": "a"}, {"claim": "a"}]), 'claimValidationRules[1].claim: Duplicate value: "a"'),
    (changed("jwt", 0, "userValidationRules", to=[{}]), "userValidationRules[0].expression: Required value"),
    (changed("jwt", to=[*GOOD["jwt"], *GOOD["jwt"]]), 'jwt[1].issuer.url: Duplicate value: "https://a.example"'),
    (changed("jwt", to=GOOD["jwt"] * 65), "jwt: Too many"),
    (changed("anonymous", "enabled", to=False), "enabled should be set to true when conditions are defined"),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "text"), WRONG, ids=[text[:60] for _, text in WRONG])
def test_what_is_wrong(tree: dict[str, Any], text: str) -> None:
    assert any(text in problem for problem in problems(tree)), problems(tree)


def test_everything_wrong_is_told_at_once() -> None:
    tree = changed(*ISSUER, "url", to="http://a.example")
    tree["jwt"][0]["claimMappings"]["username"] = {}
    assert len(problems(tree)) == 2


def test_expressions_of_the_real_language() -> None:
    tree = copy.deepcopy(GOOD)
    tree["jwt"][0]["claimValidationRules"] = [{"expression": "claims.exp - claims.nbf <= 86400", "message": "too long"}]
    tree["jwt"][0]["userValidationRules"] = [{"expression": "!user.username.startsWith('system:')"}]
    tree["jwt"][0]["claimMappings"] = {
        "username": {"expression": "claims.email_verified ? 'p:' + claims.email : 'nobody'"},
        "groups": {"expression": "claims.?roles.orValue([]).map(r, 'r:' + r)"},
        "extra": [{"key": "acme.com/tenant", "valueExpression": "claims.tenant"}],
    }
    (jwt,) = load(json.dumps(tree).encode()).jwt
    claims = {"email": "o@x", "email_verified": True, "roles": ["a"], "tenant": "t", "exp": 10, "nbf": 1}
    user = user_of(jwt, claims)
    assert (user.name, user.groups, user.extra) == ("p:o@x", ("r:a",), {"acme.com/tenant": ("t",)})
    assert user_of(jwt, {key: value for key, value in claims.items() if key != "roles"}).groups == ()
    for broken, reason in (
        ({"exp": 100_000}, "too long"), ({"tenant": 1}, "a list of strings"), ({"email_verified": 1}, "resulted in error"),
    ):  # fmt: skip
        with pytest.raises(WrongCredential) as caught:
            user_of(jwt, {**claims, **broken})
        assert reason in caught.value.reasons[0]
    with pytest.raises(WrongCredential):
        user_of(replace(jwt, username=Mapped("email")), {**claims, "email": "system:masters"})


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("claimMappings", "username"), {"expression": "claims."}, "compilation failed: ERROR: <input>"),
        (("claimMappings", "username"), {"expression": "user.username"}, "undeclared reference to 'user'"),
        (("claimMappings", "username"), {"expression": "claims.email"}, "claims.email_verified must be used"),
        (("claimMappings", "username"), {"expression": "claims.?email.orValue('')"}, "claims.email_verified must be used"),
        (("claimValidationRules",), [{"expression": "claims.iss"}], "must evaluate to bool"),
        (("userValidationRules",), [{"expression": "user.name == ''"}], "undefined field 'name'"),
        (("userValidationRules",), [{"expression": "user.username"}], "must evaluate to bool"),
    ],
)  # fmt: skip
def test_expressions_the_real_language_refuses(path: tuple[str, ...], value: Any, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(json.dumps(changed("jwt", 0, *path, to=value)).encode())
    assert text in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"a: b: c", b"- \xff", b"&a [*a]", b"null"])
def test_texts_that_are_no_configuration(data: bytes) -> None:
    with pytest.raises(ConfigError):
        load(data)


VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["https://a", "claims.x", "MatchAny", "sub"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["url", "claim", "prefix", "key", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)

TEXT = st.sampled_from(["", "https://a.example", "sub", "claims.x", "user.x", "acme.com/k", "MatchAny"])


def shaped(shape: Any) -> st.SearchStrategy[Any]:
    """Trees that look like the configuration, with something else in places."""
    if isinstance(shape, dict):
        made: Any = st.fixed_dictionaries({}, optional={name: shaped(inner) for name, inner in shape.items()})
    elif isinstance(shape, list):
        made = st.lists(shaped(shape[0]), max_size=2)
    else:
        made = st.booleans() if shape is bool else TEXT
    return made | VALUE


@settings(max_examples=100, deadline=None)
@given(shaped({name: inner for name, inner in SHAPE.items() if name not in ("apiVersion", "kind")}))
def test_any_tree_is_read_or_refused(tree: Any) -> None:
    whole = {"apiVersion": GOOD["apiVersion"], "kind": GOOD["kind"], **tree} if isinstance(tree, dict) else tree
    try:
        config = load(json.dumps(whole).encode(), (), compiled)
    except ConfigError:
        return
    for jwt in config.jwt:
        assert jwt.issuer.url.startswith("https://")
        assert jwt.issuer.audiences
        assert jwt.username.claim or jwt.username.expression


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with pytest.raises(ConfigError):
        load(data)
