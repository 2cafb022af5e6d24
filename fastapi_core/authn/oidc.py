"""Tokens of issuers somewhere else (OpenID Connect): verified with the issuer's keys, claims mapped to a user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import time
from typing import Any, Protocol

from fastapi_core.authn import jws, outbound
from fastapi_core.authn.base import Audiences, Known, WrongCredential
from fastapi_core.authn.config import JWTConfig, Mapped
from fastapi_core.authn.expressions import Expression, ExpressionError
from fastapi_core.authn.tokens import REMEMBER
from fastapi_core.errors import go_quote
from fastapi_core.request.context import User

#: Tokens that are not valid yet are accepted this much early.
NOT_BEFORE_LEEWAY = 300.0
_GOOGLE, _GOOGLE_URL = "accounts.google.com", "https://accounts.google.com"
#: Issuers of distributed claims remembered, and how long one is waited for at first.
_MOST_ISSUERS, _PATIENCE = 16, 10.0

Claims = dict[str, Any]


class KeySet(Protocol):
    """Keys of one issuer (`keysets.RemoteKeys`)."""

    @property
    def ready(self) -> asyncio.Event: ...
    def start(self) -> None: ...
    async def close(self) -> None: ...
    def verify(self, token: jws.Token) -> bool: ...
    async def refresh(self) -> None: ...


class IssuerTokens:
    """Tokens of one issuer. `fetch` asks where claims are distributed to, `keys_of` makes the keys of an issuer there."""

    aware = False

    def __init__(
        self,
        config: JWTConfig,
        algorithms: Sequence[str],
        keys: KeySet,
        *,
        fetch: Callable[[str, str], Awaitable[str]] | None = None,
        keys_of: Callable[[str], KeySet] | None = None,
    ) -> None:
        self.config = config
        self.keys = keys
        self._algorithms = tuple(algorithms)
        self._fetch = fetch
        self._keys_of = keys_of
        self._others: dict[str, KeySet] = {}

    def start(self) -> None:
        self.keys.start()

    async def close(self) -> None:
        for keys in (self.keys, *self._others.values()):
            await keys.close()

    def check(self, token: str, audiences: Audiences | None, now: float) -> Known | Awaitable[Known | None] | None:
        if _issuer(jws.issuer_of(token)) != self.config.issuer.url:
            return None
        if not self.keys.ready.is_set():
            raise WrongCredential("oidc: authenticator not initialized")
        parsed = self._judged(token, self.config.issuer.url, now)
        if not self.keys.verify(parsed):
            return self._again(parsed, now)
        return self._known(parsed, now)

    async def _again(self, token: jws.Token, now: float) -> Known:
        """The issuer may have new keys."""
        await self.keys.refresh()
        if not self.keys.verify(token):
            raise WrongCredential("oidc: verify token: failed to verify signature: failed to verify id token signature")
        known = self._known(token, now)
        return known if isinstance(known, Known) else await known

    def _judged(self, token: str, issuer: str, now: float) -> jws.Token:
        """Everything about a token but its signature."""
        try:
            parsed = jws.parse(token)
            given, wanted = jws.audiences(parsed.claims), self.config.issuer.audiences
            start, end = jws.instant(parsed.claims, "nbf"), jws.instant(parsed.claims, "exp")
        except jws.TokenError as error:
            raise WrongCredential(f"oidc: verify token: oidc: malformed jwt: {error}") from None
        if not set(given) & set(wanted):
            raise WrongCredential(
                f"oidc: verify token: oidc: expected audience in {_list(sorted(wanted))} got {_list(given)}"
            )
        if end is None or now >= end:
            raise WrongCredential("oidc: verify token: oidc: token is expired")
        if start is not None and now + NOT_BEFORE_LEEWAY < start:
            raise WrongCredential("oidc: verify token: oidc: current time is before the nbf (not before) time")
        if parsed.algorithm not in self._algorithms:
            listed = _list(self._algorithms)
            text = f"id token signed with unsupported algorithm, expected {listed} got {go_quote(parsed.algorithm)}"
            raise WrongCredential(f"oidc: verify token: oidc: {text}")
        return parsed

    def _known(self, token: jws.Token, now: float) -> Known | Awaitable[Known]:
        claims: Claims = dict(token.claims)
        until = min(now + REMEMBER, claims["exp"])
        groups = self.config.groups.claim
        if groups and groups not in claims and "_claim_names" in claims:
            return self._expanded(claims, groups, until)
        return Known(user_of(self.config, claims), until=until)

    async def _expanded(self, claims: Claims, name: str, until: float) -> Known:
        """With the groups from where the token says they are."""
        try:
            place = _endpoint(claims, name)
            if place is not None:
                claims[name] = await self._distributed(name, *place)
        except outbound.OutboundError as error:
            raise WrongCredential(f"oidc: could not expand distributed claims: {error}") from None
        return Known(user_of(self.config, claims), until=until)

    async def _distributed(self, name: str, url: str, access: str) -> Any:
        if self._fetch is None or self._keys_of is None:
            raise outbound.OutboundError("distributed claims are not fetched")
        token = (await self._fetch(url, access)).strip()
        issuer = _issuer(jws.issuer_of(token))
        if issuer is None:
            raise outbound.OutboundError(
                f"getting untrusted issuer from endpoint {url} failed for claim {go_quote(name)}"
            )
        keys = await self._ready(issuer)
        parsed = self._judged(token, issuer, time())
        if not keys.verify(parsed):
            raise outbound.OutboundError("verify distributed claim token: failed to verify id token signature")
        if name not in parsed.claims:
            text = f"jwt returned by distributed claim endpoint {go_quote(url)} did not contain claim: {name}"
            raise outbound.OutboundError(text)
        return parsed.claims[name]

    async def _ready(self, issuer: str) -> KeySet:
        keys = self._others.get(issuer)
        if keys is None:
            if len(self._others) >= _MOST_ISSUERS:
                raise outbound.OutboundError("too many issuers of distributed claims")
            assert self._keys_of is not None
            keys = self._others[issuer] = self._keys_of(issuer)
            keys.start()
        try:
            await asyncio.wait_for(keys.ready.wait(), _PATIENCE)
        except TimeoutError:
            raise outbound.OutboundError(f"oidc: verifier not initialized for issuer: {go_quote(issuer)}") from None
        return keys


def _issuer(claimed: str | None) -> str | None:
    return _GOOGLE_URL if claimed == _GOOGLE else claimed


def _list(texts: Sequence[str]) -> str:
    return "[" + " ".join(go_quote(text) for text in texts) + "]"


def _endpoint(claims: Claims, name: str) -> tuple[str, str] | None:
    """(URL, access token) of where a claim is; None when it is nowhere, or within (an aggregated claim)."""
    names, sources = claims["_claim_names"], claims.get("_claim_sources")
    if not isinstance(names, dict):
        raise outbound.OutboundError("oidc: error parsing distributed claim names")
    if not isinstance(sources, dict):
        raise outbound.OutboundError("oidc: no claim sources")
    source = names.get(name)
    if source is None:
        return None
    entry = sources.get(source) if isinstance(source, str) else None
    if not isinstance(entry, dict):
        text = f"id token _claim_names contained a source {source} missing in _claims_sources"
        raise outbound.OutboundError(text)
    url, access = entry.get("endpoint"), entry.get("access_token")
    if not isinstance(url, str) or not url:
        return None
    return url, access if isinstance(access, str) else ""


def user_of(config: JWTConfig, claims: Claims) -> User:
    """The user a verified token's claims make. Raises WrongCredential."""
    name = _username(config.username, claims)
    groups = _groups(config.groups, claims)
    uid = _uid(config.uid, claims)
    extra = {}
    for key, expression in config.extra:
        values = _texts(_evaluated(expression, claims, "extra claim"), "extra claim")
        if values:
            extra[key] = values
    user = User(name, uid, groups, extra)
    for rule in config.claim_rules:
        if rule.expression is not None:
            _hold(rule.expression, claims, rule.message, "claim validation expression")
        elif rule.claim not in claims:
            raise WrongCredential(f"oidc: required claim {rule.claim} not present in ID token")
        elif claims[rule.claim] != rule.value:
            got = f"Got = {claims[rule.claim]}, want = {rule.value}"
            raise WrongCredential(f"oidc: required claim {rule.claim} value does not match. {got}")
    if config.user_rules:
        info = {"username": name, "uid": uid, "groups": list(groups), "extra": {k: list(v) for k, v in extra.items()}}
        for rule in config.user_rules:
            if rule.expression is not None:
                _hold(rule.expression, info, rule.message, "user info validation rule")
    return user


