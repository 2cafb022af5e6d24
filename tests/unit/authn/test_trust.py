"""Which authority vouches for a chain: two bundles, their changes, and the DER that is read for it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.authn import der
from fastapi_core.authn.base import WrongCredential
from fastapi_core.authn.trust import EXPIRED, UNKNOWN_AUTHORITY, Trust, identities
from tests.fixtures.exchange import FakeConnection
from tests.fixtures.pki import Pair, authority

FIRST, SECOND = authority("first"), authority("second")
LEAF = FIRST.issue("bob")
NOW = time.time()


def connection(*chain: Pair) -> Any:
    return FakeConnection(*(pair.der for pair in chain))


def bundle(tmp_path: Path, *authorities: Pair) -> Path:
    file = tmp_path / "bundle.crt"
    file.write_bytes(b"# ours\n" + b"".join(pair.pem for pair in authorities))
    return file


def test_a_chain_belongs_to_the_bundle_of_its_anchor(tmp_path: Path) -> None:
    trust = Trust([str(bundle(tmp_path, FIRST))])
    assert trust.check(connection(LEAF, FIRST), NOW) is True
    assert trust.check(connection(), NOW) is None
    with pytest.raises(WrongCredential) as caught:
        trust.check(connection(SECOND.issue("bob"), SECOND), NOW)
    assert caught.value.reasons == (UNKNOWN_AUTHORITY,)


def test_the_same_key_under_a_new_certificate_is_the_same_authority(tmp_path: Path) -> None:
    renewed = authority("first", key=FIRST.key, days=(-1, 9))
    assert Trust([str(bundle(tmp_path, renewed))]).check(connection(LEAF, FIRST), NOW) is True


def test_a_chain_counts_as_long_as_all_of_it_is_valid(tmp_path: Path) -> None:
    trust = Trust([str(bundle(tmp_path, FIRST))])
    between = FIRST.issue("between", ca=True, days=(-0.5, 0.5))
    known = connection(between.issue("bob"), between, FIRST)
    assert trust.check(known, NOW) is True
    for now in (NOW + 0.6 * 86400, NOW - 0.6 * 86400):
        with pytest.raises(WrongCredential) as caught:
            trust.check(known, now)
        assert caught.value.reasons == (EXPIRED,)


def test_a_bundle_is_followed(tmp_path: Path) -> None:
    file = bundle(tmp_path, FIRST)
    trust, known = Trust([str(file)]), connection(LEAF, FIRST)
    assert trust.check(known, NOW) is True
    file.write_text("half written")
    with pytest.raises(ValueError, match="no certificates"):
        trust.reload()
    assert trust.check(known, NOW) is True
    os.unlink(file)
    with pytest.raises(FileNotFoundError):
        trust.reload()
    assert trust.check(known, NOW) is True
    bundle(tmp_path, SECOND)
    trust.reload()
    with pytest.raises(WrongCredential):
        trust.check(known, NOW)
    bundle(tmp_path, SECOND, FIRST)
    trust.reload()
    assert trust.check(known, NOW) is True


@pytest.mark.parametrize("text", [b"", b"junk", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"])
def test_bundles_that_cannot_be_used(text: bytes, tmp_path: Path) -> None:
    file = tmp_path / "bundle.crt"
    file.write_bytes(text)
    with pytest.raises(ValueError):  # noqa: PT011 - several texts
        Trust([str(file)])
    with pytest.raises(OSError):  # noqa: PT011
        Trust([str(tmp_path / "nosuch")])


@pytest.mark.parametrize(
    "pair", [FIRST, LEAF, authority("long", days=(-1, 40_000)), FIRST.issue("", ["g"], uids=["u"])]
)
def test_the_library_reads_the_same(pair: Pair) -> None:
    found = der.read(pair.der)
    cert: x509.Certificate = pair.certificate
    assert (found.not_before, found.not_after) == (
        cert.not_valid_before_utc.timestamp(),
        cert.not_valid_after_utc.timestamp(),
    )
    assert found.subject == cert.subject.public_bytes()
    assert [value for _, value in found.attributes] == [attribute.value for attribute in cert.subject]
    assert identities(pair.pem.split(b"-----END", 1)[0] + b"-----END CERTIFICATE-----") == {(found.subject, found.key)}


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_changed_bytes_are_read_or_refused(data: st.DataObject) -> None:
    raw = bytearray(LEAF.der)
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = der.read(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    except der.CertificateError:
        return
    assert found.subject in bytes(raw)


def test_authorities_may_come_from_elsewhere_than_files(tmp_path: Path) -> None:
    trust = Trust()
    client = connection(LEAF, FIRST)
    with pytest.raises(WrongCredential):
        trust.check(client, NOW)
    trust.replace(FIRST.pem)
    assert trust.check(client, NOW) is True
    with pytest.raises(ValueError, match="no certificates found"):
        trust.replace(b"nothing")
    assert trust.check(client, NOW) is True
    trust.replace(b"")
    with pytest.raises(WrongCredential):
        trust.check(client, NOW)
    both = Trust([str(bundle(tmp_path, SECOND))])
    both.replace(FIRST.pem)
    both.reload()
    assert both.check(client, NOW) is True
    assert both.check(connection(SECOND.issue("eve"), SECOND), NOW) is True
