"""The kit's own parts: kubeconfigs, objects from schemas, samples, reports, the command line."""

from __future__ import annotations

import base64
import json
import re
from http.client import HTTPMessage
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.testing import conformance
from fastapi_core.testing.conformance import cli, families, schemas
from fastapi_core.testing.conformance.client import Answer
from fastapi_core.testing.conformance.families import status
from fastapi_core.testing.conformance.schemas import Schema
from fastapi_core.testing.conformance.subject import within
from fastapi_core.testing.conformance.verdicts import WHOLE, Failed, Skipped, check
from fastapi_core.testing.server import RunningServer
from tests.fixtures.faulty import Fault, Relay, said


def kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    file = folder / "config"
    config = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://example.com:1/", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    file.write_text(yaml.safe_dump(config))
    return file


def test_kubeconfig_with_data_and_files(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"CA")
    data = base64.b64encode(b"CERT").decode()
    file = kubeconfig(
        tmp_path,
        {"client-certificate-data": data, "client-key-data": data},
        **{"certificate-authority": "ca.pem", "tls-server-name": "db"},
    )
    target = conformance.Target.from_kubeconfig(file)
    assert (target.url, target.ca, target.server_name) == ("https://example.com:1", b"CA", "db")
    assert target.credential == conformance.Credential("", b"CERT", b"CERT")


def test_kubeconfig_with_a_token_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    target = conformance.Target.from_kubeconfig(kubeconfig(tmp_path, {"tokenFile": "token"}))
    assert target.credential.token == "secret"
    assert "secret" not in repr(target)


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ({"exec": {"command": "x"}}, "exec"),
        ({"client-key": "none.pem"}, "client-key"),
        ({"client-key-data": "???"}, "client-key"),
        ({"tokenFile": "none"}, "tokenFile"),
    ],
)
def test_kubeconfigs_that_cannot_be_used(tmp_path: Path, user: dict[str, Any], told: str) -> None:
    with pytest.raises(conformance.TargetError, match=told):
        conformance.Target.from_kubeconfig(kubeconfig(tmp_path, user))
    with pytest.raises(conformance.TargetError, match="contexts has no 'two'"):
        conformance.Target.from_kubeconfig(kubeconfig(tmp_path, {}), "two")
    with pytest.raises(conformance.TargetError, match="No such file"):
        conformance.Target.from_kubeconfig(tmp_path / "none")


def made(schema: dict[str, Any], document: dict[str, Any] | None = None) -> Any:
    return Schema(document or {}, {}).at(schema).make()


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "enum": ["", "b"]}, "b"),
        ({"type": "string", "default": "x"}, "x"),
        ({"type": "string", "minLength": 3}, "aaa"),
        ({"type": "string", "pattern": r"^\d+Gi$"}, "1Gi"),
        ({"type": "string", "format": "date-time"}, "2024-01-02T03:04:05Z"),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": True}, 6),
        ({"type": "integer", "minimum": 5, "multipleOf": 4}, 8),
        ({"type": "integer", "maximum": 0}, 0),
        ({"type": "boolean"}, True),
        ({"x-kubernetes-int-or-string": True}, 1),
        ({"type": "array", "minItems": 2, "items": {"type": "integer"}}, [1, 1]),
        ({"type": "array", "items": {"type": "integer"}}, []),
        ({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]}, {"b": "a"}),
    ],
)
def test_values_from_schemas(schema: dict[str, Any], value: object) -> None:
    assert made(schema) == value


def test_references_are_followed_and_circles_end() -> None:
    node = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#/components/schemas/N"}}}
    document = {
        "components": {
            "schemas": {"N": node, "T": {"allOf": [{"$ref": "#/components/schemas/S"}]}, "S": {"type": "string"}}
        }
    }
    assert made({"$ref": "#/components/schemas/T"}, document) == "a"
    assert json.dumps(made({"$ref": "#/components/schemas/N"}, document)).count("next") > 3
    assert made({"$ref": "#/components/schemas/none"}, document) == {}
    assert len(list(schemas.references(document))) == 2
    assert schemas.resolve(document, "#/components/none") is None


