"""A conformance kit: is this a server that Kubernetes clients can work with?

The kit asks over HTTP only, so the server may be written in anything and with anything. It is pointed at an address,
directly at an extension server or at the API server that aggregates it, and at a group. Discovery tells what is
served; each rule that applies is tried and its breach shown with the requests and answers that prove it.

    from fastapi_core.testing import conformance

    target = conformance.Target("https://localhost:8443", ca=ca, credential=conformance.Credential(token="secret"))
    report = conformance.run(target, "db.example.com", samples=conformance.load(["database.yaml"]))
    assert report.ok, report.text()

`docs/conformance.md` tells the rest.
"""

from fastapi_core.testing.conformance.report import Outcome, Report, Result
from fastapi_core.testing.conformance.runner import Options, Session, run, run_async, selected
from fastapi_core.testing.conformance.samples import load
from fastapi_core.testing.conformance.target import NOBODY, Credential, Target, TargetError
from fastapi_core.testing.conformance.verdicts import Check, Level, Scope

__all__ = [
    "NOBODY",
    "Check",
    "Credential",
    "Level",
    "Options",
    "Outcome",
    "Report",
    "Result",
    "Scope",
    "Session",
    "Target",
    "TargetError",
    "load",
    "run",
    "run_async",
    "selected",
]
