"""A virtual database API: `kubectl create` a Database, and somebody brings one up.

The framework keeps the objects and does all that kinds have in common. What is left is here: what a database is (the
dataclasses), what may be asked for (`prepare`, `validate`, rules), and the controller that makes it so.

    python examples/db_api.py --secure-port 4443 --kubeconfig admin.kubeconfig --data-dir /var/lib/db-api
    python examples/db_api.py register --kubeconfig admin.kubeconfig ...
    kubectl apply --server-side -f database.yaml && kubectl get databases --watch
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi_core.extension import (
    AGE,
    APIError,
    Column,
    Event,
    Extension,
    Field,
    FieldError,
    ObjectMeta,
    Request,
)

FINALIZER = "db.example.com/deprovision"
NEWEST = {"postgres": "17", "mysql": "9.1"}
PORTS = {"postgres": 5432, "mysql": 3306}

app = Extension("db.example.com/v1", name="db-api")


@dataclass
class DatabaseSpec:
    """What is asked for."""

    engine: Annotated[
        Literal["postgres", "mysql"], Field(description="Cannot be changed later.", rules=("self == oldSelf",))
    ]
    version: Annotated[str, Field(description="Of the engine; the newest by default.", pattern=r"^\d+(\.\d+)*$")] = ""
    size_gi: Annotated[int, Field(description="Space for data, in GiB.", minimum=1, maximum=1024)] = 1
    users: Annotated[list[str], Field(max_items=50)] = field(default_factory=list)


@dataclass
class Condition:
    """One thing that is so, or is not."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    last_transition_time: datetime
    message: str = ""


@dataclass
class DatabaseStatus:
    """What there is."""

    phase: str = ""
    endpoint: str = ""
    observed_generation: int = 0
    conditions: Annotated[list[Condition], Field(list_keys=("type",))] = field(default_factory=list)


@dataclass
class Database:
    """A database, brought up and looked after."""

    metadata: ObjectMeta
    spec: DatabaseSpec
    status: DatabaseStatus = field(default_factory=DatabaseStatus)


@dataclass
class Credentials:
    """How to get in."""

    metadata: ObjectMeta
    user: str
    password: str


databases = app.stored(
    Database,
    "databases",
    short_names=["db"],
    categories=["all"],
    status=True,
    selectable=[".spec.engine"],
    columns=[
        Column("Engine", ".spec.engine"),
        Column("Size", lambda database: f"{database.spec.size_gi}Gi"),
        Column("Phase", ".status.phase"),
        Column("Endpoint", ".status.endpoint", priority=1),
        AGE,
    ],
)
running: dict[str, str] = {}
"""uid -> password: stands for the database servers."""


@databases.prepare
def prepare(new: Database, old: Database | None) -> None:
    new.spec.version = new.spec.version or NEWEST[new.spec.engine]
    if old is None:
        new.metadata.finalizers.append(FINALIZER)
        new.status.phase = "Pending"


@databases.validate
def validate(new: Database, old: Database | None) -> Iterable[FieldError]:
    if old is not None and new.spec.size_gi < old.spec.size_gi:
        yield FieldError("Invalid value", "spec.sizeGi", "a database cannot shrink", new.spec.size_gi)


credentials = databases.subresource("credentials", Credentials)


@credentials.get
async def get_credentials(request: Request, name: str) -> Credentials | None:
    database = await databases.objects.get(name, request.namespace)
    password = running.get(database.metadata.uid)
    if password is None:
        return None
    return Credentials(ObjectMeta(name=name, namespace=request.namespace), "admin", password)


@app.background
async def controller() -> None:
    async for event in databases.objects.changes():
        try:
            await reconcile(event)
        except APIError as error:
            # Somebody was faster; the change they made is the next event.
            if error.reason not in ("Conflict", "NotFound"):
                raise


async def reconcile(event: Event[Database]) -> None:
    database = event.object
    metadata, status = database.metadata, database.status
    if event.type == "DELETED":
        return
    if metadata.deletion_timestamp is not None:
        running.pop(metadata.uid, None)
        if FINALIZER in metadata.finalizers:
            metadata.finalizers.remove(FINALIZER)
            await databases.objects.update(database)
        return
    if metadata.uid in running and status.observed_generation == metadata.generation:
        return
    await asyncio.sleep(0)  # here the work is done
    running.setdefault(metadata.uid, secrets.token_urlsafe(16))
    status.phase = "Ready"
    status.endpoint = f"{metadata.name}.{metadata.namespace}.db.example.com:{PORTS[database.spec.engine]}"
    status.observed_generation = metadata.generation or 0
    if not status.conditions:
        status.conditions = [Condition("Ready", "True", "Provisioned", datetime.now(UTC))]
    await databases.objects.update_status(database)


if __name__ == "__main__":
    raise SystemExit(app.main())
