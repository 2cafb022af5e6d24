"""Authorizers that are exchanged while the server runs, when the configuration they come from changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi_core.authz.base import NOTHING, Attributes, Authorizer, Grants, RuleLister, Verdict
from fastapi_core.request.context import User


class Exchangeable:
    """Stands for the authorizer of the moment. An exchange makes every remembered verdict void."""

    def __init__(self, make: Callable[[], Authorizer]) -> None:
        """`make` reads the configuration; what it raises comes out of here and out of `exchange`."""
        self._make = make
        self._current = make()
        self._before = 0

    @property
    def generation(self) -> int:
        return self._before + self._current.generation

    def exchange(self) -> None:
        """Take what the configuration says now; when that cannot be made the old one stays."""
        made = self._make()
        # Above everything that was ever answered, whatever the new one begins with.
        self._before = self.generation + 1
        self._current = made

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        return self._current.authorize(attributes)

    def grants(self, user: User, namespace: str) -> Grants:
        current = self._current
        return current.grants(user, namespace) if isinstance(current, RuleLister) else NOTHING
