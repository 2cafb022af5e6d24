"""The webhook plugins as the chain knows them. What calls webhooks is imported when the first configuration turns up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from fastapi_core.admission.chain import Attributes, Plugin
from fastapi_core.admission.objects import Objects
from fastapi_core.registry.definition import ResourceDefinition

if TYPE_CHECKING:
    from fastapi_core.admission.webhooks.plugin import WebhookPlugin
    from fastapi_core.storage.cacher.changes import WatchEvent


class Gate(Plugin):
    """`make` makes the plugin behind it."""

    def __init__(self, configurations: Objects, make: Callable[[], WebhookPlugin]) -> None:
        self._configurations = configurations
        self._make = make
        self._made: WebhookPlugin | None = None

    @property
    def real(self) -> WebhookPlugin:
        made = self._made
        if made is None:
            made = self._made = self._make()
        return made

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        if not self._configurations.list():
            return False
        return self.real.handles(operation, definition, subresource)

    def follow(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each change of a configuration, before whoever made it hears that it is done."""

        def deliver(events: list[WatchEvent]) -> None:
            changed()

        cache = self._configurations.store.cache
        cache.watch(since=cache.revision, deliver=deliver)

    def forget(self) -> None:
        """Other resources are served than before."""
        if self._made is not None:
            self._made.hooks.forget()

    def close(self) -> None:
        """End the connections to webhooks."""
        if self._made is not None:
            self._made.surroundings.caller.close()


class MutatingAdmissionWebhook(Gate):
    name = "MutatingAdmissionWebhook"

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        return self.real.admit(attributes)


class ValidatingAdmissionWebhook(Gate):
    name = "ValidatingAdmissionWebhook"

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        return self.real.validate(attributes)
