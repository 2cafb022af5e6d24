"""The gate between a decoded object and the store: mutating plugins in order, then validating ones.

A plugin is any object with `admit` (may change the tree) and/or `validate`. Both return None, or an awaitable when
they have to ask somebody; a chain of plugins that answer at once costs no task. A refusal is an `APIError`.

Which plugins care about a request depends only on (resource, subresource, operation): that is asked once
(`Plugin.handles`) and kept in a table, so that a request runs the few that care.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from fastapi_core.obs import logs
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition, Tree

if TYPE_CHECKING:
    from fastapi_core.obs.catalog import Metrics
    from fastapi_core.request.context import RequestContext

log = logs.get("admission")

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"

#: More combinations than this mean that custom resources come and go; the table is made anew.
_TABLE_LIMIT = 4096


class Options(Protocol):
    """The options of a request (`rest/options.py`)."""

    def tree(self, operation: str) -> Tree:
        """As CreateOptions, UpdateOptions or DeleteOptions, whatever goes with the operation."""


@dataclass(slots=True)
class Attributes:
    """What is being done: `operation` is CREATE, UPDATE, DELETE or CONNECT; `object` None on delete, `old` on create.

    A mutating plugin changes `object` in place or puts another tree in its place.
    """

    operation: str
    definition: ResourceDefinition
    subresource: str
    namespace: str
    name: str
    object: Tree | None
    old: Tree | None
    dry_run: bool
    context: RequestContext
    reinvoke: bool = False
    """Set by a plugin that changed the object behind others' backs: the mutating phase runs once more."""
    again: bool = False
    """This is that second run."""
    undo: list[Callable[[], Awaitable[None] | None]] | None = None
    """What takes back what plugins did outside the object; see `AdmissionChain.revert`."""
    notes: dict[str, Any] | None = None
    """What plugins have to remember between phases and runs, under their names."""
    options: Options | None = None
    """What the request's options say; None where it has none (CONNECT)."""
    plan: _Plan | None = None

    def annotate(self, key: str, value: str) -> None:
        """Leave an annotation for the audit event of the request; the first value of a key stays."""
        context = self.context
        if context.annotations is None:
            context.annotations = {}
        context.annotations.setdefault(key, value)

    def warn(self, text: str) -> None:
        self.context.warn(text)


Step = Callable[[Attributes], "Awaitable[None] | None"]


class Plugin:
    """A plugin that lets everything pass; subclasses override what they care about."""

    name = ""

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        """Whether such a request is any business of this plugin. Asked once; `AdmissionChain.refresh` asks again."""
        return True

    def follow(self, changed: Callable[[], None]) -> None:
        """Called once with what is to be told (`AdmissionChain.refresh`) when `handles` may answer otherwise."""

    def close(self) -> None:
        """The server ends: let go of what is held open."""

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        return None

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        return None


class _Phase:
    """The steps of one phase for one kind of request, and how often and how long they ran at once and to the end."""

    __slots__ = ("kind", "names", "operation", "runs", "seconds", "steps")

    def __init__(self, kind: str, operation: str, steps: Sequence[tuple[str, Step]]) -> None:
        self.kind = kind
        self.operation = operation
        self.names = tuple(name for name, _ in steps)
        self.steps = tuple(step for _, step in steps)
        self.runs = 0
        self.seconds = 0.0


class _Plan:
    __slots__ = ("mutating", "validating")

    def __init__(self, mutating: _Phase, validating: _Phase) -> None:
        self.mutating = mutating
        self.validating = validating


