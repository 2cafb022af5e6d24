"""The condition Available is this server's: whoever else writes it is contradicted."""

from __future__ import annotations

from fastapi_core.aggregation.availability import LOCAL
from fastapi_core.aggregation.directory import parsed
from fastapi_core.apis.strategies.kinds import prepare_api_service


def service(**spec: object) -> dict[str, object]:
    whole = {"group": "g.test", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1, **spec}
    return {"metadata": {"name": "v1.g.test"}, "spec": whole}


def test_a_local_one_is_available_from_the_first() -> None:
    new = service()
    prepare_api_service(new, None)
    found = parsed(new)
    assert found.available
    assert found.said == (LOCAL.status, LOCAL.reason, LOCAL.message)
    remote = service(service={"namespace": "n", "name": "s"})
    prepare_api_service(remote, None)
    assert "status" not in remote
