"""Flags of audit: what is written down about requests, and where."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fastapi_core.options.flags import BOOL, DURATION, FLOAT, INT, STRING, OptionsError, flag
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core.audit.auditor import Auditor
    from fastapi_core.audit.backend import Backend, Throttle
    from fastapi_core.audit.policy import Policy
    from fastapi_core.obs.catalog import Metrics

_MODES = ("batch", "blocking", "blocking-strict")
_FORMATS = ("json", "legacy")
_VERSION = "audit.k8s.io/v1"
_MODE_HELP = "batch: lose events that come too fast; blocking: let requests wait; blocking-strict: refuse them."


@dataclass(slots=True)
class Audit:
    """What is written down about requests."""

    policy_file: str = flag("audit-policy-file", STRING, "", "File of the audit policy; empty: nothing is audited.")

    log_path: str = flag("audit-log-path", STRING, "", "File for events as lines of JSON; - for standard output.")
    log_format: str = flag("audit-log-format", STRING, "json", "Lines of that file: json or legacy.")
    log_version: str = flag("audit-log-version", STRING, _VERSION, "Version of the events in it.")
    log_maxage: int = flag("audit-log-maxage", INT, 366, "Days rotated files are kept; 0 for ever.")
    log_maxbackup: int = flag("audit-log-maxbackup", INT, 100, "Rotated files kept; 0 for all.")
    log_maxsize: int = flag("audit-log-maxsize", INT, 100, "MiB at which the file is rotated; 0 for 100.")
    log_compress: bool = flag("audit-log-compress", BOOL, False, "Compress rotated files.")
    log_mode: str = flag("audit-log-mode", STRING, "blocking", _MODE_HELP)
    log_buffer: int = flag("audit-log-batch-buffer-size", INT, 10_000, "Events kept; mode batch.")
    log_batch: int = flag("audit-log-batch-max-size", INT, 1, "Events written together; more do no harm.")
    log_wait: float = flag("audit-log-batch-max-wait", DURATION, 0.0, "Time events gather; mode batch.")
    log_throttle: bool = flag("audit-log-batch-throttle-enable", BOOL, False, "Limit the batches a second.")
    log_qps: float = flag("audit-log-batch-throttle-qps", FLOAT, 0.0, "Batches a second on average.")
    log_burst: int = flag("audit-log-batch-throttle-burst", INT, 0, "Batches at once after a pause.")
    log_truncate: bool = flag("audit-log-truncate-enabled", BOOL, False, "Drop bodies of too large events.")
    log_event_limit: int = flag("audit-log-truncate-max-event-size", INT, 102_400, "Bytes of an event at most.")
    log_batch_limit: int = flag("audit-log-truncate-max-batch-size", INT, 10_485_760, "Bytes of a batch at most.")

    webhook_config_file: str = flag("audit-webhook-config-file", STRING, "", "Kubeconfig of the server events go to.")
    webhook_version: str = flag("audit-webhook-version", STRING, _VERSION, "Version of the events sent to it.")
    webhook_backoff: float = flag("audit-webhook-initial-backoff", DURATION, 10.0, "Pause before the first retry.")
    webhook_mode: str = flag("audit-webhook-mode", STRING, "batch", _MODE_HELP)
    webhook_buffer: int = flag("audit-webhook-batch-buffer-size", INT, 10_000, "Events kept; mode batch.")
    webhook_batch: int = flag("audit-webhook-batch-max-size", INT, 400, "Events sent together.")
    webhook_wait: float = flag("audit-webhook-batch-max-wait", DURATION, 30.0, "Time events gather.")
    webhook_throttle: bool = flag("audit-webhook-batch-throttle-enable", BOOL, True, "Limit the batches a second.")
    webhook_qps: float = flag("audit-webhook-batch-throttle-qps", FLOAT, 10.0, "Batches a second on average.")
    webhook_burst: int = flag("audit-webhook-batch-throttle-burst", INT, 15, "Batches at once after a pause.")
    webhook_truncate: bool = flag("audit-webhook-truncate-enabled", BOOL, False, "Drop bodies of too large events.")
    webhook_event_limit: int = flag("audit-webhook-truncate-max-event-size", INT, 102_400, "Bytes of an event at most.")
    webhook_batch_limit: int = flag(
        "audit-webhook-truncate-max-batch-size", INT, 10_485_760, "Bytes of a batch at most."
    )


@dataclass(frozen=True, slots=True)
class _Sending:
    """What both backends have, and the word their flags have for them."""

    word: str
    version: str
    mode: str
    buffer: int
    batch: int
    throttled: bool
    qps: float
    burst: int
    truncated: bool
    event_limit: int
    batch_limit: int

    def check(self) -> list[str]:
        flags = f"--audit-{self.word}"
        wrong = []
        if self.version != _VERSION:
            wrong.append(f"{flags}-version: {self.version!r} is not known, use {_VERSION}")
        if self.mode not in _MODES:
            wrong.append(f"{flags}-mode: {self.mode!r} is none of {', '.join(_MODES)}")
        if self.mode == "batch":
            wrong += [
                f"{flags}-batch-{name}: must be a positive number"
                for name, value in (("buffer-size", self.buffer), ("max-size", self.batch))
                if value <= 0
            ]
            wrong += [
                f"{flags}-batch-throttle-{name}: must be a positive number with {flags}-batch-throttle-enable"
                for name, value in (("qps", self.qps), ("burst", self.burst))
                if self.throttled and value <= 0
            ]
        if self.truncated and self.event_limit <= 0:
            wrong.append(f"{flags}-truncate-max-event-size: must be a positive number")
        if self.truncated and self.batch_limit < self.event_limit:
            wrong.append(f"{flags}-truncate-max-batch-size: must not be less than {flags}-truncate-max-event-size")
        return wrong

    def throttle(self) -> Throttle | None:
        from fastapi_core.audit.backend import Throttle

        return Throttle(self.qps, self.burst) if self.throttled else None


def _of_log(group: Audit) -> _Sending:
    return _Sending(
        "log", group.log_version, group.log_mode, group.log_buffer, group.log_batch, group.log_throttle,
        group.log_qps, group.log_burst, group.log_truncate, group.log_event_limit, group.log_batch_limit,
    )  # fmt: skip


def _of_webhook(group: Audit) -> _Sending:
    return _Sending(
        "webhook", group.webhook_version, group.webhook_mode, group.webhook_buffer, group.webhook_batch,
        group.webhook_throttle, group.webhook_qps, group.webhook_burst, group.webhook_truncate,
        group.webhook_event_limit, group.webhook_batch_limit,
    )  # fmt: skip


def check(group: Audit) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    wrong = [*_of_log(group).check(), *_of_webhook(group).check()]
    if group.log_format not in _FORMATS:
        wrong.append(f"--audit-log-format: {group.log_format!r} is none of {', '.join(_FORMATS)}")
    wrong += [
        f"--audit-log-{name}: cannot be negative, use 0 or more"
        for name, value in (
            ("maxage", group.log_maxage), ("maxbackup", group.log_maxbackup), ("maxsize", group.log_maxsize),
        )
        if value < 0
    ]  # fmt: skip
    if group.webhook_backoff < 0:
        wrong.append("--audit-webhook-initial-backoff: cannot be negative, use for example 10s")
    if group.policy_file:
        wrong += _load(group.policy_file)[1]
    return wrong


def _load(path: str) -> tuple[Policy | None, list[str]]:
    from fastapi_core.audit.policy_file import PolicyError, load

    try:
        with open(path, "rb") as file:
            return load(file.read()), []
    except OSError as error:
        return None, [f"--audit-policy-file: {path!r} cannot be read ({error.strerror}), check the path"]
    except PolicyError as error:
        return None, [f"--audit-policy-file: {path!r}: {problem}" for problem in error.problems]


def auditor(group: Audit, metrics: Metrics) -> Auditor | None:
    """What writes down requests; None when nothing is to be. Raises OptionsError for places that cannot be used."""
    from fastapi_core.obs import logs

    if not group.policy_file:
        if group.log_path or group.webhook_config_file:
            logs.get("audit").warning("No --audit-policy-file: no audit events are recorded")
        return None
    policy, wrong = _load(group.policy_file)
    backends: list[Backend] = []
    for made in (_log, _webhook):
        try:
            backend = made(group, metrics)
        except OptionsError as error:
            wrong += error.errors
        else:
            backends += [backend] if backend is not None else []
    if wrong or policy is None:
        raise OptionsError(wrong)
    if not backends:
        return None
    from fastapi_core.audit.auditor import Auditor
    from fastapi_core.audit.backend import Union

    return Auditor(policy, backends[0] if len(backends) == 1 else Union(backends), metrics)


def _log(group: Audit, metrics: Metrics) -> Backend | None:
    if not group.log_path:
        return None
    from fastapi_core.audit.log import LogBackend, Output
    from fastapi_core.audit.logfile import LogFile, Rotation, StandardOutput

    output: Output
    if group.log_path == "-":
        output = StandardOutput()
    else:
        rotation = Rotation(group.log_maxsize, group.log_maxbackup, group.log_maxage, group.log_compress)
        try:
            output = LogFile(group.log_path, rotation)
        except OSError as error:
            reason = f"{group.log_path!r} cannot be written ({error.strerror}), check path and permissions"
            raise OptionsError([f"--audit-log-path: {reason}"]) from None
    sending = _of_log(group)
    return LogBackend(
        output,
        metrics.audit_errors,
        mode=sending.mode,
        form=group.log_format,
        event_limit=sending.event_limit if sending.truncated else 0,
        buffer=sending.buffer,
        batch=sending.batch,
        wait=group.log_wait,
        throttle=sending.throttle(),
    )


def _webhook(group: Audit, metrics: Metrics) -> Backend | None:
    if not group.webhook_config_file:
        return None
    from fastapi_core.audit.webhook import Batching, WebhookBackend
    from fastapi_core.authn.outbound import KubeconfigError, load_kubeconfig

    path = group.webhook_config_file
    try:
        remote = load_kubeconfig(path)
    except OSError as error:
        name = os.fspath(error.filename or path)
        raise OptionsError([f"--audit-webhook-config-file: {name!r} cannot be read ({error.strerror})"]) from None
    except KubeconfigError as error:
        raise OptionsError([f"--audit-webhook-config-file: {path!r}: {error}"]) from None
    sending = _of_webhook(group)
    return WebhookBackend(
        remote,
        metrics.audit_errors,
        mode=sending.mode,
        event_limit=sending.event_limit if sending.truncated else 0,
        batch_limit=sending.batch_limit if sending.truncated else 0,
        batching=Batching(sending.buffer, sending.batch, group.webhook_wait),
        throttle=sending.throttle(),
        backoff=group.webhook_backoff,
    )
