"""Client certificates and front proxies over real TLS: two authorities on one socket, and what each may say."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from fastapi_core.testing.server import RunningServer
from tests.fixtures.callers import Caller, bearer, client_context
from tests.fixtures.pki import Pair, authority

CLIENTS, PROXIES, STRANGERS = authority("clients"), authority("proxies"), authority("strangers")
#: An intermediate authority in the bundle, whose root is not.
ALONE = STRANGERS.issue("alone", ca=True)
#: The same name as an authority we trust, another key.
IMPOSTOR = authority("clients")
USER = ("X-Remote-User", "eve")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "clients.crt").write_bytes(CLIENTS.pem + ALONE.certificate.public_bytes(Encoding.PEM))
    (folder / "proxies.crt").write_bytes(PROXIES.pem)
    running = RunningServer(
        folder / "data",
        tokens=[("usertoken", "alice", "2", "devs")],
        flags=[
            f"--client-ca-file={folder / 'clients.crt'}",
            f"--requestheader-client-ca-file={folder / 'proxies.crt'}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User,X-Other-User",
            "--requestheader-uid-headers=X-Remote-Uid",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ],
    )
    yield running
    assert running.stop() == 0


Show = Callable[[Pair | None], Caller]


@pytest.fixture
def show(guarded: RunningServer, tmp_path: Path) -> Iterator[Show]:
    """A connection that shows a certificate."""
    made: list[Caller] = []

    def connect(pair: Pair | None) -> Caller:
        shown = pair.write(tmp_path, f"c{len(made)}") if pair is not None else None
        made.append(Caller(guarded, client_context(guarded, shown)))
        return made[-1]

    yield connect
    for caller in made:
        caller.close()


def test_the_subject_is_the_user(show: Show) -> None:
    user = show(CLIENTS.issue("bob", ["devs", "ops"], uids=["u-1"])).who()
    assert (user["username"], user["uid"], user["groups"]) == ("bob", "u-1", ["devs", "ops", "system:authenticated"])
    assert user["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


def test_intermediate_authorities_are_followed(show: Show) -> None:
    assert show(CLIENTS.issue("between", ca=True).issue("carol")).who()["username"] == "carol"


def test_an_intermediate_authority_alone_is_one(show: Show) -> None:
    assert show(ALONE.issue("dan")).who()["username"] == "dan"


def test_subjects_that_are_nobody(show: Show) -> None:
    nameless, torn = CLIENTS.issue("", ["system:masters"]), CLIENTS.issue("bob", uids=["a", "b"])
    assert show(nameless).who()["code"] in (401, 403)
    assert show(torn).who() == {"code": 401}
    assert show(torn).who(bearer("usertoken"))["username"] == "alice"


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(STRANGERS.issue("bob", ["system:masters"]), id="unknown authority"),
        pytest.param(IMPOSTOR.issue("bob", ["system:masters"]), id="authority of the same name"),
        pytest.param(CLIENTS.issue("bob", days=(-2, -1)), id="expired"),
        pytest.param(CLIENTS.issue("bob", days=(1, 2)), id="not yet valid"),
        pytest.param(CLIENTS.issue("bob", server=True), id="a server's"),
        pytest.param(CLIENTS.issue("bob").issue("admin", ["system:masters"]), id="signed by a client"),
        pytest.param(PROXIES.issue("front-proxy-client", days=(-2, -1)), id="expired proxy"),
    ],
)
def test_certificates_that_do_not_count(show: Show, pair: Pair) -> None:
    """Python's TLS ends the handshake where the reference answers 401."""
    with pytest.raises((ssl.SSLError, ConnectionError)):
        show(pair).who(USER)


