"""Extension API servers: declare kinds, give the verbs you have, and serve them behind `kube-apiserver` or this server.

```python
from dataclasses import dataclass, field
from fastapi_core.extension import Extension, ObjectMeta, Quantity, Request

app = Extension("metrics.k8s.io/v1beta1")

@dataclass
class NodeMetrics:
    metadata: ObjectMeta
    timestamp: datetime
    window: timedelta
    usage: dict[str, Quantity]

nodes = app.kind(NodeMetrics, "nodes", namespaced=False)

@nodes.list
async def list_nodes(request: Request) -> list[NodeMetrics]:
    ...

@nodes.get
async def get_node(request: Request, name: str) -> NodeMetrics | None:
    ...

if __name__ == "__main__":
    app.main()
```

Everything else follows: discovery, OpenAPI, Table and PartialObjectMetadata, selectors, paging, authentication and
authorization by the server in front, health, metrics, TLS, `register` and `unregister`. See `docs/extension.md`.
"""

from __future__ import annotations

from fastapi_core.errors import APIError, FieldError
from fastapi_core.extension.app import Extension
from fastapi_core.extension.columns import Column
from fastapi_core.extension.description import Description, GroupVersion
from fastapi_core.extension.kinds import Resource, Storage, Stored
from fastapi_core.extension.objects import Field, IntOrString, ObjectMeta, OwnerReference, Quantity
from fastapi_core.extension.request import Event, Listing, Request
from fastapi_core.extension.sync import quick
from fastapi_core.request.context import User

__all__ = [
    "APIError",
    "Column",
    "Description",
    "Event",
    "Extension",
    "Field",
    "FieldError",
    "GroupVersion",
    "IntOrString",
    "Listing",
    "ObjectMeta",
    "OwnerReference",
    "Quantity",
    "Request",
    "Resource",
    "Storage",
    "Stored",
    "User",
    "quick",
]
