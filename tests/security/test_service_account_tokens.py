"""Service account tokens over the wire: which are taken, which are not, and when one stops counting."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from fastapi_core.testing.server import RunningServer
from tests.fixtures.callers import REVIEWS, Caller, anonymous_context, bearer
from tests.fixtures.pki import pem, public_pem, token

KEY, OLD = ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)
ISSUER, OLD_ISSUER, AUDIENCE = "https://new.example", "https://old.example", "https://api.example"
ADMIN = bearer("admintoken")


@pytest.fixture(scope="module")
def issuing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("issuing")
    (folder / "sign.key").write_bytes(pem(KEY))
    (folder / "old.pub").write_bytes(public_pem(OLD))
    running = RunningServer(
        folder / "data",
        tokens=[("admintoken", "admin", "1", "system:masters")],
        flags=[
            f"--service-account-issuer={ISSUER}",
            f"--service-account-issuer={OLD_ISSUER}",
            f"--service-account-signing-key-file={folder / 'sign.key'}",
            f"--service-account-key-file={folder / 'old.pub'}",
            f"--api-audiences={AUDIENCE}",
        ],
    )
    yield running
    assert running.stop() == 0


@pytest.fixture
def caller(issuing: RunningServer) -> Iterator[Caller]:
    caller = Caller(issuing, anonymous_context(issuing))
    yield caller
    caller.close()


@pytest.fixture
def account(caller: Caller) -> dict[str, Any]:
    """A service account of the test's own."""
    namespace = f"t-{uuid.uuid4().hex[:8]}"
    assert caller("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}, ADMIN)[0] == 201
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    code, tree = caller("POST", path, {"metadata": {"name": "sa"}}, ADMIN)
    assert code == 201
    metadata: dict[str, Any] = tree["metadata"]
    return metadata


def claims(account: dict[str, Any], **changed: Any) -> dict[str, Any]:
    now = int(time.time())
    private = {"namespace": account["namespace"], "serviceaccount": {"name": "sa", "uid": account["uid"]}}
    made = {
        "iss": ISSUER, "aud": [AUDIENCE], "iat": now, "nbf": now, "exp": now + 3600, "jti": "the-id",
        "sub": f"system:serviceaccount:{account['namespace']}:sa", "kubernetes.io": private,
    }  # fmt: skip
    return {name: value for name, value in (made | changed).items() if value is not None}


def requested(caller: Caller, account: dict[str, Any], **spec: Any) -> str:
    path = f"/api/v1/namespaces/{account['namespace']}/serviceaccounts/sa/token"
    code, tree = caller(
        "POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}, ADMIN
    )
    assert code == 201, tree
    found: str = tree["status"]["token"]
    return found


def review(caller: Caller, text: str, *audiences: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"token": text} | ({"audiences": list(audiences)} if audiences else {})
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    code, tree = caller("POST", f"{REVIEWS}/tokenreviews", body, ADMIN)
    assert code == 201, tree
    status: dict[str, Any] = tree["status"]
    return status


def test_a_requested_token_is_the_account(caller: Caller, account: dict[str, Any]) -> None:
    namespace = account["namespace"]
    user = caller.who(bearer(requested(caller, account)))
    assert user["username"] == f"system:serviceaccount:{namespace}:sa"
    assert user["uid"] == account["uid"]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    assert user["groups"] == groups
    assert user["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


def test_every_issuer_and_every_key_counts(caller: Caller, account: dict[str, Any]) -> None:
    for key in (KEY, OLD):
        for issuer in (ISSUER, OLD_ISSUER):
            assert caller.who(bearer(token(key, claims(account, iss=issuer))))["uid"] == account["uid"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exp": int(time.time()) - 120}, "service account token has expired"),
        ({"nbf": int(time.time()) + 7200}, "service account token is not valid yet"),
        ({"iat": int(time.time()) + 7200}, "service account token is issued in the future"),
        ({"aud": ["https://other.example"]}, "is invalid for the target audiences"),
        ({"iss": "https://stranger.example"}, ""),
        ({"iss": None}, ""),
        ({"kubernetes.io": None}, "could not be validated"),
        ({"kubernetes.io": {"namespace": "kube-system", "serviceaccount": {"name": "admin", "uid": "1"}}}, "not found"),
        ({"kubernetes.io": {"namespace": "../secrets", "serviceaccount": {"name": "x"}}}, "not found"),
        ({"exp": "never"}, "could not be validated"),
    ],
)
def test_tokens_that_are_signed_and_still_not_taken(
    caller: Caller, account: dict[str, Any], changed: dict[str, Any], reason: str
) -> None:
    text = token(KEY, claims(account, **changed))
    assert caller.who(bearer(text)) == {"code": 401}
    status = review(caller, text)
    assert status["user"] == {}
    assert "authenticated" not in status
    assert status["error"].startswith("[invalid bearer token, " if reason else "invalid bearer token")
    assert reason in status["error"]


def test_forged_tokens(caller: Caller, account: dict[str, Any]) -> None:
    stranger = ec.generate_private_key(ec.SECP256R1())
    made = claims(account)
    forged = [
        token(stranger, made),
        token(None, made),
        token(None, made, algorithm="none") + "AA",
        *(token(public_pem(key), made, algorithm=name) for key in (KEY, OLD) for name in ("HS256", "HS512")),
        token(OLD, made, algorithm="PS256"),
        token(OLD, made, algorithm="RS512"),
        token(KEY, made, algorithm="ES384"),
        token(KEY, made, header={"kid": "unknown"}),
        token(KEY, made, header={"crit": ["exp"]}),
        token(KEY, made)[:-4],
        "." + token(KEY, made),
    ]
    for text in forged:
        assert caller.who(bearer(text)) == {"code": 401}, text
    # The server is none the worse for it.
    assert caller.who(bearer(token(KEY, made)))["uid"] == account["uid"]


def test_a_bad_token_beside_nothing_else_is_never_anonymous(caller: Caller) -> None:
    for text in ("nosuch", "a.b.c", "x" * 100_000):
        assert caller("GET", "/healthz", None, bearer(text))[0] == 401
    assert caller("GET", "/healthz")[0] == 200


def test_audiences_of_reviews(caller: Caller, account: dict[str, Any]) -> None:
    text = requested(caller, account, audiences=["https://vault.example", "https://two.example"])
    assert caller.who(bearer(text)) == {"code": 401}
    status = review(caller, text, "https://vault.example", "https://other.example")
    assert status["authenticated"] is True
    assert status["audiences"] == ["https://vault.example"]
    assert review(caller, text, "https://third.example")["error"].startswith("[invalid bearer token, token audiences")
    assert review(caller, requested(caller, account))["audiences"] == [AUDIENCE]


def test_a_token_falls_with_its_account(caller: Caller, account: dict[str, Any]) -> None:
    text = requested(caller, account)
    path = f"/api/v1/namespaces/{account['namespace']}/serviceaccounts"
    assert caller.who(bearer(text))["uid"] == account["uid"]
    assert caller("DELETE", f"{path}/sa", None, ADMIN)[0] == 200
    assert caller.who(bearer(text)) == {"code": 401}
    assert caller("POST", path, {"metadata": {"name": "sa"}}, ADMIN)[0] == 201
    assert caller.who(bearer(text)) == {"code": 401}
    assert "does not match claim" in review(caller, text)["error"]


def test_a_token_falls_with_its_pod(caller: Caller, account: dict[str, Any]) -> None:
    path = f"/api/v1/namespaces/{account['namespace']}/pods"
    pod = {
        "metadata": {"name": "p"},
        "spec": {
            "serviceAccountName": "sa",
            "automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": "i"}],
        },
    }
    code, tree = caller("POST", path, pod, ADMIN)
    assert code == 201, tree
    text = requested(caller, account, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
    extra = caller.who(bearer(text))["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [tree["metadata"]["uid"]]
    # A changed pod is the same pod.
    merge = ("Content-Type", "application/merge-patch+json")
    assert caller("PATCH", f"{path}/p", {"metadata": {"labels": {"a": "b"}}}, ADMIN, merge)[0] == 200
    assert caller.who(bearer(text))["uid"] == account["uid"]
    assert caller("DELETE", f"{path}/p?gracePeriodSeconds=0", None, ADMIN)[0] == 200
    assert caller.who(bearer(text)) == {"code": 401}
    assert caller("POST", path, pod, ADMIN)[0] == 201
    assert caller.who(bearer(text)) == {"code": 401}
    assert "pod UID" in review(caller, text)["error"]


def test_a_token_falls_with_its_node(caller: Caller, account: dict[str, Any]) -> None:
    name = f"n-{uuid.uuid4().hex[:8]}"
    assert caller("POST", "/api/v1/nodes", {"metadata": {"name": name}}, ADMIN)[0] == 201
    text = requested(caller, account, boundObjectRef={"kind": "Node", "apiVersion": "v1", "name": name})
    assert caller.who(bearer(text))["extra"]["authentication.kubernetes.io/node-name"] == [name]
    assert caller("DELETE", f"/api/v1/nodes/{name}", None, ADMIN)[0] == 200
    assert caller.who(bearer(text)) == {"code": 401}


def legacy(account: dict[str, Any], secret: str, **changed: Any) -> str:
    prefix = "kubernetes.io/serviceaccount/"
    made = {
        "iss": "kubernetes/serviceaccount", "sub": f"system:serviceaccount:{account['namespace']}:sa",
        f"{prefix}namespace": account["namespace"], f"{prefix}secret.name": secret,
        f"{prefix}service-account.name": "sa", f"{prefix}service-account.uid": account["uid"],
    }  # fmt: skip
    return token(KEY, made | changed)


def test_tokens_in_secrets(caller: Caller, account: dict[str, Any]) -> None:
    text, path = legacy(account, "s"), f"/api/v1/namespaces/{account['namespace']}/secrets"
    assert caller.who(bearer(text)) == {"code": 401}
    assert review(caller, text)["error"] == "[invalid bearer token, Token has been invalidated]"
    secret = {
        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "sa"}},
        "type": "kubernetes.io/service-account-token",
        "data": {"token": base64.b64encode(text.encode()).decode()},
    }
    code, tree = caller("POST", path, secret, ADMIN)
    assert code == 201, tree
    user = caller.who(bearer(text))
    assert user["username"] == f"system:serviceaccount:{account['namespace']}:sa"
    assert "extra" not in user
    end = time.monotonic() + 10
    while "kubernetes.io/legacy-token-last-used" not in caller("GET", f"{path}/s", None, ADMIN)[1]["metadata"].get(
        "labels", {}
    ):
        assert time.monotonic() < end, "the use is noted on the secret"
        time.sleep(0.05)
    assert caller.who(bearer(text)) == user
    assert caller.who(bearer(legacy(account, "s", sub="system:serviceaccount:kube-system:sa"))) == {"code": 401}
    assert review(caller, legacy(account, "s", exp=1))["error"].endswith("Token does not match server's copy]")
    assert caller("DELETE", f"{path}/s", None, ADMIN)[0] == 200
    assert caller.who(bearer(text)) == {"code": 401}


