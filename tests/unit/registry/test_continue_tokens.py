"""Continue tokens: what is read back, and the texts about those that are not ours."""

from __future__ import annotations

import base64

import pytest

from fastapi_core import errors
from fastapi_core.registry.store import decode_token, encode_token


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def test_round_trip() -> None:
    token = encode_token(7, "/registry/pods/ns/a\0", "/registry/pods/ns/")
    assert decode_token(token, "/registry/pods/ns/") == (7, "/registry/pods/ns/a\0")


def test_names_in_any_case_and_a_leading_slash() -> None:
    assert decode_token(encoded('{"V":"meta.k8s.io/v1","RV":-1,"Start":"/a"}'), "/r/") == (-1, "/r/a")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("null", "server does not recognize this encoded version "),
        ('{"v":"meta.k8s.io/v2","rv":1,"start":"a"}', "server does not recognize this encoded version meta.k8s.io/v2"),
        (
            '{"v":"meta.k8s.io/v1","start":"a"}',
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        ('{"v":"meta.k8s.io/v1","rv":1}', "encoded start key empty (version meta.k8s.io/v1)"),
        ('{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}', "../a"),
        ('{"v":"meta.k8s.io/v1","rv":1,"start":"a/./b"}', "a/./b"),
        ('{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}', "a//b"),
        ('{"v":"meta.k8s.io/v1","rv":1,"start":"."}', "."),
    ],
)
def test_refused(body: str, text: str) -> None:
    with pytest.raises(errors.APIError) as caught:
        decode_token(encoded(body), "/r/")
    assert caught.value.code == 400
    assert caught.value.message == f"invalid continue token: continue key is not valid: {text}"


@pytest.mark.parametrize(
    "token", ["x", "e30=", "====", "a b", "é", encoded("[]"), encoded('{"rv":true}'), encoded("{")]
)
def test_garbage(token: str) -> None:
    with pytest.raises(errors.APIError) as caught:
        decode_token(token, "/r/")
    assert caught.value.message.startswith("invalid continue token: continue key is not valid: ")
