"""Policies and bindings are written by those who may read the parameters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.authz.base import ALLOWED, Attributes, Decision, Verdict
from fastapi_core.errors import APIError
from fastapi_core.request.context import User
from fastapi_core.rest.param_access import Known, guard

Tree = dict[str, Any]
SECRETS = {"apiVersion": "v1", "kind": "Secret"}
KNOWN = Known(
    lambda resource, name: (
        {"spec": {"paramKind": SECRETS}} if (resource, name) == (f"{KINDS[0]}policies", "p") else None
    ),
    lambda group, kind: {("", "Secret"): "secrets"}.get((group, kind), ""),
)
KINDS = ("validatingadmission", "mutatingadmission")


class Authorizer:
    generation = 0

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.asked: list[Attributes] = []

    def authorize(self, attributes: Attributes) -> Any:
        self.asked.append(attributes)
        return self.verdict


DENIED = Verdict(Decision.NO_OPINION)


async def judged(
    plural: str, spec: Tree, old: Tree | None = None, *, verdict: Verdict = DENIED, group: str = "devs"
) -> list[Any]:
    (definition,) = (d for d in builtin() if d.plural == plural and d.version == "v1")
    authorizer: Any = Authorizer(verdict)
    check = guard(definition, authorizer, KNOWN)
    assert check is not None
    ctx: Any = SimpleNamespace(user=User("bob", "7", (group,), {"a": ("b",)}))
    before = None if old is None else {"metadata": {"name": "x"}, "spec": old}
    await check(ctx, {"metadata": {"name": "x"}, "spec": spec}, before)
    return [(a.verb, a.api_group, a.api_version, a.resource, a.namespace, a.name) for a in authorizer.asked]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_kind_of_parameters_takes_the_right_to_get_all_of_them(kind: str) -> None:
    with pytest.raises(APIError) as caught:
        await judged(f"{kind}policies", {"paramKind": SECRETS})
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert caught.value.message.endswith(
        '"x" is invalid: spec.paramKind: Forbidden: user &{bob 7 [devs] map[a:[b]]} must have "get" permission on all '
        "objects of the referenced paramKind (kind=Secret, apiVersion=v1)"
    )
    asked = await judged(f"{kind}policies", {"paramKind": SECRETS}, verdict=ALLOWED)
    assert asked == [("get", "", "v1", "secrets", "*", "*")]


async def test_an_unknown_kind_takes_the_right_to_all_resources_of_its_version() -> None:
    spec = {"paramKind": {"apiVersion": "a.io/v2", "kind": "Later"}}
    assert await judged(f"{KINDS[0]}policies", spec, verdict=ALLOWED) == [("get", "a.io", "v2", "*", "*", "*")]


async def test_a_binding_takes_the_right_to_get_its_parameters() -> None:
    spec = {"policyName": "p", "paramRef": {"name": "s", "namespace": "kube-system"}}
    with pytest.raises(
        APIError, match=r"spec\.paramRef: Forbidden: user .* does not have .get. permission on the object"
    ):
        await judged(f"{KINDS[0]}policybindings", spec)
    asked = await judged(f"{KINDS[0]}policybindings", spec, verdict=ALLOWED)
    assert asked == [("get", "", "v1", "secrets", "kube-system", "s")]
    other = {**spec, "policyName": "missing"}
    asked = await judged(f"{KINDS[0]}policybindings", other, verdict=ALLOWED)
    assert asked == [("get", "*", "*", "*", "kube-system", "s")]


async def test_nobody_is_asked_without_parameters_for_the_same_ones_or_about_masters() -> None:
    binding = {"policyName": "p", "paramRef": {"name": "s"}}
    assert await judged(f"{KINDS[0]}policies", {}) == []
    assert await judged(f"{KINDS[0]}policies", {"paramKind": SECRETS, "variables": []}, {"paramKind": SECRETS}) == []
    assert await judged(f"{KINDS[0]}policybindings", binding, dict(binding)) == []
    assert await judged(f"{KINDS[0]}policies", {"paramKind": SECRETS}, group="system:masters") == []
    with pytest.raises(APIError):
        await judged(f"{KINDS[0]}policybindings", binding, {**binding, "policyName": "q"})
