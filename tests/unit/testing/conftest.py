"""The tested resources, and a relay that can break them."""

from __future__ import annotations

import contextlib
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer
from tests.fixtures.faulty import Relay

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "databases.conformance.example.com"},
    "spec": {
        "group": "conformance.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Database", "plural": "databases", "singular": "database", "shortNames": ["cdb"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["engine"],
                                "properties": {
                                    "engine": {"type": "string", "enum": ["postgres", "mysql"]},
                                    "note": {"type": "string"},
                                    "replicas": {"type": "integer", "minimum": 0},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def kit_server(server: RunningServer) -> RunningServer:
    """The server of the run, with a custom resource and two namespaces for the kit."""
    context = ssl.create_default_context(cafile=str(server.data_dir / "pki/ca.crt"))

    def post(path: str, body: dict[str, Any]) -> None:
        request = urllib.request.Request(
            server.url + path,
            json.dumps(body).encode(),
            {"Authorization": "Bearer admintoken", "Content-Type": "application/json"},
        )
        # 409: another module has made it.
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, context=context).close()

    post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    for name in ("conformance-one", "conformance-two"):
        post("/api/v1/namespaces", {"metadata": {"name": name}})
    return server


@pytest.fixture(scope="module")
def relay(kit_server: RunningServer) -> Iterator[Relay]:
    """A relay without a fault; tests set one."""
    running = Relay(kit_server)
    yield running
    running.close()
