"""Random expressions: arithmetic and logic agree with a walk of the tree, and no text breaks the compiler."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core import cel
from fastapi_core.cel.estimate import estimate
from fastapi_core.cel.regex import compile_pattern
from fastapi_core.cel.regex_automaton import Automaton
from fastapi_core.cel.regex_translate import PatternError, translate
from fastapi_core.cel.types import DYN
from tests.oracles import cel_arithmetic as oracle

EDGES = [0, 1, -1, 2, 7, 2**31, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1]
numbers = st.one_of(st.sampled_from(EDGES), st.integers(-100, 100))


def _number_of(inner: st.SearchStrategy[Any], truth: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "/", "%"]), inner, inner),
        st.tuples(st.just("neg"), inner),
        st.tuples(st.just("?"), truth, inner, inner),
    )


def _truth_of(inner: st.SearchStrategy[Any], number: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), number, number),
        st.tuples(st.sampled_from(["&&", "||"]), inner, inner),
        st.tuples(st.just("!"), inner),
    )


small = _number_of(numbers, st.booleans()) | numbers
truths = st.recursive(st.booleans(), lambda inner: _truth_of(inner, small), max_leaves=8)
trees = st.one_of(st.recursive(numbers, lambda inner: _number_of(inner, truths), max_leaves=10), truths)
ENVIRONMENT = cel.Environment({"self": DYN})
PLAIN = cel.Environment({})


def _expected(tree: Any) -> Any:
    try:
        return oracle.walk(tree)
    except oracle.FailureError as failure:
        return failure.args


def _found(program: cel.Program) -> Any:
    try:
        return program.evaluate({})
    except cel.EvalError as error:
        return error.args


@settings(max_examples=200, deadline=None)
@given(trees)
def test_arithmetic(tree: Any) -> None:
    text = oracle.write(tree)
    program = cel.compile_expression(text, PLAIN)
    assert _found(program) == _expected(tree)
    assert estimate(program.node).high >= 0


@settings(max_examples=100, deadline=None)
@given(trees)
def test_arithmetic_of_unknown_types(tree: Any) -> None:
    """The same through dyn, where operators look at the values."""
    text = oracle.write(tree).replace("(-9223372036854775808)", "dyn(-9223372036854775808)")
    program = cel.compile_expression(f"[dyn({text})].map(x, x)[0]", PLAIN)
    assert _found(program) == _expected(tree)


PIECES = [
    *("self", "x", "a.b", "1", "1u", "1.5", "'s'", "b'b'", "true", "null", "[", "]", "{", "}", "(", ")", ".", ",", ":"),
    *("?", "&&", "||", "!", "-", "+", "*", "/", "%", "==", "<", "in", "has(", "self.all(x, ", ".map(", ".size()", "=>"),
    *("'", '"', "\\", "//", "\n", "\u00e9", "\U0001f600", "`a-b`", "if", "@", "r'", "'''", ".?", "[?", "{?", "Object{"),
]
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=10).map(" ".join),
    st.text(max_size=30),
)


@settings(max_examples=200, deadline=None)
@given(texts)
def test_any_text_is_compiled_or_refused(text: str) -> None:
    refusal = ""
    try:
        program = cel.compile_expression(text, ENVIRONMENT)
    except cel.CompileError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith("ERROR: <input>:")
        return
    estimate(program.node)
    try:
        program.evaluate({"self": {"a": 1}}, cel.Budget(), limit=10_000)
    except (cel.EvalError, cel.CostError):
        pass


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=6,
)
EXPRESSIONS = [
    "self.a",
    "self['a']",
    "self.all(x, x == x)",
    "self.map(x, x)",
    "self.exists(i, v, v == i)",
    "self + self",
    "self < self",
    "self.?a.?b.orValue(1)",
    "has(self.a) ? self.a : 0",
    "size(self)",
    "self.startsWith('a')",
    "string(self)",
    "int(self)",
    "self in ['a', 'b'] || self in [1, 2]",
    "self == self",
    "self.a.b.c || true",
    "'%s'.format([self])",
    "self.sort()",
    "self.join()",
    "self.transformMap(k, v, v)",
    "type(self)",
    "-self",
    "self[0]",
    "self.getHours()",
    "quantity(self)",
]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(EXPRESSIONS), values)
def test_any_value_yields_a_value_or_an_error(text: str, value: Any) -> None:
    program = cel.compile_expression(text, ENVIRONMENT)
    try:
        program.evaluate({"self": value})
    except cel.EvalError:
        pass


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab(){}[]*+?|\\^$.:=!-,0123pPdwQExz<>", max_size=14))
def test_any_pattern_is_compiled_or_refused(pattern: str) -> None:
    refusal = ""
    try:
        compiled = compile_pattern(pattern)
    except PatternError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith("error parsing regexp: ")
        return
    compiled.matches("aabb" * 10)
    compiled.search("aabb")


atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\b", "^", "$", "(?i:A)", "(?s:.)"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        # Bodies that always read something: how often an empty one is repeated is told apart by no user.
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}"])).map(
            lambda pair: f"(?:a{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(patterns, st.text(alphabet="ab c\n", max_size=8))
def test_automata_agree_with_backtracking(pattern: str, text: str) -> None:
    plain = translate(pattern, complete=True).pattern
    automaton = Automaton(plain.pattern)
    wanted = plain.search(text)
    assert (automaton.search(text) is not None) == (wanted is not None)
    found = automaton.first(text)
    assert (found and (found.start(), found.end())) == (wanted and wanted.span())
    wanted = plain.search(text, len(text) // 2)
    found = automaton.first(text, len(text) // 2)
    assert (found and found.group()) == (wanted and wanted.group())
