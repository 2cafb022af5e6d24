"""Which resources are served: kinds, names, versions of the same objects."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from fastapi_core.apis.resources import builtin
from fastapi_core.controlplane.served import Served


class _Store(SimpleNamespace):
    def named(self, definition: Any) -> Any:
        return self


STORES: Any = {
    definition.key_prefix: _Store(definition=definition, cache=SimpleNamespace(extract=None))
    for definition in builtin()
}
PODS = next(d for d in builtin() if (d.group, d.plural) == ("", "pods"))


def test_builtin_kinds() -> None:
    served = Served(builtin(), STORES)
    found = served.find("", "v1", "Pod")
    assert found is not None
    assert (found.definition, found.store) == (PODS, STORES["/registry/pods/"])
    assert served.find("", "v1", "Pod") is found
    assert served.find("", "v2", "Pod") is None
    assert {d.group for d in served.named("", "v1", "events")} == {"", "events.k8s.io"}
    assert [d.group for d in served.named("apps", "v1", "deployments")] == ["apps"]
    autoscalers = served.named("autoscaling", "v2", "horizontalpodautoscalers")
    assert {d.version for d in served.equivalents(autoscalers[0], "status")} == {"v1", "v2"}


def test_custom_kinds_come_and_go() -> None:
    served = Served(builtin(), STORES)
    told: list[int] = []
    served.listen(lambda: told.append(1))
    scopes = [cast(Any, object()), cast(Any, object())]
    made = [
        replace(PODS, group="x.io", version=version, kind="Limit", plural="limits", key_prefix="/registry/x.io/limits/",
                custom=True, subresources={})
        for version in ("v1", "v2")
    ]  # fmt: skip
    served.put("limits.x.io", [(made[0], lambda: scopes[0]), (made[1], lambda: scopes[1])])
    assert served.find("x.io", "v2", "Limit") is scopes[1]
    assert served.equivalents(made[0], "") == made
    assert served.equivalents(made[0], "status") == []
    served.put("limits.x.io", [(made[0], lambda: scopes[0])])
    assert served.find("x.io", "v2", "Limit") is None
    served.drop("limits.x.io")
    served.drop("limits.x.io")
    assert served.find("x.io", "v1", "Limit") is None
    assert len(told) == 3
