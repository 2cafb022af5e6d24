"""An extension server made with the framework, as a process of its own; `$TAG` is told in every answer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fastapi_core.extension import Event, Extension, ObjectMeta, Request

TAG = os.environ.get("TAG", "")
app = Extension("two.example.test/v1", name="two")
seen: list[str] = []


@dataclass
class Thing:
    """What a server tells of itself and of who asks."""

    metadata: ObjectMeta
    server: str = ""
    user: str = ""
    groups: list[str] = field(default_factory=list)
    extra: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Log:
    """What a server was asked."""

    metadata: ObjectMeta
    lines: list[str] = field(default_factory=list)


things = app.kind(Thing, "things", namespaced=False)
logs = app.kind(Log, "logs", namespaced=False)


def told(request: Request, name: str) -> Thing:
    user = request.user
    extra = {key: list(values) for key, values in user.extra.items()}
    return Thing(ObjectMeta(name=name), TAG, user.name, list(user.groups), extra)


@things.get
async def get(request: Request, name: str) -> Thing:
    seen.append(f"{request.verb} {name} {request.user.name}")
    if name == "slow":
        await asyncio.sleep(0.05)
    return told(request, name)


@things.list
async def listing(request: Request) -> list[Thing]:
    return []


@things.watch
async def watch(request: Request) -> AsyncIterator[Event[Thing]]:
    first = told(request, "x")
    first.metadata.resource_version = "1"
    yield Event("ADDED", first)
    await asyncio.Event().wait()


@logs.get
async def log(request: Request, name: str) -> Log:
    return Log(ObjectMeta(name=name), list(seen))


if __name__ == "__main__":
    sys.exit(app.main())
