"""Probes and lifecycle hooks."""

from __future__ import annotations

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.labelling import port_member
from fastapi_core.apis.validation.rules import REQUIRED, Report, Rule, Tree, choice, natural, number, required, struct

_SCHEME = choice("scheme", "HTTP", "HTTPS", empty=REQUIRED)
_PORT = port_member("port")
_NUMBERS = natural("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def _http(tree: Tree, path: str, report: Report) -> None:
    if not tree.get("path"):
        report.required(path + ".path")
    _PORT(tree, path, report)
    _SCHEME(tree, path, report)
    for header in tree.get("httpHeaders") or ():
        name = header.get("name") or ""
        report.each_invalid(path + ".httpHeaders", name, formats.header_name(name))


def _sleep(tree: Tree, path: str, report: Report) -> None:
    grace = report.facts.get("grace")
    seconds = tree.get("seconds") or 0
    if grace is None or grace < 0:
        grace = 0 if grace is None else seconds
    if seconds < 0 or seconds > grace:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        report.invalid(path, seconds, text)


_HANDLERS: tuple[tuple[str, Rule], ...] = (
    ("exec", required("command")),
    ("httpGet", _http),
    ("tcpSocket", _PORT),
    ("grpc", struct(number("port", 1, 65535, absent=2))),
    ("sleep", _sleep),
)


def _handler(tree: Tree, path: str, report: Report) -> None:
    found = False
    for name, rule in _HANDLERS:
        part = tree.get(name)
        if part is None:
            continue
        if found:
            report.forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
            continue
        found = True
        rule(part, f"{path}.{name}", report)
    if not found:
        report.required(path, "must specify a handler type")


def lifecycle(tree: Tree, path: str, report: Report) -> None:
    for name in ("postStart", "preStop"):
        if tree.get(name) is not None:
            _handler(tree[name], f"{path}.{name}", report)


def _probe(tree: Tree, path: str, report: Report) -> None:
    _handler(tree, path, report)
    _NUMBERS(tree, path, report)
    grace = tree.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        report.invalid(path + ".terminationGracePeriodSeconds", grace, "must be greater than 0")


def liveness(tree: Tree, path: str, report: Report) -> None:
    """A probe whose failure ends the container: one success is enough."""
    _probe(tree, path, report)
    if tree.get("successThreshold") != 1:
        report.invalid(path + ".successThreshold", tree.get("successThreshold") or 0, "must be 1")


def readiness(tree: Tree, path: str, report: Report) -> None:
    _probe(tree, path, report)
    grace = tree.get("terminationGracePeriodSeconds")
    if grace is not None:
        report.invalid(path + ".terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
