"""The command: `python -m fastapi_core.testing.conformance`, or `fastapi-core conformance`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from fastapi_core.testing.conformance import samples
from fastapi_core.testing.conformance.report import Outcome, Report, Result
from fastapi_core.testing.conformance.runner import Options, Session, selected
from fastapi_core.testing.conformance.target import NOBODY, Credential, Target, TargetError

_DESCRIPTION = """\
Tests a server that speaks the Kubernetes API from outside: one group of it, or single resources. What applies is found
from discovery. The kit works in namespaces of its own, labels what it makes and removes it again.

Exit code: 0 when every rule that must hold holds, 1 when one does not or something was left behind, 2 when nothing
could be tested."""


def main(arguments: list[str] | None = None, program: str = "python -m fastapi_core.testing.conformance") -> int:
    """Run the command; answers the exit code."""
    options = parser_of(program).parse_args(arguments)
    try:
        if options.list:
            for check in selected(options.only, options.skip):
                print(f"{check.name}  ({check.level.value})\n    {check.rule}")
            return 0
        report = _run(options)
    except TargetError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    print(report.text())
    try:
        if options.junit:
            Path(options.junit).write_text(report.junit(strict=options.strict))
        if options.json:
            Path(options.json).write_text(report.json())
    except OSError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    return 0 if report.ok and not (options.strict and report.failures()) else 1


def session(options: argparse.Namespace) -> Session:
    """What a parsed command line describes; TargetError when it cannot be."""
    if options.group is None:
        raise TargetError("--group is missing; core is the group without a name")
    chosen = Options(
        "" if options.group == "core" else options.group,
        options.version,
        options.resource,
        options.namespace,
        options.other_namespace,
        samples.load(options.sample),
        options.only,
        options.skip,
    )
    return Session(_target(options), chosen)


def _run(options: argparse.Namespace) -> Report:
    kit = session(options)
    try:
        for check, number in kit.cases():
            result = kit.one(check, number)
            if options.verbose:
                _say(result)
    finally:
        report = kit.end()
    return report


def _say(result: Result) -> None:
    if result.outcome is not Outcome.FAIL:
        print(result.line(), flush=True)
    else:
        print(f"{result.line()}: {result.reason[0]}", flush=True)


def parser_of(program: str) -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=program, description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = parser.add_argument_group("the server")
    where.add_argument("--kubeconfig", metavar="FILE", help="address, CA and credential from a kubeconfig")
    where.add_argument("--context", default="", help="context of the kubeconfig, its current one by default")
    where.add_argument("--url", help="https://host:port; with a kubeconfig, instead of its address")
    where.add_argument("--ca-file", metavar="FILE", help="certificates to trust")
    where.add_argument("--server-name", default="", help="the name in the server's certificate")
    where.add_argument("--insecure", action="store_true", help="trust any certificate")
    where.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="how long an answer may take")
    where.add_argument(
        "--settle",
        type=float,
        default=0.2,
        metavar="SECONDS",
        help="how long controllers may wait before they touch a new object",
    )
    who = parser.add_argument_group("credentials")
    for prefix, text in (("", "who may do everything"), ("other-", "who may do nothing: tries 403")):
        who.add_argument(f"--{prefix}token", default="", help=f"bearer token of one {text}")
        who.add_argument(f"--{prefix}client-certificate", metavar="FILE", help="PEM, instead of a token")
        who.add_argument(f"--{prefix}client-key", metavar="FILE", help="its key")
    what = parser.add_argument_group("what to test")
    what.add_argument("--group", help="the API group; core is the one without a name")
    what.add_argument("--version", default="", help="its version, the preferred one by default")
    what.add_argument("--resource", action="append", default=[], help="plural name, all by default; may be repeated")
    what.add_argument("--namespace", default="", help="where to work, instead of namespaces made for it")
    what.add_argument("--other-namespace", default="", help="another one that exists")
    what.add_argument("--sample", action="append", default=[], metavar="FILE", help="objects to create, YAML or JSON")
    what.add_argument("--only", action="append", default=[], metavar="PATTERN", help="checks to run, such as 'watch.*'")
    what.add_argument("--skip", action="append", default=[], metavar="PATTERN", help="checks not to run")
    what.add_argument("--list", action="store_true", help="list the checks and their rules")
    how = parser.add_argument_group("the report")
    how.add_argument("--junit", metavar="FILE", help="write JUnit XML as well")
    how.add_argument("--json", metavar="FILE", help="write JSON as well")
    how.add_argument("--strict", action="store_true", help="rules that should hold count, too")
    how.add_argument("-v", "--verbose", action="store_true", help="say how each check ends, at once")
    return parser


def _target(options: argparse.Namespace) -> Target:
    if options.kubeconfig:
        target = Target.from_kubeconfig(options.kubeconfig, options.context)
        target = replace(target, url=options.url.rstrip("/") if options.url else target.url)
    elif options.url:
        target = Target(options.url.rstrip("/"))
    else:
        raise TargetError("--kubeconfig or --url is missing")
    if not target.url.startswith(("https://", "http://")):
        raise TargetError(f"{target.url!r} is no address")
    given = _credential(options, "")
    return replace(
        target,
        ca=_read(options.ca_file) or target.ca,
        insecure=options.insecure or target.insecure,
        server_name=options.server_name or target.server_name,
        credential=target.credential if given == NOBODY else given,
        other=None if _credential(options, "other_") == NOBODY else _credential(options, "other_"),
        timeout=options.timeout,
        settle=options.settle,
    )


def _credential(options: argparse.Namespace, prefix: str) -> Credential:
    token = getattr(options, f"{prefix}token")
    certificate = _read(getattr(options, f"{prefix}client_certificate"))
    return Credential(token, certificate, _read(getattr(options, f"{prefix}client_key")))


def _read(file: str | None) -> bytes:
    try:
        return Path(file).read_bytes() if file else b""
    except OSError as error:
        raise TargetError(str(error)) from None
