"""Per-request state that the filters fill in and the verb handlers read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Request
    from fastapi_core._ext.reqinfo import RequestInfo
    from fastapi_core.codec.json import DecodeError, Parsed
    from fastapi_core.http.exchange import Answer, Header

#: Subresources and verbs whose requests may last as long as the client likes (no deadline, not counted as in flight).
LONG_RUNNING_VERBS = frozenset({"watch", "proxy"})
LONG_RUNNING_SUBRESOURCES = frozenset({"attach", "exec", "proxy", "log", "portforward"})


@dataclass(frozen=True, slots=True)
class User:
    """Who is asking (`user.Info`)."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __hash__(self) -> int:
        """By name alone: users are in every memo key, and strings remember their hash."""
        return hash(self.name)


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))
LOOPBACK = User("system:apiserver", groups=("system:masters", "system:authenticated"))
"""The server itself, when it asks itself (`server/loopback.py`)."""


class AuditRecord(Protocol):
    """What handlers tell the audit about the body of a request (`audit.auditor.Record`)."""

    @property
    def bodies(self) -> bool:
        """Whether bodies are written down."""

    def decoded(self, tree: dict[str, Any], defaults: Callable[[dict[str, Any]], None] | None = None) -> None:
        """The object of the body; `defaults` fills in, in a copy, what the client left out."""

    def patch(self, body: bytes, form: str) -> None:
        """The body as it came, `json` or `yaml`."""


class RequestContext:
    """One request on its way: filters set, handlers read, `warn` and `headers` go out with the answer.

    `info` exists from the request-info position of the chain on.
    """

    __slots__ = (
        "annotations", "audit", "audit_id", "constraint", "deadline", "decision", "headers", "impersonator", "info",
        "long_running", "matched", "outcome", "parsed", "reason", "release", "request", "started", "user", "warnings",
    )  # fmt: skip

    info: RequestInfo

    def __init__(self, request: Request, info: RequestInfo | None = None) -> None:
        self.request = request
        if info is not None:
            self.info = info
        self.user: User = ANONYMOUS
        self.impersonator: User | None = None
        """Who really asks, when `user` is somebody impersonated; `constraint` is the verb that allowed it."""
        self.constraint = ""
        self.decision = ""
        """`allow` or `forbid`, once the authorizers were asked; `reason` is theirs."""
        self.reason = ""
        self.audit_id = ""
        self.annotations: dict[str, str] | None = None
        """What the audit event of this request tells beyond its words: notes of authentication and admission."""
        self.audit: AuditRecord | None = None
        """What is being written down about the request; None before the audit filter and without a policy."""
        self.outcome: Exception | dict[str, Any] | None = None
        """Why the request failed, or the Status it is answered with."""
        self.started = 0.0
        """`time.monotonic()` when the chain was entered (the clock of the event loop)."""
        self.deadline = 0.0
        """Loop time at which a non-long-running request is answered 504; 0 for none."""
        self.long_running = False
        """No deadline, no place among the requests in flight."""
        self.matched = False
        """True once dispatch found the endpoint; only then may the request's words become metric labels."""
        self.parsed: dict[str, Parsed | DecodeError] | None = None
        """What became of a body that was read beside the loop (`request.aside`), by form."""
        self.headers: list[Header] = []
        self.warnings: list[str] | None = None
        self.release: Callable[[], None] | None = None
        """Gives back what the request occupies (its place in flight); called exactly once, also on cancellation."""

    def annotate(self, key: str, value: str) -> None:
        """Leave a note in the audit event of the request; the first value of a key stays."""
        if self.annotations is None:
            self.annotations = {}
        self.annotations.setdefault(key, value)

    def warn(self, text: str) -> None:
        """Add a Warning header to the answer (duplicates dropped, lengths limited when rendered)."""
        if self.warnings is None:
            self.warnings = []
        self.warnings.append(text)


def is_long_running(info: RequestInfo) -> bool:
    """The reference's test for requests without a deadline."""
    if info.is_resource_request:
        return info.verb in LONG_RUNNING_VERBS or info.subresource in LONG_RUNNING_SUBRESOURCES
    return info.path.startswith("/debug/pprof/")


Endpoint = Callable[[RequestContext], "Answer | Awaitable[Answer]"]
