"""Validating: all webhooks that want to see a request are asked at once, and each may refuse it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from time import perf_counter

from fastapi_core.admission.chain import Attributes
from fastapi_core.admission.webhooks.hooks import Match
from fastapi_core.admission.webhooks.plugin import WebhookPlugin
from fastapi_core.admission.webhooks.views import View, Views
from fastapi_core.errors import APIError

FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/round_0_index_"


class ValidatingWebhooks(WebhookPlugin):
    name = "ValidatingAdmissionWebhook"
    kind = "validating"

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        matches = self.hooks.matching(attributes.operation, attributes.definition, attributes.subresource)
        if not matches:
            return None
        first = self.first(attributes, matches)
        return None if first < 0 else self._ask(attributes, matches[first:])

    async def _ask(self, attributes: Attributes, matches: Sequence[Match]) -> None:
        chosen = await self._chosen(attributes, matches)
        if len(chosen) == 1:
            error = await self._one(attributes, *chosen[0], 0)
            if error is not None:
                raise error
            return
        tasks = [
            asyncio.create_task(self._one(attributes, match, view, number), name=f"webhook {match.hook.name}")
            for number, (match, view) in enumerate(chosen)
        ]
        first: APIError | None = None
        try:
            for finished in asyncio.as_completed(tasks):
                error = await finished
                first = first or error
        finally:
            for task in tasks:
                task.cancel()
        if first is not None:
            raise first

    async def _chosen(self, attributes: Attributes, matches: Sequence[Match]) -> list[tuple[Match, View]]:
        """Those to be asked, with what they see."""
        namespaces = self.surroundings.namespaces
        views = Views(attributes, self.surroundings.convert)
        chosen = []
        for match in matches:
            if not match.hook.constraint.selected(attributes, namespaces):
                continue
            found = views.get(match)
            view = found if isinstance(found, View) else await found
            if match.hook.conditional:
                meets = self.meets(attributes, match, view)
                if not (meets if isinstance(meets, bool) else await meets):
                    continue
            chosen.append((match, view))
        return chosen

    async def _one(self, attributes: Attributes, match: Match, view: View, number: int) -> APIError | None:
        """Ask one; the error for the client, if any."""
        started = perf_counter()
        try:
            await self.call(attributes, match, view)
        except Exception as error:
            return self.failed(attributes, match.hook, started, error, f"{FAILED_OPEN}{number}")
        self.succeeded(match.hook, attributes.operation, started)
        return None
