"""The node ports that services have, as all servers of a store share them: one object with a bit for each port.

Key and form are the reference's, which keeps the same object: a claim is a compare-and-swap on it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from fastapi_core.errors import internal
from fastapi_core.storage.cacher import foreign
from fastapi_core.storage.interface import Code, Storage, StorageError

KEY = "/registry/ranges/servicenodeports"


class PortRange:
    """Claims on `ports`. Bit n stands for the n-th port, the least first, in a number whose bytes begin with the greatest."""

    def __init__(self, storage: Storage, ports: range) -> None:
        self._storage = storage
        self._ports = ports
        self._text = f"{ports[0]}-{ports[-1]}"

    async def take(self, ports: Iterable[int]) -> int | None:
        """Claim ports, all or none; the first that is claimed already, None when all are ours."""
        wanted = [port for port in ports if port in self._ports]
        lost: list[int] = []

        def change(bits: int) -> int:
            lost[:] = [port for port in wanted if bits >> port - self._ports[0] & 1]
            return bits if lost else bits | self._mask(wanted)

        if wanted:
            await self._change(change)
        return lost[0] if lost else None

    async def give(self, ports: Iterable[int]) -> None:
        """Claims that are over."""
        mask = self._mask(port for port in ports if port in self._ports)
        if mask:
            await self._change(lambda bits: bits & ~mask)

    async def claim(self, ports: Iterable[int]) -> set[int]:
        """Claim what is not claimed already, for services that have these ports; what is claimed then."""
        found: list[int] = []

        def change(bits: int) -> int:
            found[:] = [bits | self._mask(port for port in ports if port in self._ports)]
            return found[0]

        await self._change(change)
        return {port for port in self._ports if found[0] >> port - self._ports[0] & 1}

    def _mask(self, ports: Iterable[int]) -> int:
        mask = 0
        for port in ports:
            mask |= 1 << port - self._ports[0]
        return mask

    async def _change(self, change: Callable[[int], int]) -> None:
        while True:
            found = await self._storage.get(KEY)
            before = 0 if found is None else self._bits(found.value)
            bits = change(before)
            if found is not None and bits == before:
                return
            value = self._value(bits)
            try:
                if found is None:
                    await self._storage.create(KEY, value)
                else:
                    await self._storage.update(KEY, value, expected=found.revision)
                return
            except StorageError as error:
                # Another server was faster.
                if error.code not in (Code.CONFLICT, Code.KEY_EXISTS, Code.KEY_NOT_FOUND):
                    raise

    def _bits(self, value: bytes) -> int:
        try:
            tree: Any = orjson.loads(foreign.as_json(value) if value.startswith(foreign.MAGIC) else value)
            text, data = tree.get("range", ""), tree.get("data") or ""
            if text not in ("", self._text):
                raise internal(f"the node ports of this store are {text}, those of the flags {self._text}")
            return int.from_bytes(base64.b64decode(data, validate=True), "big")
        except (ValueError, AttributeError, TypeError, binascii.Error) as error:
            raise internal(f"{KEY} cannot be read: {error}") from error

    def _value(self, bits: int) -> bytes:
        data = bits.to_bytes((bits.bit_length() + 7) // 8, "big")
        tree: dict[str, Any] = {
            "kind": "RangeAllocation",
            "apiVersion": "v1",
            "metadata": {},
            "range": self._text,
            "data": base64.b64encode(data).decode(),
        }
        return orjson.dumps(tree)
