from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.authn.x509 import CREDENTIAL_ID, CertificateError, ClientCertificates, subject, user_of
from fastapi_core.errors import APIError
from fastapi_core.request.context import RequestContext
from tests.fixtures.exchange import FakeConnection, FakeRequest

KEY = ec.generate_private_key(ec.SECP256R1())
UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")


def certificate(*attributes: tuple[x509.ObjectIdentifier, str]) -> bytes:
    now = datetime.now(UTC)
    issuer = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, "the issuer"), x509.NameAttribute(NameOID.ORGANIZATION_NAME, "evil")]
    )
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes]))
        .issuer_name(issuer)
        .public_key(KEY.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(KEY, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )


def test_common_name_is_the_user_and_organizations_are_the_groups() -> None:
    der = certificate(
        (NameOID.ORGANIZATION_NAME, "system:masters"),
        (NameOID.COMMON_NAME, "admin"),
        (NameOID.ORGANIZATION_NAME, "devs"),
        (UID, "u-1"),
    )
    user = user_of(der)
    assert user is not None
    assert (user.name, user.uid, user.groups) == ("admin", "u-1", ("system:masters", "devs", "system:authenticated"))
    assert user.extra[CREDENTIAL_ID][0].startswith("X509SHA256=")


def test_no_common_name_is_no_user_and_the_last_of_several_wins() -> None:
    assert user_of(certificate((NameOID.ORGANIZATION_NAME, "system:masters"))) is None
    user = user_of(certificate((NameOID.COMMON_NAME, "first"), (NameOID.COMMON_NAME, "last")))
    assert user is not None
    assert user.name == "last"


def test_read_once_per_connection() -> None:
    connection = FakeConnection(certificate((NameOID.COMMON_NAME, "admin")))
    request: Any = FakeRequest(connection=connection)
    first = ClientCertificates().authenticate(RequestContext(request))
    connection.peer_certificate = b"unread"
    assert ClientCertificates().authenticate(RequestContext(request)) is first


def test_no_certificate_and_a_broken_one() -> None:
    request: Any = FakeRequest()
    assert ClientCertificates().authenticate(RequestContext(request)) is None
    broken: Any = FakeRequest(connection=FakeConnection(b"\x30\x03abc"))
    with pytest.raises(APIError, match="Unauthorized"):
        ClientCertificates().authenticate(RequestContext(broken))


# A common name has 64 bytes at the most, whatever its letters take.
TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=16)
ATTRIBUTES = st.lists(
    st.tuples(st.sampled_from([NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.LOCALITY_NAME]), TEXT),
    max_size=5,
)


@given(ATTRIBUTES)
@settings(max_examples=60, deadline=None)
def test_subject_is_what_the_x509_library_reads(attributes: list[tuple[x509.ObjectIdentifier, str]]) -> None:
    der = certificate(*attributes)
    oracle = [(a.oid, a.value) for a in x509.load_der_x509_certificate(der).subject]
    found = [(NAMES[oid], value) for oid, value in subject(der)]
    assert found == oracle


NAMES = {
    bytes.fromhex("550403"): NameOID.COMMON_NAME,
    bytes.fromhex("55040a"): NameOID.ORGANIZATION_NAME,
    bytes.fromhex("550407"): NameOID.LOCALITY_NAME,
}


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_certificates_never_fail_otherwise(data: st.DataObject) -> None:
    der = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        der[data.draw(st.integers(0, 150))] = data.draw(st.integers(0, 255))
    cut = bytes(der[: data.draw(st.integers(0, len(der)))])
    try:
        subject(cut)
    except CertificateError:
        pass


WHOLE = certificate((NameOID.COMMON_NAME, "admin"), (NameOID.ORGANIZATION_NAME, "devs"))


@given(st.binary(max_size=200))
def test_arbitrary_bytes(data: bytes) -> None:
    try:
        subject(data)
    except CertificateError:
        pass
