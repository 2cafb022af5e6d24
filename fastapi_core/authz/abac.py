"""ABAC: policies out of a file, one JSON object a line; whoever one of them matches may."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from fastapi_core.authn.base import AUTHENTICATED
from fastapi_core.authz.base import ALLOWED, Attributes, Decision, Grants, Verdict
from fastapi_core.request.context import User

ALL = "*"
READS = ("get", "list", "watch")
VERSION, KIND = "abac.authorization.kubernetes.io/v1beta1", "Policy"
_NO_MATCH = Verdict(Decision.NO_OPINION, "No policy matched.")
_TEXTS = ("user", "group", "namespace", "resource", "apiGroup", "nonResourcePath")
#: What policies without a version may say.
_OLD = frozenset({"user", "group", "namespace", "resource", "readonly"})


class PolicyError(ValueError):
    """A policy file that cannot be used; the text names the line."""


class Policy(NamedTuple):
    user: str = ""
    group: str = ""
    namespace: str = ""
    resource: str = ""
    api_group: str = ""
    path: str = ""
    readonly: bool = False

    def is_for(self, user: User) -> bool:
        """Whether the policy says who, and means this user."""
        if self.user and self.user not in (ALL, user.name):
            return False
        if self.group and self.group != ALL and self.group not in user.groups:
            return False
        return bool(self.user or self.group)

    def matches(self, a: Attributes) -> bool:
        if not self.is_for(a.user) or (self.readonly and a.verb not in READS):
            return False
        if a.is_resource_request:
            return (
                self.namespace in (ALL, a.namespace)
                and self.resource in (ALL, a.resource)
                and self.api_group in (ALL, a.api_group)
            )
        if self.path.endswith(ALL) and a.path.startswith(self.path.rstrip(ALL)):
            return True
        return self.path == a.path


class PolicyFile:
    """Mode ABAC over the policies of one file. `generation` never changes: the file is read at start."""

    generation = 0

    def __init__(self, policies: list[Policy]) -> None:
        self._policies = policies

    def authorize(self, attributes: Attributes) -> Verdict:
        return ALLOWED if any(policy.matches(attributes) for policy in self._policies) else _NO_MATCH

    def grants(self, user: User, namespace: str) -> Grants:
        found = Grants([], [])
        for policy in self._policies:
            if not policy.is_for(user):
                continue
            verbs = list(READS) if policy.readonly else [ALL]
            if policy.namespace in (ALL, namespace):
                rule = {"verbs": verbs, "apiGroups": [policy.api_group], "resources": [policy.resource]}
                found.resource_rules.append(rule)
            if policy.path:
                found.path_rules.append({"verbs": verbs, "nonResourceURLs": [policy.path]})
        return found


def load(path: str) -> PolicyFile:
    """The policies of a file. Raises OSError or PolicyError."""
    policies = []
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if text and not text.startswith(b"#"):
                try:
                    policies.append(parse(text))
                except ValueError as error:
                    raise PolicyError(f"line {number}: {error}") from None
    return PolicyFile(policies)


def parse(text: bytes) -> Policy:
    """One policy; ValueError when it is none."""
    try:
        tree = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(tree, dict):
        raise ValueError("an object is expected")
    if "apiVersion" not in tree and "kind" not in tree:
        return _old(_checked(tree, _OLD))
    if (tree.get("apiVersion"), tree.get("kind")) != (VERSION, KIND):
        raise ValueError(f"apiVersion {VERSION} and kind {KIND} are expected")
    spec = tree.get("spec")
    policy = _checked(spec if isinstance(spec, dict) else {}, frozenset({*_TEXTS, "readonly"}))
    if ALL in (policy.user, policy.group):
        return policy._replace(user="", group=AUTHENTICATED)
    return policy


def _checked(spec: dict[str, object], known: frozenset[str]) -> Policy:
    unknown = sorted(spec.keys() - known)
    if unknown:
        # A misspelt restriction would otherwise grant more than meant.
        raise ValueError(f"unknown member {unknown[0]!r}")
    for name in _TEXTS:
        if not isinstance(spec.get(name, ""), str):
            raise ValueError(f"{name}: a text is expected")
    if not isinstance(spec.get("readonly", False), bool):
        raise ValueError("readonly: true or false is expected")
    user, group, namespace, resource, api_group, path = (str(spec.get(name, "")) for name in _TEXTS)
    return Policy(user, group, namespace, resource, api_group, path, bool(spec.get("readonly", False)))


def _old(policy: Policy) -> Policy:
    """A policy from before versions: what it leaves open is everything."""
    if ALL in (policy.user, policy.group) or not (policy.user or policy.group):
        policy = policy._replace(user="", group=AUTHENTICATED)
    everything = not policy.namespace and not policy.resource
    return policy._replace(
        namespace=policy.namespace or ALL,
        resource=policy.resource or ALL,
        api_group=ALL,
        path=ALL if everything else "",
    )