def _username(mapped: Mapped, claims: Claims) -> str:
    if mapped.expression is not None:
        value = _evaluated(mapped.expression, claims, "username claim")
        if not isinstance(value, str):
            text = "username claim expression must return a string"
            raise WrongCredential(f"oidc: error evaluating username claim expression: {text}")
        if not value:
            raise WrongCredential("oidc: empty username via CEL expression is not allowed")
        return value
    value = claims.get(mapped.claim)
    if not isinstance(value, str):
        problem = "claim not present" if mapped.claim not in claims else "a text is expected"
        raise WrongCredential(f"oidc: parse username claims {go_quote(mapped.claim)}: {problem}")
    if mapped.claim == "email" and claims.get("email_verified", True) is not True:
        raise WrongCredential("oidc: email not verified")
    return mapped.prefix + value


def _groups(mapped: Mapped, claims: Claims) -> tuple[str, ...]:
    if mapped.expression is not None:
        return _texts(_evaluated(mapped.expression, claims, "group claim"), "group claim")
    value = claims.get(mapped.claim) if mapped.claim else None
    if value is None:
        return ()
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(group, str) for group in found):
        raise WrongCredential(f"oidc: parse groups claim {go_quote(mapped.claim)}: texts are expected")
    return tuple(mapped.prefix + group for group in found)


