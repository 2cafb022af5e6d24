"""Service account tokens: claims, life, keys; verified by the cryptography library, not by our own code."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from fastapi_core.authn.issuer import (
    DEFAULT_ISSUER,
    EXTENDED,
    WARN_AFTER,
    KeyFileError,
    SigningKey,
    Subject,
    TokenIssuer,
    decoded,
    generated_key,
    kept_key,
)
from fastapi_core.options.certificates import write

SUBJECT = Subject("ns", "sa", "uid-1")


def pem(key: Any) -> bytes:
    return bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def issue(
    issuer: TokenIssuer, subject: Subject = SUBJECT, audiences: Any = (DEFAULT_ISSUER,), seconds: int = 3600
) -> str:
    return issuer.issue(subject, audiences, seconds, new_id="id-1", now=1000.9)


def test_the_claims() -> None:
    issuer = TokenIssuer(generated_key)
    _, claims = decoded(issue(issuer, audiences=["a", "b"]))
    assert claims == {
        "aud": ["a", "b"],
        "exp": 4600,
        "iat": 1000,
        "iss": DEFAULT_ISSUER,
        "jti": "id-1",
        "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "sa", "uid": "uid-1"}},
        "nbf": 1000,
        "sub": "system:serviceaccount:ns:sa",
    }


def test_bound_objects() -> None:
    subject = Subject("ns", "sa", "u", [("pod", "p", "pu"), ("node", "n", "")])
    _, claims = decoded(issue(TokenIssuer(generated_key), subject))
    assert claims["kubernetes.io"]["pod"] == {"name": "p", "uid": "pu"}
    assert claims["kubernetes.io"]["node"] == {"name": "n"}


@pytest.mark.parametrize(
    ("extend", "bound", "seconds", "audience", "extended"),
    [
        (True, [("pod", "p", "u")], WARN_AFTER, DEFAULT_ISSUER, True),
        (False, [("pod", "p", "u")], WARN_AFTER, DEFAULT_ISSUER, False),
        (True, [], WARN_AFTER, DEFAULT_ISSUER, False),
        (True, [("pod", "p", "u")], 3600, DEFAULT_ISSUER, False),
        (True, [("pod", "p", "u")], WARN_AFTER, "other", False),
    ],
)
def test_tokens_that_pods_mount_live_on(
    extend: bool, bound: list[tuple[str, str, str]], seconds: int, audience: str, extended: bool
) -> None:
    issuer = TokenIssuer(generated_key, extend=extend)
    _, claims = decoded(issue(issuer, Subject("ns", "sa", "u", bound), [audience], seconds))
    assert claims["exp"] == 1000 + (EXTENDED if extended else seconds)
    assert ("warnafter" in claims["kubernetes.io"]) == extended


def test_rsa_signatures() -> None:
    key = rsa.generate_private_key(65537, 2048)
    token = issue(TokenIssuer(lambda: pem(key)))
    signed, _, signature = token.rpartition(".")
    header, _ = decoded(token)
    assert header["alg"] == "RS256"
    data = base64.urlsafe_b64decode(signature + "==")
    key.public_key().verify(data, signed.encode(), padding.PKCS1v15(), hashes.SHA256())


@pytest.mark.parametrize(
    ("curve", "algorithm", "digest", "size"),
    [
        (ec.SECP256R1(), "ES256", hashes.SHA256(), 32),
        (ec.SECP384R1(), "ES384", hashes.SHA384(), 48),
        (ec.SECP521R1(), "ES512", hashes.SHA512(), 66),
    ],
)
def test_curve_signatures(curve: Any, algorithm: str, digest: Any, size: int) -> None:
    key = ec.generate_private_key(curve)
    token = issue(TokenIssuer(lambda: pem(key)))
    signed, _, signature = token.rpartition(".")
    header, _ = decoded(token)
    assert header["alg"] == algorithm
    data = base64.urlsafe_b64decode(signature + "==")
    assert len(data) == 2 * size
    numbers = (int.from_bytes(data[:size], "big"), int.from_bytes(data[size:], "big"))
    key.public_key().verify(encode_dss_signature(*numbers), signed.encode(), ec.ECDSA(digest))


def test_the_key_is_named_by_its_digest() -> None:
    data = generated_key()
    first, second = SigningKey.load(data), SigningKey.load(data)
    assert first.id == second.id != SigningKey.load(generated_key()).id
    assert len(first.id) == 43


@pytest.mark.parametrize("data", [b"", b"junk", pem(ec.generate_private_key(ec.SECP256K1()))])
def test_keys_that_cannot_sign(data: bytes) -> None:
    with pytest.raises(KeyFileError):
        SigningKey.load(data)


def test_our_own_key_is_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "sa.key")
    first = kept_key(path, write)
    assert kept_key(path, write) == first
    assert os.stat(path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "a.b", "a.b.c.d", "!.!.!", "e30.bm9qc29u.x"])
def test_texts_that_are_no_token(text: str) -> None:
    with pytest.raises(ValueError, match="not a compact JWS"):
        decoded(text)
