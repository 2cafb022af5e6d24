"""Shuffle sharding: every flow is dealt a hand of queues, so that a busy flow fills the whole hand of almost nobody."""

from __future__ import annotations

import math
from hashlib import sha256

#: Bits of the flow's hash that a hand may use up, and the most queues there can be.
_BITS = 60
_DECK = 1 << 26


def can_deal(deck: int, hand: int) -> bool:
    """Whether a hand of that size can be dealt from so many queues, out of one hash."""
    return 0 < hand <= deck <= _DECK and math.ceil(math.log2(deck) * hand) <= _BITS


def flow_hash(schema: str, distinguisher: str) -> int:
    """64 bits that stand for a flow."""
    digest = sha256(schema.encode() + b"\0" + distinguisher.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "little")


def deal(value: int, deck: int, hand: int) -> tuple[int, ...]:
    """The `hand` different cards out of `range(deck)` that the hash stands for.

    The hash is read as digits of falling base; each digit picks among the cards that are left.
    """
    left = list(range(min(deck, hand)))
    picked: list[int] = []
    taken: list[int] = []
    for size in range(deck, deck - len(left), -1):
        value, card = divmod(value, size)
        # The card-th of those not taken: step over every taken card at or below it.
        for other in taken:
            if card >= other:
                card += 1
        picked.append(card)
        taken.append(card)
        taken.sort()
    return tuple(picked)
