"""Extension API servers: declare kinds, give the verbs you have, and serve them behind `kube-apiserver` or this server.

```python
from dataclasses import dataclass
from fastapi_core.extension import Extension, ObjectMeta, Quantity, Request

app = Extension("metrics.k8s.io/v1beta1")

@dataclass
class NodeMetrics:
    metadata: ObjectMeta
    usage: dict[str, Quantity]

nodes = app.kind(NodeMetrics, "nodes", namespaced=False)

@nodes.list
async def list_nodes(request: Request) -> list[NodeMetrics]:
    ...

@nodes.get
async def get_node(request: Request, name: str) -> NodeMetrics | None:
    ...

if __name__ == "__main__":
    raise SystemExit(app.main())
```

Everything else follows: discovery, OpenAPI, Table and PartialObjectMetadata, selectors, paging, authentication and
authorization by the server in front, health, metrics, TLS, `register` and `unregister`. See `docs/extension.md`.
"""

from __future__ import annotations

from fastapi_core.crd.definitions import Scale
from fastapi_core.errors import APIError, FieldError
from fastapi_core.extension.app import Extension
from fastapi_core.extension.client import Objects
from fastapi_core.extension.columns import AGE, Column
from fastapi_core.extension.connection import Connection
from fastapi_core.extension.declaration import KindOptions
from fastapi_core.extension.description import Description, GroupVersion
from fastapi_core.extension.feed import Feed
from fastapi_core.extension.kinds import Resource, Storage, Stored
from fastapi_core.extension.models import ModelError
from fastapi_core.extension.objects import Field, IntOrString, ObjectMeta, OwnerReference, Quantity
from fastapi_core.extension.request import Event, Listing, Request
from fastapi_core.extension.subresources import Subresource
from fastapi_core.extension.sync import quick
from fastapi_core.extension.versions import Version
from fastapi_core.request.context import User

__all__ = [
    "AGE",
    "APIError",
    "Column",
    "Connection",
    "Description",
    "Event",
    "Extension",
    "Feed",
    "Field",
    "FieldError",
    "GroupVersion",
    "IntOrString",
    "KindOptions",
    "Listing",
    "ModelError",
    "ObjectMeta",
    "Objects",
    "OwnerReference",
    "Quantity",
    "Request",
    "Resource",
    "Scale",
    "Storage",
    "Stored",
    "Subresource",
    "User",
    "Version",
    "quick",
]
