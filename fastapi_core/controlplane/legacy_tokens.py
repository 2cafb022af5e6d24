"""Uses of service account tokens in secrets: counted, and noted on the secret by the day."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from fastapi_core.errors import APIError
from fastapi_core.obs import logs
from fastapi_core.registry.store import ResourceStore, retrying
from fastapi_core.storage.interface import StorageError

if TYPE_CHECKING:
    from fastapi_core._ext.objects import CachedObject
    from fastapi_core.obs.catalog import Metrics

log = logs.get("authn")

LAST_USED = "kubernetes.io/legacy-token-last-used"
#: Secrets being written at once; beyond that a use goes unnoted until the next one.
_MOST = 64


class LegacyTokenUses:
    """Writes the day of the last use into the secrets' labels, beside the requests."""

    def __init__(self, secrets: ResourceStore, metrics: Metrics) -> None:
        self._secrets = secrets
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._counters = {kind: family.labels() for kind, family in metrics.legacy_token_uses.items()}

    def used(self, secret: CachedObject, kind: str) -> None:
        self._counters[kind].inc()
        now = time.time()
        today, tomorrow = (time.strftime("%Y-%m-%d", time.gmtime(now + days * 86400)) for days in (0, 1))
        # Another server's clock may be in the next day already.
        if secret.labels().get(LAST_USED) in (today, tomorrow) or secret.key in self._writing:
            return
        if len(self._writing) < _MOST:
            task = asyncio.create_task(self._note(secret, today), name="legacy-token-use")
            self._writing[secret.key] = task
            task.add_done_callback(lambda _: self._writing.pop(secret.key, None))

    async def _note(self, secret: CachedObject, today: str) -> None:
        uid = secret.tree()["metadata"]["uid"]

        async def attempt(current: CachedObject) -> None:
            tree = current.tree()
            metadata = tree["metadata"]
            if metadata["uid"] == uid:
                metadata["labels"] = {**(metadata.get("labels") or {}), LAST_USED: today}
                await self._secrets.update(current, tree)

        try:
            await retrying(self._secrets, secret.namespace, secret.name, attempt)
        except (APIError, StorageError) as error:
            log.warning(
                "The use of a token cannot be noted", secret=f"{secret.namespace}/{secret.name}", err=str(error)
            )

    async def close(self) -> None:
        tasks = list(self._writing.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
