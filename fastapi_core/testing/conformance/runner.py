"""A run: find what is served, try every rule that applies, tidy up, report."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import functools
import http.client
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fastapi_core.testing.conformance import families, tidy
from fastapi_core.testing.conformance.client import Answer, Client, Tree
from fastapi_core.testing.conformance.discovered import discover
from fastapi_core.testing.conformance.report import Outcome, Report, Result
from fastapi_core.testing.conformance.subject import LABEL, Subject, Surroundings
from fastapi_core.testing.conformance.target import Target, TargetError
from fastapi_core.testing.conformance.verdicts import MISSHAPEN, SHORT, WHOLE, Check, Failed, Scope, Skipped

Listener = Callable[[Result], None]


@dataclass(frozen=True)
class Options:
    """What to test of a server, and with what.

    `group` is an API group, empty for the core group; `version` its preferred one unless given; `resources` all of it
    unless named. `namespace` is where to work: without it two namespaces are made, and removed at the end.
    `other_namespace` is a second one that exists, for the checks that keep namespaces apart. `samples` are objects to
    create (of any of the kinds; `$(NAME)` in their texts stands for the name), made from the OpenAPI schema unless
    given. `only` and `skip` are patterns of check names (`watch.*`).
    """

    group: str
    version: str = ""
    resources: Sequence[str] = ()
    namespace: str = ""
    other_namespace: str = ""
    samples: Sequence[Tree] = ()
    only: Sequence[str] = ()
    skip: Sequence[str] = ()


class Session:
    """A run, piece by piece: `cases`, `begin`, `one` for each case, `end`. `run` does it all.

    Raises TargetError when there is nothing to test: no such group, nobody at the address, no permission.
    """

    def __init__(self, target: Target, options: Options) -> None:
        self.report = Report(target.url, options.group)
        self._options = options
        self._client = Client(target)
        self._checks = selected(options.only, options.skip)
        self._subjects: list[Subject] = []
        self._around: Surroundings | None = None
        try:
            with _answering(target):
                self._resources = discover(self._client, options.group, options.version, options.resources)
        except TargetError:
            self._client.close()
            raise

    def cases(self) -> list[tuple[Check, int]]:
        """What there is to try: each check with the number of its resource."""
        whole = [(check, 0) for check in self._checks if check.scope is Scope.SERVER]
        single = [check for check in self._checks if check.scope is Scope.RESOURCE]
        return whole + [(check, number) for number in range(len(self._resources)) for check in single]

    def title(self, check: Check, number: int) -> str:
        """The resource a case is about; empty for the whole server."""
        return self._resources[number].title if check.scope is Scope.RESOURCE else ""

    def begin(self) -> None:
        """Find a place to work in, and out what can be created. Nothing when it has begun already."""
        if self._around is not None:
            return
        options, client = self._options, self._client
        with _answering(client.target):
            self._around = tidy.surroundings(
                client,
                # A letter first: YAML reads some words of digits and e as numbers.
                "r" + secrets.token_hex(4),
                namespaced=any(resource.namespaced for resource in self._resources),
                namespace=options.namespace,
                elsewhere=options.other_namespace,
            )
        self._subjects = [Subject(resource, client, self._around, options.samples) for resource in self._resources]
        if any("create" in check.needs for check in self._checks):
            for subject in self._subjects:
                _try_sample(subject, self.report)

    def one(self, check: Check, number: int) -> Result:
        """Try one case."""
        self.begin()
        subject = self._subjects[number]
        begun = time.monotonic()
        outcome, lines = _tried(check, subject)
        tidy.after_check(subject)
        seconds = time.monotonic() - begun
        about = self.title(check, number)
        result = Result(
            check.name, about, check.level, check.rule, outcome, tuple(lines(SHORT)), seconds, tuple(lines(WHOLE))
        )
        self.report.results.append(result)
        return result

    def end(self) -> Report:
        """Remove what has been made, and report."""
        if self._around is not None:
            self.report.leftovers += _tidied(self._subjects, self._client, self._around)
            self._around = None
        self._client.close()
        return self.report


@contextlib.contextmanager
def _answering(target: Target) -> Iterator[None]:
    """What goes wrong before the first check is a fault of the target's description."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise TargetError(f"{target.url} does not answer: {error}") from None
    except Failed as failed:
        raise TargetError("; ".join(failed.lines())) from None
    except MISSHAPEN as error:
        raise TargetError(f"{target.url} does not answer in the usual shape: {error!r}") from None


