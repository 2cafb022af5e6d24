"""What a server is made from. Filled by `options`, read by nobody below."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from fastapi_core.authn.base import Authenticator
from fastapi_core.authz.base import AlwaysAllow, Authorizer
from fastapi_core.http.tls import TLSFiles
from fastapi_core.obs.catalog import Metrics
from fastapi_core.obs.files import FileWatcher
from fastapi_core.records import dataclass

__all__ = ["ServerConfig", "TLSFiles"]

if TYPE_CHECKING:
    from fastapi_core.audit.auditor import Auditor
    from fastapi_core.flow.control import Control
    from fastapi_core.flow.estimate import Estimator


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """One generic server. Times in seconds, sizes in bytes, limits 0 for none."""

    authenticator: Authenticator
    authorizer: Authorizer = field(default_factory=AlwaysAllow)
    metrics: Metrics = field(default_factory=Metrics)
    audit: Auditor | None = None
    """None: nothing is written down about requests."""
    files: FileWatcher = field(default_factory=FileWatcher)
    """Follows every configuration file of this server; runs from start to stop."""
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
    flow: tuple[Control, Estimator] | None = None
    """Priority and fairness instead of the two limits."""
    cors_allowed_origins: tuple[str, ...] = ()
    strict_transport_security: tuple[str, ...] = ()
    shutdown_delay: float = 0.0
    """Time between failing readiness and refusing requests, for load balancers to notice."""
    drain_timeout: float = 60.0
    """How long shutdown waits for requests under way."""
    send_retry_after: bool = False
    """While going down keep listening and answer 429 with Retry-After, so that clients go elsewhere at once."""
    watch_grace: float = 0.0
    """Time over which watches are ended while going down; 0 ends them all at once."""
    livez_grace_period: float = 0.0
    max_connections: int = 0
    max_stream_backlog: int = 0
    """Bytes that all streams together may owe clients that do not read; 0: no limit."""
    share_port: bool = False
    """Let other processes listen on the same address and port."""
    profiling: bool = True
    """Serve /debug/pprof and /debug/flags, and let DELETE reset /metrics."""
    contention_profiling: bool = False
    """Note what holds the event loop up."""
    logs_directory: str = ""
    """Directory served under /logs; empty: none."""
