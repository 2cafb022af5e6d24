"""Regular expressions: RE2's syntax, Go's complaints, and time that stays in bounds."""

from __future__ import annotations

import time

import pytest

from fastapi_core.cel.regex import compile_pattern, find_all
from fastapi_core.cel.regex_automaton import Automaton, TooLargeError
from fastapi_core.cel.regex_translate import PatternError

SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
MATCHES = [
    (SUBDOMAIN, "a-b.c" + ".d" * 60, True),
    (SUBDOMAIN, "a" * 253 + "!", False),
    ("^a$", "a\n", False),
    ("(?m)^b$", "a\nb\nc", True),
    ("(?i)ABC", "xabcx", True),
    ("a(?i)b|c", "aB", True),
    (r"\Aa\z", "a", True),
    (r"\Qa.b\E", "a.b", True),
    (r"\Qa.b\E", "axb", False),
    ("[[:alpha:]]+[[:^digit:]]", "ab", True),
    (r"\x41\x{1F600}", "A\U0001f600", True),
    (r"\101", "A", True),
    (r"\pL+", "\u00e9", True),
    (r"^\p{Lu}\P{Lu}$", "Ab", True),
    (r"^[\pN_]$", "_", True),
    ("(?P<n>a)(?<m>b)", "ab", True),
    ("a{,2}", "a{,2}", True),
    ("a{2,3}?", "aa", True),
    ("[]a]", "]", True),
    ("[^]]", "]", False),
    ("[a-]", "-", True),
    (r"\d", "\u0663", False),
    (".", "\n", False),
    ("(?s).", "\n", True),
    ("", "anything", True),
]


@pytest.mark.parametrize(("pattern", "text", "wanted"), MATCHES)
def test_matches(pattern: str, text: str, wanted: bool) -> None:
    assert compile_pattern(pattern).matches(text) is wanted


COMPLAINTS = {
    "(a": "missing closing ): `(a`",
    "a)": "unexpected ): `a)`",
    "[a": "missing closing ]: `[a`",
    "[z-a]": "invalid character class range: `z-a`",
    "*a": "missing argument to repetition operator: `*`",
    "a**": "invalid nested repetition operator: `**`",
    "a{1001}": "invalid repeat count: `{1001}`",
    "a{2,1}": "invalid repeat count: `{2,1}`",
    "(?=a)": "invalid or unsupported Perl syntax: `(?=`",
    "\\y": "invalid escape sequence: `\\y`",
    "\\1": "invalid escape sequence: `\\1`",
    "a\\": "trailing backslash at end of expression: ``",
    "[[:nope:]]": "invalid character class range: `[:nope:]`",
    "\\p{Nope}": "invalid character class range: `\\p{Nope}`",
}


@pytest.mark.parametrize("pattern", COMPLAINTS)
def test_complaints(pattern: str) -> None:
    with pytest.raises(PatternError) as failure:
        compile_pattern(pattern)
    assert str(failure.value) == f"error parsing regexp: {COMPLAINTS[pattern]}"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a*)*b", "a*a*a*a*a*b", "(.*)(.*)(.*)(.*)x"])
def test_nothing_takes_long(pattern: str) -> None:
    started = time.process_time()
    assert compile_pattern(pattern).matches("a" * 3000 + "c") is False
    assert compile_pattern(pattern).search("a" * 300 + "c") is None
    assert time.process_time() - started < 3


def test_find_all_where_backtracking_is_avoided() -> None:
    words = "(?:[a-z]+)+"
    text = " ".join(["word"] * 50)
    assert find_all(text, words) == ["word"] * 50
    assert find_all(text, words, 2) == ["word"] * 2


def test_an_automaton_has_a_size() -> None:
    with pytest.raises(TooLargeError):
        Automaton("(?:(?:a{1000}){1000})")


@pytest.mark.parametrize(
    "pattern",
    ["^(a?){64}a{64}$", "^(a|a){64}b$", "^" + "a?" * 64 + "a" * 64 + "$", "^(a{1,2}){64}b$", "^((a|b)?){2,40}c$"],
)
def test_bounded_choices_that_follow_each_other_take_no_longer_than_the_text(pattern: str) -> None:
    compiled = compile_pattern(pattern)
    start = time.process_time()
    compiled.matches("a" * 63)
    assert time.process_time() - start < 2
