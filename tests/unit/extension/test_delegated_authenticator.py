"""Who is asking, by what the core API publishes: front proxies, client certificates, tokens; and as that changes."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.authn.base import WrongCredential
from fastapi_core.extension.delegated.authenticator import DelegatedAuthenticator
from fastapi_core.extension.delegated.options import DelegatedOptions
from fastapi_core.http.asking import Whole
from fastapi_core.obs.files import FileWatcher
from fastapi_core.request.context import RequestContext, User
from tests.fixtures.exchange import FakeConnection, FakeRequest
from tests.fixtures.pki import Pair, authority
from tests.unit.extension.test_delegated_published import CLIENTS, DATA, OTHERS, PROXIES

PROXY = PROXIES.issue("front-proxy-client")
HEADERS = [("X-Remote-User", "alice"), ("X-Remote-Group", "devs"), ("X-Remote-Extra-Scopes", "a")]


class Reviews:
    """Answers TokenReviews: the token is the user's name, `bad` nobody's."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def post(self, body: bytes, *, timeout: float) -> Whole:
        spec = json.loads(body)["spec"]
        self.asked.append(spec)
        known = spec["token"] != "bad"
        status = {"authenticated": known, "user": {"username": spec["token"], "groups": ["g"]} if known else {}}
        if known and "audiences" in spec:
            status["audiences"] = spec["audiences"]
        return Whole(201, [], json.dumps({"status": status}).encode())


def context(headers: list[tuple[str, str]] | None = None, connection: Any = None) -> RequestContext:
    request: Any = FakeRequest(headers=headers or [], connection=connection or FakeConnection())
    request.received = time.time()
    return RequestContext(request)


def shown(*chain: Pair) -> Any:
    return FakeConnection(*(pair.der for pair in chain))


async def who(known: DelegatedAuthenticator, ctx: RequestContext) -> User | None:
    answer = known.authenticate(ctx)
    return await answer if isinstance(answer, Awaitable) else answer


def config_map(**data: str) -> dict[str, Any]:
    return {"metadata": {"name": "extension-apiserver-authentication"}, "data": {**DATA, **data}}


async def test_front_proxies_are_believed_as_soon_as_their_ca_is_known() -> None:
    known = DelegatedAuthenticator(DelegatedOptions(), None)
    assert known.authorities.pem == b""
    with pytest.raises(WrongCredential):
        await who(known, context(HEADERS, shown(PROXY, PROXIES)))
    known.take(config_map())
    assert known.authorities.pem == CLIENTS.pem + PROXIES.pem
    ctx = context(HEADERS, shown(PROXY, PROXIES))
    user = await who(known, ctx)
    assert user == User("alice", "", ("devs", "system:authenticated"), {"scopes": ("a",)})
    assert ctx.request.headers == []


async def test_headers_without_the_right_certificate_mean_nothing() -> None:
    known = DelegatedAuthenticator(DelegatedOptions(), None)
    known.take(config_map())
    nobody = await who(known, context(HEADERS))
    assert nobody is not None
    assert nobody.name == "system:anonymous"
    with pytest.raises(WrongCredential) as caught:
        await who(known, context(HEADERS, shown(PROXIES.issue("somebody"), PROXIES)))
    assert "x509: subject with cn=somebody is not in the allowed list" in caught.value.reasons
    # A client's certificate names the client, whatever the headers say.
    user = await who(known, context(HEADERS, shown(CLIENTS.issue("bob", ["ops"]), CLIENTS)))
    assert user is not None
    assert (user.name, user.groups) == ("bob", ("ops", "system:authenticated"))


async def test_rotated_cas_count_on_open_connections() -> None:
    known = DelegatedAuthenticator(DelegatedOptions(), None)
    known.take(config_map())
    old, changes = shown(PROXY, PROXIES), []
    known.authorities.listen(lambda: changes.append(known.authorities.pem))
    assert await who(known, context(HEADERS, old)) is not None
    both = (PROXIES.pem + OTHERS.pem).decode()
    known.take(config_map(**{"requestheader-client-ca-file": both}))
    fresh = shown(OTHERS.issue("front-proxy-client"), OTHERS)
    for connection in (old, fresh):
        user = await who(known, context(HEADERS, connection))
        assert user is not None
        assert user.name == "alice"
    known.take(config_map(**{"requestheader-client-ca-file": OTHERS.pem.decode()}))
    with pytest.raises(WrongCredential):
        await who(known, context(HEADERS, old))
    assert await who(known, context(HEADERS, fresh)) is not None
    assert changes == [CLIENTS.pem + both.encode(), CLIENTS.pem + OTHERS.pem]


