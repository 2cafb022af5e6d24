"""Signed tokens: what is read, what verifies, and above all what does not."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.authn import jws
from tests.fixtures.pki import authority, pem, public_pem, token

RSA = rsa.generate_private_key(65537, 2048)
P256, P384, P521 = (ec.generate_private_key(curve) for curve in (ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()))
CLAIMS = {"iss": "i", "sub": "s", "aud": ["a"], "exp": 10}


def key_of(private: Any, **given: str) -> jws.PublicKey:
    return jws.PublicKey(private.public_key(), **given)


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("private", "algorithm"),
    [(RSA, name) for name in jws.RSA_ALGORITHMS] + [(P256, "ES256"), (P384, "ES384"), (P521, "ES512")],
)
def test_signatures_that_verify(private: Any, algorithm: str) -> None:
    parsed = jws.parse(token(private, CLAIMS, algorithm=algorithm, header={"kid": "k"}))
    assert (parsed.algorithm, parsed.key_id, parsed.claims) == (algorithm, "k", CLAIMS)
    assert key_of(private).verify(parsed)


def test_a_changed_token_does_not_verify() -> None:
    for private in (RSA, P256):
        head, _, signature = token(private, CLAIMS).split(".")
        changed = jws.parse(f"{head}.{b64(json.dumps({**CLAIMS, 'sub': 'admin'}).encode())}.{signature}")
        assert not key_of(private).verify(changed)


@pytest.mark.parametrize("private", [RSA, P256])
def test_nobody_is_taken_in_by_the_algorithm_of_the_header(private: Any) -> None:
    key = key_of(private)
    assert not key.verify(jws.parse(token(None, CLAIMS, algorithm="none") + "AA"))
    for secret in (public_pem(private), key.der, b""):
        for algorithm in ("HS256", "HS384", "HS512"):
            assert not key.verify(jws.parse(token(secret or b"\0", CLAIMS, algorithm=algorithm)))
    for algorithm in ("", "nOnE", "RS1", "ES256K", "EdDSA", "RS256 ", "rs256"):
        _, claims, signature = token(private, CLAIMS).split(".")
        forged = f"{b64(json.dumps({'alg': algorithm}).encode())}.{claims}.{signature}"
        assert not key.verify(jws.parse(forged))


def test_keys_of_another_kind_or_curve_do_not_verify() -> None:
    keys = {"RSA": (RSA, "RS256"), "256": (P256, "ES256"), "384": (P384, "ES384"), "521": (P521, "ES512")}
    for name, (private, algorithm) in keys.items():
        parsed = jws.parse(token(private, CLAIMS, algorithm=algorithm))
        for other, (own, _) in keys.items():
            assert key_of(own).verify(parsed) == (name == other)
    # The right digest with the wrong curve.
    assert not key_of(P256).verify(jws.parse(token(P384, CLAIMS, algorithm="ES256")))


def test_signatures_of_the_wrong_length() -> None:
    head, claims, signature = token(P256, CLAIMS).split(".")
    for wrong in (signature[:-4], signature + "AAAA", "AA"):
        assert not key_of(P256).verify(jws.parse(f"{head}.{claims}.{wrong}"))
    zero = b64(bytes(64))
    assert not key_of(P256).verify(jws.parse(f"{head}.{claims}.{zero}"))


def test_a_key_that_is_for_one_algorithm_only() -> None:
    key = key_of(RSA, only="PS256")
    assert key.verify(jws.parse(token(RSA, CLAIMS, algorithm="PS256")))
    assert not key.verify(jws.parse(token(RSA, CLAIMS, algorithm="RS256")))
    with pytest.raises(jws.UnusableKeyError):
        key_of(RSA, only="ES256")


@pytest.mark.parametrize(
    "text",
    [
        "", "a.b", "a.b.c.d", "..", "e30.e30.", "e30.e30.AA", "eyJhbGciOjF9.e30.AA", "!.e30.AA",
        "eyJhbGciOiJSUzI1NiJ9=.e30.AA", "eyJhbGciOiJSUzI1NiJ9.W10.AA", "eyJhbGciOiJSUzI1NiJ9.e30.A",
        " eyJhbGciOiJSUzI1NiJ9.e30.AA", "eyJhbGciOiJSUzI1NiJ9.e30.AA\n", "eyJhbGciOiJSUzI1NiJ9.e30.A+",
    ],
)  # fmt: skip
def test_texts_that_are_no_token(text: str) -> None:
    with pytest.raises(jws.TokenError):
        jws.parse(text)


def test_critical_headers_are_not_passed_over() -> None:
    for header in ({"crit": ["exp"]}, {"b64": False}):
        with pytest.raises(jws.TokenError, match="critical"):
            jws.parse(token(P256, CLAIMS, header=header))


def test_long_tokens_are_not_read() -> None:
    huge = token(P256, {**CLAIMS, "x": "y" * jws.LIMIT})
    with pytest.raises(jws.TokenError, match="too long"):
        jws.parse(huge)
    assert jws.issuer_of(huge) is None


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    jws.issuer_of(text)
    with pytest.raises(jws.TokenError):
        jws.parse(text)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    st.binary(max_size=80),
)
def test_any_claims_are_read_or_refused(claims: Any, signature: bytes) -> None:
    """Well-formed tokens with arbitrary content: a reading of each claim, or a TokenError; never a valid signature."""
    head = b64(json.dumps({"alg": "ES256"}).encode())
    text = f"{head}.{b64(json.dumps(claims).encode())}.{b64(signature)}"
    try:
        parsed = jws.parse(text)
    except jws.TokenError:
        return
    assert not key_of(P256).verify(parsed)
    for read in (jws.audiences, lambda c: jws.instant(c, "exp"), lambda c: jws.text(c, "sub")):
        try:
            read(parsed.claims)
        except jws.TokenError:
            pass


def test_claims_of_the_wrong_type() -> None:
    assert jws.audiences({"aud": "a"}) == ("a",)
    assert jws.audiences({}) == ()
    for wrong in (1, ["a", 1], {"a": 1}, True):
        with pytest.raises(jws.TokenError):
            jws.audiences({"aud": wrong})
    for wrong in ("1", True, [1]):
        with pytest.raises(jws.TokenError):
            jws.instant({"exp": wrong}, "exp")
    with pytest.raises(jws.TokenError):
        jws.text({"sub": 1}, "sub")


def test_keys_of_pem_files() -> None:
    data = public_pem(RSA) + b"\n# comment\n" + pem(P256) + authority("ca", key=P256).pem
    found = jws.keys_of_pem(data)
    assert [key.algorithm for key in found] == ["RS256", "ES256", "ES256"]
    assert found[1].id == found[2].id == key_of(P256).id
    for wrong in (
        b"",
        b"junk",
        pem(ec.generate_private_key(ec.SECP256K1())),
        b"-----BEGIN PUBLIC KEY-----\nAA\n-----END PUBLIC KEY-----",
    ):
        with pytest.raises(jws.UnusableKeyError):
            jws.keys_of_pem(wrong)
    with pytest.raises(jws.UnusableKeyError):
        jws.PublicKey(ed25519.Ed25519PrivateKey.generate().public_key())


def test_key_sets_there_and_back() -> None:
    keys = [key_of(private) for private in (RSA, P256, P384, P521)]
    document = json.dumps({"keys": [key.jwk() for key in keys]}).encode()
    assert [(key.id, key.der) for key in jws.keys_of_set(document)] == [(key.id, key.der) for key in keys]


def test_unusable_keys_of_a_set_are_passed_over() -> None:
    good = key_of(P256).jwk()
    wrong = [
        1, {}, {"kty": "oct", "k": "AAAA"}, {**good, "use": "enc"}, {**good, "x": "AAAA"}, {**good, "crv": ["P-256"]},
        {**good, "kid": 1}, {**good, "alg": "HS256"}, {"kty": "RSA", "n": "AQ", "e": "AQAB"}, {**good, "x": "!"},
    ]  # fmt: skip
    found = jws.keys_of_set(json.dumps({"keys": [*wrong, good]}).encode())
    assert [key.id for key in found] == [good["kid"]]
    for document in (b"", b"[]", b"{}", b'{"keys": 1}'):
        with pytest.raises(jws.UnusableKeyError):
            jws.keys_of_set(document)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["kty", "crv", "x", "y", "n", "e", "kid", "alg", "use"]) | st.text(max_size=3),
                inner,
                max_size=5,
            )
        ),
    )
)
def test_any_key_set_is_read_or_refused(entry: Any) -> None:
    jws.keys_of_set(json.dumps({"keys": [entry]}).encode())