def run(
    target: Target,
    group: str,
    *,
    version: str = "",
    resources: Iterable[str] = (),
    namespace: str = "",
    other_namespace: str = "",
    samples: Iterable[Tree] = (),
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    listener: Listener | None = None,
) -> Report:
    """Run the kit against a server and report. Arguments as in `Options`; `listener` is told each result at once.

    Raises TargetError when there is nothing to test: no such group, nobody at the address, no permission.
    """
    options = Options(
        group,
        version,
        tuple(resources),
        namespace,
        other_namespace,
        tuple(samples),
        tuple(only),
        tuple(skip),
    )
    session = Session(target, options)
    try:
        session.begin()
        for check, number in session.cases():
            result = session.one(check, number)
            if listener is not None:
                listener(result)
    finally:
        report = session.end()
    return report


async def run_async(target: Target, group: str, **options: object) -> Report:
    """`run` beside an event loop, which may be the tested server's own; the same arguments."""
    return await asyncio.to_thread(functools.partial(run, target, group, **options))  # type: ignore[arg-type]


def selected(only: Iterable[str] = (), skip: Iterable[str] = ()) -> list[Check]:
    """The checks whose names match; TargetError when none does."""
    wanted, unwanted = list(only), list(skip)
    chosen = [
        check
        for check in families.load()
        if (not wanted or any(fnmatch.fnmatchcase(check.name, pattern) for pattern in wanted))
        and not any(fnmatch.fnmatchcase(check.name, pattern) for pattern in unwanted)
    ]
    if not chosen:
        raise TargetError(f"no check is called {', '.join(wanted)}")
    return chosen


def _try_sample(subject: Subject, report: Report) -> None:
    """Whether anything can be created at all; if not, this is said once and not for every check."""
    if not {"create", "delete"} <= subject.resource.verbs:
        return
    answer: Answer | None = None
    try:
        answer = subject.post(subject.new())
        if answer.status == 201:
            if "get" in subject.resource.verbs:
                subject.watch_unrest(answer.tree())
            return
        told = str(answer.json().get("message", "")) if answer.body else ""
    except (Failed, *MISSHAPEN):
        told = "no Status"
    except (OSError, http.client.HTTPException) as error:
        subject.client.close()
        raise TargetError(f"{subject.path()}: a create is not answered: {error!r}") from None
    finally:
        tidy.after_check(subject)
    origin = "given" if subject.samples else "made from the schema"
    code = f"{answer.status} " if answer is not None else ""
    subject.refused = f"the sample {origin} is refused ({code}{told}): give a sample that can be created"
    report.notes.append(f"{subject.resource.title}: {subject.refused}")


def outcome_of(check: Check, subject: Subject) -> tuple[Outcome, list[str]]:
    """How one check ends for one resource, and why."""
    outcome, lines = _tried(check, subject)
    return outcome, lines(SHORT)


def _tried(check: Check, subject: Subject) -> tuple[Outcome, Callable[[int], list[str]]]:
    """How one check ends, and the lines that say why, with bodies up to a limit."""
    missing = check.needs - subject.resource.offers
    if missing:
        return Outcome.SKIP, _line(f"needs {', '.join(sorted(missing))}, which is not served")
    # With a sample of the user's own, its refusal is a result, once.
    if "create" in check.needs and subject.refused and not (subject.samples and check.name == "create.stamped"):
        return Outcome.SKIP, _line(subject.refused)
    last = subject.client.recent
    try:
        check.run(subject)
    except Failed as failed:
        return Outcome.FAIL, failed.lines
    except Skipped as skipped:
        return Outcome.SKIP, _line(str(skipped))
    except (OSError, http.client.HTTPException) as error:
        subject.client.close()
        return Outcome.FAIL, _line(f"expected: an answer; got {error!r} for {subject.client.asked}")
    except MISSHAPEN as error:
        # Something lacks where every API server has something: the answer is at fault, and shown.
        recent = subject.client.recent
        shown = () if recent is None or recent is last else (recent,)
        return Outcome.FAIL, Failed(f"an answer of the usual shape; reading it ends in {error!r}", *shown).lines
    return Outcome.PASS, lambda limit: []


def _line(text: str) -> Callable[[int], list[str]]:
    return lambda limit: [text]


def _tidied(subjects: list[Subject], client: Client, around: Surroundings) -> list[str]:
    """What could not be removed."""
    left: list[str] = []
    try:
        for subject in subjects:
            tidy.after_check(subject)
            left += tidy.sweep(subject)
        left += tidy.demolish(client, around)
    except (OSError, http.client.HTTPException, Failed, *MISSHAPEN) as error:
        left.append(f"tidying up ended in {error!r}: look for objects labelled {LABEL}={around.run}")
    return left
