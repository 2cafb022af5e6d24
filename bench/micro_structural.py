"""What the schema of a custom resource costs in a write of 2 KB: microseconds of pruning, coercing, defaulting, validating.

    python -m bench.micro_structural [--rounds 30]

In this process and without a server; each step's best round counts.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Callable
from typing import Any

from fastapi_core.structural import Schema, compiled

Tree = dict[str, Any]
REPEAT = 500


def _list(item: Tree, **more: Any) -> Tree:
    return {"type": "array", "items": item, **more}


def _object(properties: Tree, **more: Any) -> Tree:
    return {"type": "object", "properties": properties, **more}


TEXT: Tree = {"type": "string"}
ENV = _object(
    {
        "name": TEXT,
        "value": TEXT,
        "port": {"type": "integer", "format": "int32"},
        "proto": {"type": "string", "default": "TCP"},
    },
    required=["name"],
)
KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
NESTED = _object(
    {
        "a": _object({"x": {"x-kubernetes-int-or-string": True}, "y": {"type": "boolean"}, "z": {"type": "number"}}),
        "b": {"type": "string", "pattern": "^[a-z]+$"},
    }
)
SPEC = _object(
    {
        "replicas": {"type": "integer", "minimum": 0, "default": 1},
        "image": {"type": "string", "minLength": 1},
        "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "env": _list(ENV, **KEYED),
        "args": _list(TEXT),
        "nested": NESTED,
    },
    required=["replicas", "image"],
)
CONDITION = _object(
    {"type": TEXT, "status": TEXT, "message": TEXT, "lastTransitionTime": {"type": "string", "format": "date-time"}}
)
SCHEMA = _object({"spec": SPEC, "status": _object({"conditions": _list(CONDITION)})})


def example() -> Tree:
    """An object of 2 KB."""
    message = {"status": "True", "message": "all is well with this", "lastTransitionTime": "2024-01-01T00:00:00Z"}
    return {
        "apiVersion": "x.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w1", "namespace": "default", "labels": {"a": "b"}},
        "spec": {
            "replicas": 3,
            "image": "nginx:1.25",
            "labels": {f"k{index}": "value" for index in range(10)},
            "env": [{"name": f"ENV_{index}", "value": "some value here", "port": index} for index in range(16)],
            "args": [f"--flag-{index}=value" for index in range(20)],
            "nested": {"a": {"x": "5%", "y": True, "z": 1.5}, "b": "abc"},
        },
        "status": {"conditions": [{"type": f"T{index}", **message} for index in range(3)]},
    }


def _best(step: Callable[[Tree], Any], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        trees = [copy.deepcopy(example()) for _ in range(REPEAT)]
        began = time.perf_counter()
        for tree in trees:
            step(tree)
        best = min(best, (time.perf_counter() - began) / REPEAT)
    return best * 1e6


def measure(rounds: int = 30) -> dict[str, float]:
    """Microseconds by step."""
    schema: Schema = compiled(SCHEMA, preserve=False)
    assert schema.validate(example()) == []
    steps: dict[str, Callable[[Tree], Any]] = {
        "prune": schema.prune,
        "coerce": lambda tree: schema.coerce(tree, drop=False),
        "default": schema.default,
        "validate": schema.validate,
    }
    return {name: _best(step, rounds) for name, step in steps.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="What the schema of a custom resource costs in a write of 2 KB.")
    parser.add_argument("--rounds", type=int, default=30)
    found = measure(parser.parse_args().rounds)
    print(f"{len(json.dumps(example()))} bytes")
    for name, micros in found.items():
        print(f"{name:10} {micros:6.1f} us")


if __name__ == "__main__":
    main()
