"""Mutating: webhooks that want to see a request are asked one after the other, each sees what those before
it made of the object. When one changes something, the chain runs once more, and those that want to be asked again are.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Sequence
from dataclasses import field
from time import perf_counter

from fastapi_core.admission.chain import Attributes
from fastapi_core.admission.webhooks import patching, review
from fastapi_core.admission.webhooks.caller import CallError
from fastapi_core.admission.webhooks.hooks import Hook, Match
from fastapi_core.admission.webhooks.plugin import WebhookPlugin, note
from fastapi_core.admission.webhooks.review import Response
from fastapi_core.admission.webhooks.views import View, Views
from fastapi_core.codec import json
from fastapi_core.errors import go_quote, internal
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import Tree
from fastapi_core.schema import defaults as type_defaults
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.normalize import normalize

_MUTATION = "mutation.webhook.admission.k8s.io/"
_PATCH = "patch.webhook.admission.k8s.io/"
_FAILED_OPEN = "failed-open." + _MUTATION


@dataclass(slots=True)
class _Rounds:
    """What has to be remembered from the first round for the second: webhooks by uid."""

    invoked: set[str] = field(default_factory=set)
    """Called, and want to be called again."""
    again: set[str] = field(default_factory=set)
    """To be called again: something changed after them."""
    output: Tree | None = None
    """The object as the first round left it."""

    def changed(self) -> None:
        self.again |= self.invoked
        self.invoked = set()


class MutatingWebhooks(WebhookPlugin):
    name = "MutatingAdmissionWebhook"
    kind = "admit"

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        matches = self.hooks.matching(attributes.operation, attributes.definition, attributes.subresource)
        if not matches:
            return None
        if attributes.again:
            rounds = self._rounds(attributes)
            if rounds.invoked and rounds.output != attributes.object:
                rounds.changed()  # the plugins before us have changed something in this round
            if not rounds.again:
                return None
        first = self.first(attributes, matches)
        return None if first < 0 else self._ask(attributes, matches[first:])

    def _rounds(self, attributes: Attributes) -> _Rounds:
        notes = attributes.notes
        if notes is None:
            notes = attributes.notes = {}
        known: _Rounds | None = notes.get(self.name)
        if known is None:
            known = notes[self.name] = _Rounds()
        return known

    async def _ask(self, attributes: Attributes, matches: Sequence[Match]) -> None:
        namespaces = self.surroundings.namespaces
        rounds = self._rounds(attributes)
        views = Views(attributes, self.surroundings.convert)
        for match in matches:
            hook = match.hook
            if not hook.constraint.selected(attributes, namespaces):
                continue
            found = views.get(match)
            view = found if isinstance(found, View) else await found
            if hook.conditional:
                meets = self.meets(attributes, match, view)
                if not (meets if isinstance(meets, bool) else await meets):
                    continue
            if attributes.again and hook.uid not in rounds.again:
                continue
            if await self._one(attributes, match, view):
                views.changed()
                rounds.changed()
                attributes.reinvoke = True
            if hook.if_needed:
                rounds.invoked.add(hook.uid)
        if rounds.invoked and attributes.reinvoke and not attributes.again:
            rounds.output = copy.deepcopy(attributes.object)

    async def _one(self, attributes: Attributes, match: Match, view: View) -> bool:
        """Ask one; whether it changed the object."""
        hook, started = match.hook, perf_counter()
        place = f"round_{int(attributes.again)}_index_{hook.index}"
        changed = False
        try:
            response = await self.call(attributes, match, view)
            if response.patch:
                changed = await self._patch(attributes, match, view, response, place)
        except Exception as error:
            failure = self.failed(attributes, hook, started, error, _FAILED_OPEN + place)
            note(attributes, _MUTATION + place, _mutation(hook, changed=False))
            if failure is not None:
                raise failure from error
            return False
        self.succeeded(hook, attributes.operation, started)
        note(attributes, _MUTATION + place, _mutation(hook, changed=changed))
        return changed

    async def _patch(self, attributes: Attributes, match: Match, view: View, response: Response, place: str) -> bool:
        """Change the object as the webhook says; whether that makes a difference."""
        steps = patching.operations(response.patch)
        if not steps:
            return False
        hook = match.hook
        if view.tree is None or attributes.object is None:
            text = "attempted to modify the object, which is not supported for this operation"
            raise internal(f"admission webhook {go_quote(hook.name)} {text}")
        if response.patch_type != review.JSON_PATCH:
            raise CallError(f"unsupported patch type {go_quote(response.patch_type)}", 400)
        patched = patching.apply(view.tree, steps)
        patched = self._decoded(match, view.tree, patched)
        changed = patched != view.tree
        self._prune(match, patched)
        audit = attributes.context.audit
        if audit is not None and audit.bodies:
            note(attributes, _PATCH + place, _patch_note(hook, steps))
        self._default(match, patched)
        self._repair(attributes, patched)
        await self._put(attributes, match, patched)
        return changed

    @staticmethod
    def _decoded(match: Match, before: Tree, patched: Tree) -> Tree:
        patching.check_kind(patched, before["kind"], before["apiVersion"])
        if match.type is None:
            return patched
        try:
            tree: Tree = normalize(match.type, patched).tree
        except TypeMismatch as error:
            raise internal(str(error)) from None
        return {"kind": before["kind"], "apiVersion": before["apiVersion"], **tree}

    @staticmethod
    def _prune(match: Match, tree: Tree) -> None:
        """What the schema of a custom resource does not know goes; metadata must have its types."""
        form = match.target.form if match.type is None else None
        if form is None:
            return
        problems, _ = form.coerce(tree, drop=False)
        if problems:
            raise internal(str(problems[0]))
        form.prune(tree)

    def _default(self, match: Match, tree: Tree) -> None:
        if "metadata" in tree:
            tree["metadata"] = dict(tree["metadata"] or {})
        if match.main:
            self.surroundings.defaults(match.target, tree)
        elif match.type is not None:
            type_defaults.apply(match.type, tree)

    @staticmethod
    def _repair(attributes: Attributes, tree: Tree) -> None:
        """Broken owners of fields do not break the request: those from before stay."""
        metadata = tree.get("metadata")
        if not isinstance(metadata, dict):
            return
        before = ((attributes.object or {}).get("metadata") or {}).get("managedFields")
        entries = metadata.get("managedFields")
        if entries == before:
            return
        problem = patching.owners_problem(entries)
        if problem:
            attributes.warn(patching.INVALID_OWNERS + problem)
            metadata.pop("managedFields", None)
            if before is not None:
                metadata["managedFields"] = before

    async def _put(self, attributes: Attributes, match: Match, tree: Tree) -> None:
        """Make it the object of the request."""
        definition, target = attributes.definition, match.target
        if match.main and target.group_version != definition.group_version:
            converted = self.surroundings.convert(tree, target, definition)
            tree = await converted if isinstance(converted, Awaitable) else converted
        attributes.object = tree


def _mutation(hook: Hook, *, changed: bool) -> str:
    told = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
    return json.encode(told).decode()


def _patch_note(hook: Hook, steps: list[Tree]) -> str:
    ordered = [{name: step[name] for name in sorted(step)} for step in steps]
    told = {"configuration": hook.configuration, "webhook": hook.name, "patch": ordered, "patchType": review.JSON_PATCH}
    return json.encode(told).decode()