async def test_a_config_map_that_is_deleted_changes_nothing() -> None:
    known = DelegatedAuthenticator(DelegatedOptions(), None)
    known.take(config_map())
    for tree in (None, {"metadata": {}}, {"data": "?"}):
        known.take(tree)  # type: ignore[arg-type]
        user = await who(known, context(HEADERS, shown(PROXY, PROXIES)))
        assert user is not None
        assert user.name == "alice"


async def test_other_header_names_and_proxies() -> None:
    known = DelegatedAuthenticator(DelegatedOptions(), None)
    known.take(config_map(**{"requestheader-username-headers": '["X-Who"]', "requestheader-allowed-names": "[]"}))
    ctx = context([("X-Who", "carol"), ("X-Remote-User", "eve")], shown(PROXIES.issue("any"), PROXIES))
    user = await who(known, ctx)
    assert user is not None
    assert user.name == "carol"
    assert ctx.request.headers == []


async def test_files_of_the_flags_stand_in_for_the_config_map(tmp_path: Path) -> None:
    own = authority("own")
    clients, proxies = tmp_path / "clients.pem", tmp_path / "proxies.pem"
    clients.write_bytes(own.pem)
    proxies.write_bytes(OTHERS.pem)
    options = DelegatedOptions(client_ca_file=str(clients), requestheader_client_ca_file=str(proxies))
    assert options.looks_up == (False, False)
    known = DelegatedAuthenticator(options, None)
    files = FileWatcher()
    known.follow(files)
    assert known.client_ca_files == (str(clients), str(proxies))
    known.take(config_map())
    assert known.authorities.pem == b""
    user = await who(known, context(HEADERS, shown(OTHERS.issue("anything"), OTHERS)))
    assert user is not None
    assert user.name == "alice"
    with pytest.raises(WrongCredential):
        await who(known, context(HEADERS, shown(PROXY, PROXIES)))
    # The file is exchanged.
    before = shown(own.issue("dave"), own)
    assert await who(known, context([], before)) is not None
    clients.write_bytes(CLIENTS.pem)
    files.check()
    with pytest.raises(WrongCredential):
        await who(known, context([], before))


async def test_tokens_are_reviewed_and_remembered_for_their_time_only() -> None:
    reviews = Reviews()
    known = DelegatedAuthenticator(DelegatedOptions(authentication_token_webhook_cache_ttl=10.0), reviews)

    async def by(token: str, after: float = 0.0) -> User | None:
        ctx = context([("Authorization", f"Bearer {token}")])
        ctx.request.received = time.time() + after
        return await who(known, ctx)

    assert await by("erin") == User("erin", "", ("g", "system:authenticated"))
    assert await by("erin", 9.0) is not None
    assert len(reviews.asked) == 1
    assert await by("erin", 10.5) is not None
    assert len(reviews.asked) == 2
    with pytest.raises(WrongCredential):
        await by("bad")
    assert "audiences" not in reviews.asked[0]


async def test_audiences_are_asked_for() -> None:
    reviews = Reviews()
    known = DelegatedAuthenticator(DelegatedOptions(api_audiences=("ext",)), reviews)
    assert await who(known, context([("Authorization", "Bearer fred")])) is not None
    assert reviews.asked[0]["audiences"] == ["ext"]


async def test_strangers_may_be_shut_out() -> None:
    known = DelegatedAuthenticator(DelegatedOptions(anonymous_auth=False), None)
    assert await who(known, context()) is None


def test_a_file_that_is_no_bundle(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    with pytest.raises(ValueError, match="no certificates found"):
        DelegatedAuthenticator(DelegatedOptions(client_ca_file=str(file)), None)