def test_a_proxy_names_the_user(show: Show) -> None:
    caller = show(PROXIES.issue("front-proxy-client"))
    user = caller.who(
        USER,
        ("x-remote-uid", "u-9"),
        ("X-Remote-Group", "g1"),
        ("X-Remote-Group", "g2"),
        ("X-Remote-Extra-Scopes", "a"),
        ("X-Remote-Extra-Scopes", "b"),
        ("X-Remote-Extra-Acme.com%2fProject", "p"),
        ("X-Remote-Extra-Odd%zz", "o"),
    )
    assert user == {
        "username": "eve", "uid": "u-9", "groups": ["g1", "g2", "system:authenticated"],
        "extra": {"acme.com/project": ["p"], "odd%zz": ["o"], "scopes": ["a", "b"]},
    }  # fmt: skip
    # Several users on one connection; the first header that names one.
    assert caller.who(("X-Other-User", "mallory"))["username"] == "mallory"
    assert caller.who(("X-Other-User", "mallory"), USER)["username"] == "eve"
    assert caller.who(("X-Remote-User", ""), ("X-Other-User", "mallory"))["username"] == "mallory"


def test_a_proxy_alone_is_nobody(show: Show) -> None:
    caller = show(PROXIES.issue("front-proxy-client", ["system:masters"]))
    assert caller.who() == {"code": 401}
    assert caller.who(("X-Remote-Group", "system:masters")) == {"code": 401}
    assert caller.who(bearer("usertoken"))["username"] == "alice"


@pytest.mark.parametrize("header", [USER, ("x-remote-user", "eve"), ("X-Other-User", "eve")])
def test_without_the_right_certificate_the_headers_say_nothing(show: Show, header: tuple[str, str]) -> None:
    masters = ("X-Remote-Group", "system:masters")
    assert show(None).who(header, masters)["code"] in (401, 403)
    assert show(None).who(header, masters, bearer("usertoken"))["username"] == "alice"
    user = show(CLIENTS.issue("bob")).who(header, masters)
    assert (user["username"], user["groups"]) == ("bob", ["system:authenticated"])
    # A client's name is no proxy's, and a proxy's authority makes no other names proxies.
    assert show(CLIENTS.issue("front-proxy-client")).who(header)["username"] == "front-proxy-client"
    assert show(PROXIES.issue("somebody")).who(header, masters) == {"code": 401}


def test_extension_servers_are_told_whom_to_trust(show: Show, guarded: RunningServer) -> None:
    caller = show(CLIENTS.issue("root", ["system:masters"]))
    code, tree = caller("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
    assert code == 200
    data = tree["data"]
    assert CLIENTS.pem.decode() in data["client-ca-file"]
    assert (guarded.data_dir / "pki/ca.crt").read_text() in data["client-ca-file"]
    assert data["requestheader-client-ca-file"] == PROXIES.pem.decode()
    assert data["requestheader-allowed-names"] == '["front-proxy-client"]'
    assert data["requestheader-username-headers"] == '["X-Remote-User","X-Other-User"]'
    assert data["requestheader-extra-headers-prefix"] == '["X-Remote-Extra-"]'
    assert {"requestheader-uid-headers", "requestheader-group-headers"} <= set(data)


def test_a_changed_client_authority_takes_effect(guarded: RunningServer, show: Show, tmp_path: Path) -> None:
    """On new connections, and on those that are open already."""
    file = guarded.data_dir.parent / "clients.crt"
    replaced = authority("next clients")
    before = show(CLIENTS.issue("bob"))
    assert before.who()["username"] == "bob"
    swapped = tmp_path / "new.crt"
    try:
        swapped.write_bytes(replaced.pem)
        os.replace(swapped, file)
        assert _eventually(lambda: before.who() == {"code": 401})
        assert _eventually(lambda: _name(show, replaced.issue("dora")) == "dora")
        assert _name(show, CLIENTS.issue("bob")) is None
    finally:
        file.write_bytes(CLIENTS.pem)
    assert _eventually(lambda: _name(show, CLIENTS.issue("bob")) == "bob")


def _name(show: Show, pair: Pair) -> Any:
    try:
        return show(pair).who().get("username")
    except (ssl.SSLError, ConnectionError):
        return None


def _eventually(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    import time

    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True
