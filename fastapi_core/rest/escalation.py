"""Nobody hands out rights by roles and bindings that they do not hold, unless they may escalate or bind.

Members of system:masters may do everything anyway; so may those to whom the authorizer allows `escalate` on the role, or
`bind` on the role that a binding refers to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fastapi_core import errors
from fastapi_core.authn.base import MASTERS
from fastapi_core.authz import rules
from fastapi_core.authz.base import Attributes, Authorizer, Decision, Verdict
from fastapi_core.authz.rbac import RoleIndex
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.request.context import RequestContext

Guard = Callable[[RequestContext, Tree, "Tree | None"], Awaitable[None]]
"""Looks at a new object (and the old one) after mutating admission; a refusal is an APIError."""

GROUP = "rbac.authorization.k8s.io"
_ROLES = {"roles", "clusterroles"}
_BINDINGS = {"rolebindings", "clusterrolebindings"}
#: Members of metadata that others than the author change: garbage collection, and the record of owners.
_COLLECTED = ("ownerReferences", "finalizers", "selfLink", "managedFields")


def guard(definition: ResourceDefinition, authorizer: Authorizer, roles: RoleIndex) -> Guard | None:
    """What watches over the writes of a kind; None for kinds that grant nothing."""
    if definition.group != GROUP:
        return None
    check = _Check(definition, authorizer, roles)
    if definition.plural in _ROLES:
        return check.role
    return check.binding if definition.plural in _BINDINGS else None


class _Check:
    def __init__(self, definition: ResourceDefinition, authorizer: Authorizer, roles: RoleIndex) -> None:
        self._plural = definition.plural
        self._authorizer = authorizer
        self._roles = roles

    async def role(self, ctx: RequestContext, tree: Tree, old: Tree | None) -> None:
        """The rules of a role, and everything when it is (or was) put together from others."""
        if MASTERS in ctx.user.groups or (old is not None and _only_collected(tree, old)):
            return
        if await self._may(ctx, "escalate", self._plural, ctx.info.name):
            return
        name = tree["metadata"].get("name") or ""
        self._confirm(ctx, tree.get("rules") or (), name)
        if not tree.get("aggregationRule") and not (old or {}).get("aggregationRule"):
            return
        owned, _ = self._roles.rules_of(ctx.user, ctx.info.namespace)
        if rules.uncovered(owned, rules.FULL_AUTHORITY):
            text = "must have cluster-admin privileges to use the aggregationRule"
            raise errors.forbidden(self._plural, GROUP, name, text)

    async def binding(self, ctx: RequestContext, tree: Tree, old: Tree | None) -> None:
        """The rules of the role that is bound."""
        if MASTERS in ctx.user.groups or (old is not None and _only_collected(tree, old)):
            return
        reference = tree.get("roleRef") or {}
        kind, role = reference.get("kind") or "", reference.get("name") or ""
        bound = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
        if bound is not None and await self._may(ctx, "bind", bound, role, reference.get("apiGroup") or ""):
            return
        found = self._roles.rules(kind, ctx.info.namespace, role)
        if found is None:
            if bound is None:
                raise errors.APIError("", f"unsupported role reference kind: {errors.go_quote(kind)}", code=500)
            raise errors.not_found(self._plural, GROUP, role)
        self._confirm(ctx, found.trees, tree["metadata"].get("name") or "")

    async def _may(self, ctx: RequestContext, verb: str, resource: str, name: str, group: str = GROUP) -> bool:
        info = ctx.info
        attributes = Attributes(ctx.user, verb, group, "*", info.namespace, resource, "", name, "", True, "", "")
        verdict = self._authorizer.authorize(attributes)
        if not isinstance(verdict, Verdict):
            verdict = await verdict
        return verdict.decision is Decision.ALLOW

    def _confirm(self, ctx: RequestContext, wanted: Sequence[Tree], name: str) -> None:
        """403 with everything in `wanted` that the user does not hold where the object goes."""
        user = ctx.user
        owned, problem = self._roles.rules_of(user, ctx.info.namespace)
        missing = rules.uncovered(owned, wanted)
        if not missing:
            return
        lines = "\n".join(sorted({rules.text(rule) for rule in rules.compact(missing)}))
        text = (
            f"user {errors.go_quote(user.name)} (groups={rules.quoted(user.groups)}) is attempting to grant RBAC "
            f"permissions not currently held:\n{lines}"
        )
        if problem:
            text += f"; resolution errors: [{problem}]"
        raise errors.forbidden(self._plural, GROUP, name, text)


def _only_collected(tree: Tree, old: Tree) -> bool:
    """Whether nothing changes but what the garbage collector has to change."""

    def rest(full: Tree) -> Tree:
        return {
            **{member: value for member, value in full.items() if value},
            "metadata": {member: value for member, value in full["metadata"].items() if member not in _COLLECTED},
        }

    return rest(tree) == rest(old)
