"""A small mutator: takes seeds apart and together again, and keeps what it was that broke something."""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable

from tests.fuzz.targets import TARGETS, Target

MOST_BYTES = 6000
SLOW_SECONDS = 1.0


class FoundError(Exception):
    """What was found: the target, the input and the error are in the text."""


def mutate(rng: random.Random, target: Target) -> bytes:
    data = bytearray(rng.choice(target.seeds))
    for _ in range(1 << rng.randrange(6)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + (1 << rng.randrange(8)))
        kind = rng.randrange(8)
        if kind == 0:
            del data[at:end]
        elif kind == 1:
            data[at:at] = data[at:end]
        elif kind == 2:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 4)))
        elif kind == 3 and data:
            data[at - 1] ^= 1 << rng.randrange(8)
        elif kind == 4:
            other = rng.choice(target.seeds)
            start = rng.randrange(len(other) + 1)
            data[at:at] = other[start : start + rng.randrange(40)]
        elif kind == 5 and rng.random() < 0.1:
            data[at:at] = bytes(data[at:end]) * rng.randrange(2, 300)
        elif target.words:
            data[at : at + rng.randrange(2)] = rng.choice(target.words)
    return bytes(data[:MOST_BYTES])


def attempt(name: str, data: bytes) -> None:
    """One input; raises FoundError."""
    began = time.process_time()
    try:
        TARGETS[name].run(data)
    except Exception as error:
        raise FoundError(f"{name}: {data!r}\n{traceback.format_exc()}") from error
    spent = time.process_time() - began
    if spent > SLOW_SECONDS:
        raise FoundError(f"{name}: {spent:.1f} s for {data!r}")


def shrink(name: str, data: bytes) -> bytes:
    """A shorter input that still breaks something."""

    def breaks(candidate: bytes) -> bool:
        try:
            attempt(name, candidate)
        except FoundError:
            return True
        return False

    size = len(data) // 2
    while size:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if breaks(shorter):
                data = shorter
            else:
                at += size
        size //= 2
    return data


def fuzz(name: str, rng: random.Random, more: Callable[[], bool]) -> int:
    """Inputs tried; raises FoundError with a shrunk one."""
    target = TARGETS[name]
    for seed in target.seeds:
        attempt(name, seed)
    count = 0
    while more():
        count += 1
        data = mutate(rng, target)
        try:
            attempt(name, data)
        except FoundError:
            attempt(name, shrink(name, data))
            raise
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.engine", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together")
    parser.add_argument("--only", choices=TARGETS, help="one target")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    names = [arguments.only] if arguments.only else list(TARGETS)
    print(f"seed {arguments.seed}")
    found = 0
    for name in names:
        end = time.monotonic() + arguments.seconds / len(names)
        try:
            count = fuzz(name, random.Random(arguments.seed), lambda end=end: time.monotonic() < end)  # type: ignore[misc]
            print(f"{name:16} {count:8} inputs", flush=True)
        except FoundError as error:
            found += 1
            print(error, flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
