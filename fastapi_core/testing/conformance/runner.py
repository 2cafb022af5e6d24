"""A run: find what is served, try every rule that applies, tidy up, report."""

from __future__ import annotations

import asyncio
import fnmatch
import functools
import http.client
import secrets
import time
from collections.abc import Callable, Iterable, Sequence

from fastapi_core.testing.conformance import families, tidy
from fastapi_core.testing.conformance.client import Client, Tree
from fastapi_core.testing.conformance.discovered import discover
from fastapi_core.testing.conformance.report import Outcome, Report, Result
from fastapi_core.testing.conformance.subject import Subject, Surroundings
from fastapi_core.testing.conformance.target import Target, TargetError
from fastapi_core.testing.conformance.verdicts import Check, Failed, Scope, Skipped

Listener = Callable[[Result], None]


def run(
    target: Target,
    group: str,
    *,
    version: str = "",
    resources: Iterable[str] = (),
    namespace: str = "",
    other_namespace: str = "",
    samples: Sequence[Tree] = (),
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    listener: Listener | None = None,
) -> Report:
    """Run the kit against a server and report.

    `group` is an API group, empty for the core group; `version` its preferred one unless given; `resources` all of it
    unless named. `namespace` is where to work: without it two namespaces are made, and removed at the end.
    `other_namespace` is a second one that exists, for the checks that keep namespaces apart. `samples` are objects to
    create (of any of the kinds; `$(NAME)` in their texts stands for the name), made from the OpenAPI schema unless
    given. `only` and `skip` are patterns of check names (`watch.*`). `listener` is told each result at once.

    Raises TargetError when there is nothing to test: no such group, nobody at the address, no permission.
    """
    client = Client(target)
    report = Report(target.url, group)
    chosen = selected(only, skip)
    try:
        found = discover(client, group, version, resources)
        namespaced = any(resource.namespaced for resource in found)
        around = tidy.surroundings(
            client, secrets.token_hex(4), namespaced=namespaced, namespace=namespace, elsewhere=other_namespace
        )
    except (OSError, http.client.HTTPException) as error:
        raise TargetError(f"{target.url} does not answer: {error}") from None
    except Failed as failed:
        raise TargetError("; ".join(failed.lines())) from None
    subjects = [Subject(resource, client, around, samples) for resource in found]
    try:
        _all(subjects, chosen, report, listener)
    finally:
        _tidy(subjects, client, around, report)
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


def _all(subjects: list[Subject], chosen: list[Check], report: Report, listener: Listener | None) -> None:
    for check in chosen:
        if check.scope is Scope.SERVER:
            _one(check, subjects[0], report, listener)
    for subject in subjects:
        if any(check.scope is Scope.RESOURCE and "create" in check.needs for check in chosen):
            _try_sample(subject, report)
        for check in chosen:
            if check.scope is Scope.RESOURCE:
                _one(check, subject, report, listener)


def _try_sample(subject: Subject, report: Report) -> None:
    """Whether anything can be created at all; if not, this is said once and not for every check."""
    if not {"create", "delete"} <= subject.resource.verbs:
        return
    try:
        answer = subject.post(subject.new())
        if answer.status == 201:
            return
        told = str(answer.json().get("message", "")) if answer.body else ""
    except (Failed, AttributeError):
        told = "no Status"
    except (OSError, http.client.HTTPException) as error:
        subject.client.close()
        raise TargetError(f"{subject.path()}: a create is not answered: {error!r}") from None
    finally:
        tidy.after_check(subject)
    origin = "given" if subject.samples else "made from the schema"
    subject.refused = f"the sample {origin} is refused ({answer.status} {told}): give a sample that can be created"
    report.notes.append(f"{subject.resource.title}: {subject.refused}")


def _one(check: Check, subject: Subject, report: Report, listener: Listener | None) -> None:
    begun = time.monotonic()
    outcome, reason = _outcome(check, subject)
    tidy.after_check(subject)
    about = subject.resource.title if check.scope is Scope.RESOURCE else ""
    result = Result(check.name, about, check.level, check.rule, outcome, tuple(reason), time.monotonic() - begun)
    report.results.append(result)
    if listener is not None:
        listener(result)


def _outcome(check: Check, subject: Subject) -> tuple[Outcome, list[str]]:
    missing = check.needs - subject.resource.offers
    if missing:
        return Outcome.SKIP, [f"needs {', '.join(sorted(missing))}, which is not served"]
    # With a sample of the user's own, its refusal is a result, once.
    if "create" in check.needs and subject.refused and not (subject.samples and check.name == "create.stamped"):
        return Outcome.SKIP, [subject.refused]
    last = subject.client.recent
    try:
        check.run(subject)
    except Failed as failed:
        return Outcome.FAIL, failed.lines()
    except Skipped as skipped:
        return Outcome.SKIP, [str(skipped)]
    except (OSError, http.client.HTTPException) as error:
        subject.client.close()
        return Outcome.FAIL, [f"expected: an answer; got {error!r} for {subject.client.asked}"]
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        # Something lacks where every API server has something: the answer is at fault, and shown.
        recent = subject.client.recent
        shown = [] if recent is None or recent is last else list(recent.evidence())
        return Outcome.FAIL, [f"expected: an answer of the usual shape; reading it ends in {error!r}", *shown]
    return Outcome.PASS, []


def _tidy(subjects: list[Subject], client: Client, around: Surroundings, report: Report) -> None:
    try:
        for subject in subjects:
            tidy.after_check(subject)
            report.leftovers += tidy.sweep(subject)
        report.leftovers += tidy.demolish(client, around)
    except (OSError, http.client.HTTPException, Failed, AttributeError, KeyError, TypeError) as error:
        report.leftovers.append(f"tidying up ended in {error!r}: look for objects labelled with run {around.run}")
    client.close()
