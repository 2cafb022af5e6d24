"""OwnerReferencesPermissionEnforcement: to make others owners takes rights over the object and over them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.questions import Questions
from fastapi_core.admission.refusals import forbidden
from fastapi_core.registry.definition import ResourceDefinition, Tree

#: (group, version, kind) -> the resources of that kind.
Find = Callable[[str, str, str], Sequence[ResourceDefinition]]


class OwnerReferencesPermissionEnforcement(Plugin):
    name = "OwnerReferencesPermissionEnforcement"

    def __init__(self, questions: Questions, find: Find) -> None:
        self._questions = questions
        self._find = find

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        # Old kubelets write wrong owners into the status of pods, where they have no effect.
        status = definition.plural == "pods" and not definition.group and subresource == "status"
        return operation in (CREATE, UPDATE) and not status

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        new, old = owners(attributes.object), owners(attributes.old)
        return None if new == old else self._check(attributes, new, old)

    async def _check(self, attributes: Attributes, new: Sequence[Tree], old: Sequence[Tree]) -> None:
        definition = attributes.definition
        if attributes.operation != CREATE:
            reply = await self._questions.ask(
                attributes,
                "delete",
                group=definition.group,
                version=definition.version,
                resource=definition.plural,
                subresource=attributes.subresource,
                namespace=attributes.namespace,
                name=attributes.name,
            )
            if not reply.allowed:
                text = f"cannot set an ownerRef on a resource you can't delete: {reply.reason}, {reply.error}"
                raise forbidden(attributes, text)
        for reference in blocking(new, old):
            await self._check_owner(attributes, reference)

    async def _check_owner(self, attributes: Attributes, reference: Tree) -> None:
        """Who blocks the deletion of an owner must be able to lift that."""
        api, kind = reference.get("apiVersion") or "", reference.get("kind") or ""
        group, _, version = api.rpartition("/")
        found = self._find(group, version, kind)
        if not found:
            what = f"cannot find RESTMapping for APIVersion {api} Kind {kind}"
            why = f'no matches for kind "{kind}" in version "{api}"'
            raise forbidden(attributes, f"cannot set blockOwnerDeletion in this case because {what}: {why}")
        for owner in found:
            reply = await self._questions.ask(
                attributes,
                "update",
                group=owner.group,
                version=owner.version,
                resource=owner.plural,
                subresource="finalizers",
                namespace=attributes.namespace if owner.namespaced else "",
                name=reference.get("name") or "",
            )
            if not reply.allowed:
                text = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
                raise forbidden(attributes, f"{text}: {reply.reason}, {reply.error}")


def owners(tree: Tree | None) -> list[Tree]:
    return ((tree or {}).get("metadata") or {}).get("ownerReferences") or []


def blocking(new: Sequence[Tree], old: Sequence[Tree]) -> list[Tree]:
    """References that block the deletion of their owner and did not before."""
    before = {owner.get("uid") for owner in old if owner.get("blockOwnerDeletion")}
    return [owner for owner in new if owner.get("blockOwnerDeletion") and owner.get("uid") not in before]
