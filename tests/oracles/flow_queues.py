"""A slow, obvious queue set: every number is counted anew from the list of all requests whenever it is needed.

Time is whatever the caller says; requests are numbers. `started` collects them in the order they got their seats.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SERVICE = 0.003


@dataclass
class Request:
    number: int
    queue: int
    seats: int
    final: int
    linger: float
    state: str = "waiting"
    arrival: float = 0.0
    started: float = 0.0
    order: int = 0

    @property
    def width(self) -> int:
        return max(self.seats, self.final)

    @property
    def work(self) -> float:
        return self.seats * SERVICE + self.final * self.linger


@dataclass
class Oracle:
    count: int
    length: int
    limit: int
    now: float = 0.0
    progress: float = 0.0
    robin: int = 0
    turn: int = 0
    requests: list[Request] = field(default_factory=list)
    next_start: dict[int, float] = field(default_factory=dict)
    started: list[int] = field(default_factory=list)

    def of(self, *states: str, queue: int | None = None) -> list[Request]:
        return [r for r in self.requests if r.state in states and queue in (None, r.queue)]

    def in_use(self) -> int:
        return sum(r.width for r in self.of("running", "lingering"))

    def move_to(self, now: float) -> None:
        wanted = self.in_use() + sum(r.width for r in self.of("waiting"))
        busy = {r.queue for r in self.of("running", "waiting")}
        if busy:
            self.progress += min(wanted, self.limit) * (now - self.now) / len(busy)
        self.now = now

    def bound(self, queue: int) -> None:
        waiting = self.of("waiting", queue=queue)
        if waiting:
            self.next_start[queue] = max(self.next_start[queue], waiting[0].arrival)

    def arrive(self, now: float, number: int, hand: list[int], seats: int, final: int, linger: float) -> str:
        self.move_to(now)
        first = self.turn % len(hand)
        self.turn += 1
        rotated = hand[first:] + hand[:first]
        queue = min(rotated, key=lambda q: sum(r.work for r in self.of("waiting", queue=q)))
        if self.in_use() >= self.limit and len(self.of("waiting", queue=queue)) >= self.length:
            return "refused"
        if not self.of("running", "waiting", queue=queue):
            self.next_start[queue] = self.progress
        request = Request(number, queue, seats, final, linger, arrival=self.progress)
        self.requests.append(request)
        self.bound(queue)
        self.dispatch()
        return request.state

    def dispatch(self) -> None:
        while self.of("waiting") and self.in_use() < self.limit:
            heads = [(q, self.of("waiting", queue=q)[0]) for q in range(self.count) if self.of("waiting", queue=q)]
            heads.sort(key=lambda h: (self.next_start[h[0]] + h[1].work, (h[0] - self.robin - 1) % self.count))
            queue, request = heads[0]
            if request.width > self.limit:
                fits = not self.of("running")
            else:
                fits = self.in_use() + request.width <= self.limit
            if not fits:
                return
            self.robin = queue
            request.state, request.started = "running", self.now
            if request.final > self.limit:
                request.final, request.linger = self.limit, request.final * request.linger / self.limit
            self.next_start[queue] += request.work
            self.started.append(request.number)
            self.bound(queue)

    def finish(self, now: float, number: int) -> None:
        self.move_to(now)
        request = self.find(number)
        request.state = "lingering" if request.linger else "gone"
        self.next_start[request.queue] -= request.seats * (SERVICE - (now - request.started))
        self.bound(request.queue)
        if not request.linger:
            self.dispatch()

    def linger_over(self, now: float, number: int) -> None:
        self.move_to(now)
        self.find(number).state = "gone"
        self.dispatch()

    def drop(self, now: float, number: int) -> None:
        self.move_to(now)
        request = self.find(number)
        request.state = "dropped"
        if self.of("waiting", queue=request.queue):
            self.bound(request.queue)
        self.dispatch()

    def set_limit(self, now: float, limit: int) -> None:
        self.move_to(now)
        self.limit = limit
        self.dispatch()

    def find(self, number: int) -> Request:
        return next(r for r in self.requests if r.number == number)
