"""Which authorizers there are, and what each is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from fastapi_core.authz.base import Decision
from fastapi_core.records import dataclass

ALWAYS_ALLOW, ALWAYS_DENY, ABAC, NODE, RBAC, WEBHOOK = "AlwaysAllow", "AlwaysDeny", "ABAC", "Node", "RBAC", "Webhook"
MODES = (ABAC, ALWAYS_ALLOW, ALWAYS_DENY, NODE, RBAC, WEBHOOK)

Condition = Callable[[dict[str, Any]], bool]
"""Gets the spec of the SubjectAccessReview (v1) as `request`; raises `conditions.ConditionError`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a webhook is asked; times in seconds. `fail` is the decision when it does not answer."""

    version: str = "v1beta1"
    allowed_ttl: float = 300.0
    refused_ttl: float = 30.0
    timeout: float = 30.0
    fail: Decision = Decision.NO_OPINION
    conditions: tuple[Condition, ...] = ()
    """It is asked only about requests for which all of them hold."""
    within: float | None = None
    """For all attempts of one question together; None: no limit of their own."""


@dataclass(frozen=True, slots=True)
class AuthorizerConfig:
    """One authorizer. `kubeconfig` leads to the server of a webhook."""

    type: str
    name: str = ""
    kubeconfig: str = ""
    settings: Settings = field(default_factory=Settings)
