"""Costs: what the reference is known to reckon, before an expression runs and while it does."""

from __future__ import annotations

import pytest

from fastapi_core import cel
from fastapi_core.cel.estimate import estimate
from fastapi_core.cel.ranges import TOP
from fastapi_core.cel.schemas import from_schema

NONE = cel.Environment({})

#: Expression -> (least, most), with constants only.
ESTIMATES = {
    "[1, 2, 3, 4, 5].sum()": (15, 15),
    "[uint(1), uint(2), uint(3), uint(4), uint(5)].sum()": (20, 20),
    "[uint(1), uint(2), uint(3), uint(4), uint(5)].indexOf(uint(3))": (21, 21),
    "'01234567890123456789012345678901234567890123456789'.indexOf('123')": (5, 5),
    "url('https:://kubernetes.io/').getScheme()": (4, 4),
    "url('https:://kubernetes.io/') == url('https:://kubernetes.io/')": (7, 9),
    "ip('192.168.0.1')": (2, 2),
    "ip('192.168.0.1').family()": (3, 3),
    "ip('192.168.0.1') == ip('192.168.0.1')": (5, 5),
    "true && false": (0, 0),
    "1 == 1": (1, 1),
    "'a' == 'b'": (1, 1),
    "[1, 2].exists(x, x == 1)": (11 + 2 * 4, 11 + 2 * 6),
    "true ? [1, 2].size() : 1": (0, 11),
}


@pytest.mark.parametrize("text", ESTIMATES)
def test_estimate(text: str) -> None:
    assert tuple(estimate(cel.compile_expression(text, NONE).node)) == ESTIMATES[text]


def rule_cost(schema: dict[str, object], rule: str) -> int:
    decl = from_schema(schema)
    assert decl is not None
    decl = decl.named("selfType")
    environment = cel.Environment({"self": decl, "oldSelf": decl})
    return estimate(cel.compile_expression(rule, environment).node, decl).high


def test_rules_of_schemas() -> None:
    text = {"type": "string", "maxLength": 10}
    # Twelve of these make 1.152480 times the limit of a schema, as recorded.
    nested = "self.all(a, self.all(b, a == b || a != b))"
    assert rule_cost({"type": "array", "maxItems": 800, "items": text}, nested) == 9_604_002
    unbounded = {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}}
    assert rule_cost(unbounded, "self.items.all(i, i.matches('a+'))") > 100 * 10_000_000
    lists: dict[str, object] = {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}
    four = "self.all(a, a.all(b, self.exists(c, c.exists(d, d == b))))"
    assert rule_cost(lists, four) == TOP
    assert rule_cost({"type": "string"}, "self.contains('x')") == 314_574
    assert rule_cost({"type": "integer"}, "self >= oldSelf") == 3


def test_what_cannot_be_traced_has_the_size_of_the_whole() -> None:
    """The items of an alternative: the reference begins a new path there, and takes its first step for the variable."""
    addresses = {"type": "array", "maxItems": 256, "items": {"type": "string"}}
    schema = {"type": "object", "properties": {"addresses": addresses, "text": {"type": "string", "maxLength": 100}}}
    assert rule_cost(schema, "(has(self.addresses) ? self.addresses : []).exists(k, k.contains('/'))") < 3000
    assert rule_cost(schema, "self.addresses.exists(k, k.contains('/'))") > 10_000_000
    # A second step is looked for in the object.
    tops = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema["properties"]["tops"] = {"type": "array", "maxItems": 2, "items": tops}  # type: ignore[index]
    assert rule_cost(schema, "self.tops.filter(t, true)[0].name.contains('/')") > 300_000
    schema["properties"]["name"] = {"type": "string", "maxLength": 10}  # type: ignore[index]
    assert rule_cost(schema, "self.tops.filter(t, true)[0].name.contains('/')") < 100


def test_paths_that_begin_alike_overwrite_each_other() -> None:
    """How often an inner loop runs is asked last, when another member of the same item may stand in its path's place."""
    names = {"type": "array", "maxItems": 2, "items": {"type": "string", "maxLength": 1}}
    item = {"type": "object", "properties": {"names": names, "note": {"type": "string", "maxLength": 100}}}
    schema = {"type": "object", "properties": {"list": {"type": "array", "maxItems": 10, "items": item}}}
    apart = rule_cost(schema, "self.list.all(x, x.names.all(y, y != 'a'))")
    together = rule_cost(schema, "self.list.all(x, x.names.all(y, y != x.note))")
    assert together > 20 * apart


