"""Tokens of other issuers, webhooks and bootstrap tokens, over the wire."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from fastapi_core.authn import jws
from fastapi_core.testing.server import RunningServer
from tests.fixtures.callers import REVIEWS, Caller, anonymous_context, bearer
from tests.fixtures.https import ScriptedServer, kubeconfig
from tests.fixtures.pki import public_pem, token

ADMIN = bearer("admintoken")
TOKENS = [("admintoken", "admin", "1", "system:masters")]
KEY, OTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())


def public(key: Any, name: str = "") -> jws.PublicKey:
    return jws.PublicKey(key.public_key(), name)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedServer]:
    server = ScriptedServer(tmp_path_factory.mktemp("outside"))
    server.issue_from(public(KEY, "k1"))
    server.issue_from(public(OTHER, "k1"), path="/other")
    server.answers["/review"] = judged
    yield server
    server.close()


def judged(review: Any) -> tuple[int, Any]:
    """A webhook that knows one token."""
    if review["spec"]["token"] != "known-elsewhere":
        return 200, {"status": {"authenticated": False, "error": "never seen"}}
    user = {"username": "wendy", "uid": "7", "groups": ["hook"], "extra": {"acme.com/k": ["v"]}}
    return 200, {"status": {"authenticated": True, "user": user, "audiences": review["spec"]["audiences"]}}


def configuration(outside: ScriptedServer, *paths: str, audience: str = "us") -> str:
    return json.dumps(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "jwt": [
                {
                    "issuer": {
                        "url": outside.url + path,
                        "audiences": [audience, "them"],
                        "audienceMatchPolicy": "MatchAny",
                        "certificateAuthority": outside.ca_file.read_text(),
                    },
                    "claimMappings": {
                        "username": {"claim": "sub", "prefix": "oidc:"},
                        "groups": {"claim": "groups", "prefix": "g:"},
                        "uid": {"claim": "uid"},
                    },
                    "claimValidationRules": [{"claim": "tenant", "requiredValue": "acme"}],
                }
                for path in paths
            ],
        }
    )


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory, outside: ScriptedServer) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("trusting")
    (folder / "authn.json").write_text(configuration(outside, ""))
    (folder / "hook.kubeconfig").write_text(kubeconfig(outside, "/review", token="hook-secret"))
    running = RunningServer(
        folder / "data",
        tokens=TOKENS,
        flags=[
            f"--authentication-config={folder / 'authn.json'}",
            f"--authentication-token-webhook-config-file={folder / 'hook.kubeconfig'}",
            "--authentication-token-webhook-version=v1",
            "--enable-bootstrap-token-auth",
            "--api-audiences=api",
        ],
    )
    yield running
    assert running.stop() == 0


@pytest.fixture
def caller(trusting: RunningServer) -> Iterator[Caller]:
    caller = Caller(trusting, anonymous_context(trusting))
    yield caller
    caller.close()


def claims(outside: ScriptedServer, **changed: Any) -> dict[str, Any]:
    now = int(time.time())
    made = {
        "iss": outside.url, "aud": "us", "sub": "olga", "groups": ["a", "b"], "uid": "o-1", "tenant": "acme",
        "iat": now, "exp": now + 300,
    }  # fmt: skip
    return {name: value for name, value in (made | changed).items() if value is not None}


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def test_a_token_of_the_issuer(caller: Caller, outside: ScriptedServer) -> None:
    text = token(KEY, claims(outside), header={"kid": "k1"})
    assert eventually(lambda: caller.who(bearer(text)).get("username") == "oidc:olga")
    user = caller.who(bearer(text))
    assert user == {"username": "oidc:olga", "uid": "o-1", "groups": ["g:a", "g:b", "system:authenticated"]}


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": int(time.time()) - 1}, {"exp": None}, {"nbf": int(time.time()) + 3600}, {"aud": "stranger"},
        {"aud": None}, {"tenant": "other"}, {"tenant": None}, {"sub": None}, {"sub": 1}, {"groups": 7}, {"uid": None},
        {"iss": "https://stranger.example"}, {"aud": {"us": 1}},
    ],
)  # fmt: skip
def test_tokens_that_are_signed_and_still_not_taken(
    caller: Caller, outside: ScriptedServer, changed: dict[str, Any]
) -> None:
    assert caller.who(bearer(token(KEY, claims(outside, **changed), header={"kid": "k1"}))) == {"code": 401}


def test_forged_tokens(caller: Caller, outside: ScriptedServer) -> None:
    made = claims(outside)
    for forged in (
        token(OTHER, made, header={"kid": "k1"}),
        token(None, made),
        token(public_pem(KEY), made, header={"kid": "k1"}),
        token(KEY, made, header={"kid": "k1"}, algorithm="ES384"),
        token(KEY, made, header={"kid": "nosuch"}),
    ):
        assert caller.who(bearer(forged)) == {"code": 401}


def test_reviews_say_what_is_wrong(caller: Caller, outside: ScriptedServer) -> None:
    def error(text: str) -> str:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": text}}
        return str(caller("POST", f"{REVIEWS}/tokenreviews", body, ADMIN)[1]["status"]["error"])

    expired = error(token(KEY, claims(outside, exp=1), header={"kid": "k1"}))
    assert expired == "[invalid bearer token, oidc: verify token: oidc: token is expired, never seen]"
    assert "value does not match. Got = other, want = acme" in error(token(KEY, claims(outside, tenant="other")))


def test_the_webhook_knows_others(caller: Caller, outside: ScriptedServer) -> None:
    user = caller.who(bearer("known-elsewhere"))
    assert user == {
        "username": "wendy", "uid": "7", "groups": ["hook", "system:authenticated"], "extra": {"acme.com/k": ["v"]},
    }  # fmt: skip
    path, asked = outside.asked[-1]
    assert path == "/review"
    assert outside.headers[-1]["authorization"] == "Bearer hook-secret"
    assert (asked["apiVersion"], asked["kind"]) == ("authentication.k8s.io/v1", "TokenReview")
    assert asked["spec"] == {"token": "known-elsewhere", "audiences": ["api"]}
    before = len(outside.asked)
    for _ in range(3):
        assert caller.who(bearer("known-elsewhere"))["username"] == "wendy"
        assert caller.who(bearer("nobody")) == {"code": 401}
    # One question for the new token, none for the known one.
    assert len(outside.asked) == before + 1


def secret(**changed: str) -> dict[str, Any]:
    data = {
        "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:nodes",
    } | changed  # fmt: skip
    return {
        "metadata": {"name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in data.items() if value},
    }


def test_bootstrap_tokens(caller: Caller) -> None:
    path, text = "/api/v1/namespaces/kube-system/secrets", bearer("abcdef.0123456789abcdef")
    assert caller.who(text) == {"code": 401}
    code, tree = caller("POST", path, secret(), ADMIN)
    assert code == 201, tree
    user = caller.who(text)
    groups = ["system:bootstrappers", "system:bootstrappers:nodes", "system:authenticated"]
    assert (user["username"], user["groups"]) == ("system:bootstrap:abcdef", groups)
    assert caller.who(bearer("abcdef.0123456789abcdeF")) == {"code": 401}
    assert caller.who(bearer("abcdef.0123456789abcdee")) == {"code": 401}
    for changed in (
        {"usage-bootstrap-authentication": "yes"}, {"expiration": "2020-01-01T00:00:00Z"}, {"expiration": "soon"},
        {"token-id": "zzzzzz"}, {"token-secret": ""}, {"auth-extra-groups": "system:masters"},
    ):  # fmt: skip
        body = secret(**changed)
        code, tree = caller("PUT", f"{path}/bootstrap-token-abcdef", body, ADMIN)
        assert code == 200, tree
        assert caller.who(text) == {"code": 401}, changed
    later = secret(expiration="2099-01-01T00:00:00Z")
    assert caller("PUT", f"{path}/bootstrap-token-abcdef", later, ADMIN)[0] == 200
    assert caller.who(text)["username"] == "system:bootstrap:abcdef"
    assert caller("DELETE", f"{path}/bootstrap-token-abcdef", None, ADMIN)[0] == 200
    assert caller.who(text) == {"code": 401}


def test_a_changed_configuration_is_used(caller: Caller, outside: ScriptedServer, trusting: RunningServer) -> None:
    file = trusting.data_dir.parent / "authn.json"
    first = bearer(token(KEY, claims(outside), header={"kid": "k1"}))
    other = bearer(token(OTHER, claims(outside, iss=f"{outside.url}/other"), header={"kid": "k1"}))
    assert eventually(lambda: caller.who(first).get("username") == "oidc:olga")
    assert caller.who(other) == {"code": 401}
    try:
        file.write_text("{broken")
        file.write_text(configuration(outside, "/other"))
        assert eventually(lambda: caller.who(other).get("username") == "oidc:olga")
        assert caller.who(first) == {"code": 401}
    finally:
        file.write_text(configuration(outside, ""))
    assert eventually(lambda: caller.who(first).get("username") == "oidc:olga")


def test_flags_of_one_issuer(tmp_path: Path, outside: ScriptedServer) -> None:
    running = RunningServer(
        tmp_path / "data",
        tokens=TOKENS,
        flags=[
            f"--oidc-issuer-url={outside.url}", "--oidc-client-id=us", f"--oidc-ca-file={outside.ca_file}",
            "--oidc-username-claim=email", "--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:",
            "--oidc-required-claim=tenant=acme", "--oidc-signing-algs=ES256",
        ],
    )  # fmt: skip
    caller = Caller(running, anonymous_context(running))
    try:

        def who(**changed: Any) -> dict[str, Any]:
            return caller.who(bearer(token(KEY, claims(outside, **changed), header={"kid": "k1"})))

        assert eventually(lambda: who(email="olga@example.com").get("username") == "olga@example.com")
        assert who(email="o@example.com")["groups"] == ["oidc:a", "oidc:b", "system:authenticated"]
        assert who(email="o@example.com", email_verified=True)["username"] == "o@example.com"
        assert who(email="o@example.com", email_verified=False) == {"code": 401}
        assert who(email="o@example.com", tenant="other") == {"code": 401}
        assert who() == {"code": 401}
    finally:
        caller.close()
        assert running.stop() == 0
