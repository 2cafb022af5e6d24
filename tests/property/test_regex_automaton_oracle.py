"""The automaton against Python's engine: the same patterns match the same texts; and texts that take that one forever."""

from __future__ import annotations

import re
import time

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastapi_core.cel import regex
from fastapi_core.cel.regex_automaton import Automaton
from fastapi_core.cel.regex_translate import PatternError, translate

_ATOMS = st.sampled_from(
    [
        *(
            "a",
            "b",
            "A",
            ".",
            "[ab]",
            "[^a]",
            r"\d",
            r"\w",
            r"\W",
            r"\s",
            r"\b",
            r"\B",
            "^",
            "$",
            r"\A",
            r"\z",
            "é",
            r"\.",
        ),
        *("[a-c1]", r"[\d_-]", r"(?i:a)", r"(?s:.)", r"(?m:^)", r"(?m:b$)", "[^A-Z]", "(?i:[^a])", "-", "0"),
    ]
)


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, inner).map("|".join).map(lambda text: f"(?:{text})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,3}", "{0,2}", "{2,}"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    )


PATTERNS = st.recursive(_ATOMS, _grow, max_leaves=8)
TEXTS = st.text(alphabet="abAB01_-. \né", max_size=12)


@settings(max_examples=200, deadline=None)
@example(".(?i:[^a])", ["0A"])
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=5))
def test_same_as_python(pattern: str, texts: list[str]) -> None:
    try:
        translated = translate(pattern, True)
    except PatternError:
        return
    automaton = Automaton(translated.pattern.pattern)
    for text in texts:
        if not text and r"\B" in pattern:
            continue  # in an empty text Python's engine finds no place, RE2's one that is no boundary
        wanted = re.compile(translated.pattern.pattern, re.ASCII).search(text) is not None
        assert (automaton.first(text, 0) is not None) == wanted, (pattern, text)


def test_no_text_takes_forever() -> None:
    name = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    assert regex.search("gateway.networking.k8s.io", name)
    began = time.process_time()
    assert not regex.search("a" * 20_000 + "!", name)
    assert not regex.search("a" * 5_000, r"(a+)+b")
    assert regex.search("a" * 5_000 + "b", r"(a|aa)+b$")
    assert not regex.search("x" * 50_000, r"x*x*x*x*y")
    assert time.process_time() - began < 5
