"""What the object itself costs in a create of a pod: microseconds of decoding, defaulting, ownership, checks and encoding.

    python -m bench.micro_pod [--rounds 30]

In this process and without a server, on fresh bodies; each step's best round counts. The main bench adds the sum as a
row, with its share of what the whole create takes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from bench import objects
from fastapi_core.apis.resources import builtin
from fastapi_core.codec import decode
from fastapi_core.registry import lifecycle, ownership
from fastapi_core.registry.store import encode_stored
from fastapi_core.rest.defaulting import apply_defaults

POD = next(d for d in builtin() if (d.group, d.kind) == ("", "Pod"))
TRACKER = ownership.tracker(POD)
PODS = 100


def _decode(body: bytes) -> objects.Tree:
    tree: objects.Tree = decode.decode(POD.type, body).tree
    tree["kind"], tree["apiVersion"] = "Pod", "v1"
    tree["metadata"]["namespace"] = objects.NAMESPACE
    return tree


def _default(tree: objects.Tree) -> objects.Tree:
    apply_defaults(POD, tree)
    return tree


def _own(tree: objects.Tree) -> objects.Tree:
    TRACKER.update(None, tree, "bench", "2026-01-02T03:04:05Z")
    return tree


def _check(tree: objects.Tree) -> objects.Tree:
    lifecycle.before_create(POD, tree)
    return tree


def _encode(tree: objects.Tree) -> bytes:
    return encode_stored(POD, tree)


STEPS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("decode", _decode),
    ("default", _default),
    ("own", _own),
    ("validate", _check),
    ("encode", _encode),
)


def measure(rounds: int = 30) -> dict[str, float]:
    """Microseconds a pod of each step, and of all of them under `cpu`."""
    bodies = [json.dumps(objects.pod(f"pod-{n}", n), separators=(",", ":")).encode() for n in range(PODS)]
    best = {name: float("inf") for name, _ in STEPS}
    for _ in range(rounds):
        items: list[Any] = bodies
        for name, step in STEPS:
            begin = time.process_time()
            items = [step(item) for item in items]
            best[name] = min(best[name], (time.process_time() - begin) / PODS * 1e6)
    return {"cpu": sum(best.values()), **best}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    for name, spent in measure(parser.parse_args().rounds).items():
        print(f"{name:10} {spent:7.1f} us")


if __name__ == "__main__":
    main()