def _uid(mapped: Mapped, claims: Claims) -> str:
    if mapped.expression is not None:
        value = _evaluated(mapped.expression, claims, "uid claim")
        if not isinstance(value, str):
            text = "uid claim expression must return a string"
            raise WrongCredential(f"oidc: error evaluating uid claim expression: {text}")
        return value
    if not mapped.claim:
        return ""
    value = claims.get(mapped.claim)
    if not isinstance(value, str):
        problem = "claim not present" if mapped.claim not in claims else "a text is expected"
        raise WrongCredential(f"oidc: parse uid claim {go_quote(mapped.claim)}: {problem}")
    return value


def _evaluated(expression: Expression, value: Mapping[str, Any], what: str) -> Any:
    try:
        return expression.evaluate(value)
    except ExpressionError as error:
        raise WrongCredential(f"oidc: error evaluating {what} expression: {error}") from None


def _hold(expression: Expression, value: Mapping[str, Any], message: str, what: str) -> None:
    try:
        held = expression.evaluate(value)
    except ExpressionError as error:
        raise WrongCredential(f"oidc: error evaluating {what}: {error}") from None
    if held is not True:
        reason = message or "expression evaluated to false"
        raise WrongCredential(
            f"oidc: error evaluating {what}: validation expression '{expression.text}' failed: {reason}"
        )


def _texts(value: Any, what: str) -> tuple[str, ...]:
    """A text, or a list of them, without the empty ones."""
    if value is None:
        return ()
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not all(isinstance(item, str) for item in found):
        text = "expression must return a string or a list of strings"
        raise WrongCredential(f"oidc: error evaluating {what} expression: {text}")
    return tuple(item for item in found if item)
