"""Every check fails when its rule is broken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fastapi_core.testing import conformance
from fastapi_core.testing.conformance import families, runner, tidy
from fastapi_core.testing.conformance.client import Client
from fastapi_core.testing.conformance.discovered import discover
from fastapi_core.testing.conformance.subject import Subject, Surroundings
from tests.fixtures.faulty import Fault, Relay
from tests.unit.testing import conformance_faults_reading, conformance_faults_watching, conformance_faults_writing

CHECKS = {check.name: check for check in families.load()}
TABLES = (conformance_faults_reading.FAULTS, conformance_faults_writing.FAULTS, conformance_faults_watching.FAULTS)
FAULTS = [
    (name, number, fault) for table in TABLES for name, faults in table.items() for number, fault in enumerate(faults)
]
#: What is only found with other resources than the custom one: check -> group, resource.
ELSEWHERE = {"discovery.unclaimed-verbs": ("", "componentstatuses"), "select.read-only": ("", "namespaces")}
SAMPLES = [
    {"kind": "Database", "spec": {"engine": "mysql", "replicas": 1}, "status": {"phase": "Up", "replicas": 1}},
    {"kind": "Database", "spec": {"engine": "mysql", "replicas": 2}},
]


def test_every_check_has_a_fault() -> None:
    named = [name for table in TABLES for name in table]
    assert sorted(named) == sorted(CHECKS)


@pytest.fixture(scope="module")
def subjects(relay: Relay) -> Iterator[dict[tuple[str, str], Subject]]:
    target = conformance.Target(
        relay.url,
        credential=conformance.Credential(token="admintoken"),
        other=conformance.Credential(token="usertoken"),
        patience=0.7,
    )
    client = Client(target)
    around = Surroundings("faults", "conformance-one", "conformance-two", own=True, namespaces=True)
    wanted = [("conformance.example.com", "databases"), *ELSEWHERE.values()]
    found = {(group, name): discover(client, group, names=[name])[0] for group, name in wanted}
    subjects = {place: Subject(resource, client, around, SAMPLES) for place, resource in found.items()}
    yield subjects
    relay.fault = Fault()
    for subject in subjects.values():
        assert tidy.sweep(subject) == []
    client.close()


@pytest.mark.parametrize(("name", "number", "fault"), FAULTS, ids=[f"{name}-{number}" for name, number, _ in FAULTS])
def test_fault_is_found(
    relay: Relay, subjects: dict[tuple[str, str], Subject], name: str, number: int, fault: Fault
) -> None:
    subject = subjects[ELSEWHERE.get(name, ("conformance.example.com", "databases"))]
    relay.fault = fault
    try:
        outcome, reason = runner.outcome_of(CHECKS[name], subject)
    finally:
        relay.fault = Fault()
        tidy.after_check(subject)
        # A fault may have spoiled what was remembered of the schema, or a connection.
        subject.__dict__.pop("schema", None)
        subject.client.close()
    assert outcome is conformance.Outcome.FAIL, reason
    # By the rule, not by stumbling.
    assert not reason[0].startswith("expected: an answer"), reason


def test_deleting_many_without_saying_so_is_found(subjects: dict[tuple[str, str], Subject]) -> None:
    """Only tried where the collection is empty."""
    whole = subjects["conformance.example.com", "databases"]
    claimed = replace(whole.resource, verbs=whole.resource.verbs - {"deletecollection"})
    outcome, reason = runner.outcome_of(
        CHECKS["discovery.unclaimed-verbs"], Subject(claimed, whole.client, whole.around, SAMPLES)
    )
    assert outcome is conformance.Outcome.FAIL
    assert "deletecollection is not among the verbs" in reason[0]