class AdmissionChain:
    """All plugins in the reference's order; given as a function, they are made for the first request that needs them."""

    def __init__(
        self, plugins: Sequence[Plugin] | Callable[[], Sequence[Plugin]], metrics: Metrics | None = None
    ) -> None:
        self._made: tuple[Plugin, ...] | None = None
        self._make = plugins if callable(plugins) else lambda: plugins
        self._table: dict[tuple[str, str, str, str, str, bool], _Plan] = {}
        self._metrics = metrics
        if metrics is not None:
            metrics.registry.collector(self._collect)

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        if self._made is None:
            self._made = tuple(self._make())
        return self._made

    def prepare(self) -> None:
        """Make the plugins now."""
        self._made = self.plugins

    async def mutate(self, attributes: Attributes) -> None:
        """The mutating phase, and once more when a plugin asks for it."""
        pending = self.admit(attributes)
        if pending is not None:
            await pending

    async def validate(self, attributes: Attributes) -> None:
        """The validating phase."""
        pending = self.check(attributes)
        if pending is not None:
            await pending

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        """`mutate`, at once where all plugins answer at once."""
        plan = attributes.plan
        if plan is None:
            plan = attributes.plan = self._plan(attributes)
        pending = self._run(plan.mutating, attributes)
        if pending is not None:
            return self._reinvoked(plan.mutating, attributes, pending)
        return self._second(plan.mutating, attributes) if attributes.reinvoke else None

    def check(self, attributes: Attributes) -> Awaitable[None] | None:
        """`validate`, at once where all plugins answer at once."""
        plan = attributes.plan
        if plan is None:
            plan = attributes.plan = self._plan(attributes)
        return self._run(plan.validating, attributes)

    async def revert(self, attributes: Attributes) -> None:
        """Take back what plugins did outside the object, since it was not written after all.

        A step that fails is logged: the client is to hear why its object was not written."""
        undo, attributes.undo = attributes.undo, None
        for step in reversed(undo or ()):
            try:
                pending = step()
                if pending is not None:
                    await pending
            except Exception as error:
                log.warning("What admission did could not be taken back", error=str(error))

    async def close(self) -> None:
        """After the last request."""
        for plugin in self._made or ():
            plugin.close()

    def refresh(self) -> None:
        """Ask the plugins again what they handle."""
        self._collect()
        self._table.clear()

    # Running

    def _plan(self, attributes: Attributes) -> _Plan:
        definition, operation, subresource = attributes.definition, attributes.operation, attributes.subresource
        key = (operation, definition.group, definition.version, definition.plural, subresource, definition.namespaced)
        plan = self._table.get(key)
        if plan is None:
            if len(self._table) >= _TABLE_LIMIT:
                self.refresh()
            chosen = [plugin for plugin in self.plugins if plugin.handles(operation, definition, subresource)]
            admit = [(p.name, p.admit) for p in chosen if type(p).admit is not Plugin.admit]
            validate = [(p.name, p.validate) for p in chosen if type(p).validate is not Plugin.validate]
            plan = _Plan(_Phase("admit", operation, admit), _Phase("validate", operation, validate))
            self._table[key] = plan
        return plan

    def _run(self, phase: _Phase, attributes: Attributes) -> Awaitable[None] | None:
        if not phase.steps:
            phase.runs += 1
            return None
        started = perf_counter()
        number = 0
        try:
            for step in phase.steps:
                pending = step(attributes)
                if pending is not None:
                    return self._rest(phase, attributes, number, pending, started)
                number += 1
        except BaseException:
            self._observe(phase, number, perf_counter() - started, rejected=True)
            raise
        phase.runs += 1
        phase.seconds += perf_counter() - started
        return None

    async def _rest(
        self, phase: _Phase, attributes: Attributes, number: int, pending: Awaitable[None], started: float
    ) -> None:
        """Go on from a plugin that has to wait."""
        try:
            await pending
            number += 1
            for step in phase.steps[number:]:
                following = step(attributes)
                if following is not None:
                    await following
                number += 1
        except BaseException:
            self._observe(phase, number, perf_counter() - started, rejected=True)
            if attributes.undo:
                await self.revert(attributes)
            raise
        self._observe(phase, number - 1, perf_counter() - started, rejected=False)

    async def _reinvoked(self, phase: _Phase, attributes: Attributes, pending: Awaitable[None]) -> None:
        await pending
        if attributes.reinvoke:
            following = self._second(phase, attributes)
            if following is not None:
                await following

    def _second(self, phase: _Phase, attributes: Attributes) -> Awaitable[None] | None:
        attributes.again = True
        return self._run(phase, attributes)

    # Metrics

    def _observe(self, phase: _Phase, last: int, seconds: float, *, rejected: bool) -> None:
        """A run that waited or ended early. Plugins before the last one answered at once: they took next to nothing."""
        metrics = self._metrics
        if metrics is None:
            return
        word = "true" if rejected else "false"
        metrics.admission_steps.labels(phase.kind, phase.operation, word).observe(seconds)
        for number, name in enumerate(phase.names[: last + 1]):
            mine = number == last
            child = metrics.admission_plugins.labels(name, phase.kind, phase.operation, word if mine else "false")
            child.observe(seconds if mine else 0.0)

    def _collect(self) -> None:
        """Runs in which every plugin answered at once are only counted; a scrape shares their time out evenly."""
        metrics = self._metrics
        if metrics is None:
            return
        for plan in self._table.values():
            for phase in (plan.mutating, plan.validating):
                runs, mean = phase.runs, phase.seconds / max(phase.runs, 1)
                if not runs:
                    continue
                phase.runs, phase.seconds = 0, 0.0
                metrics.admission_steps.labels(phase.kind, phase.operation, "false").observe(mean, runs)
                for name in phase.names:
                    child = metrics.admission_plugins.labels(name, phase.kind, phase.operation, "false")
                    child.observe(mean / len(phase.names), runs)
