"""What a run has found, as text, JSON and JUnit."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree

from fastapi_core.testing.conformance.verdicts import Level

#: What the text says in place of each refusal, and of each verb that some check needs.
REFUSED = "nothing can be created, see the notes"
UNSERVED = "needs verbs or subresources that are not served"


class Outcome(enum.Enum):
    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True)
class Result:
    """How one check has ended. `resource` is empty for checks of the whole server; `reason` has one line or more."""

    check: str
    resource: str
    level: Level
    rule: str
    outcome: Outcome
    reason: tuple[str, ...] = ()
    seconds: float = 0.0
    whole: tuple[str, ...] = ()
    """The reason with bodies that are not cut short."""

    def line(self) -> str:
        """One line about it."""
        about = f"{self.check} [{self.resource}]" if self.resource else self.check
        text = f"{self.outcome.value.upper()} {about}"
        if self.outcome is Outcome.FAIL:
            return f"{text} ({self.level.value})"
        return f"{text}: {self.reason[0]}" if self.reason else text


@dataclass
class Report:
    """All results of a run.

    `notes` are what the user should know (no sample could be made, for example), `leftovers` what could not be
    removed again. `ok`: every rule of level must holds and nothing is left behind.
    """

    url: str
    group: str
    results: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.leftovers and not self.failures(Level.MUST) and bool(self.passed)

    @property
    def passed(self) -> list[Result]:
        return self._of(Outcome.PASS)

    @property
    def skipped(self) -> list[Result]:
        return self._of(Outcome.SKIP)

    def failures(self, level: Level | None = None) -> list[Result]:
        """The failed checks, of one level or of both."""
        return [result for result in self._of(Outcome.FAIL) if level is None or result.level is level]

    def _of(self, outcome: Outcome) -> list[Result]:
        return [result for result in self.results if result.outcome is outcome]

    def text(self) -> str:
        """Failures with their evidence, reasons of what was skipped, what is left behind, and the sum."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for result in self.failures():
            yield result.line()
            yield f"    rule: {result.rule}"
            yield from (f"    {line}" for line in result.reason)
        reasons: dict[str, list[str]] = {}
        for result in self.skipped:
            told = result.reason[0] if result.reason else ""
            if told and any(note.endswith(told) for note in self.notes):
                told = REFUSED
            reasons.setdefault(UNSERVED if told.startswith("needs ") else told, []).append(result.check)
        for reason, checks in reasons.items():
            unique = list(dict.fromkeys(checks))
            shown = ", ".join(unique[:6]) + (f" and {len(unique) - 6} more" if len(unique) > 6 else "")
            yield f"SKIP {shown}: {reason}"
        yield from (f"NOTE {note}" for note in self.notes)
        yield from (f"LEFT BEHIND {path}" for path in self.leftovers)
        must, should = len(self.failures(Level.MUST)), len(self.failures(Level.SHOULD))
        yield (
            f"{'OK' if self.ok else 'NOT OK'}: {len(self.passed)} passed, {must} failed that must hold, "
            f"{should} failed that should, {len(self.skipped)} skipped"
        )

    def json(self) -> str:
        """The same for programs."""
        return json.dumps(
            {
                "url": self.url,
                "group": self.group,
                "ok": self.ok,
                "counts": {outcome.value: len(self._of(outcome)) for outcome in Outcome},
                "results": [
                    {
                        "check": result.check,
                        "resource": result.resource,
                        "level": result.level.value,
                        "rule": result.rule,
                        "outcome": result.outcome.value,
                        "reason": list(result.whole or result.reason),
                        "seconds": round(result.seconds, 3),
                    }
                    for result in self.results
                ],
                "notes": self.notes,
                "leftovers": self.leftovers,
            },
            indent=2,
        )

    def junit(self, *, strict: bool = False) -> str:
        """JUnit XML, a suite for each resource; rules of level should are failures with `strict` only, else skipped."""
        suites = ElementTree.Element("testsuites")
        for resource in dict.fromkeys(result.resource for result in self.results):
            mine = [result for result in self.results if result.resource == resource]
            suite = ElementTree.SubElement(suites, "testsuite", name=resource or "server", tests=str(len(mine)))
            for result in mine:
                _case(suite, result, strict)
            suite.set("failures", str(len(suite.findall("testcase/failure"))))
            suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
        if self.leftovers:
            suite = ElementTree.SubElement(suites, "testsuite", name="cleanup", tests="1", failures="1")
            case = ElementTree.SubElement(suite, "testcase", classname="cleanup", name="nothing-left-behind")
            ElementTree.SubElement(case, "failure", message="left behind").text = _clean("\n".join(self.leftovers))
        return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True)


def _case(suite: ElementTree.Element, result: Result, strict: bool) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=result.resource or "server",
        name=result.check,
        time=f"{result.seconds:.3f}",
    )
    first = _clean(result.reason[0] if result.reason else "")
    if result.outcome is Outcome.SKIP:
        ElementTree.SubElement(case, "skipped", message=first)
    elif result.outcome is Outcome.FAIL:
        fatal = strict or result.level is Level.MUST
        text = _clean("\n".join([result.rule, *result.reason]))
        ElementTree.SubElement(case, "failure" if fatal else "skipped", message=first).text = text


def _clean(text: str) -> str:
    """Without characters that XML cannot hold."""
    return "".join(
        char if char in "\n\t" or (ord(char) >= 32 and ord(char) not in (0xFFFE, 0xFFFF)) else "?" for char in text
    )
