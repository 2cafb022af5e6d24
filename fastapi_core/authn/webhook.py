"""Tokens that another server judges: TokenReview by webhook, with a cache of its answers."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hashlib import sha256
from time import time
from typing import Any

import orjson

from fastapi_core.authn import outbound
from fastapi_core.authn.attempts import persistently
from fastapi_core.authn.base import Audiences, Known, WrongCredential
from fastapi_core.authn.tokens import REMEMBER
from fastapi_core.obs import logs
from fastapi_core.request.context import User

log = logs.get("authn")

VERSIONS = ("v1", "v1beta1")
#: Answers remembered; the oldest goes first.
_MEMORY = 4096
_TIMEOUT = 30.0

Key = tuple[bytes, "Audiences | None"]
"""Digest of the token, so that what a client sends does not decide how much is kept, and the audiences asked for."""


class WebhookTokens:
    """Asks `remote` with a TokenReview of the given version; what it says, yes or no, counts for `ttl` seconds.

    A failure to ask is not remembered. `implicit` are the audiences of a webhook that does not speak of audiences.
    `timeout` is for one attempt, `within` for all of them together (None: no limit of their own), in seconds.
    `strict`: who asks us may rely on an answer only as long as it is remembered here, and not for another while after.
    """

    aware = True

    def __init__(
        self,
        remote: outbound.Asked,
        version: str,
        ttl: float,
        implicit: Audiences = (),
        *,
        timeout: float = _TIMEOUT,
        within: float | None = None,
        strict: bool = False,
        clock: Callable[[], float] = time,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._remote = remote
        self._version = version
        self._ttl = ttl
        self._implicit = implicit
        self._timeout = timeout
        self._within = within
        self._strict = strict
        self._clock = clock
        self._pause = pause
        self._memory: OrderedDict[Key, tuple[float, Known | WrongCredential | None]] = OrderedDict()
        self._asking: dict[Key, asyncio.Task[Known | WrongCredential | None]] = {}

    def check(self, token: str, audiences: Audiences | None, now: float) -> Known | Awaitable[Known | None] | None:
        key = (sha256(token.encode("utf-8", "surrogateescape")).digest(), audiences)
        remembered = self._memory.get(key)
        if remembered is not None and remembered[0] > now:
            return _said(remembered[1], remembered[0] if self._strict else now + REMEMBER)
        return self._ask(key, token)

    async def _ask(self, key: Key, token: str) -> Known | None:
        """Requests with the same token wait for the same answer."""
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._answer(key, token), name="token-webhook")
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        found = await asyncio.shield(task)
        return _said(found, self._clock() + (self._ttl if self._strict else REMEMBER))

    async def _answer(self, key: Key, token: str) -> Known | WrongCredential | None:
        try:
            status = await self._review(token, key[1])
        except outbound.OutboundError as error:
            log.error("Token webhook failed", err=str(error))
            return WrongCredential(str(error))
        found = self._judge(status, key[1])
        if self._ttl > 0:
            while len(self._memory) >= _MEMORY:
                self._memory.popitem(last=False)
            self._memory[key] = (self._clock() + self._ttl, found)
            self._memory.move_to_end(key)
        return found

    async def _review(self, token: str, audiences: Audiences | None) -> dict[str, Any]:
        spec: dict[str, Any] = {"token": token}
        if audiences:
            spec["audiences"] = list(audiences)
        review = {
            "kind": "TokenReview", "apiVersion": f"authentication.k8s.io/{self._version}",
            "metadata": {"creationTimestamp": None}, "spec": spec, "status": {"user": {}},
        }  # fmt: skip
        try:
            body = orjson.dumps(review)
        except orjson.JSONEncodeError:
            return {}  # not UTF-8: no webhook could be told of it

        async def attempt() -> dict[str, Any]:
            answer = await self._remote.post(body, timeout=self._timeout)
            return outbound.review_status(answer, "token", "TokenReview")

        return await persistently(attempt, self._pause, self._within)

    def _judge(self, status: dict[str, Any], asked: Audiences | None) -> Known | WrongCredential | None:
        if status.get("authenticated") is not True:
            text = status.get("error")
            return WrongCredential(text) if isinstance(text, str) and text else None
        given = _texts(status.get("audiences")) or self._implicit
        common = tuple(audience for audience in given if audience in asked) if asked is not None else ()
        if asked is not None and not common:
            return None
        return Known(_user(status.get("user")), common)


def _said(found: Known | WrongCredential | None, until: float) -> Known | None:
    if isinstance(found, WrongCredential):
        # Raised anew: an exception keeps the frames it went through.
        raise WrongCredential(*found.reasons)
    return None if found is None else replace(found, until=until)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _user(tree: Any) -> User:
    found = tree if isinstance(tree, dict) else {}
    name, uid, extra = found.get("username"), found.get("uid"), found.get("extra")
    pairs = extra.items() if isinstance(extra, dict) else ()
    return User(
        name if isinstance(name, str) else "",
        uid if isinstance(uid, str) else "",
        _texts(found.get("groups")),
        {key: _texts(values) for key, values in pairs},
    )
