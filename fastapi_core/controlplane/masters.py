"""The servers of one store: each keeps a key under its address alive, and so knows the others.

Keys and values are the reference's (`--endpoint-reconciler-type=lease`), so both kinds of server find each other.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address

import orjson

from fastapi_core.obs import logs
from fastapi_core.storage.interface import Code, Storage, StorageError

log = logs.get("bootstrap")

PREFIX = "/registry/masterleases/"
#: Seconds after which a server that has not renewed its key is gone.
TTL = 15.0
LEAVE_SECONDS = 2.0


class Masters:
    """This server among those that share `storage`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._address = ""
        self._renewals = 0

    async def addresses(self, address: str) -> list[str]:
        """Renew our own key; the addresses of all that others can reach, in order."""
        self._address = address
        while True:
            found = await self._storage.get(PREFIX + address)
            self._renewals += 1
            # A value that changes with each renewal, as the reference's does.
            value = orjson.dumps(
                {
                    "kind": "Endpoints",
                    "apiVersion": "v1",
                    "metadata": {"generation": self._renewals},
                    "subsets": [{"addresses": [{"ip": address}]}],
                }
            )
            try:
                if found is None:
                    await self._storage.create(PREFIX + address, value, ttl=TTL)
                else:
                    await self._storage.update(PREFIX + address, value, expected=found.revision, ttl=TTL)
                break
            except StorageError as error:
                if error.code not in (Code.CONFLICT, Code.KEY_EXISTS, Code.KEY_NOT_FOUND):
                    raise
        page = await self._storage.list(PREFIX)
        return sorted(filter(_reachable, {item.key.removeprefix(PREFIX) for item in page.items}))

    async def leave(self) -> None:
        """The others are not to send anybody here any more."""
        if not self._address:
            return
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                found = await self._storage.get(PREFIX + self._address)
                if found is not None:
                    await self._storage.delete(found.key, expected=found.revision)
        except (StorageError, TimeoutError) as error:
            log.info("The key of this server stays until its time is over", error=str(error))


def _reachable(text: str) -> bool:
    """Not one that a server on its own machine has announced: endpoints may not have it."""
    try:
        return not ip_address(text).is_loopback
    except ValueError:
        return False