#: Expression -> cost of an evaluation.
RUNS = {
    "1 + 2": 1,
    "self.n": 2,
    "self.n <= self.n": 5,
    "has(self.n)": 1,
    "self.l[0]": 3,
    "self.l.all(x, x.startsWith('a'))": 3 + 2 * (3 + 2),
    "self.l.exists(x, x == 'a')": 3 + 5 + 1 + 3,
    "self.l.map(x, x)": 3 + 2 * 13,
    "self.l.filter(x, x == 'a')": 3 + 2 * 3 + 12,
    "self.l.exists_one(x, x == 'a')": 2 + 2 * 3 + 1 + 2,
    "self.s == self.s": 4 + 2,
    "self.s.contains('b')": 2 + 2,
    "self.s.matches('^a$')": 2 + 2,
    "true || self.n > 1": 0,
    "self.n > 1 ? 1 : self.n": 3,
    "'a' in ['a', 'b']": 0,
    "'a' in self.l": 2 + 2,
    "duration('1h') > duration('1m')": 1,
    "[self.n, 1].size()": 13,
    "{'a': self.n}.size()": 33,
}
VALUES = {"self": {"n": 5, "l": ["a", "b"], "s": "abcdefghijkl"}}
DYNAMIC = cel.Environment(
    {
        "self": from_schema(  # type: ignore[dict-item]
            {
                "type": "object",
                "properties": {
                    "n": {"type": "integer"},
                    "s": {"type": "string"},
                    "l": {"type": "array", "items": {"type": "string"}},
                },
            }
        )
    }
)


@pytest.mark.parametrize("text", RUNS)
def test_run_time_cost(text: str) -> None:
    _, cost = cel.compile_expression(text, DYNAMIC).measure(VALUES)
    assert cost == RUNS[text]


def test_an_evaluation_stops_at_its_limit() -> None:
    program = cel.compile_expression("self.l.all(a, self.l.all(b, self.l.all(c, a != 'z')))", DYNAMIC)
    values = {"self": {"l": ["a"] * 200}}
    budget = cel.Budget()
    with pytest.raises(cel.CostError, match=r"^operation cancelled: actual cost limit exceeded$"):
        program.evaluate(values, budget)
    assert 10_000_000 - 1_000_200 < budget.remaining < 10_000_000 - 1_000_000
    assert not budget.exhausted


def test_nothing_absorbs_the_limit() -> None:
    program = cel.compile_expression("true in self.l.map(x, true) || self.l.all(x, x == 'a') || true", DYNAMIC)
    with pytest.raises(cel.CostError):
        program.evaluate({"self": {"l": ["a"] * 200}}, limit=100)


def test_a_budget_is_shared() -> None:
    program = cel.compile_expression("self.l.all(x, x == 'a')", DYNAMIC)
    budget = cel.Budget(25)
    assert program.evaluate({"self": {"l": ["a"] * 3}}, budget) is True
    assert not budget.exhausted
    program.evaluate({"self": {"l": ["a"] * 3}}, budget)
    assert budget.exhausted


def test_growing_texts_are_cut_short() -> None:
    text = "[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, self.s)))"
    with pytest.raises(cel.CostError):
        cel.compile_expression(f"{text}.map(x, {text}).size() > 0", DYNAMIC).evaluate(
            {"self": {"s": "a" * 1000}}, limit=20_000
        )


GROWING = [
    "self.s + self.s",
    "dyn(self.s) + dyn(self.s)",
    "self.l + self.l",
    "self.s.replace('a', self.s)",
    "self.l.join(self.s)",
    "'%s%s'.format([self.s, self.s])",
]


@pytest.mark.parametrize("text", GROWING)
def test_what_outgrows_every_limit_is_never_made(text: str) -> None:
    program = cel.compile_expression(text, DYNAMIC)
    with pytest.raises(cel.CostError):
        program.evaluate({"self": {"s": "a" * 6_000_000, "l": ["x"] * 6_000_000}})


def test_sums_of_unknown_type_cost_one_unit_until_they_are_large() -> None:
    program = cel.compile_expression("dyn(self.s) + dyn(self.s)", DYNAMIC)
    short, long = (program.measure({"self": {"s": "a" * size}})[1] for size in (50_000, 50_001))
    assert short < 20 < 10_000 <= long


def test_a_number_has_no_more_than_999_places() -> None:
    with pytest.raises(cel.EvalError, match="precision is too large"):
        cel.compile_expression("self.s.format([1.0])", DYNAMIC).evaluate({"self": {"s": "%.1000000000f"}})
