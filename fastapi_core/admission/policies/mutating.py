"""MutatingAdmissionPolicy: changes objects as its expressions say, before webhooks see them."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fastapi_core.admission.chain import CONNECT, CREATE, UPDATE, Attributes
from fastapi_core.admission.objects import Objects
from fastapi_core.admission.policies.params import Directory
from fastapi_core.admission.policies.plugin import Invocation, PolicyPlugin
from fastapi_core.admission.policies.source import Policy, Source
from fastapi_core.admission.policies.versions import Convert, Versions, renamed
from fastapi_core.admission.refusals import forbidden
from fastapi_core.authz.base import Authorizer
from fastapi_core.errors import APIError, go_quote
from fastapi_core.registry.definition import ResourceDefinition, Tree

if TYPE_CHECKING:
    from fastapi_core.admission.evaluation import Input, RequestAuthorizer
    from fastapi_core.admission.policies.patches import Mutations

Defaults = Callable[[ResourceDefinition, Tree], None]
"""Fills in, in place, what an object leaves out."""


class _Problem(NamedTuple):
    """Something that went wrong and is not to be ignored."""

    message: str
    reason: str


class _History:
    """Which policies have run on an object, and which are to run again since it has changed after them."""

    __slots__ = ("again", "last", "ran")

    def __init__(self) -> None:
        self.last: Tree | None = None
        self.ran: frozenset[Hashable] = frozenset()
        self.again: frozenset[Hashable] = frozenset()

    def copy(self) -> _History:
        made = _History()
        made.last, made.ran, made.again = self.last, self.ran, self.again
        return made

    def call_again(self) -> None:
        """All that have run so far are to run once more."""
        self.again |= self.ran
        self.ran = frozenset()


class _Outcome(NamedTuple):
    object: Tree | None
    changed: bool
    problems: list[_Problem]
    history: _History


class MutatingAdmissionPolicy(PolicyPlugin["Mutations"]):
    """The plugin."""

    name = "MutatingAdmissionPolicy"
    operations = frozenset((CREATE, UPDATE, CONNECT))

    def __init__(
        self,
        policies: Objects,
        bindings: Objects,
        namespaces: Objects,
        directory: Directory,
        authorizer: Authorizer,
        defaults: Defaults,
        convert: Convert = renamed,
    ) -> None:
        super().__init__(Source(policies, bindings, directory, _compiled), namespaces, convert)
        self._authorizer = authorizer
        self._defaults = defaults

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        if not self._relevant(attributes):
            return None
        from fastapi_core.admission.evaluation import RequestAuthorizer, settled

        authorizer = RequestAuthorizer(self._authorizer)
        found = settled(authorizer, partial(self._mutate, attributes, authorizer, Versions(self._convert)))
        if isinstance(found, _Outcome):
            self._tell(attributes, found)
            return None
        return self._tell_later(attributes, found)

    async def _tell_later(self, attributes: Attributes, pending: Awaitable[_Outcome]) -> None:
        self._tell(attributes, await pending)

    def _mutate(self, attributes: Attributes, authorizer: RequestAuthorizer, versions: Versions) -> _Outcome:
        """The object after all policies; nothing that exists already is changed."""
        problems: list[_Problem] = []
        calls: list[Invocation[Mutations]] = []
        for call in self._invocations(attributes):
            if not call.error:
                calls.append(call)
            elif not call.policy.ignores:
                problems.append(_Problem(_told(call, call.error), "Forbidden"))
        known = (attributes.notes or {}).get(self.name)
        history = known.copy() if known is not None else _History()
        run = _Run(attributes, history, authorizer, versions, self._defaults)
        if calls:
            if attributes.again and history.ran and history.last != attributes.object:
                history.call_again()
            run.namespace = self._namespace(attributes)
            for call in calls:
                run.call(call, problems)
            # Plugins change objects in place: what it is now would not be remembered.
            history.last = copy.deepcopy(run.object) if history.ran else None
        return _Outcome(run.object, run.changed, problems, history)

    def _tell(self, attributes: Attributes, outcome: _Outcome) -> None:
        if outcome.problems:
            raise _refusal(attributes, outcome.problems)
        if attributes.notes is None:
            attributes.notes = {}
        attributes.notes[self.name] = outcome.history
        if outcome.changed:
            attributes.object = outcome.object
            attributes.reinvoke = True


class _Run:
    """One pass over an object."""

    def __init__(
        self,
        attributes: Attributes,
        history: _History,
        authorizer: RequestAuthorizer,
        versions: Versions,
        defaults: Defaults,
    ) -> None:
        self.attributes = attributes
        self.history = history
        self.object = attributes.object
        self.changed = False
        self.namespace: Tree | None = None
        self._authorizer = authorizer
        self._versions = versions
        self._defaults = defaults

    def call(self, call: Invocation[Mutations], problems: list[_Problem]) -> None:
        """Ask one policy, for each of its parameters."""
        from fastapi_core.admission.evaluation import FailedError, Input

        policy, binding, target, params, _ = call
        if binding is None or target is None:
            return
        source = self.attributes.definition
        for param in params:
            metadata = param["metadata"] if param is not None else {}
            key = (policy.name, binding.name, metadata.get("namespace"), metadata.get("name"))
            try:
                tree = self._versions.get(self.object, source, target)
                old = self._versions.get(self.attributes.old, source, target)
            except APIError as error:
                self._problem(call._replace(binding=None), f"failed to configure policy: {error}", problems)
                return
            seen = Input(self.attributes, target, self._authorizer, trees=(tree, old), namespace=self.namespace)
            try:
                if not policy.compile().meant(seen, param):
                    continue
            except FailedError as error:
                self._problem(call, str(error), problems)
                continue
            if self.attributes.again and key not in self.history.again:
                continue
            self._patch(call, seen, param, problems)
            if policy.spec.get("reinvocationPolicy") == "IfNeeded":
                self.history.ran |= {key}

    def _patch(self, call: Invocation[Mutations], seen: Input, param: Tree | None, problems: list[_Problem]) -> None:
        from fastapi_core.admission.evaluation import FailedError

        before = seen.object
        for mutation in call.policy.compile().mutations if before is not None else ():
            try:
                patched = mutation(seen, param)
            except FailedError as error:
                self._problem(call, str(error), problems)
                continue
            if patched is not seen.object:
                if patched.get("kind") == seen.target.kind:
                    self._defaults(seen.target, patched)
                seen.object = patched
        if seen.object is not before and seen.object != before:
            self.object = self._versions.get(seen.object, seen.target, self.attributes.definition)
            self.changed = True
            self.history.call_again()

    @staticmethod
    def _problem(call: Invocation[Mutations], text: str, problems: list[_Problem]) -> None:
        if not call.policy.ignores:
            problems.append(_Problem(_told(call, text), "Invalid"))


def _told(call: Invocation[Mutations], text: str) -> str:
    if call.binding is None:
        return f"policy {go_quote(call.policy.name)} denied request: {text}"
    return f"policy '{call.policy.name}' with binding '{call.binding.name}' denied request: {text}"


def _refusal(attributes: Attributes, problems: list[_Problem]) -> APIError:
    details = {**(forbidden(attributes, "").details or {}), "causes": [{"message": p.message} for p in problems]}
    return APIError(problems[0].reason, problems[0].message, code=403, details=details)


def _compiled(policy: Policy[Mutations]) -> Mutations:
    from fastapi_core.admission.policies.patches import Mutations

    return Mutations(policy.spec)
