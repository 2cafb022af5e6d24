"""The two examples, in this process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import ModuleType

import pytest

from fastapi_core.extension.cli import load
from tests.fixtures.extension import APPLY, MERGE, TABLE, Served, serving

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
DBS = "/apis/db.example.com/v1/namespaces/default/databases"
METRICS = "/apis/metrics.k8s.io/v1beta1"


def example(name: str) -> ModuleType:
    import sys

    load(str(EXAMPLES / f"{name}.py"))
    return sys.modules["__extension__"]


def database(name: str = "shop", engine: str = "postgres", size: int = 1) -> dict[str, object]:
    return {
        "apiVersion": "db.example.com/v1",
        "kind": "Database",
        "metadata": {"name": name},
        "spec": {"engine": engine, "sizeGi": size},
    }


async def ready(served: Served, name: str = "shop") -> dict[str, object]:
    """The database once it is up: the watch says when."""
    async for event in served.watch(f"{DBS}?watch=1&fieldSelector=metadata.name%3D{name}"):
        found: dict[str, dict[str, object]] = event["object"]
        if (found.get("status") or {}).get("observedGeneration") == found["metadata"]["generation"]:
            return found
    raise AssertionError("the watch ended")


async def test_a_database_comes_up_and_goes() -> None:
    async with serving(example("db_api").app) as served:
        status, made = await served.call("PATCH", f"{DBS}/shop?fieldManager=me", database(), APPLY)
        assert status == 201
        assert made["spec"]["version"] == "17"
        assert made["metadata"]["finalizers"] == ["db.example.com/deprovision"]
        found = await asyncio.wait_for(ready(served), 10)
        assert found["status"]["phase"] == "Ready"  # type: ignore[index]
        credentials = await served.good("GET", f"{DBS}/shop/credentials")
        assert credentials["user"] == "admin"
        assert len(credentials["password"]) > 15
        table = await served.good("GET", DBS, headers=TABLE)
        assert table["rows"][0]["cells"][:4] == ["shop", "postgres", "1Gi", "Ready"]
        await served.good("PATCH", f"{DBS}/shop", {"spec": {"sizeGi": 5}}, MERGE)
        await asyncio.wait_for(ready(served), 10)
        for spec, text in (
            ({"sizeGi": 2}, "cannot shrink"),
            ({"engine": "mysql"}, "spec.engine"),
            ({"sizeGi": 0}, "sizeGi"),
        ):
            status, answer = await served.call("PATCH", f"{DBS}/shop", {"spec": spec}, MERGE)
            assert status == 422
            assert text in answer["message"]
        await served.good("DELETE", f"{DBS}/shop")

        async def gone() -> None:
            while (await served.call("GET", f"{DBS}/shop"))[0] != 404:
                await asyncio.sleep(0.01)

        await asyncio.wait_for(gone(), 10)
        assert (await served.call("GET", f"{DBS}/shop/credentials"))[0] == 404


async def test_metrics_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NODE_NAME", "here")
    metrics = example("metrics_api")
    process = tmp_path / "42"
    process.mkdir()
    (tmp_path / "stat").write_text("cpu  100 0 100 1000 0 0 0 0 0 0\n")
    (tmp_path / "meminfo").write_text("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n")
    (process / "environ").write_bytes(b"A=b\0POD_NAME=web\0CONTAINER_NAME=main\0")
    fields = ["S", *["0"] * 49]
    fields[11], fields[12], fields[21] = "100", "100", "25"
    (process / "stat").write_text(f"42 (a) b) {' '.join(fields)}")
    monkeypatch.setattr(metrics, "PROC", tmp_path)
    metrics.window.advance(metrics.measure())
    fields[11] = "200"
    (process / "stat").write_text(f"42 (a) b) {' '.join(fields)}")
    await asyncio.sleep(0.01)
    metrics.window.advance(metrics.measure())
    async with serving(metrics.app) as served:
        listed = await served.good("GET", f"{METRICS}/nodes")
        (node,) = listed["items"]
        assert node["metadata"] == {"name": "here"}
        assert node["usage"]["memory"] == "600Ki"
        assert node == {**await served.good("GET", f"{METRICS}/nodes/here")}
        assert (await served.call("GET", f"{METRICS}/nodes/there"))[0] == 404
        pod = await served.good("GET", f"{METRICS}/namespaces/default/pods/web")
        (container,) = pod["containers"]
        assert container["name"] == "main"
        assert container["usage"]["memory"] == f"{25 * metrics.PAGE // 1024}Ki"
        assert int(container["usage"]["cpu"].removesuffix("n")) > 0
        assert (await served.good("GET", f"{METRICS}/namespaces/other/pods"))["items"] == []
        resources = (await served.good("GET", METRICS))["resources"]
        assert [(r["name"], r["kind"], r["verbs"]) for r in resources] == [
            ("nodes", "NodeMetrics", ["get", "list"]), ("pods", "PodMetrics", ["get", "list"])
        ]  # fmt: skip
