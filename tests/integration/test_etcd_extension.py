"""An extension whose kinds are kept in etcd, twice: two servers of one API over a real etcd."""

from __future__ import annotations

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


def test_flags_that_cannot_be() -> None:
    with pytest.raises(OptionsError) as caught:
        Options.parse(["--etcd-servers=127.0.0.1:2379,ftp://x", "--etcd-certfile=/none", "--storage-backend=etcd2"])
    flags = [error.partition(":")[0] for error in caught.value.errors]
    assert sorted(flags) == [
        "--etcd-certfile", "--etcd-keyfile", "--etcd-servers", "--etcd-servers", "--storage-backend",
    ]  # fmt: skip
