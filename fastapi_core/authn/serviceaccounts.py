"""Tokens of service accounts: bound ones from TokenRequest, and the old ones that lie in secrets.

A token is good only as long as the objects it names are there with the same uid; what was found is handed back with the
answer (`Known.hangs_on`), so that a remembered answer falls with its objects at once.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core.authn import jws
from fastapi_core.authn.base import CREDENTIAL_ID, FOREVER, Audiences, Known, WrongCredential
from fastapi_core.errors import go_quote
from fastapi_core.meta.time import to_timestamp
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject

LEGACY_ISSUER = "kubernetes/serviceaccount"
#: Clocks of this server and of who signed may differ by so much.
LEEWAY = 60.0
ALGORITHMS = frozenset({"RS256", "ES256", "ES384", "ES512"})
POD_NAME, POD_UID = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"
NODE_NAME, NODE_UID = "authentication.kubernetes.io/node-name", "authentication.kubernetes.io/node-uid"
TOKEN_TYPE = "kubernetes.io/service-account-token"
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"
INVALIDATED = "service account token has been invalidated"
_PREFIX = "system:serviceaccount:"
_LEGACY = "kubernetes.io/serviceaccount/"

Hold = tuple[Callable[[str], "CachedObject | None"], str, "CachedObject"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where objects of one kind are found: the cache's look-up and its keys."""

    get: Callable[[str], CachedObject | None]
    prefix: str
    namespaced: bool = True

    def find(self, namespace: str, name: str) -> Hold | None:
        if not name or "/" in name or "/" in namespace or (self.namespaced and not namespace):
            return None
        key = f"{self.prefix}{namespace}/{name}" if self.namespaced else self.prefix + name
        obj = self.get(key)
        return None if obj is None else (self.get, key, obj)


@dataclass(frozen=True, slots=True)
class Objects:
    """What tokens hang on."""

    accounts: Source
    secrets: Source
    pods: Source
    nodes: Source


class Keys:
    """The public keys of the issuer, read when the first token comes."""

    def __init__(self, load: Callable[[], Sequence[jws.PublicKey]]) -> None:
        self._load = load
        self._all: tuple[jws.PublicKey, ...] | None = None

    @property
    def all(self) -> tuple[jws.PublicKey, ...]:
        if self._all is None:
            # The same key may stand in several files.
            self._all = tuple({key.id: key for key in self._load()}.values())
        return self._all

    def named(self, key_id: str) -> tuple[jws.PublicKey, ...]:
        """Those a token's header can mean: all when it names none."""
        return tuple(key for key in self.all if key.id == key_id) if key_id else self.all

    def verify(self, token: jws.Token) -> None:
        """Raises WrongCredential when none of the keys signed the token."""
        if token.algorithm not in ALGORITHMS:
            raise WrongCredential()
        keys = self.named(token.key_id)
        if not keys:
            raise WrongCredential("invalid signature, no keys found")
        if not any(key.verify(token) for key in keys):
            raise WrongCredential("go-jose/go-jose: error in cryptographic primitive")


