"""Whom a user may impersonate: the constrained modes, each with rights of its own, and the plain verb `impersonate`.

A constrained mode asks twice: may the user do what the request does under somebody else's name
(`impersonate-on:MODE:VERB` on the request's own object), and may it be that somebody (`impersonate:MODE` on the name, the
uid, each group and each extra value). The plain verb asks the second question alone, and allows everything afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from fastapi_core.apis.validation import formats
from fastapi_core.authn.base import AUTHENTICATED, MASTERS
from fastapi_core.authz.base import UNAUTHENTICATED, Attributes, Authorizer, Decision, Verdict, denied
from fastapi_core.errors import APIError, go_quote
from fastapi_core.meta import names
from fastapi_core.request.context import ANONYMOUS, User

ACCOUNT_PREFIX = "system:serviceaccount:"
ACCOUNTS_GROUP = "system:serviceaccounts"
NODE_PREFIX = "system:node:"
NODES_GROUP = "system:nodes"
NODE_NAME = "authentication.kubernetes.io/node-name"
NODE_KEYS = "authentication.kubernetes.io/associated-node-keys"
IDENTITY_GROUP = "authentication.k8s.io"
#: From so many groups or extra values on one question for all of them comes first.
_MANY = 4


class Impersonated(NamedTuple):
    """Who the request is from now on, and the verb of the constrained mode that allowed it (empty: the plain one)."""

    user: User
    constraint: str
    lasting: bool
    """Whether the answers it rests on hold until the policies change."""


class _Ask:
    """Questions to the authorizer on behalf of one requestor; a refusal is raised as the 403 it becomes."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self.lasting = True

    async def check(self, attributes: Attributes) -> None:
        verdict = self._authorizer.authorize(attributes)
        if not isinstance(verdict, Verdict):
            self.lasting = False
            verdict = await verdict
        self.lasting = self.lasting and verdict.lasting
        if verdict.decision is Decision.ALLOW:
            return
        parts = [part for part in (verdict.error, verdict.reason) if part]
        raise denied(attributes, ": ".join(parts))

    async def allowed(self, attributes: Attributes) -> bool:
        try:
            await self.check(attributes)
        except APIError:
            return False
        return True


class Mode:
    """One way to impersonate. `name` empty for the plain verb."""

    def __init__(self, name: str, applies: Callable[[User, User], bool]) -> None:
        self._name = name
        self.applies = applies
        """Whether the mode is for this wanted user, asked for by this requestor."""
        self._verb = f"impersonate:{name}" if name else "impersonate"
        self._group = IDENTITY_GROUP if name else ""
        self._version = "v1"

    async def check(self, authorizer: Authorizer, wanted: User, request: Attributes) -> Impersonated:
        """The user to be; 403 when the requestor may not."""
        ask = _Ask(authorizer)
        requestor = request.user
        if self._name:
            request = self._seen(request._replace(verb=f"impersonate-on:{self._name}:{request.verb}"))
            await ask.check(request)
            requestor = request.user
        user = await self._name_of(ask, wanted, requestor)
        if wanted.uid:
            await ask.check(self._attributes(requestor, "uids", wanted.uid))
        if wanted.groups:
            await self._groups_of(ask, wanted, requestor)
        if wanted.extra:
            await self._extra_of(ask, wanted, requestor)
        return Impersonated(_completed(user), self._verb if self._name else "", ask.lasting)

    def _seen(self, request: Attributes) -> Attributes:
        """The request as the authorizer sees it. That of an account for its own node must not depend on the node."""
        if self._name != "associated-node":
            return request
        keys = tuple(sorted(request.user.extra))
        return request._replace(user=replace(request.user, extra={NODE_KEYS: keys}))

    def _attributes(
        self, requestor: User, resource: str, name: str, namespace: str = "", extra: str = ""
    ) -> Attributes:
        group = self._group if resource in ("users", "groups", "serviceaccounts", "nodes") else IDENTITY_GROUP
        return Attributes(
            requestor, self._verb, group, self._version, namespace, resource, extra, name, "", True, "", ""
        )

    async def _name_of(self, ask: _Ask, wanted: User, requestor: User) -> User:
        user = wanted
        resource, namespace, name = "users", "", wanted.name
        node, account = node_name(wanted.name), account_of(wanted.name)
        if self._name and node:
            resource, name = "nodes", "*" if self._name == "associated-node" else node
            user = replace(wanted, groups=(NODES_GROUP,))
        elif account is not None:
            resource = "serviceaccounts"
            namespace, name = account
            if not wanted.groups:
                user = replace(wanted, groups=(ACCOUNTS_GROUP, f"{ACCOUNTS_GROUP}:{namespace}"))
        await ask.check(self._attributes(requestor, resource, name, namespace))
        return user

    async def _groups_of(self, ask: _Ask, wanted: User, requestor: User) -> None:
        if self._name:
            for group, text in (("", "the empty string"), (MASTERS, f"the {MASTERS}")):
                if group in wanted.groups:
                    attributes = self._attributes(requestor, "groups", group)
                    raise denied(attributes, f"impersonating {text} group is not allowed")
            if len(wanted.groups) >= _MANY and await ask.allowed(self._attributes(requestor, "groups", "*")):
                return
        for group in wanted.groups:
            await ask.check(self._attributes(requestor, "groups", group))

    async def _extra_of(self, ask: _Ask, wanted: User, requestor: User) -> None:
        if self._name:
            problem = next((p for key, values in wanted.extra.items() if (p := _extra_problem(key, values))), "")
            if problem:
                raise denied(self._attributes(requestor, "userextras", ""), problem)
            count = sum(len(values) for values in wanted.extra.values())
            everything = self._attributes(requestor, "userextras", "*", extra="*")
            if max(count, len(wanted.extra)) >= _MANY and await ask.allowed(everything):
                return
        for key, values in wanted.extra.items():
            for value in values:
                await ask.check(self._attributes(requestor, "userextras", value, extra=key))


