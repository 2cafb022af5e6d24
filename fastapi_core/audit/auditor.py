"""What is written down about a request as it passes: one event a stage, at the level the policy says.

A request whose like has been seen costs a dictionary look-up and two joins; what only few requests need (bodies,
impersonation, failures) is looked at when it is there.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from fastapi_core.audit import event as events
from fastapi_core.audit.event import END, Deferred, Event, Subject, stamp
from fastapi_core.audit.policy import COMPLETE, LEVEL_NAMES, PANIC, STARTED, Level, Policy
from fastapi_core.codec import json
from fastapi_core.errors import APIError
from fastapi_core.http.exchange import Response, Stream, StreamWriter
from fastapi_core.meta.time import format_duration
from fastapi_core.obs import logs
from fastapi_core.request.info import internal_error

if TYPE_CHECKING:
    from fastapi_core.audit.backend import Backend
    from fastapi_core.http.exchange import Answer
    from fastapi_core.obs.catalog import Metrics
    from fastapi_core.obs.metrics import Counter
    from fastapi_core.request.context import RequestContext, User

log = logs.get("audit")

#: Subjects remembered, and the longest target worth it: what clients send must not decide how much we keep.
_MEMORY = 4096
_LONGEST = 512
#: Key of the address without its port in the memory of a connection.
_HOST = "audit-host"

#: Seconds above which the event tells how long the request took.
SLOW = 0.5
_LATENCY = "apiserver.latency.k8s.io/"

_RECEIVED_TIME = b',"requestReceivedTimestamp":"'
_STAGE_TIME = b'","stageTimestamp":"'

_FORMS = {b"application/json": "json", b"application/yaml": "yaml", b"application/vnd.kubernetes.protobuf": "protobuf"}

#: Failures ahead of the audit filter that are written down nevertheless: who could not be authenticated, a bad timeout.
_EARLY = frozenset({400, 401})


class Record:
    """One request that is being written down (`request.context.AuditRecord`)."""

    __slots__ = ("audit_id", "known", "received", "request", "subject")

    def __init__(self, subject: Subject, audit_id: bytes, received: bytes) -> None:
        self.subject = subject
        self.audit_id = audit_id
        self.received = received
        self.known: dict[str, str] | None = None
        """What the body says of its object."""
        self.request: bytes | None = None

    @property
    def bodies(self) -> bool:
        return self.subject.level >= Level.REQUEST

    def decoded(self, tree: dict[str, Any], defaults: Callable[[dict[str, Any]], None] | None = None) -> None:
        metadata = tree.get("metadata")
        if metadata and isinstance(metadata, dict):
            self.known = {
                name: metadata[name]
                for name in ("namespace", "name", "uid", "resourceVersion")
                if isinstance(metadata.get(name), str)
            }
        if self.subject.level < Level.REQUEST:
            return
        omit = self.subject.ruling.omit_managed_fields
        try:
            if defaults is not None or omit:
                tree = json.parse(json.encode(tree)).tree
                if omit:
                    events.drop_managed_fields(tree)
                if defaults is not None:
                    defaults(tree)
            # The kind may have been filled in last.
            self.request = json.encode({"kind": tree.get("kind"), "apiVersion": tree.get("apiVersion"), **tree})
        except Exception as error:
            # Never the request's problem: it will be refused for the same reason, or goes on without this part.
            log.warning("A request body cannot be written down", reason=str(error))

    def patch(self, body: bytes, form: str) -> None:
        if self.subject.level >= Level.REQUEST:
            self.request = events.compact(body, form, omit=False)


class _Silent:
    """The record of requests that nothing is written down about."""

    bodies = False

    def decoded(self, tree: dict[str, Any], defaults: Callable[[dict[str, Any]], None] | None = None) -> None:
        """Nothing."""

    def patch(self, body: bytes, form: str) -> None:
        """Nothing."""


SILENT = _Silent()


class Auditor:
    """Policy, memory and backend of one server. `before`, `after` and `aborted` are those of its filter."""

    def __init__(self, policy: Policy, backend: Backend, metrics: Metrics) -> None:
        self._policy = policy
        self._backend = backend
        self._put = backend.put
        self._subjects: dict[tuple[object, ...], Subject] = {}
        self._total = metrics.audit_events.labels()
        self._rejected = metrics.audit_rejected.labels()
        self._levels: tuple[Counter, ...] = tuple(metrics.audit_levels.labels(LEVEL_NAMES[level]) for level in Level)

    async def close(self) -> None:
        """Keep what has been written down so far; for shutdown, after the last request."""
        await self._backend.close()

    # The filter

    def before(self, ctx: RequestContext) -> Answer | Awaitable[Answer | None] | None:
        user = ctx.user
        subject = self._subject(ctx, user)
        self._levels[subject.level].value += 1
        if not subject.level:
            ctx.audit = SILENT
            return None
        audit_id = events.encode(ctx.audit_id)
        at = stamp(ctx.request.received)
        ctx.audit = Record(subject, audit_id, at)
        backend = self._backend
        if not subject.received:
            return backend.room() if backend.congested else None
        notes = ctx.annotations
        members = events.annotations_member(notes) if notes else b""
        line = b"".join((subject.head, audit_id, subject.received, at, _STAGE_TIME, at, b'"', members, END))
        self._total.value += 1
        if backend.waits:
            return self._stored(ctx, line)
        self._put(line)
        return backend.room() if backend.congested else None

    def after(self, ctx: RequestContext, answer: Answer) -> None:
        record = ctx.audit
        if not isinstance(record, Record):
            if record is None and ctx.outcome is not None:
                self._early(ctx, answer)
            return
        subject = record.subject
        now = time.time()
        if now - ctx.request.received > SLOW and ctx.info.verb != "watch":
            nanoseconds = int((now - ctx.request.received) * 1e9)
            ctx.annotate(f"{_LATENCY}total", format_duration(nanoseconds))
        if (
            record.known is None
            and ctx.outcome is None
            and ctx.annotations is None
            and ctx.impersonator is None
            and not ctx.long_running
            and type(answer) is Response
            and record.request is None
            and subject.level != Level.REQUEST_RESPONSE
        ):
            if subject.complete:
                status = events.status_code(answer.status)
                notes = events.decision_member(ctx.decision, ctx.reason) if ctx.decision else b""
                self._total.value += 1
                head = (subject.head, record.audit_id, subject.complete, status)
                times = (_RECEIVED_TIME, record.received, _STAGE_TIME, stamp(now), b'"')
                self._put(b"".join((*head, *times, notes, END)))
            return
        self._finish(ctx, record, answer)

    def aborted(self, ctx: RequestContext) -> None:
        """The client went away while its request waited."""
        record = ctx.audit
        if isinstance(record, Record):
            status = {"status": "Success", "message": "Connection closed early"}
            self._emit(ctx, record, COMPLETE, events.status_member(status, 200), b"", "")

    # Before

    def _subject(self, ctx: RequestContext, user: User | None) -> Subject:
        request = ctx.request
        header = request.header
        connection = request.connection
        host = connection.memo.get(_HOST)
        if host is None:
            host = connection.memo[_HOST] = connection.peer.rpartition(":")[0].strip("[]")
        agent, forwarded, real = header(b"user-agent"), header(b"x-forwarded-for"), header(b"x-real-ip")
        key = (user, request.method, request.target, agent, host, forwarded, real)
        subject = self._subjects.get(key)
        if subject is None:
            info = ctx.info
            ruling = self._policy.rule_on(user, info)
            ips = events.source_ips(forwarded, real, host)
            text = agent.decode("utf-8", "replace") if agent else ""
            subject = Subject(ruling, user, request.target, info, ips, text)
            if (
                len(request.target) <= _LONGEST
                and len(agent or b"") <= _LONGEST
                and len(forwarded or b"") + len(real or b"") <= _LONGEST
            ):
                if len(self._subjects) >= _MEMORY:
                    self._subjects.clear()
                self._subjects[key] = subject
        return subject

    async def _stored(self, ctx: RequestContext, line: bytes) -> Answer | None:
        """Go on once the event is kept, or not at all."""
        if await self._backend.store(line) or not self._backend.strict:
            return None
        self._rejected.inc()
        return internal_error(ctx.request.target, "failed to store audit event")

    # After

    def _early(self, ctx: RequestContext, answer: Answer) -> None:
        """A request that was refused before anybody knew whose it is."""
        error = ctx.outcome
        if not isinstance(error, APIError) or error.code not in _EARLY:
            return
        subject = self._subject(ctx, None)
        self._levels[subject.level].value += 1
        if subject.level:
            record = Record(subject, events.encode(ctx.audit_id), stamp(ctx.request.received))
            self._emit(ctx, record, STARTED, events.status_member(error.to_status(), answer.status), b"", "")

    def _finish(self, ctx: RequestContext, record: Record, answer: Answer) -> None:
        outcome = ctx.outcome
        if isinstance(outcome, APIError):
            status = events.status_member(outcome.to_status(), answer.status)
        elif isinstance(outcome, dict):
            status = events.status_member(outcome, answer.status)
        elif outcome is not None:
            failure = {"status": "Failure", "message": f"APIServer panic'd: {outcome}", "reason": "InternalError"}
            self._emit(ctx, record, PANIC, events.status_member(failure, 500), b"", "")
            return
        else:
            status = events.status_code(answer.status)
        body: bytes | list[bytes] = b""
        form = ""
        if record.subject.level == Level.REQUEST_RESPONSE and isinstance(answer, Response):
            body, form = _document(ctx, answer)
        if ctx.long_running:
            self._emit(ctx, record, STARTED, status, body, form)
        if isinstance(answer, Stream):
            self._follow(ctx, record, status, answer)
        else:
            self._emit(ctx, record, COMPLETE, status, body, form)

    def _follow(self, ctx: RequestContext, record: Record, status: bytes, answer: Stream) -> None:
        """A stream is complete when it ends."""
        start = answer.start

        def closed() -> None:
            self._emit(ctx, record, COMPLETE, status, b"", "")

        def followed(writer: StreamWriter) -> None:
            writer.on_close(closed)
            start(writer)

        answer.start = followed

    def _emit(
        self, ctx: RequestContext, record: Record, stage: str, status: bytes, body: bytes | list[bytes], form: str
    ) -> None:
        """One event with everything that is known about the request."""
        subject = record.subject
        if stage in subject.ruling.omit_stages:
            return
        reference = subject.ref
        if record.known is not None and ctx.info.is_resource_request:
            reference = events.reference(ctx.info, record.known)
        before = b"".join((
            subject.head, record.audit_id, b',"stage":"', stage.encode(), b'"', subject.who,
            _impersonation(ctx), subject.source, reference, status,
        ))  # fmt: skip
        now = stamp(time.time())
        after = b"".join((_RECEIVED_TIME, record.received, _STAGE_TIME, now, b'"'))
        made: Event
        if record.request or body:
            omit = subject.ruling.omit_managed_fields
            made = Deferred(before, after, _notes(ctx), record.request or b"", body, form, omit=omit)
        elif ctx.annotations:
            made = b"".join((before, after, events.annotations_member(_notes(ctx)), END))
        else:
            known = events.decision_member(ctx.decision, ctx.reason) if ctx.decision else b""
            made = b"".join((before, after, known, END))
        self._total.value += 1
        self._put(made)


def _notes(ctx: RequestContext) -> dict[str, str]:
    notes = dict(ctx.annotations) if ctx.annotations else {}
    if ctx.decision:
        notes[events.DECISION] = ctx.decision
        notes[events.REASON] = ctx.reason
    return notes


def _impersonation(ctx: RequestContext) -> bytes:
    """Whom the request was carried out as, when that is not who asked."""
    if ctx.impersonator is None:
        return b""
    member = b',"impersonatedUser":' + events.encode(events.user_tree(ctx.user))
    if ctx.constraint:
        member += b',"authenticationMetadata":' + events.encode({"impersonationConstraint": ctx.constraint})
    return member


def _document(ctx: RequestContext, answer: Response) -> tuple[bytes | list[bytes], str]:
    """The body of an answer that is an API object, and its form."""
    path = ctx.info.path
    if ctx.long_running and ctx.outcome is None:
        # What others have said through us.
        return b"", ""
    api = ctx.info.is_resource_request or path in ("/api", "/apis") or path.startswith(("/api/", "/apis/"))
    if not api and ctx.outcome is None:
        return b"", ""
    for name, value in answer.headers:
        if len(name) == 12 and name.lower() == b"content-type":
            form = _FORMS.get(value.partition(b";")[0], "")
            body = answer.body
            return (body if isinstance(body, bytes) else list(body), form) if form else (b"", "")
    return b"", ""
