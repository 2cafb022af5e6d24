"""Cost of a decision from cold: microseconds a question to the authorizers, nothing remembered.

    python -m bench.micro_authz [--questions 20000]

The policies stand in a memory store behind the real watch cache: 1,000 roles and 10,000 bindings in 10 namespaces, and a
user with 100 bindings of his own to roles of five rules each, of which the last one allows what is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator
from typing import Any

import orjson

from fastapi_core.authz.base import Attributes, Authorizer, Decision, PrivilegedGroup, Verdict
from fastapi_core.authz.rbac import RoleIndex
from fastapi_core.authz.union import AuthorizerUnion
from fastapi_core.controlplane.resources import POLICIES
from fastapi_core.request.context import User
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.memory import MemoryStorage

Tree = dict[str, Any]
NAMESPACES = 10
USER = User("bench", groups=("devs", "system:authenticated"))


def rules(number: int) -> list[Tree]:
    """Five rules as roles have them; none of them is about configmaps."""
    kinds = ("pods", "services", "secrets", "deployments", "jobs")
    return [
        {"verbs": ["get", "list", "watch"], "apiGroups": ["", "apps"], "resources": [f"{kind}{number % 7}", kind]}
        for kind in kinds
    ]


def policies(user_bindings: int) -> Iterator[tuple[str, Tree]]:
    """(kind, tree) of 1,000 roles and 10,000 bindings, `user_bindings` of them the user's."""
    own = 0
    for n in range(NAMESPACES):
        namespace = f"team-{n}"
        for r in range(100):
            metadata = {"name": f"role-{r:03d}", "namespace": namespace}
            last = [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}] if r == 99 else []
            yield "roles", {"kind": "Role", "metadata": metadata, "rules": rules(r) + last}
        for b in range(1000):
            mine = n == 0 and b % (1000 // user_bindings) == 0
            own += mine
            role = own - 1 if mine else b % 99
            subject = {
                "kind": "User",
                "apiGroup": "rbac.authorization.k8s.io",
                "name": "bench" if mine else f"user-{b}",
            }
            yield (
                "rolebindings",
                {
                    "kind": "RoleBinding",
                    "metadata": {"name": f"binding-{b:04d}", "namespace": namespace},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"role-{role:03d}"},
                    "subjects": [subject],
                },
            )


async def index() -> tuple[RoleIndex, float]:
    """The index of all of it, and the seconds it took to read."""
    storage = MemoryStorage()
    await storage.open()
    for plural, tree in policies(100):
        metadata = tree["metadata"]
        await storage.create(f"/registry/{plural}/{metadata['namespace']}/{metadata['name']}", orjson.dumps(tree))
    cacher = Cacher(storage)
    await cacher.open()
    found = RoleIndex(*(cacher.resource(prefix) for prefix in POLICIES))
    begin = time.process_time()
    found.load()
    return found, time.process_time() - begin


def question(resource: str, user: User = USER) -> Attributes:
    return Attributes(user, "get", "", "v1", "team-0", resource, "", "one", "", True, "", "")


def measure(authorizer: Authorizer, attributes: Attributes, expected: Decision, count: int) -> float:
    verdict = authorizer.authorize(attributes)
    assert isinstance(verdict, Verdict)
    assert verdict.decision is expected, verdict
    best = float("inf")
    for _ in range(5):
        begin = time.process_time()
        for _ in range(count // 5):
            authorizer.authorize(attributes)
        best = min(best, (time.process_time() - begin) / (count // 5))
    return best * 1e6


async def run(count: int) -> dict[str, float]:
    """Row -> microseconds (the reading: seconds)."""
    found, seconds = await index()
    union = AuthorizerUnion([PrivilegedGroup("system:masters"), found])
    allow, none = Decision.ALLOW, Decision.NO_OPINION
    return {
        "reading 1000 roles, 10000 bindings s": seconds,
        "allowed by the last of 100 bindings": measure(union, question("configmaps"), allow, count),
        "allowed by the first of 100 bindings": measure(union, question("pods"), allow, count),
        "refused after 100 bindings": measure(union, question("nodes"), none, count),
        "a user without bindings": measure(union, question("pods", User("nobody")), none, count),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=20_000)
    for name, value in asyncio.run(run(parser.parse_args().questions)).items():
        print(f"{name:40} {value:9.3f}")


if __name__ == "__main__":
    main()