def test_the_issuer_can_be_discovered(caller: Caller, account: dict[str, Any]) -> None:
    from fastapi_core.authn import jws

    code, document = caller("GET", "/.well-known/openid-configuration", None, ADMIN)
    assert code == 200
    assert document["issuer"] == ISSUER
    assert document["id_token_signing_alg_values_supported"] == ["ES256", "RS256"]
    assert document["jwks_uri"].endswith("/openid/v1/jwks")
    code, keys = caller("GET", "/openid/v1/jwks", None, ADMIN)
    assert code == 200
    import orjson

    parsed = jws.parse(requested(caller, account))
    assert [key.id == parsed.key_id and key.verify(parsed) for key in jws.keys_of_set(orjson.dumps(keys))] == [
        False,
        True,
    ]


def test_a_browser_passes_the_token_as_a_protocol(caller: Caller, account: dict[str, Any]) -> None:
    text = requested(caller, account)
    upgrade = (("Connection", "keep-alive, Upgrade"), ("Upgrade", "websocket"))

    def protocols(*names: str) -> tuple[str, str]:
        return "Sec-WebSocket-Protocol", ", ".join(names)

    encoded = "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
    assert caller.who(*upgrade, protocols(encoded, "v4.channel.k8s.io"))["uid"] == account["uid"]
    for wrong in ((encoded,), (encoded, encoded, "x"), (encoded + "!", "x"), (encoded[:-8], "x")):
        assert caller.who(*upgrade, protocols(*wrong)) == {"code": 401}
    assert caller("GET", "/healthz", None, protocols(encoded, "x"))[0] == 200


def test_others_are_told_since_when_uses_are_noted(caller: Caller) -> None:
    name = "kube-apiserver-legacy-service-account-token-tracking"
    code, tree = caller("GET", f"/api/v1/namespaces/kube-system/configmaps/{name}", None, ADMIN)
    assert code == 200
    assert len(tree["data"]["since"]) == len("2006-01-02")


def test_the_signing_key_is_not_given_away(caller: Caller, tmp_path: Path) -> None:
    for path in ("/openid/v1/jwks", "/.well-known/openid-configuration"):
        _, tree = caller("GET", path, None, ADMIN)
        assert '"d"' not in str(tree).replace("'", '"')
