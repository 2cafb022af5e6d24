"""What a server is made from. Filled by `options`, read by nobody below."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi_core.authn.base import Authenticator
from fastapi_core.authz.base import AlwaysAllow, Authorizer
from fastapi_core.obs.catalog import Metrics

if TYPE_CHECKING:
    from fastapi_core.audit.auditor import Auditor


@dataclass(frozen=True, slots=True)
class TLSFiles:
    """PEM files of the serving side; reread when they change."""

    cert: str
    key: str
    client_cas: tuple[str, ...] = ()
    """CA bundles whose client certificates are accepted; none: client certificates are not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """One generic server. Times in seconds, sizes in bytes, limits 0 for none."""

    authenticator: Authenticator
    authorizer: Authorizer = field(default_factory=AlwaysAllow)
    metrics: Metrics = field(default_factory=Metrics)
    audit: Auditor | None = None
    """None: nothing is written down about requests."""
    tls: TLSFiles | None = None
    """None serves plain HTTP, for tests."""
    bind_address: str = "0.0.0.0"
    port: int = 6443
    """0 takes any free port."""
    body_limit: int = 3 << 20
    """Largest request body; more is answered 413."""
    request_timeout: float = 60.0
    max_requests_inflight: int = 400
    max_mutating_requests_inflight: int = 200
    cors_allowed_origins: tuple[str, ...] = ()
    strict_transport_security: tuple[str, ...] = ()
    shutdown_delay: float = 0.0
    """Time between failing readiness and refusing requests, for load balancers to notice."""
    drain_timeout: float = 60.0
    """How long shutdown waits for requests under way."""
    livez_grace_period: float = 0.0
    max_connections: int = 0
