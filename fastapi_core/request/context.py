"""Per-request state that the filters fill in and the verb handlers read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi_core._ext.http1 import Request
    from fastapi_core._ext.reqinfo import RequestInfo
    from fastapi_core.http.exchange import Answer, Header


@dataclass(frozen=True, slots=True)
class User:
    """Who is asking (`user.Info`)."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))


class RequestContext:
    """One request on its way through the chain. Filters set; handlers read; `warn` and `headers` go out with the answer."""

    __slots__ = ("audit_id", "deadline", "headers", "info", "request", "user", "warnings")

    def __init__(self, request: Request, info: RequestInfo) -> None:
        self.request = request
        self.info = info
        self.user: User = ANONYMOUS
        self.audit_id = ""
        self.deadline = 0.0
        """Loop time at which a non-long-running request is answered 504; 0 for none."""
        self.headers: list[Header] = []
        self.warnings: list[str] | None = None

    def warn(self, text: str) -> None:
        """Add a Warning header to the answer (duplicates dropped, lengths limited when rendered)."""
        if self.warnings is None:
            self.warnings = []
        self.warnings.append(text)


Endpoint = Callable[[RequestContext], "Answer | Awaitable[Answer]"]
