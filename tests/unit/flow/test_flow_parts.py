"""Dealing hands, dividing seats, when to come back, how wide a request is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fastapi_core._ext.reqinfo import parse
from fastapi_core.flow.allocation import Bounds, Claim, bounds, divide
from fastapi_core.flow.bootstrap import LEVELS
from fastapi_core.flow.demand import Demand
from fastapi_core.flow.dump import seat_seconds, table
from fastapi_core.flow.estimate import Estimator, Watches
from fastapi_core.flow.retry import RetryAfter
from fastapi_core.flow.sharding import can_deal, deal, flow_hash


@given(st.integers(0, 2**64 - 1), st.integers(1, 200), st.integers(1, 10))
def test_a_hand_is_dealt_from_the_cards_that_are_left(value: int, deck: int, hand: int) -> None:
    hand = min(hand, deck)
    cards, expected, rest = list(range(deck)), [], value
    for _ in range(hand):
        rest, digit = divmod(rest, len(cards))
        expected.append(cards.pop(digit))
    assert list(deal(value, deck, hand)) == expected


def test_flows_are_told_apart() -> None:
    assert flow_hash("a", "b") == int.from_bytes(bytes.fromhex("59b271ae1bbcb1d3"), "little")
    assert len({flow_hash("a", "bc"), flow_hash("ab", "c"), flow_hash("a", "b"), flow_hash("b", "a")}) == 4


@pytest.mark.parametrize(
    ("deck", "hand", "expected"), [(128, 6, True), (128, 9, False), (1, 1, True), (2, 3, False), (0, 0, False)]
)
def test_hands_that_can_be_dealt(deck: int, hand: int, expected: bool) -> None:
    assert can_deal(deck, hand) is expected


def test_the_nominal_limits_of_the_start_configuration() -> None:
    shares = {}
    for level in LEVELS:
        limited = level.tree["spec"].get("limited") or level.tree["spec"]["exempt"]
        shares[level.tree["metadata"]["name"]] = (limited["nominalConcurrencyShares"], limited["lendablePercent"])
    everything = sum(share for share, _ in shares.values())
    found = {name: bounds(600, share, everything, lend, None) for name, (share, lend) in shares.items()}
    assert found["workload-low"] == Bounds(245, 24, 845)
    assert found["node-high"] == Bounds(98, 73, 698)
    assert found["exempt"] == Bounds(0, 0, 600)
    assert found["catch-all"] == Bounds(13, 13, 613)
    assert bounds(600, 10, 100, 0, 50) == Bounds(60, 60, 90)


claims = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 100)).map(
        lambda t: Claim(float(t[0] + t[1]), float(t[0]), float(t[0] + t[1] + t[2]))
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=200)
@given(claims, st.integers(0, 500))
def test_seats_are_divided_in_proportion(wanted: list[Claim], total: int) -> None:
    low, high = sum(c.least for c in wanted), sum(c.most for c in wanted)
    if not low <= total <= high:
        with pytest.raises(ValueError, match="cannot be divided"):
            divide(total, wanted)
        return
    assume(total)
    seats, fraction = divide(total, wanted)
    assert abs(sum(seats) - total) < 1e-3
    for claim, got in zip(wanted, seats, strict=True):
        assert claim.least - 1e-6 <= got <= claim.most + 1e-6
        share = fraction * max(claim.target, 0.001)
        if claim.least + 1e-3 < got < claim.most - 1e-3:
            assert abs(got - share) < 1e-3 * (1 + share)
        elif got <= claim.least + 1e-3:
            assert share <= got + 2e-3 * (1 + got)
        else:
            assert share >= got - 2e-3 * (1 + got)


def test_demand_is_averaged_and_falls_slowly() -> None:
    demand = Demand(0.0)
    demand.area, demand.squares, demand.peak = 40.0, 160.0, 4
    demand.settle(10.0, 0)
    assert (demand.high, demand.average, demand.deviation, demand.smoothed) == (4, 4.0, 0.0, 4.0)
    demand.settle(20.0, 0)
    assert demand.average == 0.0
    assert demand.smoothed == pytest.approx(0.977 * 4)


def test_clients_are_told_to_stay_away_longer_and_shorter() -> None:
    retry = RetryAfter()
    told = [retry.refused(100 + second) for second in range(8) for _ in range(200)]
    assert told[0] == 1
    assert told == sorted(told)
    assert told[-1] > 2
    for second in range(200, 600, 40):
        last = retry.refused(second)
    assert last < told[-1]
    many = RetryAfter()
    assert max(many.refused(100 + second) for second in range(300) for _ in range(300)) == 32


class FakeLane:
    def __init__(self) -> None:
        self.unseen = 0
        self.counts: list[int] = []

    def watched(self, count: int) -> None:
        self.counts.append(count)


class FakeFlow:
    def __init__(self, most: int = 0) -> None:
        self.lane = FakeLane()
        self.level = self
        self.max_seats = most


PODS = "/api/v1/pods"


@pytest.mark.parametrize(
    ("query", "stored", "most", "seats"),
    [
        ("", None, 0, 1),
        ("", (0, 0), 0, 1),
        ("", (10, 10_000), 0, 1),
        ("", (300, 300_000), 0, 3),
        ("", (100_000, 500_000_000), 0, 10),
        ("limit=500", (100_000, 500_000_000), 0, 10),
        ("limit=30", (100_000, 500_000_000), 0, 2),
        ("continue=abc", (100_000, 500_000_000), 0, 100),
        ("continue=abc", (100_000, 500_000_000), 7, 7),
        ("continue=abc&limit=500", (100_000, 500_000_000), 0, 25),
        ("continue=abc&limit=500&labelSelector=a%3Db", (2000, 10_000_000), 0, 50),
        ("resourceVersion=5&resourceVersionMatch=Exact", (2000, 10_000_000), 0, 100),
        ("resourceVersion=5&resourceVersionMatch=NotOlderThan", (2000, 10_000_000), 0, 10),
        ("resourceVersion=5&limit=500", (2000, 10_000_000), 0, 25),
        ("fieldSelector=metadata.name%3Done", (100_000, 500_000_000), 0, 1),
        ("watch=1", (2000, 10_000_000), 0, 10),
        ("watch=1&resourceVersion=0", (2000, 10_000_000), 0, 10),
        ("watch=1&resourceVersion=7", (2000, 10_000_000), 0, 1),
        ("watch=1&resourceVersion=7&sendInitialEvents=true", (2000, 10_000_000), 0, 10),
        ("limit=nonsense", (300, 300_000), 0, 3),
    ],
)
def test_width_of_reads(query: str, stored: tuple[int, int] | None, most: int, seats: int) -> None:
    flow: Any = FakeFlow(most)
    found = Estimator(lambda group, resource: stored, Watches())(parse("GET", PODS, query), flow)
    assert (found.seats, found.final, found.width) == (seats, 0, seats)


def test_writes_are_charged_for_the_watches_that_see_them() -> None:
    watches = Watches()
    estimate = Estimator(lambda group, resource: None, watches)
    one = "/api/v1/namespaces/a/configmaps/one"
    flow: Any = FakeFlow()
    assert estimate(parse("PUT", one, ""), flow).width == 1
    ends = [watches.add(parse("GET", "/api/v1/configmaps", "watch=1")) for _ in range(100)]
    ends += [watches.add(parse("GET", "/api/v1/namespaces/a/configmaps", "watch=1")) for _ in range(50)]
    ends += [watches.add(parse("GET", one, "watch=1")) for _ in range(10)]
    watches.add(parse("GET", "/api/v1/namespaces/b/configmaps", "watch=1"))
    found = estimate(parse("PUT", one, ""), flow)
    # 160 watches are 16 seats for 5 ms, in the shape of at most 10.
    assert (found.seats, found.final) == (1, 10)
    assert found.linger == pytest.approx(0.008)
    assert (flow.lane.unseen, flow.lane.counts) == (1, [160])
    assert estimate(parse("GET", one, ""), flow).width == 1
    for end in ends:
        assert end is not None
        end()
    assert estimate(parse("PUT", one, ""), flow).final == 0


def test_watches_of_one_node_are_not_charged_for() -> None:
    watches = Watches()
    for selector, counted in (
        ("spec.nodeName%3Dn", False),
        ("spec.nodeName%3D", True),
        ("status.phase%3DRunning", True),
    ):
        end = watches.add(parse("GET", PODS, f"watch=1&fieldSelector={selector}"))
        assert (end is not None) is counted
    assert watches.seeing(parse("POST", "/api/v1/namespaces/a/pods", "")) == 2


def test_tables_and_work() -> None:
    assert table([("a", "b"), ("long name", 1)]) == "a,         b\nlong name, 1\n"
    assert seat_seconds(0.0) == "0.00000000ss"
    assert seat_seconds(1.5) == "1.50000000ss"
