"""Nobody reads by a policy what they may not read: its expressions see parameters, and its messages show them.

Who names a kind of parameters must be allowed to get all of them, who binds a policy to parameters those of the binding.
Members of system:masters may do everything anyway.
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi_core import errors
from fastapi_core.authn.base import MASTERS
from fastapi_core.authz.base import Attributes, Authorizer, Decision, Verdict
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.request.context import RequestContext
from fastapi_core.rest.escalation import Guard

GROUP = "admissionregistration.k8s.io"
_POLICIES = {"validatingadmissionpolicies", "mutatingadmissionpolicies"}
#: The policies that a kind of binding refers to.
_BINDINGS = {f"{policy.removesuffix('ies')}ybindings": policy for policy in _POLICIES}


@dataclass(frozen=True, slots=True)
class Known:
    """What the check looks up."""

    policy: Callable[[str, str], Tree | None]
    """A policy by resource and name."""
    resource: Callable[[str, str], str]
    """The resource of a kind, by group and kind; empty when there is none."""


def guard(definition: ResourceDefinition, authorizer: Authorizer, known: Known) -> Guard | None:
    """What watches over the writes of a kind; None for kinds that refer to no parameters."""
    if definition.group != GROUP:
        return None
    check = _Check(definition, authorizer, known)
    if definition.plural in _POLICIES:
        return check.policy
    return check.binding if definition.plural in _BINDINGS else None


class _Check:
    def __init__(self, definition: ResourceDefinition, authorizer: Authorizer, known: Known) -> None:
        self._definition = definition
        self._authorizer = authorizer
        self._known = known

    async def policy(self, ctx: RequestContext, tree: Tree, old: Tree | None) -> None:
        """The kind of a policy's parameters."""
        kind = _part(tree, "paramKind")
        if not kind or (old is not None and _part(old, "paramKind") == kind) or MASTERS in ctx.user.groups:
            return
        if not await self._may_get(ctx, kind, "*", "*"):
            text = (
                f'user {_shown(ctx)} must have "get" permission on all objects of the referenced paramKind '
                f"(kind={kind.get('kind') or ''}, apiVersion={kind.get('apiVersion') or ''})"
            )
            raise self._refusal(tree, "spec.paramKind", text)

    async def binding(self, ctx: RequestContext, tree: Tree, old: Tree | None) -> None:
        """The parameters a binding names."""
        reference = _part(tree, "paramRef")
        policy = (tree.get("spec") or {}).get("policyName") or ""
        if not reference or MASTERS in ctx.user.groups:
            return
        if old is not None and _part(old, "paramRef") == reference and old["spec"].get("policyName") == policy:
            return
        bound = self._known.policy(_BINDINGS[self._definition.plural], policy)
        kind = _part(bound, "paramKind") if bound is not None else {}
        if not await self._may_get(ctx, kind, reference.get("namespace") or "", reference.get("name") or ""):
            text = f'user {_shown(ctx)} does not have "get" permission on the object referenced by paramRef'
            raise self._refusal(tree, "spec.paramRef", text)

    async def _may_get(self, ctx: RequestContext, kind: Tree, namespace: str, name: str) -> bool:
        """An unknown kind takes the right to everything that it could be."""
        group = version = resource = "*"
        if kind:
            group, _, version = (kind.get("apiVersion") or "").rpartition("/")
            resource = self._known.resource(group, kind.get("kind") or "") or "*"
        verdict = self._authorizer.authorize(
            Attributes(ctx.user, "get", group, version, namespace, resource, "", name, "", True, "", "")
        )
        if not isinstance(verdict, Verdict):
            verdict = await verdict
        return verdict.decision is Decision.ALLOW

    def _refusal(self, tree: Tree, field: str, text: str) -> errors.APIError:
        name = tree["metadata"].get("name") or ""
        return errors.invalid(self._definition.kind, GROUP, name, [errors.FieldError("Forbidden", field, text)])


def _part(tree: Tree, member: str) -> Tree:
    found: Tree = (tree.get("spec") or {}).get(member) or {}
    return found


def _shown(ctx: RequestContext) -> str:
    user = ctx.user
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
