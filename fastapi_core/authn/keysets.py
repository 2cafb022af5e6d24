"""The keys of an issuer somewhere else: found by its discovery document, fetched in the background, fetched again when a
token names a key that is not among them.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import orjson

from fastapi_core.authn import jws, outbound
from fastapi_core.http.asking import Whole
from fastapi_core.obs import logs

log = logs.get("authn")

WELL_KNOWN = "/.well-known/openid-configuration"
#: Seconds between attempts to reach an issuer, and at least between two fetches of its keys.
RETRY, REFRESH = 10.0, 10.0
_TIMEOUT = 30.0
_REDIRECTS = 5


class KeySetError(Exception):
    """An issuer whose keys cannot be had; says why."""


class RemoteKeys:
    """Keys of the issuer `url`. `start` begins to fetch, `close` ends it; until they are there `ready` is not set."""

    def __init__(self, url: str, remote: outbound.Remote, discovery_url: str = "", *, retry: float = RETRY) -> None:
        self.url = url
        self._remote = remote
        self._discovery = discovery_url or url.rstrip("/") + WELL_KNOWN
        self._retry = retry
        self._jwks_uri = ""
        self._keys: tuple[jws.PublicKey, ...] = ()
        self._fetched = 0.0
        self._task: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self.ready = asyncio.Event()
        self.failure = ""
        """Why the last attempt failed, empty when it did not."""

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._discover(), name=f"issuer {self.url}")

    async def close(self) -> None:
        for task in (self._task, self._refreshing):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    def verify(self, token: jws.Token) -> bool:
        """True when one of the keys signed the token; the one it names when it names one."""
        return any(key.verify(token) for key in self._keys if not token.key_id or key.id == token.key_id)

    async def refresh(self) -> None:
        """Fetch the keys anew, unless that has just happened. Whoever asks meanwhile waits for the same fetch."""
        if self._refreshing is None:
            if monotonic() - self._fetched < min(REFRESH, self._retry):
                return
            self._refreshing = asyncio.create_task(self._refresh(), name=f"keys of {self.url}")
        await asyncio.shield(self._refreshing)

    async def _refresh(self) -> None:
        try:
            await self._fetch()
        except (KeySetError, outbound.OutboundError) as error:
            log.error("Keys of a token issuer cannot be fetched, the old ones stay", issuer=self.url, err=str(error))
        finally:
            self._refreshing = None

    async def _discover(self) -> None:
        while True:
            try:
                document = _document(await self._get(self._discovery))
                if document["issuer"] != self.url:
                    raise KeySetError(f"issuer did not match, expected {self.url!r} got {document['issuer']!r}")
                self._jwks_uri = document["jwks_uri"]
                await self._fetch()
            except (KeySetError, outbound.OutboundError) as error:
                self.failure = str(error)
                log.error("Token issuer cannot be used yet", issuer=self.url, err=self.failure)
                await asyncio.sleep(self._retry)
            else:
                self.failure = ""
                self.ready.set()
                log.info("Token issuer is in use", issuer=self.url)
                return

    async def _fetch(self) -> None:
        self._fetched = monotonic()
        try:
            keys = jws.keys_of_set((await self._get(self._jwks_uri)).body)
        except jws.UnusableKeyError as error:
            raise KeySetError(str(error)) from None
        self._keys = tuple(keys)

    async def _get(self, url: str) -> Whole:
        answer = await outbound.ask(self._remote, timeout=_TIMEOUT, url=url, redirects=_REDIRECTS)
        if answer.status != 200:
            raise KeySetError(f"{url}: {answer.status}")
        return answer


def _document(answer: Whole) -> dict[str, str]:
    """What counts of a discovery document."""
    try:
        tree: Any = orjson.loads(answer.body)
    except orjson.JSONDecodeError as error:
        raise KeySetError(f"the discovery document is no JSON: {error}") from None
    found = {name: tree.get(name) if isinstance(tree, dict) else None for name in ("issuer", "jwks_uri")}
    if not all(isinstance(value, str) for value in found.values()):
        raise KeySetError("the discovery document lacks issuer or jwks_uri")
    if urlsplit(str(found["jwks_uri"])).scheme != "https":
        raise KeySetError("jwks_uri is not an https URL")
    return {name: str(value) for name, value in found.items()}