def test_where_a_large_text_goes() -> None:
    text = {"type": "string"}
    schema = Schema(
        {},
        {
            "properties": {
                "kind": text,
                "spec": {
                    "properties": {"engine": {**text, "enum": ["a"]}, "note": text, "short": {**text, "maxLength": 3}}
                },
                "data": {"additionalProperties": text},
            }
        },
    )
    assert list(schema.strings()) == [("spec", "note"), ("data", "big")]


_NODES = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "?"]),
            "enum": st.lists(st.integers(), min_size=1, max_size=2),
            "pattern": st.text(max_size=6),
            "minLength": st.integers(0, 9),
            "minimum": st.integers(-9, 9),
            "minItems": st.integers(0, 3),
            "multipleOf": st.integers(1, 5),
            "required": st.lists(st.sampled_from("ab"), max_size=2),
            "allOf": st.lists(st.just({"type": "string"}), max_size=2),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "array"])},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), inner),
            "items": inner,
            "additionalProperties": inner,
        },
    ),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None)
@given(_NODES, st.booleans())
def test_any_schema_makes_something(node: dict[str, Any], full: bool) -> None:
    """Schemas come from servers under test; none may stop the kit."""
    json.dumps(Schema({}, node).make(full=full))
    list(Schema({}, node).strings())


def test_samples(tmp_path: Path) -> None:
    file = tmp_path / "sample.yaml"
    file.write_text("kind: A\n---\n---\nkind: B\n")
    assert [sample["kind"] for sample in conformance.load([file])] == ["A", "B"]
    for text, told in (("a: b", "not an object"), ("{", "sample"), ("- a", "not an object")):
        file.write_text(text)
        with pytest.raises(conformance.TargetError, match=told):
            conformance.load([file])
    with pytest.raises(conformance.TargetError, match="No such file"):
        conformance.load([tmp_path / "none"])


def report() -> conformance.Report:
    must, should = conformance.Level.MUST, conformance.Level.SHOULD
    report = conformance.Report("https://x", "g")
    for name, level, outcome, reason in (
        ("a.one", must, conformance.Outcome.PASS, ()),
        ("a.two", must, conformance.Outcome.FAIL, ("expected: 200", "> GET /x", "< 500 \x00")),
        ("a.three", should, conformance.Outcome.FAIL, ("expected: more",)),
        ("a.four", must, conformance.Outcome.SKIP, ("needs watch, which is not served",)),
    ):
        report.results.append(conformance.Result(name, "things.g", level, "A rule.", outcome, reason))
    return report


def test_reports() -> None:
    text = report().text()
    assert "FAIL a.two [things.g] (must)\n    rule: A rule.\n    expected: 200\n    > GET /x" in text
    assert "SKIP a.four: needs verbs" in text
    assert text.endswith("NOT OK: 1 passed, 1 failed that must hold, 1 failed that should, 1 skipped")
    tree = json.loads(report().json())
    assert tree["counts"] == {"pass": 1, "fail": 2, "skip": 1}
    assert not tree["ok"]
    for strict, failures in ((False, "1"), (True, "2")):
        suite = ElementTree.fromstring(report().junit(strict=strict))[0]
        assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("things.g", "4", failures)


def test_what_is_left_behind_is_not_ok() -> None:
    found = report()
    found.results = found.passed
    assert found.ok
    found.leftovers.append("/apis/x")
    assert not found.ok
    assert "LEFT BEHIND /apis/x" in found.text()
    assert 'name="nothing-left-behind"' in found.junit()
    assert not conformance.Report("https://x", "g").ok


def test_rules_are_written_down() -> None:
    for found in families.load():
        assert re.fullmatch(r"[a-z]+\.[a-z0-9-]+", found.name)
        assert found.rule.endswith("."), found.name
        assert len(found.rule) < 200, found.name
    with pytest.raises(ValueError, match="there are two"):
        check("get.object")(lambda subject: None)


