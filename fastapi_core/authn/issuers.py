"""The issuers of a configuration, in use together and exchanged together when its file changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from fastapi_core.authn import keysets, oidc, outbound
from fastapi_core.authn.base import Audiences, Known, first_of
from fastapi_core.authn.config import AuthenticationConfig, ConfigError, JWTConfig
from fastapi_core.obs import logs

if TYPE_CHECKING:
    from fastapi_core.authn.oidc import IssuerTokens

log = logs.get("authn")

#: How long issuers of a new file may take to be in use, and the pause before they are tried again, in seconds.
PATIENCE, RETRY = 60.0, 10.0
_TIMEOUT = 30.0


class Issuers:
    """The kinds of tokens of all configured issuers; which they are can change while requests are under way.

    `make` turns the configuration of an issuer into its authenticator; `changed` is told after an exchange.
    """

    aware = False

    def __init__(
        self, make: Callable[[JWTConfig], IssuerTokens], changed: Callable[[AuthenticationConfig], None]
    ) -> None:
        self._make = make
        self._changed = changed
        self._current: tuple[IssuerTokens, ...] = ()

    def check(self, token: str, audiences: Audiences | None, now: float) -> Known | Awaitable[Known | None] | None:
        current = self._current
        return first_of(lambda index: current[index].check(token, audiences, now), len(current))

    def start(self, config: AuthenticationConfig) -> None:
        """Use the issuers as they become ready."""
        self._current = tuple(self._make(entry) for entry in config.jwt)
        for issuer in self._current:
            issuer.start()

    async def exchange(self, config: AuthenticationConfig, patience: float = PATIENCE) -> bool:
        """Use those of another configuration once all of them are ready; False keeps the old ones."""
        made = tuple(self._make(entry) for entry in config.jwt)
        for issuer in made:
            issuer.start()
        try:
            async with asyncio.timeout(patience):
                for issuer in made:
                    await issuer.keys.ready.wait()
        except TimeoutError:
            waiting = " ".join(issuer.config.issuer.url for issuer in made if not issuer.keys.ready.is_set())
            log.error("Issuers of the new configuration cannot be reached, the old ones stay", issuers=waiting)
            await _close(made)
            return False
        except BaseException:
            await _close(made)
            raise
        old, self._current = self._current, made
        self._changed(config)
        await _close(old)
        return True

    async def close(self) -> None:
        current, self._current = self._current, ()
        await _close(current)


async def _close(issuers: Sequence[IssuerTokens]) -> None:
    for issuer in issuers:
        await issuer.close()


def remote_issuer(config: JWTConfig, algorithms: Sequence[str]) -> IssuerTokens:
    """An issuer whose keys are fetched by HTTPS."""
    issuer = config.issuer
    remote = outbound.Remote(issuer.url, outbound.client_tls(issuer.authority.encode() if issuer.authority else None))

    async def fetch(url: str, access: str) -> str:
        headers = [(b"authorization", b"Bearer " + access.encode())] if access else []
        answer = await outbound.ask(remote, headers=headers, timeout=_TIMEOUT, url=url)
        if not 200 <= answer.status <= 226:
            raise outbound.OutboundError(f"error while getting distributed claim JWT: {answer.status}")
        return answer.body.decode("utf-8", "replace")

    return oidc.IssuerTokens(
        config,
        algorithms,
        keysets.RemoteKeys(issuer.url, remote, issuer.discovery_url),
        fetch=fetch,
        keys_of=lambda url: keysets.RemoteKeys(url, remote),
    )


class ConfigFile:
    """The file of --authentication-config: a change that can be used is used, any other is reported once.

    `changed` is for whoever watches the file. Issuers of a new file that cannot be reached are tried again.
    """

    def __init__(
        self, path: str, load: Callable[[bytes], AuthenticationConfig], issuers: Issuers, *, retry: float = RETRY
    ) -> None:
        self.path = path
        self._load = load
        self._issuers = issuers
        self._retry = retry
        self._content = self._read()
        self._again = False
        self._task: asyncio.Task[None] | None = None

    def changed(self) -> None:
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._take(), name="authentication-config")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def check(self) -> bool:
        """Look at the file now; True when a new configuration is in use."""
        content = self._read()
        if content is None or content == self._content:
            return False
        self._content = content
        try:
            config = self._load(content)
        except ConfigError as error:
            log.error("Authentication configuration cannot be used, the old one stays", path=self.path, err=str(error))
            return False
        if not await self._issuers.exchange(config):
            self._content = None
            return False
        log.info("Authentication configuration reloaded", path=self.path)
        return True

    async def _take(self) -> None:
        while self._again:
            self._again = False
            await self.check()
            if self._content is None:
                self._again = True
                await asyncio.sleep(self._retry)

    def _read(self) -> bytes | None:
        try:
            with open(self.path, "rb") as file:
                return file.read(outbound.ANSWER_LIMIT)
        except OSError:
            return None
