"""The ConfigMap of authentication: what is taken from it, and what stays when it makes no sense."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.authn.frontproxy import HeaderNames
from fastapi_core.extension.delegated.published import NO_NAMES, Published, read
from tests.fixtures.pki import authority

CLIENTS, PROXIES, OTHERS = authority("clients"), authority("proxies"), authority("others")
KEYS = (
    "client-ca-file", "requestheader-client-ca-file", "requestheader-username-headers", "requestheader-uid-headers",
    "requestheader-group-headers", "requestheader-extra-headers-prefix", "requestheader-allowed-names",
)  # fmt: skip
DATA = {
    "client-ca-file": CLIENTS.pem.decode(),
    "requestheader-client-ca-file": PROXIES.pem.decode(),
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-username-headers": '["X-Remote-User"]',
}
FULL = Published(
    CLIENTS.pem,
    PROXIES.pem,
    HeaderNames.of(["X-Remote-User"], ["X-Remote-Uid"], ["X-Remote-Group"], ["X-Remote-Extra-"]),
    ("front-proxy-client",),
)


def test_everything_is_read() -> None:
    assert read(DATA, Published()) == FULL


def test_a_core_api_without_a_front_proxy() -> None:
    assert read({"client-ca-file": CLIENTS.pem.decode()}, Published()) == Published(CLIENTS.pem)


def test_cas_that_vanish_or_break_stay_and_others_take_their_place() -> None:
    assert read({**DATA, "client-ca-file": ""}, FULL) == FULL
    assert read({**DATA, "requestheader-client-ca-file": "-----BEGIN CERTIFICATE-----\nAAAA\n"}, FULL) == FULL
    found = read({**DATA, "requestheader-client-ca-file": OTHERS.pem.decode()}, FULL)
    assert (found.client_ca, found.proxy_ca) == (CLIENTS.pem, OTHERS.pem)


def test_header_names_are_taken_together_or_not_at_all() -> None:
    broken = {
        **DATA,
        "requestheader-username-headers": '["X-User"]',
        "requestheader-allowed-names": "front-proxy-client",
    }
    assert read(broken, FULL) == FULL
    # Names that are gone are gone: who lets nobody in by headers is obeyed.
    assert read({"client-ca-file": CLIENTS.pem.decode()}, FULL).names == NO_NAMES


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), st.one_of(st.text(), st.none(), st.integers(), st.binary())))
def test_no_data_breaks_it_and_only_good_ones_count(data: dict[str, Any]) -> None:
    found = read(data, FULL)
    assert found.client_ca == FULL.client_ca
    assert found.proxy_ca == FULL.proxy_ca
    if found.allowed not in (FULL.allowed, ()):
        assert list(found.allowed) == json.loads(data["requestheader-allowed-names"])
