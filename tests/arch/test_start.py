"""What a server loads and makes before it is ready. Seconds differ from machine to machine; these numbers do not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Runs `serve` in this process until it is ready, then prints what was loaded, and once more when it has finished.
PROBE = """
import dataclasses, json, os, sys
heavy = []
original = dataclasses._process_class
def declared(cls, *args, **kwargs):
    heavy.append(f"{cls.__module__}.{cls.__qualname__}")
    return original(cls, *args, **kwargs)
dataclasses._process_class = declared

import fastapi_core.cli.main as command
import fastapi_core.cli.serve as serve
from fastapi_core.apis.resources import BuiltinDefinition
from fastapi_core.server.generic import GenericServer

def ready(completed, port):
    global loaded
    loaded = sorted(sys.modules)

async def finish(server):
    await server.finish()
    print(json.dumps({"ready": loaded, "finished": sorted(sys.modules), "classes": heavy}), flush=True)
    os._exit(0)

serve._say_ready = ready
serve.finish = finish
command.main(["serve", "--bind-address", "127.0.0.1", "--secure-port", "0", "--data-dir", sys.argv[1]])
"""

#: Packages and modules that wait for whoever needs them; of a package all modules but `__init__`.
PUT_OFF = (
    "cryptography", "cbor2", "yaml", "email", "zoneinfo", "ctypes", "csv", "difflib", "decimal", "tempfile", "shutil",
    "concurrent.futures.process", "multiprocessing", "importlib.metadata", "unittest", "http",
    "fastapi_core.admission.plugins", "fastapi_core.admission.podsecurity", "fastapi_core.admission.policies",
    "fastapi_core.admission.quota", "fastapi_core.admission.webhooks", "fastapi_core.aggregation.discovery",
    "fastapi_core.aggregation.openapi",
    "fastapi_core.apis.defaulting", "fastapi_core.apis.validation.index", "fastapi_core.apis.validation.pods",
    "fastapi_core.audit", "fastapi_core.cel", "fastapi_core.codec.yaml", "fastapi_core.crd.serving",
    "fastapi_core.openapi.documents", "fastapi_core.patch", "fastapi_core.registry.printers",
    "fastapi_core.rest.create", "fastapi_core.rest.get", "fastapi_core.rest.patch", "fastapi_core.rest.proxy", "grpc",
    "fastapi_core.storage.etcd", "fastapi_core.structural",
)  # fmt: skip
#: Modules at the most when a server is ready that found its objects in the store: of this package, and all.
OWN, ALL = 250, 450


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What the first start of a store and a second one have loaded."""
    folder = tmp_path_factory.mktemp("start")
    return [_start(folder) for _ in range(2)]


def _start(folder: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", PROBE, str(folder)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _own(modules: list[str]) -> list[str]:
    return [name for name in modules if name.startswith("fastapi_core")]


def test_a_start_loads_little(starts: list[dict[str, Any]]) -> None:
    again = starts[1]["ready"]
    assert [name for name in again if any(_within(name, package) for package in PUT_OFF)] == []
    assert len(_own(again)) <= OWN
    assert len(again) <= ALL


def _within(name: str, package: str) -> bool:
    return name.startswith(package + ".") or (name == package and not package.startswith("fastapi_core."))


def test_no_class_is_written_at_the_start(starts: list[dict[str, Any]]) -> None:
    """`fastapi_core.records.dataclass` declares a class without compiling source."""
    assert [name for name in starts[1]["classes"] if name.startswith("fastapi_core.")] == []


def test_what_was_put_off_comes_after_the_start(starts: list[dict[str, Any]]) -> None:
    finished = set(starts[0]["finished"])
    for name in ("rest.create", "rest.get", "apis.validation.pods", "admission.quota.plugin", "structural.schema"):
        assert f"fastapi_core.{name}" in finished
    for name in ("cryptography.x509", "yaml", "fastapi_core.cel", "fastapi_core.audit.auditor"):
        assert name not in set(starts[1]["finished"])
