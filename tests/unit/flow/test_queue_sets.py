"""The queue set against the slow oracle, and what must hold whatever happens."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.flow.queues import GONE, LINGERING, REFUSED, RUNNING, WAITING, Entry, Estimate, QueueSet, Reason
from tests.oracles.flow_queues import Oracle
from tests.unit.flow.flow_support import VirtualTime, entry, queue_set

QUEUES, LENGTH = 4, 3
estimates = st.builds(
    lambda seats, final, ticks: Estimate(seats, final if ticks else 0, ticks / 64),
    st.integers(1, 5), st.integers(1, 6), st.sampled_from([0, 0, 0, 1, 3]),
)  # fmt: skip
#: Times are multiples of 1/64 s and so exact.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.permutations(range(QUEUES)), estimates),
        st.tuples(st.just("finish"), st.integers(0, 30), st.none()),
        st.tuples(st.just("cancel"), st.integers(0, 30), st.none()),
        st.tuples(st.just("expire"), st.integers(0, 30), st.none()),
        st.tuples(st.just("pass"), st.integers(1, 20), st.none()),
        st.tuples(st.just("limit"), st.integers(1, 8), st.none()),
    ),
    max_size=60,
)


class Pair:
    """The queue set and the oracle, told the same."""

    def __init__(self, limit: int) -> None:
        self.time = VirtualTime()
        self.queues = queue_set(self.time, queues=QUEUES, length=LENGTH, limit=limit)
        self.oracle = Oracle(QUEUES, LENGTH, limit)
        self.entries: list[Entry] = []
        self.started: list[int] = []

    def run(self, what: str, value: Any, estimate: Estimate | None) -> None:
        if what == "arrive":
            assert estimate is not None
            self.arrive(tuple(value[:2]), estimate)
        elif what == "limit":
            self.queues.set_limit(value)
            self.oracle.set_limit(self.time.now, value)
        elif what == "pass":
            self.time.advance(value / 64)
            self.oracle.move_to(self.time.now)
        else:
            wanted = RUNNING if what == "finish" else WAITING
            found = [e for e in self.entries if e.state is wanted]
            if found:
                self.end(what, found[value % len(found)])

    def arrive(self, hand: tuple[int, ...], estimate: Estimate) -> None:
        number = len(self.entries)
        one = entry(self.queues, tuple(self.queues.queues[q] for q in hand), estimate)
        self.entries.append(one)
        reason = self.queues.admit(one)
        if one.state is WAITING:
            one.wake = lambda: self.started.append(number)
        elif one.state is RUNNING:
            self.started.append(number)
        state = self.oracle.arrive(self.time.now, number, list(hand), estimate.seats, estimate.final, estimate.linger)
        assert (reason is Reason.FULL) == (state == "refused")

    def end(self, what: str, one: Entry) -> None:
        number = self.entries.index(one)
        if what == "finish":
            self.queues.leave(one)
            self.oracle.finish(self.time.now, number)
            if one.state is LINGERING:
                linger = one.estimate.linger
                self.time.later(linger, lambda: self.oracle.linger_over(self.time.now, number))
        elif what == "cancel":
            self.queues.cancel(one)
            self.oracle.drop(self.time.now, number)
        else:
            assert self.queues.expire(one)
            self.oracle.drop(self.time.now, number)

    def check(self) -> None:
        queues, oracle = self.queues, self.oracle
        queues._advance(self.time.now)
        oracle.move_to(self.time.now)
        assert sorted(self.started) == sorted(oracle.started)
        assert queues.in_use == oracle.in_use()
        assert queues.waiting == len(oracle.of("waiting")) == sum(len(q.waiting) for q in queues.queues)
        assert abs(queues.progress - oracle.progress) < 1e-6 * (1 + oracle.progress)
        for queue in queues.queues:
            assert queue.running == len(oracle.of("running", queue=queue.index))
            assert queue.seats == sum(r.width for r in oracle.of("running", "lingering", queue=queue.index))
            if queue.busy:
                assert abs(queue.next_start - oracle.next_start[queue.index]) < 1e-6 * (1 + oracle.progress)
        states = [e.state for e in self.entries]
        assert len(queues.running) == states.count(RUNNING)
        assert queues.dispatched == sum(s in (RUNNING, LINGERING, GONE) for s in states)
        assert queues.refused == states.count(REFUSED)


@settings(max_examples=200, deadline=None)
@given(limit=st.integers(1, 8), steps=steps)
def test_same_as_the_oracle(limit: int, steps: list[tuple[str, Any, Estimate | None]]) -> None:
    pair = Pair(limit)
    for step in steps:
        pair.run(*step)
        pair.check()
    # In the end everybody is served: no request is lost, nothing stays occupied.
    for _ in range(len(pair.entries) + 1):
        for one in [e for e in pair.entries if e.state is RUNNING]:
            pair.end("finish", one)
        pair.time.advance(10.0)
    states = {e.state for e in pair.entries}
    assert states <= {GONE, REFUSED}
    queues = pair.queues
    assert queues.idle
    assert (queues.in_use, queues.waiting, queues.waiting_seats) == (0, 0, 0)
    assert all(q.work == 0 and q.seats == 0 and not q.busy for q in queues.queues)


@settings(max_examples=100, deadline=None)
@given(limit=st.integers(1, 6), steps=steps)
def test_seats_are_never_exceeded(limit: int, steps: list[tuple[str, Any, Estimate | None]]) -> None:
    """But by one that is wider than everything there is, which then runs alone."""
    pair = Pair(limit)
    for step in steps:
        if step[0] == "limit":
            continue
        before = pair.queues.in_use
        pair.run(*step)
        if pair.queues.in_use > max(before, limit):
            assert len(pair.queues.running) == 1


def simple(limit: int, queues: int = 1, length: int = 50) -> tuple[VirtualTime, QueueSet]:
    time = VirtualTime()
    return time, queue_set(time, queues=queues, length=length, limit=limit)


def test_cancelling_in_the_queue_gives_no_seat_away() -> None:
    _, queues = simple(1)
    hand = (queues.queues[0],)
    first, second, third = (entry(queues, hand) for _ in range(3))
    for one in (first, second, third):
        queues.admit(one)
    assert [e.state for e in (first, second, third)] == [RUNNING, WAITING, WAITING]
    queues.cancel(second)
    assert (queues.in_use, queues.waiting, third.state) == (1, 1, WAITING)
    queues.leave(first)
    assert third.state is RUNNING
    assert (queues.in_use, queues.waiting, queues.cancelled) == (1, 0, 1)


def test_a_level_without_queues_refuses() -> None:
    _, queues = simple(2, queues=0)
    entries = [entry(queues) for _ in range(3)]
    assert [queues.admit(e) for e in entries] == [None, None, Reason.LIMIT]
    queues.leave(entries[0])
    assert queues.admit(entry(queues)) is None


def test_an_exempt_level_has_no_end() -> None:
    time = VirtualTime()
    queues = queue_set(time, queues=0, length=0, limit=0, exempt=True)
    assert [queues.admit(entry(queues)) for _ in range(100)] == [None] * 100
    assert queues.in_use == 100


def test_lingering_seats_are_free_only_after_their_time() -> None:
    time, queues = simple(2)
    hand = (queues.queues[0],)
    write = entry(queues, hand, Estimate(1, 2, 0.005))
    queues.admit(write)
    waiting = entry(queues, hand)
    queues.admit(waiting)
    queues.leave(write)
    assert waiting.state is WAITING
    time.advance(0.004)
    assert waiting.state is WAITING
    time.advance(0.001)
    assert waiting.state is RUNNING


def test_a_removed_level_tells_when_it_is_empty() -> None:
    _, queues = simple(1)
    hand = (queues.queues[0],)
    first, second = entry(queues, hand), entry(queues, hand)
    queues.admit(first)
    queues.admit(second)
    told: list[bool] = []
    queues.on_idle = lambda: told.append(queues.idle)
    queues.leave(first)
    assert not told
    queues.leave(second)
    assert told == [True]


def test_queues_that_are_too_many_drain() -> None:
    _, queues = simple(1, queues=4)
    last = (queues.queues[3],)
    running, waiting = entry(queues, last), entry(queues, last)
    queues.admit(running)
    queues.admit(waiting)
    queues.configure(exempt=False, wanted=2, length=50)
    assert len(queues.queues) == 4
    queues.leave(running)
    assert waiting.state is RUNNING
    queues.leave(waiting)
    assert len(queues.queues) == 2
