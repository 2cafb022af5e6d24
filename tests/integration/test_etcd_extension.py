"""An extension whose kinds are kept in etcd, twice: two servers of one API over a real etcd."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fastapi_core.extension import Extension, ObjectMeta
from fastapi_core.extension.options import Options
from fastapi_core.options.flags import OptionsError
from fastapi_core.storage.etcd.settings import Settings
from fastapi_core.storage.etcd.store import EtcdStorage
from fastapi_core.testing.extension import serving
from tests.fixtures.etcd import Etcd
from tests.fixtures.relay import Relay

ITEMS = "/apis/kept.example.com/v1/namespaces/default/items"
KIND = {"apiVersion": "kept.example.com/v1", "kind": "Item"}
PATCH = {"content-type": "application/merge-patch+json"}


@dataclass
class Spec:
    size: int = 1


@dataclass
class Item:
    metadata: ObjectMeta
    spec: Spec = field(default_factory=Spec)


def items() -> Extension:
    app = Extension("kept.example.com/v1")
    app.stored(Item, "items")
    return app


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    etcd = Etcd(tmp_path / "etcd")
    etcd.start()
    yield etcd
    etcd.kill()


async def test_two_servers_of_one_api(etcd: Etcd) -> None:
    flag = f"--etcd-servers={etcd.url}"
    async with serving(items(), flag) as one, serving(items(), flag) as other:
        made = await one.good("POST", ITEMS, {**KIND, "metadata": {"name": "a"}, "spec": {"size": 2}})
        assert await other.good("GET", f"{ITEMS}/a") == made
        events = other.watch(f"{ITEMS}?watch=1&resourceVersion={made['metadata']['resourceVersion']}")
        changed = await one.good("PATCH", f"{ITEMS}/a", {"spec": {"size": 3}}, PATCH)
        event = await anext(events)
        assert (event["type"], event["object"]) == ("MODIFIED", changed)
        assert (await other.call("PUT", f"{ITEMS}/a", made))[0] == 409
        assert (await other.good("PUT", f"{ITEMS}/a", {**changed, "spec": {"size": 4}}))["spec"] == {"size": 4}
        assert (await one.good("GET", ITEMS))["items"][0]["spec"] == {"size": 4}
        await events.aclose()
        for api in (one, other):
            assert (await api.call("GET", "/readyz"))[0] == 200
    # Kept, in the folder of the group below the prefix.
    store = EtcdStorage(Settings((etcd.url,), prefix="/registry/kept.example.com/"))
    await store.open()
    found = await store.list("/registry/")
    assert [item.key for item in found.items] == ["/registry/kept.example.com/items/default/a"]
    await store.close()
    async with serving(items(), flag) as again:
        assert (await again.good("GET", f"{ITEMS}/a"))["spec"] == {"size": 4}


async def test_watches_end_with_410_when_etcd_has_given_up_what_they_missed(etcd: Etcd) -> None:
    relay = Relay(etcd.port)
    await relay.open()
    async with (
        serving(items(), f"--etcd-servers={relay.url}") as cut,
        serving(items(), f"--etcd-servers={etcd.url}") as other,
    ):
        made = await cut.good("POST", ITEMS, {**KIND, "metadata": {"name": "a"}})
        since = made["metadata"]["resourceVersion"]
        events = cut.watch(f"{ITEMS}?watch=1&resourceVersion={since}")
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await relay.cut()
        await other.good("DELETE", f"{ITEMS}/a")
        newest = await other.good("POST", ITEMS, {**KIND, "metadata": {"name": "b"}})
        store = EtcdStorage(Settings((etcd.url,)))
        await store.open()
        await store.compact(int(newest["metadata"]["resourceVersion"]))
        await store.close()
        await relay.open()
        event = await asyncio.wait_for(waiting, 20)
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert event["object"]["message"].startswith(f"too old resource version: {since} (")
        assert [item["metadata"]["name"] for item in (await cut.good("GET", ITEMS))["items"]] == ["b"]
        status, expired = await cut.call("GET", f"{ITEMS}?resourceVersion={since}&resourceVersionMatch=Exact")
        assert (status, expired["reason"]) == (410, "Expired")
        # And on from there.
        events = cut.watch(f"{ITEMS}?watch=1&resourceVersion={newest['metadata']['resourceVersion']}")
        waiting = asyncio.ensure_future(anext(events))
        await other.good("DELETE", f"{ITEMS}/b")
        assert (await asyncio.wait_for(waiting, 20))["type"] == "DELETED"
        await events.aclose()
    await relay.cut()


def test_flags_that_cannot_be() -> None:
    with pytest.raises(OptionsError) as caught:
        Options.parse(["--etcd-servers=127.0.0.1:2379,ftp://x", "--etcd-certfile=/none", "--storage-backend=etcd2"])
    flags = [error.partition(":")[0] for error in caught.value.errors]
    assert sorted(flags) == [
        "--etcd-certfile", "--etcd-keyfile", "--etcd-servers", "--etcd-servers", "--storage-backend",
    ]  # fmt: skip
