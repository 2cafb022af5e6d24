"""RBAC as its documentation says it: every binding, every rule, nothing indexed."""

from __future__ import annotations

from typing import Any

from fastapi_core.authz.base import Attributes

Tree = dict[str, Any]


def applies(subject: Tree, attributes: Attributes, namespace: str) -> bool:
    user = attributes.user
    if subject["kind"] == "User":
        return user.name == subject["name"]
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    home = subject.get("namespace") or namespace
    return home != "" and user.name == f"system:serviceaccount:{home}:{subject['name']}"


def rule_allows(rule: Tree, a: Attributes) -> bool:
    if "*" not in rule["verbs"] and a.verb not in rule["verbs"]:
        return False
    if not a.is_resource_request:
        urls = rule.get("nonResourceURLs", ())
        return a.path in urls or any(url.endswith("*") and a.path.startswith(url.rstrip("*")) for url in urls)
    groups, resources, names = rule.get("apiGroups", ()), rule.get("resources", ()), rule.get("resourceNames", ())
    if "*" not in groups and a.api_group not in groups:
        return False
    full = f"{a.resource}/{a.subresource}" if a.subresource else a.resource
    wild = f"*/{a.subresource}" if a.subresource else None
    if not any(resource in ("*", full, wild) for resource in resources):
        return False
    return not names or a.name in names


def allows(
    roles: dict[tuple[str, str], list[Tree]], bindings: list[tuple[str, Tree, list[Tree]]], a: Attributes
) -> bool:
    """`roles`: (namespace, name) -> rules, cluster roles under ""; `bindings`: (namespace, roleRef, subjects)."""
    for namespace, reference, subjects in bindings:
        if namespace and namespace != a.namespace:
            continue
        if not any(applies(subject, a, namespace) for subject in subjects):
            continue
        home = namespace if reference["kind"] == "Role" else ""
        if any(rule_allows(rule, a) for rule in roles.get((home, reference["name"]), ())):
            return True
    return False
