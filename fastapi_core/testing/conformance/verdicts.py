"""How a check ends when it does not pass, and the register of checks.

A check is a function with the decorator `check`; its docstring is the rule and why clients rely on it. It passes by
returning, fails by `Failed`, does not apply by `Skipped`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fastapi_core.testing.conformance.subject import Subject


SHORT, WHOLE = 400, 1 << 20
"""Characters of a body that people are shown, and that are kept for programs."""


class Evidence(Protocol):
    """Something a failure shows: an answer, a watch."""

    def evidence(self, limit: int = SHORT) -> Iterator[str]: ...


class Failed(Exception):  # noqa: N818 - an outcome, not an error
    """The rule is broken: what was expected, and the exchanges that show it is not so."""

    def __init__(self, expected: str, *shown: Evidence) -> None:
        super().__init__(expected)
        self.expected, self.shown = expected, shown

    def lines(self, limit: int = SHORT) -> list[str]:
        """Expectation first, then requests and answers, bodies up to a limit."""
        return [f"expected: {self.expected}", *(line for part in self.shown for line in part.evidence(limit))]


#: How reading an answer ends that lacks something every API server has, or has it in another shape.
MISSHAPEN = (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError)


class Skipped(Exception):  # noqa: N818 - an outcome, not an error
    """The rule cannot be tried here, and why."""


class Level(enum.Enum):
    """MUST: clients break without it. SHOULD: clients do without, but worse."""

    MUST = "must"
    SHOULD = "should"


MUST, SHOULD = Level.MUST, Level.SHOULD


class Scope(enum.Enum):
    """What a check is about: the whole server, or one resource."""

    SERVER = "server"
    RESOURCE = "resource"


@dataclass(frozen=True)
class Check:
    """One rule. `needs` are verbs (`status` and `scale` for these subresources, `namespaced`) it cannot do without."""

    name: str
    rule: str
    level: Level
    scope: Scope
    needs: frozenset[str]
    run: Callable[[Subject], None]


_REGISTER: dict[str, Check] = {}


def check(
    name: str, level: Level = MUST, *, needs: str = "", scope: Scope = Scope.RESOURCE
) -> Callable[[Callable[[Subject], None]], Callable[[Subject], None]]:
    """Register a function as the check `family.rule`."""

    def register(run: Callable[[Subject], None]) -> Callable[[Subject], None]:
        rule = " ".join((run.__doc__ or "").split())
        if not rule or name in _REGISTER:
            raise ValueError(f"check {name}: it has no rule, or there are two of it")
        _REGISTER[name] = Check(name, rule, level, scope, frozenset(needs.split()), run)
        return run

    return register


def registered() -> tuple[Check, ...]:
    """All checks that have been imported, in their order."""
    return tuple(_REGISTER.values())


def demand(holds: object, expected: str, *shown: Evidence) -> None:
    """Go on if it holds, else the check has failed."""
    if not holds:
        raise Failed(expected, *shown)