class BoundTokens:
    """Tokens this server (or one with the same keys) issued by TokenRequest.

    `implicit` are the audiences of the API.
    """

    aware = True

    def __init__(self, issuers: Sequence[str], keys: Keys, implicit: Audiences, objects: Objects) -> None:
        self._issuers = frozenset(issuers)
        self._keys = keys
        self._implicit = implicit
        self._objects = objects

    def check(self, token: str, audiences: Audiences | None, now: float) -> Known | None:
        parsed = _parsed(token, self._issuers)
        if parsed is None:
            return None
        self._keys.verify(parsed)
        try:
            given = jws.audiences(parsed.claims) or self._implicit
            common = _common(given, audiences, self._implicit)
            until = _within(parsed.claims, now)
            private = parsed.claims.get("kubernetes.io")
            if not isinstance(private, dict):
                raise jws.TokenError("no kubernetes.io claim")
            return self._known(private, jws.text(parsed.claims, "jti"), common, until, now)
        except jws.TokenError as error:
            text = "service account token claims could not be validated due to unexpected validation error"
            raise WrongCredential(f"{text}: {error}") from None

    def _known(self, private: dict[str, Any], jti: str, common: Audiences, until: float, now: float) -> Known:
        namespace = jws.text(private, "namespace")
        account, pod, node, secret = (_reference(private, kind) for kind in ("serviceaccount", "pod", "node", "secret"))
        name, uid = account or ("", "")
        extra: dict[str, tuple[str, ...]] = {CREDENTIAL_ID: (f"JTI={jti}",)} if jti else {}
        hold, end = _account(self._objects.accounts, namespace, name, uid, now, "service account")
        holds = [hold]
        until = min(until, end)
        for kind, source, reference in (
            ("secret", self._objects.secrets, secret),
            ("pod", self._objects.pods, pod),
            ("node", self._objects.nodes, None if pod else node),
        ):
            if reference is not None:
                hold, end = _bound(kind, source, namespace, reference, now)
                holds.append(hold)
                until = min(until, end)
        if node is not None:
            extra[NODE_NAME] = (node[0],)
            if node[1]:
                extra[NODE_UID] = (node[1],)
        if pod is not None:
            extra[POD_NAME], extra[POD_UID] = (pod[0],), (pod[1],)
        return Known(_user(namespace, name, uid, extra), common, until, tuple(holds))


