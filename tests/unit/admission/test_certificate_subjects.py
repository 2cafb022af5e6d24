"""Signing requests for administrators' certificates are refused, whoever asks."""

from __future__ import annotations

import base64
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fastapi_core.admission.chain import Attributes
from fastapi_core.admission.plugins.certificates import CLIENT_SIGNER, CertificateSubjectRestriction
from fastapi_core.apis.resources import builtin
from fastapi_core.errors import APIError

REQUESTS = next(d for d in builtin() if d.plural == "certificatesigningrequests")


def pem(*organizations: str) -> bytes:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    signed = request.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def ask(content: bytes, signer: str = CLIENT_SIGNER) -> None:
    spec = {"request": base64.b64encode(content).decode(), "signerName": signer}
    context = cast(Any, None)
    attributes = Attributes("CREATE", REQUESTS, "", "", "r", {"spec": spec}, None, False, context)
    CertificateSubjectRestriction().validate(attributes)


def test_requests_that_pass() -> None:
    ask(pem("team"))
    ask(pem())
    ask(pem("system:masters"), signer="example.com/signer")
    assert not CertificateSubjectRestriction().handles("UPDATE", REQUESTS, "")


def test_requests_that_are_refused() -> None:
    with pytest.raises(APIError) as raised:
        ask(pem("team", "system:masters"))
    assert (raised.value.code, raised.value.message) == (
        403,
        'certificatesigningrequests.certificates.k8s.io "r" is forbidden: use of kubernetes.io/kube-apiserver-client '
        "signer with system:masters group is not allowed",
    )
    with pytest.raises(APIError, match="failed to parse CSR"):
        ask(b"junk")