def arguments(server: RunningServer, *more: str) -> list[str]:
    return ["--kubeconfig", str(server.kubeconfig), "--group", "coordination.k8s.io", *more]


def test_command(kit_server: RunningServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Over TLS with the client certificate of the kubeconfig, in namespaces that exist."""
    place = ("--namespace", "conformance-one", "--other-namespace", "conformance-two")
    files = ("--junit", str(tmp_path / "junit.xml"), "--json", str(tmp_path / "report.json"))
    assert cli.main(arguments(kit_server, *place, *files, "-v", "--only", "get.object", "--only", "watch.events")) == 0
    out = capsys.readouterr().out
    assert "PASS get.object [leases.coordination.k8s.io]\n" in out
    assert out.endswith("OK: 2 passed, 0 failed that must hold, 0 failed that should, 0 skipped\n")
    assert json.loads((tmp_path / "report.json").read_text())["ok"]
    assert ElementTree.parse(tmp_path / "junit.xml").getroot()[0].get("tests") == "2"


def test_command_with_a_sample_that_is_refused(
    kit_server: RunningServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = tmp_path / "lease.yaml"
    sample.write_text("kind: Lease\nspec: {leaseDurationSeconds: -1}\n")
    place = ("--namespace", "conformance-one", "--sample", str(sample))
    assert cli.main(arguments(kit_server, *place, "--only", "create.stamped", "--only", "create.dry-run")) == 1
    out = capsys.readouterr().out
    assert "FAIL create.stamped" in out
    assert "NOTE leases.coordination.k8s.io: the sample given is refused (422 " in out
    assert "SKIP create.dry-run: nothing can be created, see the notes" in out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--group x", "--kubeconfig or --url is missing"),
        ("--url https://x", "--group is missing"),
        ("--url ftp://x --group x", "is no address"),
        ("--url https://x --group x --ca-file none", "No such file"),
        ("--url https://x --group x --sample none", "sample none"),
    ],
)
def test_wrong_command_lines(line: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(line.split()) == 2
    assert told in capsys.readouterr().err


def test_certificates_that_are_none(tmp_path: Path) -> None:
    for target in (
        conformance.Target("https://127.0.0.1:1", ca=b"nonsense"),
        conformance.Target("https://127.0.0.1:1", credential=conformance.Credential("", b"nonsense", b"nonsense")),
    ):
        with pytest.raises(conformance.TargetError, match="certificates cannot be used"):
            conformance.run(target, "x")


def test_the_list_of_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--list", "--only", "watch.*"]) == 0
    assert "watch.resumes  (must)\n    A watch from any event" in capsys.readouterr().out


def target(relay: Relay) -> conformance.Target:
    return conformance.Target(relay.url, credential=conformance.Credential(token="admintoken"))


def test_what_cannot_be_removed_is_told(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastapi_core.testing.conformance import tidy

    monkeypatch.setattr(tidy, "_PATIENCE", 0.3)
    relay.fault = Fault(
        lambda ask: said(200, {"kind": "Status", "status": "Success"}) if ask.method == "DELETE" else None
    )
    options: dict[str, Any] = {"resources": ["leases"], "only": ["create.stamped"], "namespace": "conformance-one"}
    stuck = conformance.run(target(relay), "coordination.k8s.io", **options)
    relay.fault = Fault()
    assert not stuck.ok
    assert stuck.leftovers
    for path in stuck.leftovers:
        assert path.startswith("/apis/coordination.k8s.io/v1/namespaces/conformance-one/leases/conformance-")
        relay.exchange("DELETE", path, None, {"Authorization": "Bearer admintoken"})


def test_namespaces_are_made_and_removed(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """No controller runs here: what nobody else lets go, the kit does."""
    from fastapi_core.testing.conformance import tidy

    monkeypatch.setattr(tidy, "_PATIENCE", 0.1)
    asked: list[str] = []
    relay.fault = Fault(lambda ask: asked.append(f"{ask.method} {ask.path}"))
    report = conformance.run(target(relay), "coordination.k8s.io", only=["scope.namespace"])
    relay.fault = Fault()
    assert report.ok, report.text()
    assert asked.count("POST /api/v1/namespaces") == 2
    left = relay.exchange("GET", "/api/v1/namespaces", None, {"Authorization": "Bearer admintoken"}).json["items"]
    names = {item["metadata"]["name"] for item in left}
    assert {name for name in names if name.startswith("conformance-")} == {"conformance-one", "conformance-two"}


def test_answers_of_another_shape_fail_and_do_not_stop_the_run(relay: Relay) -> None:
    def change(ask: Any, reply: Any) -> None:
        if ask.method == "GET" and ask.name.startswith("conformance-"):
            reply.json = {"kind": "Lease", "metadata": []}

    relay.fault = Fault(reply=change)
    report = conformance.run(
        target(relay), "coordination.k8s.io", only=["update.re*", "update.con*"], namespace="conformance-one"
    )
    relay.fault = Fault()
    assert len(report.failures()) == 3
    assert any("usual shape" in result.reason[0] for result in report.failures())


def test_objects_that_a_controller_changes(relay: Relay) -> None:
    """The kit waits until new objects are at rest, and takes what others do for no fault."""

    def change(ask: Any, reply: Any) -> None:
        # As fast as a controller can be: before the client has its answer.
        if ask.method == "POST" and reply.status == 201 and "dryRun" not in ask.query:
            body = {"metadata": {"annotations": {"touched": "yes"}}}
            path = f"{ask.path}/{reply.json['metadata']['name']}"
            ask.upstream("PATCH", path, body, **{"Content-Type": "application/merge-patch+json"})

    relay.fault = Fault(reply=change)
    only = ["create.readable", "update.conflict", "update.nothing", "watch.events", "watch.resumes", "delete.version"]
    report = conformance.run(target(relay), "coordination.k8s.io", only=only, namespace="conformance-one")
    relay.fault = Fault()
    assert report.ok, report.text()
    assert [result.check for result in report.skipped] == ["create.readable"]
    assert len(report.passed) == 5


def test_verdicts() -> None:
    assert Failed("x").lines() == ["expected: x"]
    assert str(Skipped("why")) == "why"


def test_another_valid_status() -> None:
    node = {
        "properties": {
            "phase": {"type": "string", "enum": ["", "Ready", "Gone"]},
            "count": {"type": "integer", "maximum": 3},
            "well": {"type": "boolean"},
            "note": {"type": "string"},
        }
    }
    made = Schema({}, node)
    assert made.other({"phase": "Ready"}) == {"phase": "Gone"}
    assert made.other({"count": 1}) == {"count": 2}
    assert made.other({"count": 3, "well": True}) == {"count": 3, "well": False}
    assert made.other({"unknown": 1, "note": "a"}) == {"unknown": 1, "note": "a-other"}
    assert made.other({"count": 3}) is None
    assert within({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}})
    assert not within({"a": {"b": 1, "c": None}}, {"a": {"b": 1}})


def test_bodies_are_whole_for_programs_alone() -> None:
    body = json.dumps({"text": "x" * 5000}).encode()
    answer = Answer("GET", "/a", b"", 200, HTTPMessage(), body)
    failed = Failed("something else", answer)
    short, whole = tuple(failed.lines()), tuple(failed.lines(WHOLE))
    assert "... (5012 bytes)" in short[-1]
    made = conformance.Report("https://x", "g")
    result = conformance.Result(
        "a.b", "r", conformance.Level.MUST, "A rule.", conformance.Outcome.FAIL, short, whole=whole
    )
    made.results.append(result)
    assert body.decode() in json.loads(made.json())["results"][0]["reason"][-1]
    assert max(map(len, made.text().splitlines())) < 500


def test_a_status_is_somebody_elses_when_it_was_written_again() -> None:
    old, new, newer = ({"metadata": {"resourceVersion": text}} for text in ("1", "2", "3"))
    status._left_alone(new, old, new)
    with pytest.raises(Skipped, match="a controller"):
        status._left_alone(newer, old, new)
