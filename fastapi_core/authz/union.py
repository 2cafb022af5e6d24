"""Several authorizers in order: the first opinion wins, and who has none may say why."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from fastapi_core.authz.base import Attributes, Authorizer, Decision, Grants, RuleLister, Verdict
from fastapi_core.request.context import User


class AuthorizerUnion:
    """Asks one after the other until somebody allows or denies; reasons of those without an opinion are kept."""

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self._authorizers = tuple(authorizers)
        # A generation that is part of the class never changes; the sum is asked for with every request.
        self._changing = tuple(a for a in authorizers if not isinstance(getattr(type(a), "generation", None), int))

    @property
    def generation(self) -> int:
        total = 0
        for authorizer in self._changing:
            total += authorizer.generation
        return total

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        return self._ask(attributes, 0, [])

    def _ask(self, attributes: Attributes, index: int, before: list[Verdict]) -> Verdict | Awaitable[Verdict]:
        """Ask from `index` on; `before`: what those in front had to say."""
        while index < len(self._authorizers):
            verdict = self._authorizers[index].authorize(attributes)
            index += 1
            if not isinstance(verdict, Verdict):
                return self._wait(attributes, index, before, verdict)
            if verdict.decision is not Decision.NO_OPINION:
                return _lasting_as(verdict, before)
            before.append(verdict)
        reason = "\n".join(verdict.reason for verdict in before if verdict.reason)
        error = aggregate([verdict.error for verdict in before if verdict.error])
        return _lasting_as(Verdict(Decision.NO_OPINION, reason, error), before)

    async def _wait(
        self, attributes: Attributes, index: int, before: list[Verdict], pending: Awaitable[Verdict]
    ) -> Verdict:
        verdict = await pending
        if verdict.decision is not Decision.NO_OPINION:
            return verdict
        rest = self._ask(attributes, index, [*before, verdict])
        return rest if isinstance(rest, Verdict) else await rest

    def grants(self, user: User, namespace: str) -> Grants:
        """What all of them together list; what one of them cannot list leaves the whole incomplete."""
        resources, paths, errors, incomplete = [], [], [], False
        for authorizer in self._authorizers:
            if isinstance(authorizer, RuleLister):
                found = authorizer.grants(user, namespace)
                resources += found.resource_rules
                paths += found.path_rules
                incomplete = incomplete or found.incomplete
                if found.error:
                    errors.append(found.error)
        return Grants(resources, paths, incomplete, aggregate(errors))


def _lasting_as(verdict: Verdict, before: list[Verdict]) -> Verdict:
    """A verdict lasts no longer than the opinions that those in front might come to have."""
    if verdict.lasting and not all(earlier.lasting for earlier in before):
        return verdict._replace(lasting=False)
    return verdict


def aggregate(errors: Sequence[str]) -> str:
    """Several errors as one text, each once, as the reference prints them."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""