def _extra_problem(key: str, values: tuple[str, ...]) -> str:
    """Why a constrained mode does not take an extra key and its values."""
    if not key:
        return "impersonating the empty string key in extra is not allowed"
    wrong = [f"extra.key: Invalid value: {go_quote(key)}: {text}" for text in formats.domain_path(key)]
    if wrong:
        shown = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
        return f"impersonating an invalid key in extra is not allowed: {shown}"
    if key != key.lower():
        return f"impersonating a non-lowercase key in extra is not allowed: {go_quote(key)}"
    if not values:
        return "impersonating empty values in extra is not allowed"
    return "impersonating the empty string value in extra is not allowed" if "" in values else ""


def _completed(user: User) -> User:
    """With the group that tells whether the user counts as authenticated."""
    if user.name == ANONYMOUS.name:
        group = UNAUTHENTICATED
    elif UNAUTHENTICATED in user.groups:
        return user
    else:
        group = AUTHENTICATED
    return user if group in user.groups else replace(user, groups=(*user.groups, group))


def account_of(name: str) -> tuple[str, str] | None:
    """Namespace and name of a service account's user name."""
    if not name.startswith(ACCOUNT_PREFIX):
        return None
    parts = name[len(ACCOUNT_PREFIX) :].split(":")
    if len(parts) != 2 or names.dns1123_label(parts[0]) or names.dns1123_subdomain(parts[1]):
        return None
    return parts[0], parts[1]


def node_name(name: str) -> str:
    """The node of a node's user name; empty for other users."""
    node = name[len(NODE_PREFIX) :] if name.startswith(NODE_PREFIX) else ""
    return "" if names.dns1123_subdomain(node) else node


def _bare(wanted: User) -> bool:
    return not (wanted.uid or wanted.groups or wanted.extra)


def _own_node(wanted: User, requestor: User) -> bool:
    node = node_name(wanted.name)
    return bool(_bare(wanted) and node and account_of(requestor.name) and requestor.extra.get(NODE_NAME, ()) == (node,))


#: In the order in which they are tried.
MODES = (
    Mode("associated-node", _own_node),
    Mode("arbitrary-node", lambda wanted, requestor: _bare(wanted) and bool(node_name(wanted.name))),
    Mode("serviceaccount", lambda wanted, requestor: _bare(wanted) and account_of(wanted.name) is not None),
    Mode("user-info", lambda wanted, requestor: not node_name(wanted.name) and account_of(wanted.name) is None),
    Mode("", lambda wanted, requestor: True),
)