class LegacyTokens:
    """Tokens in secrets of type service-account-token. `used` is told of each use, with the secret."""

    aware = True

    def __init__(
        self,
        keys: Keys,
        implicit: Audiences,
        objects: Objects,
        *,
        lookup: bool = True,
        used: Callable[[CachedObject], None] = lambda secret: None,
    ) -> None:
        self._keys = keys
        self._implicit = implicit
        self._objects = objects
        self._lookup = lookup
        self._used = used

    def check(self, token: str, audiences: Audiences | None, now: float) -> Known | None:
        parsed = _parsed(token, frozenset({LEGACY_ISSUER}))
        if parsed is None:
            return None
        self._keys.verify(parsed)
        try:
            common = _common(jws.audiences(parsed.claims) or self._implicit, audiences, self._implicit)
            subject = jws.text(parsed.claims, "sub")
            namespace, secret, name, uid = (
                jws.text(parsed.claims, _LEGACY + claim)
                for claim in ("namespace", "secret.name", "service-account.name", "service-account.uid")
            )
        except jws.TokenError as error:
            raise WrongCredential(str(error)) from None
        for what, value in (
            ("sub", subject), ("namespace", namespace), ("secretName", secret), ("serviceAccountName", name),
            ("serviceAccountUID", uid),
        ):  # fmt: skip
            if not value:
                raise WrongCredential(f"{what} claim is missing")
        if subject != f"{_PREFIX}{namespace}:{name}":
            raise WrongCredential("sub claim is invalid")
        user = _user(namespace, name, uid, {})
        if not self._lookup:
            return Known(user, common, FOREVER)
        return Known(user, common, FOREVER, self._standing(token, namespace, secret, name, uid, now))

    def _standing(self, token: str, namespace: str, secret: str, name: str, uid: str, now: float) -> tuple[Hold, ...]:
        held = self._objects.secrets.find(namespace, secret)
        tree = held[2].tree() if held is not None else {}
        metadata = tree.get("metadata") or {}
        if held is None or metadata.get("deletionTimestamp"):
            raise WrongCredential("Token has been invalidated")
        if not hmac.compare_digest(_data(tree, "token"), token.encode("utf-8", "surrogateescape")):
            raise WrongCredential("Token does not match server's copy")
        account, _ = _account(self._objects.accounts, namespace, name, uid, now, "ServiceAccount", leeway=0.0)
        self._used(held[2])
        labels = metadata.get("labels") or {}
        if INVALID_SINCE in labels:
            raise WrongCredential(
                f"the token in secret {namespace}/{secret} for service account {namespace}/{name} has been marked "
                "invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the "
                f"'{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            )
        return held, account


def _parsed(token: str, issuers: frozenset[str]) -> jws.Token | None:
    """The token when one of the issuers may have issued it."""
    if jws.issuer_of(token) not in issuers:
        return None
    try:
        return jws.parse(token)
    except jws.TokenError:
        return None


def _common(given: Audiences, asked: Audiences | None, implicit: Audiences) -> Audiences:
    """The audiences of a token that are asked for; WrongCredential when there are none."""
    wanted = implicit if asked is None else asked
    common = tuple(audience for audience in given if audience in wanted)
    if not common and implicit:
        raise WrongCredential(f"token audiences {_list(given)} is invalid for the target audiences {_list(wanted)}")
    return common


def _list(texts: Sequence[str]) -> str:
    return "[" + " ".join(go_quote(text) for text in texts) + "]"


def _within(claims: Mapping[str, Any], now: float) -> float:
    """Until when the token is good."""
    start, end, issued = (jws.instant(claims, name) for name in ("nbf", "exp", "iat"))
    if start is not None and now + LEEWAY < start:
        raise WrongCredential("service account token is not valid yet")
    if end is not None and now - LEEWAY > end:
        raise WrongCredential("service account token has expired")
    if issued is not None and now + LEEWAY < issued:
        raise WrongCredential("service account token is issued in the future")
    return FOREVER if end is None else end + LEEWAY


def _reference(private: dict[str, Any], kind: str) -> tuple[str, str] | None:
    """(name, uid) of an object the claims name."""
    found = private.get(kind)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise jws.TokenError(f"{kind} is not an object")
    return jws.text(found, "name"), jws.text(found, "uid")


def _metadata(obj: CachedObject) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(obj.metadata())
    return found


def _deletion(metadata: dict[str, Any]) -> float:
    """When the object was deleted (it may wait for finalizers), FOREVER when it was not."""
    when = metadata.get("deletionTimestamp")
    return to_timestamp(when) if when else FOREVER


def _account(
    source: Source, namespace: str, name: str, uid: str, now: float, what: str, *, leeway: float = LEEWAY
) -> tuple[Hold, float]:
    """The account a token speaks for, and until when."""
    hold = source.find(namespace, name)
    if hold is None:
        raise WrongCredential(f"serviceaccounts {go_quote(name)} not found")
    metadata = _metadata(hold[2])
    end = _deletion(metadata) + leeway
    if end < now:
        raise WrongCredential(f"{what} {namespace}/{name} has been deleted")
    if metadata["uid"] != uid:
        kind = "service account" if what == "service account" else what
        raise WrongCredential(f"{kind} UID ({metadata['uid']}) does not match claim ({uid})")
    return hold, end


def _bound(kind: str, source: Source, namespace: str, reference: tuple[str, str], now: float) -> tuple[Hold, float]:
    """The object a token hangs on, and until when."""
    hold = source.find(namespace, reference[0])
    if hold is None:
        raise WrongCredential(INVALIDATED)
    metadata = _metadata(hold[2])
    end = _deletion(metadata) + LEEWAY
    if end < now:
        raise WrongCredential(INVALIDATED)
    if metadata["uid"] != reference[1]:
        text = f"{kind} UID ({metadata['uid']}) does not match service account {kind} ref claim ({reference[1]})"
        raise WrongCredential(text)
    return hold, end


def _data(secret: dict[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode((secret.get("data") or {}).get(name) or "", validate=True)
    except binascii.Error:
        return b""


def _user(namespace: str, name: str, uid: str, extra: dict[str, tuple[str, ...]]) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(f"{_PREFIX}{namespace}:{name}", uid, groups, extra)
