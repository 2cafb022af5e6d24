"""The requests of one priority level: seats, queues, and whose turn it is.

Fair queuing in virtual time. `progress` is the seat-seconds every busy queue has been entitled to so far; `next_start`
of a queue is the reading at which its oldest waiting request would start if seats could be cut into pieces. The queue
whose head would finish first in that world is served first in ours. A request is charged for an estimated time when it
starts and the difference to the real one is made good when it ends.

Nothing here knows of sockets or tasks: whoever waits leaves a `wake`.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi_core.flow.demand import Demand

if TYPE_CHECKING:
    from fastapi_core._ext.reqinfo import RequestInfo
    from fastapi_core.flow.control import Flow
    from fastapi_core.request.context import User

Clock = Callable[[], float]
Later = Callable[[float, Callable[[], None]], object]

#: Seconds a request is expected to take.
SERVICE = 0.003
#: Seats beyond any request.
UNLIMITED = 1 << 60


class Estimate:
    """What a request occupies: `seats` while it runs, then `final` for `linger` seconds after its answer.

    `width` seats are held from the start to the end of the lingering; `work` is what is charged, in seat-seconds.
    """

    __slots__ = ("final", "linger", "seats", "width", "work")

    def __init__(self, seats: int = 1, final: int = 0, linger: float = 0.0) -> None:
        self.seats = seats
        self.final = final
        self.linger = linger
        self.width = max(seats, final)
        self.work = seats * SERVICE + final * linger

    def __repr__(self) -> str:
        return f"Estimate({self.seats}, {self.final}, {self.linger})"


ONE = Estimate()


class State(enum.Enum):
    WAITING = "waiting"
    RUNNING = "running"
    LINGERING = "lingering"
    GONE = "gone"
    REFUSED = "refused"


WAITING, RUNNING, LINGERING, GONE, REFUSED = State


class Reason(enum.StrEnum):
    """Why a request was refused, as metrics say it."""

    FULL = "queue-full"
    LIMIT = "concurrency-limit"
    TIME = "time-out"
    CANCELLED = "cancelled"


class Queue:
    """Requests of the flows whose hands this queue is in."""

    __slots__ = ("index", "next_start", "running", "seats", "waiting", "work")

    def __init__(self, index: int) -> None:
        self.index = index
        self.next_start = 0.0
        self.running = 0
        self.seats = 0
        """Occupied, lingering included."""
        self.waiting: deque[Entry] = deque()
        self.work = 0.0
        """Seat-seconds of the waiting requests."""

    @property
    def busy(self) -> bool:
        return bool(self.running or self.waiting)

    def bound(self) -> None:
        """No start before the arrival: what a queue could not use earlier is not saved up for later."""
        if self.waiting:
            arrival = self.waiting[0].arrival
            if self.next_start < arrival:
                self.next_start = arrival


class Entry:
    """One request at its priority level; calling it once gives back what it occupies, or its place in the queue."""

    __slots__ = (
        "arrival", "arrived", "estimate", "flow", "info", "length", "queue", "started", "state", "user", "wake",
    )  # fmt: skip

    state: State
    arrived: float
    started: float
    """When it got its seats."""
    queue: Queue | None
    # Only of those that wait:
    arrival: float
    """Reading of `progress` on arrival."""
    length: int
    """Of the queue it was put into, with it."""
    wake: Callable[[], None] | None
    """Called once when it may start."""

    def __init__(self, flow: Flow, estimate: Estimate, info: RequestInfo, user: User) -> None:
        self.flow = flow
        self.estimate = estimate
        self.info = info
        self.user = user

    def __call__(self) -> None:
        flow = self.flow
        if self.state is WAITING:
            flow.queues.cancel(self)
            flow.lane.refused(Reason.CANCELLED, flow.queues.now - self.arrived)
        elif self.state is RUNNING:
            seconds = flow.queues.leave(self)
            lane = flow.lane
            (lane.watch_execution if self.info.verb == "watch" else lane.execution).observe(seconds)


class QueueSet:
    """One priority level. `clock` gives seconds, `later(seconds, call)` calls back; `limit` is set by the controller."""

    def __init__(self, name: str, clock: Clock, later: Later) -> None:
        self.name = name
        self.limit = 0
        self.exempt = False
        self.length = 0
        """Requests a queue may hold while there is no seat."""
        self.wanted = 0
        """Queues new requests are put into; 0 for none, those that find no seat are refused."""
        self.queues: list[Queue] = []
        """May be longer than `wanted` while the last ones still drain."""
        self.running: set[Entry] = set()
        self.in_use = 0
        self.waiting = 0
        self.waiting_seats = 0
        self.progress = 0.0
        self.demand = Demand(clock())
        self.on_idle: Callable[[], None] | None = None
        """Called when the last request is gone; for levels that are to be removed."""
        self.refused = 0
        """Requests that never ran, for whatever reason."""
        self.timed_out = 0
        self.cancelled = 0
        self.dispatched = 0
        self._clock = clock
        self._later = later
        self._last = clock()
        self._busy = 0
        """Queues with a request running or waiting."""
        self._heads: dict[int, Queue] = {}
        """Queues with waiting requests, by index."""
        self._robin = 0
        self._turn = 0

    # Configuration

    def configure(self, *, exempt: bool, wanted: int, length: int) -> None:
        """Take over the queuing of a changed level. Queues that are too many drain."""
        self.exempt = exempt
        self.wanted = wanted
        self.length = length
        for index in range(len(self.queues), wanted):
            self.queues.append(Queue(index))
        self._trim()

    def set_limit(self, limit: int) -> None:
        now = self._clock()
        self._advance(now)
        self.limit = limit
        self._dispatch(now)

    def settle(self) -> Demand:
        """End a period of the demand; see `Demand.settle`."""
        now = self._clock()
        self._advance(now)
        self.demand.settle(now, self.in_use + self.waiting_seats)
        return self.demand

    @property
    def now(self) -> float:
        """The time of the last change."""
        return self._last

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.running

    # A request comes and goes

    def admit(self, entry: Entry) -> Reason | None:
        """Give the request seats or a place in a queue (`entry.state` tells); or say why it gets neither."""
        now = self._clock()
        if self.in_use or self.waiting:
            self._advance(now)
        else:
            self._last = now
        entry.arrived = now
        if self.exempt:
            self._start(entry, None, now)
        elif self.wanted:
            estimate = entry.estimate
            in_use = self.in_use + estimate.width
            if self.waiting or in_use > self.limit:
                return self._enqueue(entry, now)
            # The way of nearly all requests, `_start` without the calls: there is a seat and nobody waits.
            hand = entry.flow.hand
            entry.queue = queue = hand[self._turn % len(hand)]
            self._turn += 1
            self._robin = queue.index
            start = queue.next_start
            if not queue.running:
                self._busy += 1
                start = self.progress
            elif start < self.progress:
                start = self.progress
            queue.running += 1
            queue.seats += estimate.width
            queue.next_start = start + estimate.work
            entry.state = RUNNING
            entry.started = now
            self.running.add(entry)
            self.dispatched += 1
            self.in_use = in_use
            if in_use > self.demand.peak:
                self.demand.peak = in_use
        elif self._fits(entry.estimate.width):
            self._start(entry, None, now)
        else:
            self.refused += 1
            entry.state = REFUSED
            return Reason.LIMIT
        return None

    def leave(self, entry: Entry) -> float:
        """A running request has been answered, or nobody waits for it any more. Answers the seconds it has run."""
        now = self._clock()
        self._advance(now)
        seconds = now - entry.started
        self.running.remove(entry)
        estimate, queue = entry.estimate, entry.queue
        if queue is not None:
            queue.running -= 1
            queue.next_start -= estimate.seats * (SERVICE - seconds)
            if queue.waiting:
                queue.bound()
            elif not queue.running:
                self._busy -= 1
        if estimate.linger:
            entry.state = LINGERING
            self._later(estimate.linger, lambda: self._linger_over(entry))
            return seconds
        entry.state = GONE
        self.in_use -= estimate.width
        if queue is not None:
            queue.seats -= estimate.width
            if len(self.queues) > self.wanted:
                self._trim()
        if self.waiting:
            self._dispatch(now)
        elif self.on_idle is not None:
            self._tell_idle()
        return seconds

    def cancel(self, entry: Entry) -> None:
        """Nobody waits for a waiting request any more."""
        self._drop(entry)
        self.cancelled += 1

    def expire(self, entry: Entry) -> bool:
        """Refuse a request that has waited too long; False when it does not wait any more."""
        if entry.state is not WAITING:
            return False
        self._drop(entry)
        self.timed_out += 1
        return True

    # Inside

    def _advance(self, now: float) -> None:
        """Integrate up to now: what has been asked for, and what every busy queue was entitled to."""
        seconds = now - self._last
        self._last = now
        wanted = self.in_use + self.waiting_seats
        if wanted:
            area = wanted * seconds
            demand = self.demand
            demand.area += area
            demand.squares += wanted * area
            if self._busy:
                limit = self.limit
                self.progress += (wanted if wanted < limit else limit) * seconds / self._busy

    def _fits(self, width: int) -> bool:
        """A request wider than all seats runs alone, sooner than never."""
        if width > self.limit:
            return not self.running
        return self.in_use + width <= self.limit

    def _start(self, entry: Entry, queue: Queue | None, now: float) -> None:
        """Seats change hands. `queue` counts as busy already."""
        entry.state = RUNNING
        entry.started = now
        entry.queue = queue
        self.running.add(entry)
        self.dispatched += 1
        estimate = entry.estimate
        if queue is not None:
            limit = self.limit
            if estimate.final > limit > 0:
                # The same work in a longer and narrower shape.
                estimate = entry.estimate = Estimate(estimate.seats, limit, estimate.final * estimate.linger / limit)
            queue.running += 1
            queue.seats += estimate.width
            queue.next_start += estimate.work
        wanted = self.in_use = self.in_use + estimate.width
        if self.waiting_seats:
            wanted += self.waiting_seats
        demand = self.demand
        if wanted > demand.peak:
            demand.peak = wanted

    def _enqueue(self, entry: Entry, now: float) -> Reason | None:
        """The queue of the flow's hand with the least work takes it, unless that is full and there is no seat."""
        hand = entry.flow.hand
        size = len(hand)
        first = self._turn % size
        self._turn += 1
        queue = min((hand[(first + offset) % size] for offset in range(size)), key=_work)
        if self.in_use >= self.limit and len(queue.waiting) >= self.length:
            self.refused += 1
            entry.state = REFUSED
            return Reason.FULL
        if not queue.busy:
            queue.next_start = self.progress
            self._busy += 1
        entry.state = WAITING
        entry.queue = queue
        entry.wake = None
        entry.arrival = self.progress
        queue.waiting.append(entry)
        queue.work += entry.estimate.work
        entry.length = len(queue.waiting)
        self._heads[queue.index] = queue
        self.waiting += 1
        self.waiting_seats += entry.estimate.width
        wanted = self.in_use + self.waiting_seats
        if wanted > self.demand.peak:
            self.demand.peak = wanted
        queue.bound()
        self._dispatch(now)
        return None

    def _dispatch(self, now: float) -> None:
        """Start whatever may start now, in order."""
        while self.waiting and self.in_use < self.limit:
            size, robin = len(self.queues), self._robin
            queue = min(
                self._heads.values(),
                key=lambda q: (q.next_start + q.waiting[0].estimate.work, (q.index - robin - 1) % size),
            )
            entry = queue.waiting[0]
            if not self._fits(entry.estimate.width):
                # Nobody overtakes: a wide request would never find enough seats at once.
                entry.flow.lane.unaccommodated += 1
                return
            self._take_out(entry, queue)
            self._robin = queue.index
            self._start(entry, queue, now)
            queue.bound()
            if entry.wake is not None:
                entry.wake()

    def _take_out(self, entry: Entry, queue: Queue) -> None:
        queue.waiting.remove(entry)
        queue.work = queue.work - entry.estimate.work if queue.waiting else 0.0
        if not queue.waiting:
            del self._heads[queue.index]
        self.waiting -= 1
        self.waiting_seats -= entry.estimate.width

    def _drop(self, entry: Entry) -> None:
        """A waiting request will not run."""
        now = self._clock()
        self._advance(now)
        queue = entry.queue
        assert queue is not None
        self._take_out(entry, queue)
        queue.bound()
        entry.state = REFUSED
        self.refused += 1
        if not queue.busy:
            self._busy -= 1
            self._trim()
        self._dispatch(now)
        self._tell_idle()

    def _linger_over(self, entry: Entry) -> None:
        now = self._clock()
        self._advance(now)
        entry.state = GONE
        width, queue = entry.estimate.width, entry.queue
        self.in_use -= width
        if queue is not None:
            queue.seats -= width
            self._trim()
        self._dispatch(now)
        self._tell_idle()

    def _trim(self) -> None:
        """Drop queues beyond those wanted, from the end, once nothing is in them."""
        queues = self.queues
        while len(queues) > self.wanted and not queues[-1].busy and not queues[-1].seats:
            queues.pop()

    def _tell_idle(self) -> None:
        if self.on_idle is not None and self.idle:
            self.on_idle()


def _work(queue: Queue) -> float:
    return queue.work
