from __future__ import annotations

import io
from pathlib import Path

import pytest

from fastapi_core.obs import logs
from fastapi_core.obs.catalog import Metrics
from fastapi_core.options.audit import auditor
from fastapi_core.options.flags import OptionsError
from fastapi_core.options.options import Options

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"


def errors(*arguments: str) -> list[str]:
    with pytest.raises(OptionsError) as raised:
        Options.parse(arguments)
    return raised.value.errors


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "policy").write_text(POLICY.replace("Metadata", "Loud, verb: [x]"))
    assert errors(
        f"--audit-policy-file={tmp_path}/policy",
        "--audit-log-mode=fast",
        "--audit-log-format=xml",
        "--audit-log-maxage=-1",
        "--audit-log-version=audit.k8s.io/v1beta1",
        "--audit-log-truncate-enabled",
        "--audit-log-truncate-max-batch-size=5",
        "--audit-webhook-batch-buffer-size=0",
        "--audit-webhook-batch-throttle-qps=0",
        "--audit-webhook-initial-backoff=-1s",
    ) == [
        "--audit-log-version: 'audit.k8s.io/v1beta1' is not known, use audit.k8s.io/v1",
        "--audit-log-mode: 'fast' is none of batch, blocking, blocking-strict",
        "--audit-log-truncate-max-batch-size: must not be less than --audit-log-truncate-max-event-size",
        "--audit-webhook-batch-buffer-size: must be a positive number",
        "--audit-webhook-batch-throttle-qps: must be a positive number with --audit-webhook-batch-throttle-enable",
        "--audit-log-format: 'xml' is none of json, legacy",
        "--audit-log-maxage: cannot be negative, use 0 or more",
        "--audit-webhook-initial-backoff: cannot be negative, use for example 10s",
        f"--audit-policy-file: '{tmp_path}/policy': strict decoding error: unknown field \"rules[0].verb\"",
        f"--audit-policy-file: '{tmp_path}/policy': rules[0].level: Unsupported value: \"Loud\": supported values: "
        '"None", "Metadata", "Request", "RequestResponse"',
    ]
    assert errors("--audit-policy-file=/nowhere") == [
        "--audit-policy-file: '/nowhere' cannot be read (No such file or directory), check the path"
    ]


async def test_a_policy_and_a_place_make_an_auditor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(logs.SINK, "stream", out)
    policy, log = tmp_path / "policy", tmp_path / "sub" / "audit.log"
    policy.write_text(POLICY)
    assert auditor(Options.parse([]).audit, Metrics()) is None
    assert auditor(Options.parse([f"--audit-policy-file={policy}"]).audit, Metrics()) is None
    assert not out.getvalue()
    assert auditor(Options.parse([f"--audit-log-path={log}"]).audit, Metrics()) is None
    assert "no audit events are recorded" in out.getvalue()
    (tmp_path / "hook").write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
        "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:9'}}]\n"
    )
    made = auditor(
        Options.parse(
            [
                f"--audit-policy-file={policy}",
                f"--audit-log-path={log}",
                f"--audit-webhook-config-file={tmp_path}/hook",
            ]
        ).audit,
        Metrics(),
    )
    assert made is not None
    assert log.exists()
    await made.close()


def test_places_that_cannot_be_used_are_told_together(tmp_path: Path) -> None:
    (tmp_path / "policy").write_text(POLICY)
    (tmp_path / "hook").write_text("{}")
    options = Options.parse(
        [
            f"--audit-policy-file={tmp_path}/policy",
            f"--audit-log-path={tmp_path}/policy/x.log",
            f"--audit-webhook-config-file={tmp_path}/hook",
        ]
    )
    with pytest.raises(OptionsError) as raised:
        auditor(options.audit, Metrics())
    log, webhook = raised.value.errors
    assert log.startswith("--audit-log-path: ")
    assert webhook.startswith("--audit-webhook-config-file: ")
    assert "current-context is not set" in webhook
