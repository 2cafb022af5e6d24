"""Tokens of other issuers: judging, mapping claims, claims that lie elsewhere, keys that come and go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from fastapi_core.authn import jws, keysets, outbound
from fastapi_core.authn.base import Known, WrongCredential
from fastapi_core.authn.config import AuthenticationConfig, Issuer, JWTConfig, Mapped, Rule
from fastapi_core.authn.expressions import Expression, ExpressionError
from fastapi_core.authn.issuers import ConfigFile, Issuers, remote_issuer
from fastapi_core.authn.oidc import IssuerTokens, user_of
from tests.fixtures.https import ScriptedServer
from tests.fixtures.pki import token

KEY, NEXT = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
URL = "https://issuer.example"
CONFIG = JWTConfig(Issuer(URL, ("us",)), Mapped("sub"), Mapped("groups"))
NOW = 1_000_000.0


class Keys:
    """A key set of this process; `fresh` is what the issuer has by the time it is asked again."""

    def __init__(self, *keys: Any, fresh: Any = None) -> None:
        self.ready = asyncio.Event()
        self.ready.set()
        self.keys = [jws.PublicKey(key.public_key()) for key in keys]
        self.fresh = fresh
        self.refreshed = 0

    def start(self) -> None: ...
    async def close(self) -> None: ...

    def verify(self, parsed: jws.Token) -> bool:
        return any(key.verify(parsed) for key in self.keys)

    async def refresh(self) -> None:
        self.refreshed += 1
        if self.fresh is not None:
            self.keys = [jws.PublicKey(self.fresh.public_key())]


def claims(**changed: Any) -> dict[str, Any]:
    return {"iss": URL, "aud": "us", "sub": "olga", "exp": NOW + 60, "groups": ["a"], **changed}


def tokens(keys: Keys, config: JWTConfig = CONFIG, **given: Any) -> IssuerTokens:
    return IssuerTokens(config, ["ES256"], keys, **given)


async def ask(kind: IssuerTokens, text: str, now: float = NOW) -> Known | None:
    found = kind.check(text, None, now)
    return found if found is None or isinstance(found, Known) else await found


async def test_a_good_token_is_remembered_no_longer_than_it_is_good() -> None:
    known = await ask(tokens(Keys(KEY)), token(KEY, claims()))
    assert known is not None
    assert (known.user.name, known.user.groups, known.until) == ("olga", ("a",), NOW + 10)
    known = await ask(tokens(Keys(KEY)), token(KEY, claims(exp=NOW + 3)))
    assert known is not None
    assert known.until == NOW + 3


async def test_tokens_of_others_are_not_ours_to_judge() -> None:
    for text in ("x", "a.b.c", token(KEY, claims(iss="https://other.example")), token(KEY, {"sub": "x"})):
        assert await ask(tokens(Keys(KEY)), text) is None


async def test_before_the_keys_are_there() -> None:
    keys = Keys(KEY)
    keys.ready.clear()
    with pytest.raises(WrongCredential) as caught:
        await ask(tokens(keys), token(KEY, claims()))
    assert caught.value.reasons == ("oidc: authenticator not initialized",)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"aud": ["them"]}, 'expected audience in ["us"] got ["them"]'),
        ({"exp": NOW}, "token is expired"),
        ({"nbf": NOW + 400}, "before the nbf"),
        ({"exp": "x"}, "malformed jwt"),
        ({"sub": None}, 'parse username claims "sub"'),
        ({"groups": {"a": 1}}, 'parse groups claim "groups"'),
    ],
)
async def test_signed_and_still_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(WrongCredential) as caught:
        await ask(tokens(Keys(KEY)), token(KEY, claims(**changed)))
    assert reason in caught.value.reasons[0]


async def test_only_the_algorithms_asked_for() -> None:
    with pytest.raises(WrongCredential) as caught:
        await ask(IssuerTokens(CONFIG, ["RS256"], Keys(KEY)), token(KEY, claims()))
    assert 'unsupported algorithm, expected ["RS256"] got "ES256"' in caught.value.reasons[0]


async def test_new_keys_are_asked_for_once() -> None:
    keys = Keys(KEY, fresh=NEXT)
    assert await ask(tokens(keys), token(NEXT, claims())) is not None
    assert keys.refreshed == 1
    with pytest.raises(WrongCredential) as caught:
        await ask(tokens(keys), token(KEY, claims()))
    assert "failed to verify signature" in caught.value.reasons[0]


def test_the_old_name_of_one_issuer() -> None:
    config = replace(CONFIG, issuer=Issuer("https://accounts.google.com", ("us",)))
    assert isinstance(tokens(Keys(KEY), config).check(token(KEY, claims(iss="accounts.google.com")), None, NOW), Known)


def test_mappings() -> None:
    config = replace(
        CONFIG, username=Mapped("email", "p:"), groups=Mapped("groups", "g:"), uid=Mapped("id"),
        claim_rules=(Rule("hd", "acme.com"),),
    )  # fmt: skip
    user = user_of(config, {"email": "o@x", "email_verified": True, "groups": "one", "id": "7", "hd": "acme.com"})
    assert (user.name, user.groups, user.uid) == ("p:o@x", ("g:one",), "7")
    for broken in ({"email_verified": False}, {"email_verified": "true"}, {"hd": "other"}, {"hd": None}, {"id": 7}):
        with pytest.raises(WrongCredential):
            user_of(config, {"email": "o@x", "groups": [], "id": "7", "hd": "acme.com", **broken})


def expression(name: str) -> Expression:
    def evaluate(value: Mapping[str, Any]) -> Any:
        if name not in value:
            raise ExpressionError(f"no such key: {name}")
        return value[name]

    return Expression(f"claims.{name}", evaluate)


def test_expressions() -> None:
    config = replace(
        CONFIG, username=Mapped(expression=expression("name")), groups=Mapped(expression=expression("groups")),
        uid=Mapped(expression=expression("id")), extra=(("acme.com/x", expression("x")), ("acme.com/y", expression("y"))),
        claim_rules=(Rule(expression=expression("ok"), message="not ok"),),
        user_rules=(Rule(expression=expression("username"), message="nobody"),),
    )  # fmt: skip
    good = {"name": "o", "groups": ["a", ""], "id": "7", "x": "1", "y": [], "ok": True}
    with pytest.raises(WrongCredential) as caught:
        user_of(config, good)
    assert caught.value.reasons[0].endswith("failed: nobody")
    user = user_of(replace(config, user_rules=()), good)
    assert (user.name, user.groups, user.uid, user.extra) == ("o", ("a",), "7", {"acme.com/x": ("1",)})
    for broken, reason in (
        ({"name": 1}, "must return a string"), ({"name": ""}, "empty username"), ({"groups": 1}, "a list of strings"),
        ({"x": [1]}, "a list of strings"), ({"ok": False}, "not ok"), ({"id": None}, "must return a string"),
    ):  # fmt: skip
        with pytest.raises(WrongCredential, match="Unauthorized") as caught:
            user_of(replace(config, user_rules=()), {**good, **broken})
        assert reason in caught.value.reasons[0]
    with pytest.raises(WrongCredential) as caught:
        user_of(config, {})
    assert "no such key: name" in caught.value.reasons[0]


DISTRIBUTED = {
    "groups": None,
    "_claim_names": {"groups": "src"},
    "_claim_sources": {"src": {"endpoint": "https://elsewhere.example/g", "access_token": "key"}},
}


def distributed(**changed: Any) -> dict[str, Any]:
    made = claims(**{**DISTRIBUTED, **changed})
    return {name: value for name, value in made.items() if value is not None}


async def test_groups_that_lie_elsewhere() -> None:
    other = {"iss": "https://elsewhere.example", "aud": "us", "exp": time.time() + 60, "groups": ["far"]}
    answers = [token(NEXT, other), token(KEY, other), token(NEXT, {**other, "aud": "them"}), "junk"]
    asked: list[tuple[str, str]] = []

    async def fetch(url: str, access: str) -> str:
        asked.append((url, access))
        return answers.pop(0)

    kind = tokens(Keys(KEY), fetch=fetch, keys_of=lambda issuer: Keys(NEXT))
    known = await ask(kind, token(KEY, distributed()))
    assert known is not None
    assert known.user.groups == ("far",)
    assert asked == [("https://elsewhere.example/g", "key")]
    for _ in range(3):
        with pytest.raises(WrongCredential):
            await ask(kind, token(KEY, distributed()))
    assert answers == []


@pytest.mark.parametrize(
    ("changed", "groups"),
    [
        ({"_claim_sources": None}, None),
        ({"_claim_sources": {"other": {}}}, None),
        ({"_claim_names": []}, None),
        ({"_claim_names": {}}, ()),
        ({"_claim_sources": {"src": {"JWT": "x"}}}, ()),
        ({"groups": ["near"]}, ("near",)),
    ],
)
async def test_where_groups_lie(changed: dict[str, Any], groups: tuple[str, ...] | None) -> None:
    kind = tokens(Keys(KEY))
    if groups is None:
        with pytest.raises(WrongCredential):
            await ask(kind, token(KEY, distributed(**changed)))
        return
    known = await ask(kind, token(KEY, distributed(**changed)))
    assert known is not None
    assert known.user.groups == groups


async def within(seconds: float, condition: Any) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def test_keys_over_https(tmp_path: Path) -> None:
    """Found by discovery although the first attempts fail; fetched again for a new key; kept when that fails."""
    server = ScriptedServer(tmp_path)
    remote = outbound.Remote(server.url, outbound.client_tls(server.ca_file.read_bytes()))
    keys = keysets.RemoteKeys(server.url, remote, retry=0.02)
    try:
        keys.start()
        await within(10, lambda: "404" in keys.failure)
        server.issue_from(jws.PublicKey(KEY.public_key()), issuer="https://impostor.example")
        await within(10, lambda: "issuer did not match" in keys.failure)
        server.issue_from(jws.PublicKey(KEY.public_key()))
        await within(10, keys.ready.is_set)
        first, second = (jws.parse(token(key, claims(iss=server.url))) for key in (KEY, NEXT))
        assert (keys.verify(first), keys.verify(second)) == (True, False)
        server.issue_from(jws.PublicKey(NEXT.public_key()))
        await asyncio.sleep(0.03)
        await asyncio.gather(*(keys.refresh() for _ in range(5)))
        assert (keys.verify(first), keys.verify(second)) == (False, True)
        assert sum(path == "/keys" for path, _ in server.asked) == 2
        server.answers["/keys"] = lambda _: (500, {})
        await asyncio.sleep(0.03)
        await keys.refresh()
        assert keys.verify(second)
    finally:
        await keys.close()
        await asyncio.to_thread(server.close)


async def test_an_issuer_with_a_strange_certificate(tmp_path: Path) -> None:
    server = ScriptedServer(tmp_path)
    server.issue_from(jws.PublicKey(KEY.public_key()))
    keys = keysets.RemoteKeys(server.url, outbound.Remote(server.url, outbound.client_tls()), retry=0.02)
    try:
        keys.start()
        await within(10, lambda: "failed to verify certificate" in keys.failure)
        assert not keys.ready.is_set()
    finally:
        await keys.close()
        await asyncio.to_thread(server.close)


async def test_issuers_are_exchanged_only_when_all_of_the_new_ones_are_there(tmp_path: Path) -> None:
    sets: dict[str, Keys] = {}
    told: list[AuthenticationConfig] = []

    def make(entry: JWTConfig) -> IssuerTokens:
        sets[entry.issuer.url] = keys = Keys(KEY)
        if "slow" in entry.issuer.url:
            keys.ready.clear()
        return tokens(keys, entry)

    def config(*urls: str) -> AuthenticationConfig:
        return AuthenticationConfig(tuple(replace(CONFIG, issuer=Issuer(url, ("us",))) for url in urls))

    issuers = Issuers(make, told.append)
    issuers.start(config("https://one"))
    one, two = (token(KEY, claims(iss=url)) for url in ("https://one", "https://two"))
    assert isinstance(issuers.check(one, None, NOW), Known)
    assert issuers.check(two, None, NOW) is None
    assert not await issuers.exchange(config("https://two", "https://slow"), 0.01)
    assert isinstance(issuers.check(one, None, NOW), Known)
    file = tmp_path / "config"
    file.write_text("one")
    follower = ConfigFile(str(file), lambda data: config(f"https://{data.decode()}"), issuers)
    assert not await follower.check()
    file.write_text("two")
    follower.changed()
    follower.changed()
    await within(10, lambda: told)
    assert issuers.check(one, None, NOW) is None
    assert isinstance(issuers.check(two, None, NOW), Known)
    assert len(told) == 1
    file.unlink()
    assert not await follower.check()
    await follower.close()
    await issuers.close()
    assert issuers.check(two, None, NOW) is None


def test_a_remote_issuer_needs_usable_authorities() -> None:
    with pytest.raises(ValueError, match="certificate authorities"):
        remote_issuer(replace(CONFIG, issuer=Issuer(URL, ("us",), authority="junk")), ["ES256"])
