"""The index of addresses and ports against a plain list of services."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.apis.claims import PICK_SECONDS, Claims, addresses_of, claims_of

OWNERS = ("n/a", "n/b", "n/c")
VALUES = ("10.0.0.1", "10.0.0.2", 30000, 30001)

values = st.lists(st.sampled_from(VALUES), unique=True, max_size=3).map(tuple)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(OWNERS), values),
        st.tuples(st.just("delete"), st.sampled_from(OWNERS), st.just(())),
    ),
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_the_index_is_what_the_services_hold(history: list[tuple[str, str, tuple[str | int, ...]]]) -> None:
    claims, services = Claims(), dict[str, tuple[str | int, ...]]()
    for revision, (what, owner, wanted) in enumerate(history, 1):
        if what == "delete":
            services.pop(owner, None)
            claims.remove(owner, revision)
            continue
        lost = claims.begin(owner, wanted)
        foreign = [v for v in wanted if any(v in held for other, held in services.items() if other != owner)]
        assert (lost is not None) == bool(foreign)
        if lost is None:
            services[owner] = wanted
            claims.commit(owner, revision, wanted)
            claims.end(owner, wanted)
        for value in VALUES:
            assert claims.holders(value) == tuple(sorted(o for o, held in services.items() if value in held))
            for asker in OWNERS:
                taken = any(value in held for other, held in services.items() if other != asker)
                assert claims.taken(value, asker) == taken


def test_of_two_writes_under_way_one_gets_it() -> None:
    claims = Claims()
    assert claims.begin("n/a", ("10.0.0.1", 30000)) is None
    assert claims.begin("n/b", ("10.0.0.2", 30000)) == 30000
    assert not claims.taken("10.0.0.2", "n/c")
    claims.end("n/a", ("10.0.0.1", 30000))
    assert claims.begin("n/b", ("10.0.0.2", 30000)) is None


def test_news_that_comes_late_changes_nothing() -> None:
    claims = Claims()
    claims.commit("n/a", 5, ("10.0.0.2",))
    claims.commit("n/a", 4, ("10.0.0.1",))
    claims.remove("n/a", 3)
    assert claims.holders("10.0.0.2") == ("n/a",)
    assert claims.holders("10.0.0.1") == ()


def test_what_was_handed_out_is_kept_for_a_while() -> None:
    now = [0.0]
    claims = Claims(lambda: now[0])
    claims.pick("10.0.0.1", "n/a")
    assert claims.taken("10.0.0.1", "n/b")
    assert not claims.taken("10.0.0.1", "n/a")
    now[0] = PICK_SECONDS
    assert not claims.taken("10.0.0.1", "n/b")
    claims.pick("10.0.0.1", "n/a")
    claims.unpick("n/b")
    assert claims.taken("10.0.0.1", "n/b")
    claims.unpick("n/a")
    assert not claims.taken("10.0.0.1", "n/b")


def test_picks_that_are_never_taken_do_not_pile_up() -> None:
    now = [0.0]
    claims = Claims(lambda: now[0])
    for number in range(5000):
        claims.pick(number, f"n/{number}")
        now[0] += 1.0
    assert len(claims._picked) < 1000
    assert len(claims._picks) < 1000


def test_what_a_service_holds() -> None:
    spec = {"clusterIPs": ["10.0.0.1", "FD00::1"], "ports": [{"nodePort": 30000}, {"port": 1}, {"nodePort": 30000}]}
    assert claims_of({"spec": {**spec, "healthCheckNodePort": 30009}}) == ("10.0.0.1", "fd00::1", 30000, 30009)
    assert addresses_of({"clusterIPs": ["None"]}) == ()
