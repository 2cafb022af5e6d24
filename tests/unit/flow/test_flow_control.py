"""The configuration in force: levels come and go, seats follow demand, and one flow cannot starve another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.flow import dump
from fastapi_core.flow.bootstrap import LEVELS, SCHEMAS, Bootstrap, is_left_over, revised
from fastapi_core.flow.control import Control, Flow
from fastapi_core.flow.lanes import Lane
from fastapi_core.flow.queues import ONE, RUNNING, WAITING, Entry, Estimate
from fastapi_core.flow.rules import Digest, LevelSpec, SchemaSpec, level_spec, schema_spec
from fastapi_core.obs.metrics import Registry
from fastapi_core.request.context import User
from tests.unit.flow.flow_support import VirtualTime

GET_POD = Digest("get", "", "pods", "", "default", "", True)
AUTHENTICATED = "system:authenticated"


def start_levels() -> list[Any]:
    return [level_spec(o.tree) for o in LEVELS]


def start_schemas() -> list[Any]:
    return [schema_spec(o.tree) for o in SCHEMAS]


def made(total: int = 600) -> tuple[VirtualTime, Control]:
    time = VirtualTime()
    control = Control(total, Registry(), clock=time.clock, later=time.later)
    control.digest(start_levels(), start_schemas())
    return time, control


def user(name: str, *groups: str) -> User:
    return User(name, groups=(*groups, AUTHENTICATED))


def classified(control: Control, who: User, digest: Digest = GET_POD) -> tuple[str, str]:
    flow = control.classify(who, digest)
    return flow.schema.name, flow.level.spec.name


def ask(control: Control, flow: Flow, estimate: Estimate = ONE) -> Entry:
    info: Any = type("Info", (), {"verb": "get"})
    entry = Entry(flow, estimate, info, User(flow.distinguisher))
    flow.queues.admit(entry)
    return entry


def test_who_goes_where() -> None:
    _, control = made()
    lease = Digest("update", "coordination.k8s.io", "leases", "", "kube-system", "", True)
    assert classified(control, user("admin", "system:masters")) == ("exempt", "exempt")
    assert classified(control, user("alice")) == ("global-default", "global-default")
    assert classified(control, user("n", "system:nodes")) == ("system-nodes", "system")
    assert classified(control, user("n", "system:nodes"), lease) == ("system-node-high", "node-high")
    manager = user("system:kube-controller-manager")
    assert classified(control, manager, lease) == ("system-leader-election", "leader-election")
    assert classified(control, manager) == ("kube-controller-manager", "workload-high")
    account = user("system:serviceaccount:kube-system:x", "system:serviceaccounts")
    assert classified(control, account) == ("kube-system-service-accounts", "workload-high")
    account = user("system:serviceaccount:default:x", "system:serviceaccounts")
    assert classified(control, account) == ("service-accounts", "workload-low")
    probe = Digest("get", "", "", "", "", "/readyz", False)
    assert classified(control, User("system:anonymous", groups=("system:unauthenticated",)), probe)[0] == "probes"
    assert classified(control, User("nobody")) == ("catch-all", "catch-all")


def test_flows_are_told_apart_as_their_schema_says() -> None:
    _, control = made()
    assert control.classify(user("alice"), GET_POD).distinguisher == "alice"
    assert control.classify(user("system:kube-scheduler"), GET_POD).distinguisher == "default"
    hands = {control.classify(user(f"u{n}"), GET_POD).hand for n in range(20)}
    assert len(hands) == 20
    assert all(len(set(hand)) == 6 for hand in hands)


def test_what_is_mandatory_is_imagined() -> None:
    time = VirtualTime()
    control = Control(600, Registry(), clock=time.clock, later=time.later)
    assert set(control.levels) == {"exempt", "catch-all"}
    assert classified(control, user("alice")) == ("catch-all", "catch-all")
    assert classified(control, user("root", "system:masters")) == ("exempt", "exempt")
    assert control.classify(user("alice"), GET_POD).headers[0] == (b"X-Kubernetes-Pf-Flowschema-Uid", b"")


def test_schemas_without_their_level_do_not_count() -> None:
    _, control = made()
    control.digest([s for s in start_levels() if s.name != "global-default"], start_schemas())
    assert classified(control, user("alice")) == ("catch-all", "catch-all")


def test_a_level_that_goes_drains_first() -> None:
    time, control = made(8)
    flow = control.classify(user("alice"), GET_POD)
    entries = [ask(control, flow) for _ in range(40)]
    generation = control.generation
    assert {e.state for e in entries} == {RUNNING, WAITING}
    control.digest([s for s in start_levels() if s.name != "global-default"], start_schemas())
    assert control.levels["global-default"].leaving
    assert control.generation > generation
    while "global-default" in control.levels:
        running = [e for e in entries if e.state is RUNNING]
        assert running, "nothing runs and the level is still there"
        time.advance(0.01)
        for entry in running:
            entry()
    assert not [e for e in entries if e.state in (RUNNING, WAITING)]
    control.digest(start_levels(), start_schemas())
    assert control.classify(user("alice"), GET_POD).level.spec.name == "global-default"


def test_seats_go_where_they_are_asked_for() -> None:
    time, control = made()
    low = control.levels["workload-low"]
    flow = control.classify(user("system:serviceaccount:default:x", "system:serviceaccounts"), GET_POD)
    before = low.current
    entries = [ask(control, flow) for _ in range(300)]
    assert sum(e.state is RUNNING for e in entries) == before
    for _ in range(3):
        time.advance(10.0)
        control.adjust()
    assert low.current > 245
    assert sum(e.state is RUNNING for e in entries) == min(low.current, 300)
    limits = [level for level in control.levels.values() if not level.spec.exempt]
    assert all(level.limits.least <= level.current <= level.limits.most for level in limits)
    assert abs(sum(level.current for level in limits) - 602) <= len(limits)
    for entry in entries:
        if entry.state is WAITING:
            flow.queues.cancel(entry)
    for entry in entries:
        entry()
    for _ in range(400):
        time.advance(10.0)
        control.adjust()
    assert low.current <= before + 1


def test_exempt_traffic_leaves_less_for_the_others() -> None:
    time, control = made()
    flow = control.classify(user("root", "system:masters"), GET_POD)
    entries = [ask(control, flow) for _ in range(580)]
    assert {e.state for e in entries} == {RUNNING}
    time.advance(10.0)
    control.adjust()
    assert control.levels["exempt"].current == 580
    assert all(level.current == level.limits.least for level in control.levels.values() if not level.spec.exempt)


def test_the_widest_request_of_a_level() -> None:
    _, control = made()
    found = {name: level.max_seats for name, level in control.levels.items()}
    assert found["global-default"] == 8
    assert found["workload-low"] == 37
    assert found["catch-all"] == 0
    assert found["exempt"] == 0


level_specs = st.builds(
    lambda number, shares, lendable, borrowing, queues: LevelSpec(
        f"l{number}", "", False, shares, lendable, borrowing, queues, min(queues, 3), 5
    ),
    st.integers(0, 5),
    st.integers(0, 1000),
    st.integers(0, 100),
    st.none() | st.integers(0, 500),
    st.sampled_from([0, 1, 4]),
)


@settings(max_examples=60, deadline=None)
@given(
    total=st.integers(1, 1000),
    configurations=st.lists(st.lists(level_specs, max_size=6), min_size=1, max_size=4),
    demands=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 40)), max_size=10),
)
def test_any_configuration_leaves_every_level_within_its_limits(
    total: int, configurations: list[list[LevelSpec]], demands: list[tuple[int, int]]
) -> None:
    time = VirtualTime()
    control = Control(total, Registry(), clock=time.clock, later=time.later)
    entries: list[Entry] = []
    for configuration in configurations:
        control.digest({spec.name: spec for spec in configuration}.values(), ())
        for number, count in demands:
            level = control.levels.get(f"l{number}")
            if level is not None and not level.leaving:
                schema = SchemaSpec("s", "", level.spec.name, 5, "", ())
                lane = Lane(control.metrics, level.spec.name, "s", limited=True, queued=False)
                entries += [ask(control, Flow(level, schema, "u", lane)) for _ in range(count)]
        time.advance(3.0)
        control.adjust()
        for level in control.levels.values():
            if not level.spec.exempt:
                most = max(level.limits.most, min(level.limits.nominal, 1))
                assert min(level.limits.least, level.current) <= level.current <= most
    # Whatever was configured, nobody who runs is forgotten and who has no seats ahead of him gets them in the end.
    for _ in range(len(entries)):
        running = [e for e in entries if e.state is RUNNING]
        if not running:
            break
        for entry in running:
            entry()
    for entry in entries:
        assert entry.state is not RUNNING
        if entry.state is WAITING:
            assert entry.flow.queues.limit == 0


# --- fairness ------------------------------------------------------------------------------------------------------


def delays(seats: int, flood: int, polite: str, *, seconds: float = 20.0, service: float = 0.05) -> list[float]:
    """Seconds a polite user waits, one request after the other, while another keeps `flood` requests outstanding."""
    time, control = made(math.ceil(seats * 245 / 20))
    level = control.levels["global-default"]
    level.queues.set_limit(seats)
    rude = control.classify(user("flooder"), GET_POD)
    calm = control.classify(user(polite), GET_POD)
    waits: list[float] = []

    def serve(entry: Entry, then: Callable[[], None]) -> None:
        def done() -> None:
            entry()
            then()

        if entry.state is RUNNING:
            time.later(service, done)
        elif entry.state is WAITING:
            entry.wake = lambda: time.later(service, done)
        else:
            time.later(0.01, then)

    def flooding() -> None:
        serve(ask(control, rude), flooding)

    def asking() -> None:
        entry = ask(control, calm)

        def answered() -> None:
            waits.append(entry.started - entry.arrived)
            time.later(0.02, asking)

        serve(entry, answered)

    for _ in range(flood):
        flooding()
    time.later(1.0, asking)
    while time.now < seconds:
        assert time.step()
    return waits


#: At the 99th percentile a polite user waits at most this many rounds, however much another one asks for. A round is
#: the time in which each queue the flood is in (the six of its hand) gets one request served.
BOUND = 2.0
HAND = 6


@pytest.mark.parametrize("seats", [1, 4, 20])
@pytest.mark.parametrize("flood", [50, 300])
@pytest.mark.parametrize("polite", ["alice", "bob", "carol"])
def test_a_flood_cannot_delay_another_user(seats: int, flood: int, polite: str) -> None:
    waits = sorted(delays(seats, flood, polite))
    assert len(waits) > 50
    worst = waits[math.ceil(len(waits) * 0.99) - 1] / 0.05
    assert worst <= BOUND * max(1.0, HAND / seats), f"waited {worst:.1f} service times"


def test_without_queues_of_their_own_users_would_wait_for_each_other() -> None:
    """The measurement above can fail: one queue for all makes everybody wait for the whole flood."""
    time, control = made()
    flow = control.classify(user("flooder"), GET_POD)
    level = control.levels["global-default"]
    level.queues.configure(exempt=False, wanted=1, length=1000)
    level.queues.set_limit(1)
    flow.hand = (level.queues.queues[0],)
    entries = [ask(control, flow) for _ in range(100)]
    other = ask(control, flow)
    served = 0
    while other.state is WAITING:
        time.advance(0.05)
        next(e for e in entries if e.state is RUNNING)()
        served += 1
    assert served == 100


# --- the objects ---------------------------------------------------------------------------------------------------


def stored(one: Bootstrap, annotation: str | None, generation: int = 1, **spec: Any) -> dict[str, Any]:
    annotations = {} if annotation is None else {"apf.kubernetes.io/autoupdate-spec": annotation}
    metadata = {"name": one.tree["metadata"]["name"], "generation": generation, "annotations": annotations}
    return {"metadata": metadata, "spec": {**one.tree["spec"], **spec}}


def by_name(objects: Iterable[Bootstrap], name: str) -> Bootstrap:
    return next(o for o in objects if o.tree["metadata"]["name"] == name)


@pytest.mark.parametrize(
    ("name", "annotation", "generation", "changed", "spec_kept", "annotation_after"),
    [
        ("probes", "true", 1, False, None, None),
        ("probes", "true", 2, True, False, "true"),
        ("probes", "false", 2, True, None, None),
        ("probes", None, 1, True, False, "true"),
        ("probes", None, 2, True, True, "false"),
        ("probes", "maybe", 2, True, True, "false"),
        ("catch-all", "false", 2, True, False, "true"),
        ("catch-all", "true", 1, False, None, None),
    ],
)
def test_which_objects_follow(
    name: str, annotation: str | None, generation: int, changed: bool, spec_kept: bool | None,
    annotation_after: str | None,
) -> None:  # fmt: skip
    wanted = by_name(SCHEMAS, name)
    now = stored(wanted, annotation, generation, **({"matchingPrecedence": 77} if changed else {}))
    new = revised(now, wanted)
    if annotation_after is None:
        assert new is None
        return
    assert new is not None
    assert new["metadata"]["annotations"]["apf.kubernetes.io/autoupdate-spec"] == annotation_after
    assert (new["spec"]["matchingPrecedence"] == 77) is spec_kept
    assert revised(new, wanted) is None


def test_the_numbers_of_the_exempt_level_are_the_users() -> None:
    wanted = by_name(LEVELS, "exempt")
    mine = {"nominalConcurrencyShares": 5, "lendablePercent": 10}
    assert revised(stored(wanted, "false", 2, exempt=mine), wanted) is None
    back = revised(stored(wanted, "true", 2, exempt=mine), wanted)
    assert back is not None
    assert back["spec"] == wanted.tree["spec"]


def test_left_over_objects_are_those_the_server_once_made() -> None:
    names = frozenset({"probes"})
    wanted = by_name(SCHEMAS, "probes")
    assert not is_left_over(stored(wanted, "true"), names)
    other = stored(wanted, "true")
    other["metadata"]["name"] = "old"
    assert is_left_over(other, names)
    for annotation in (None, "false", "maybe"):
        other = stored(wanted, annotation)
        other["metadata"]["name"] = "old"
        assert not is_left_over(other, names)


# --- dumps and metrics ---------------------------------------------------------------------------------------------


def test_dumps() -> None:
    time, control = made(12)
    control.levels["global-default"].queues.set_limit(1)
    flow = control.classify(user("alice"), GET_POD)
    first, second = ask(control, flow), ask(control, flow)
    time.advance(1.0)
    lines = dump.priority_levels(control).splitlines()
    assert lines[0].split()[:3] == ["PriorityLevelName,", "ActiveQueues,", "IsIdle,"]
    (row,) = [line.split() for line in lines if line.startswith("global-default")]
    assert row == ["global-default,", "1,", "false,", "false,", "1,", "1,", "1,", "0,", "0,", "0"]
    lines = dump.queues(control).splitlines()
    assert sum(line.startswith("global-default") for line in lines) == 128
    lines = dump.requests(control, details=False).splitlines()
    assert [line.split()[:5] for line in lines[1:]] == sorted(
        (
            ["global-default,", "global-default,", f"{second.queue.index},", "0,", "alice,"],  # type: ignore[union-attr]
            ["global-default,", "global-default,", f"{first.queue.index},", "-1,", "alice,"],  # type: ignore[union-attr]
        ),
        key=lambda row: int(row[2].rstrip(",")),
    )


def test_metrics_show_who_runs_and_who_waits() -> None:
    time = VirtualTime()
    registry = Registry()
    control = Control(12, registry, clock=time.clock, later=time.later)
    control.digest(start_levels(), start_schemas())
    control.levels["global-default"].queues.set_limit(1)
    flow = control.classify(user("alice"), GET_POD)
    ask(control, flow)
    flow.lane.immediate += 1
    ask(control, flow, Estimate(3))
    shown = registry.expose().decode()
    lane = '{flow_schema="global-default",priority_level="global-default"}'
    for line in (
        f"apiserver_flowcontrol_current_executing_requests{lane} 1",
        f"apiserver_flowcontrol_current_inqueue_requests{lane} 1",
        f"apiserver_flowcontrol_current_inqueue_seats{lane} 3",
        f"apiserver_flowcontrol_dispatched_requests_total{lane} 1",
        f"apiserver_flowcontrol_request_queue_length_after_enqueue_count{lane} 1",
        'apiserver_flowcontrol_nominal_limit_seats{priority_level="global-default"} 1',
    ):
        assert line in shown.splitlines()
