"""The kit finds nothing wrong with our own server, through a relay that changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from fastapi_core.testing import conformance
from tests.fixtures.faulty import Fault, Relay

#: Each waits for seconds.
SLOW = ("*.future-version", "start.bookmarks", "watch.timeout")
SAMPLE = {"kind": "Database", "spec": {"engine": "mysql", "replicas": 1}, "status": {"phase": "Up", "replicas": 1}}


def run(relay: Relay, group: str, *resources: str, **options: object) -> conformance.Report:
    relay.fault = Fault()
    target = conformance.Target(
        relay.url,
        credential=conformance.Credential(token="admintoken"),
        other=conformance.Credential(token="usertoken"),
    )
    return conformance.run(
        target,
        group,
        resources=resources,
        namespace="conformance-one",
        other_namespace="conformance-two",
        **options,  # type: ignore[arg-type]
    )


def test_a_custom_resource_passes(relay: Relay) -> None:
    samples = [SAMPLE, {**SAMPLE, "spec": {"engine": "mysql", "replicas": 2}}]
    report = run(relay, "conformance.example.com", samples=samples, skip=SLOW)
    assert report.ok, report.text()
    assert not report.failures(), report.text()
    assert {result.check for result in report.skipped} == {"discovery.unclaimed-verbs", "select.read-only"}
    assert not report.notes


def test_what_takes_its_time_passes(relay: Relay) -> None:
    """All of it at the same time."""
    with ThreadPoolExecutor() as pool:
        names = ["get.future-version", "list.future-version", "start.bookmarks", "watch.timeout"]
        reports = pool.map(lambda name: run(relay, "", "configmaps", only=[name]), names)
        for report in reports:
            assert report.ok, report.text()
            assert len(report.passed) == 1


def test_a_built_in_resource_passes(relay: Relay) -> None:
    report = run(relay, "", "configmaps", skip=SLOW)
    assert report.ok, report.text()
    assert not report.failures(), report.text()
    assert len(report.passed) > 180


def test_a_resource_that_is_only_read_gets_the_checks_of_reading(relay: Relay) -> None:
    report = run(relay, "", "componentstatuses")
    assert report.ok, report.text()
    assert not report.failures(), report.text()
    passed = {result.check for result in report.passed}
    assert {"get.object", "list.kind", "table.list", "discovery.unclaimed-verbs", "access.nobody"} <= passed
    assert not {name for name in passed if name.startswith(("watch.", "create.", "patch.", "delete."))}
