"""What both webhook plugins share: whom a request concerns, calling one webhook, and telling about it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from fastapi_core.admission.chain import Attributes, Plugin
from fastapi_core.admission.matching import Namespaces
from fastapi_core.admission.webhooks import review
from fastapi_core.admission.webhooks.answers import RequestError
from fastapi_core.admission.webhooks.caller import Caller, CallError
from fastapi_core.admission.webhooks.hooks import Hook, Hooks, Match, exempt
from fastapi_core.admission.webhooks.review import Response, ReviewError
from fastapi_core.admission.webhooks.views import Convert, Defaults, View
from fastapi_core.errors import APIError, forbidden, go_quote, internal
from fastapi_core.meta.names import qualified_name
from fastapi_core.obs import logs
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.registry.lifecycle import new_uid
from fastapi_core.request.status import Overtime

if TYPE_CHECKING:
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.obs.catalog import Metrics

log = logs.get("webhooks")

_MOST = 600
"""Codes above are counted together."""


class Surroundings(NamedTuple):
    """What the plugins need of the server they run in."""

    caller: Caller
    namespaces: Namespaces
    authorizer: Authorizer
    metrics: Metrics
    convert: Convert
    defaults: Defaults


class WebhookPlugin(Plugin):
    """`kind` is how metrics call what it does."""

    kind = ""

    def __init__(self, hooks: Hooks, surroundings: Surroundings) -> None:
        self.hooks = hooks
        self.surroundings = surroundings
        self._metrics = surroundings.metrics

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return not exempt(definition) and bool(self.hooks.matching(operation, definition, subresource))

    def first(self, attributes: Attributes, matches: Sequence[Match]) -> int:
        """The number of the first webhook whose selectors take a request; -1 when none does."""
        namespaces = self.surroundings.namespaces
        for number, match in enumerate(matches):
            if match.hook.constraint.selected(attributes, namespaces):
                return number
        return -1

    # Match conditions

    def meets(self, attributes: Attributes, match: Match, view: View) -> bool | Awaitable[bool]:
        """Whether a request meets the conditions of a webhook. Forbidden when that cannot be told and must be."""
        from fastapi_core.admission import evaluation

        conditions, authorizer = match.hook.conditions, evaluation.RequestAuthorizer(self.surroundings.authorizer)
        given = evaluation.Input(attributes, match.target, authorizer, trees=(view.tree, view.before))
        labels = (match.hook.name, "webhook", self.kind, attributes.operation)

        def attempt() -> bool:
            started = perf_counter()
            try:
                unmet = conditions.unmet(given.conditions())
            except evaluation.FailedError as error:
                self._metrics.condition_errors.labels(*labels).inc()
                if match.hook.ignore:
                    self._metrics.condition_exclusions.labels(*labels).inc()
                    return False
                definition = attributes.definition
                raise forbidden(definition.plural, definition.group, attributes.name, str(error)) from None
            finally:
                self._metrics.condition_seconds.labels(*labels).observe(perf_counter() - started)
            if unmet is not None:
                self._metrics.condition_exclusions.labels(*labels).inc()
            return unmet is None

        return evaluation.settled(authorizer, attempt)

    # Calling

    async def call(self, attributes: Attributes, match: Match, view: View) -> Response:
        """What a webhook says. Raises CallError; APIError when it refuses, or cannot be asked in a dry run."""
        hook = match.hook
        if attributes.dry_run and not hook.dry_run:
            raise review.no_dry_run(hook.name)
        if not hook.version:
            text = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise CallError(f"could not create admission objects: {text}", 400)
        uid = new_uid()
        body = review.question(hook.version, uid, match.words, attributes, view.new, view.old)
        caller = self.surroundings.caller
        if hook.server is None:
            hook.server = caller.server(hook.client)
        left = _left(attributes)
        document = await caller.ask(hook.server, body, hook.timeout, left)
        try:
            response = review.understood(hook.version, uid, document, mutating=self.kind == "admit")
        except RequestError as error:
            raise CallError(f"failed to call webhook: {error}", error.code) from None
        except ReviewError as error:
            raise CallError(f"received invalid webhook response: {error}") from None
        for key, value in response.annotations.items():
            note(attributes, f"{hook.name}/{key}", value)
        for warning in response.warnings:
            attributes.warn(warning)
        if not response.allowed:
            raise Refusal(review.refusal(hook.name, response.status))
        return response

    # Telling

    def succeeded(self, hook: Hook, operation: str, started: float) -> None:
        self._count(hook, operation, started, 200, rejected=False)

    def failed(self, attributes: Attributes, hook: Hook, started: float, error: Exception, key: str) -> APIError | None:
        """Count a failure; the error for the client, None when the request goes on without the webhook. `key` is the
        annotation that says so."""
        operation = attributes.operation
        if isinstance(error, CallError):
            if not hook.ignore:
                self._reject(hook, operation, "calling_webhook_error", error.code)
            self._count(hook, operation, started, error.code, rejected=not hook.ignore)
            text = f"failed calling webhook {go_quote(hook.name)}: {error}"
            log.warning("Webhook failed", webhook=hook.name, open=hook.ignore, error=str(error))
            if not hook.ignore:
                return internal(text)
            self._metrics.webhook_fail_open.labels(hook.name, self.kind).inc()
            note(attributes, key, hook.name)
            return None
        if isinstance(error, Refusal):
            self._reject(hook, operation, "no_error", error.status.code)
            self._count(hook, operation, started, error.status.code, rejected=True)
            return error.status
        self._reject(hook, operation, "apiserver_internal_error", 0)
        self._count(hook, operation, started, 0, rejected=True)
        if not isinstance(error, APIError):
            raise error  # a defect of ours
        return error

    def _count(self, hook: Hook, operation: str, started: float, code: int, *, rejected: bool) -> None:
        word = "true" if rejected else "false"
        metrics = self._metrics
        metrics.webhook_requests.labels(hook.name, self.kind, operation, str(min(code, _MOST)), word).inc()
        metrics.webhook_duration.labels(hook.name, self.kind, operation, word).observe(perf_counter() - started)

    def _reject(self, hook: Hook, operation: str, error: str, code: int) -> None:
        self._metrics.webhook_rejections.labels(hook.name, self.kind, operation, error, str(min(code, _MOST))).inc()


class Refusal(Exception):  # noqa: N818 - a webhook doing its work
    """A webhook said no; `status` is what the client is told."""

    def __init__(self, status: APIError) -> None:
        super().__init__(status.message)
        self.status = status


def _left(attributes: Attributes) -> float | None:
    """Seconds until the request is answered in any case; None without a limit. Timeout when there are none."""
    deadline = attributes.context.deadline
    if not deadline:
        return None
    left = deadline - asyncio.get_running_loop().time()
    if left <= 0:
        raise Overtime()
    return left


def note(attributes: Attributes, key: str, value: str) -> None:
    """Annotate the audit event, unless the key is none."""
    if key.count("/") != 1 or qualified_name(key):
        log.warning("Audit annotation of a webhook dropped, its key is not PREFIX/NAME", key=key)
        return
    attributes.annotate(key, value)
