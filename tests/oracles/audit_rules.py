"""Audit rules read straight from the policy's tree, one plain question after the other."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]


def ruling(policy: Tree, user: Tree | None, request: Tree) -> tuple[str, set[str], bool]:
    """Level, stages left out, managed fields left out; of the first rule that matches."""
    for rule in policy["rules"]:
        if matches(rule, user, request):
            stages = set(policy.get("omitStages") or []) | set(rule.get("omitStages") or [])
            fields = rule.get("omitManagedFields")
            if fields is None:
                fields = policy.get("omitManagedFields", False)
            return rule["level"], stages, fields
    return "None", set(), False


def matches(rule: Tree, user: Tree | None, request: Tree) -> bool:
    if rule.get("users") and not (user and user["name"] in rule["users"]):
        return False
    if rule.get("userGroups") and not (user and set(user["groups"]) & set(rule["userGroups"])):
        return False
    if rule.get("verbs") and request["verb"] not in rule["verbs"]:
        return False
    if rule.get("resources") or rule.get("namespaces"):
        if not request["is_resource"]:
            return False
        if rule.get("namespaces") and request["namespace"] not in rule["namespaces"]:
            return False
        if not rule.get("resources"):
            return True
        return any(e.get("group", "") == request["group"] and of_group(e, request) for e in rule["resources"])
    if rule.get("nonResourceURLs"):
        if request["is_resource"]:
            return False
        for url in rule["nonResourceURLs"]:
            if url == "*" or url == request["path"]:
                return True
            if url.endswith("*") and request["path"].startswith(url[:-1]):
                return True
        return False
    return True


def of_group(entry: Tree, request: Tree) -> bool:
    resources = entry.get("resources") or []
    if not resources:
        return True
    names = entry.get("resourceNames") or []
    if names and request["name"] not in names:
        return False
    resource, sub = request["resource"], request["subresource"]
    for pattern in resources:
        if pattern == "*":
            return True
        if sub:
            if pattern == f"{resource}/{sub}" or pattern == f"*/{sub}":
                return True
        elif pattern == resource:
            return True
        # Strange, but so it is: "pods/*" covers pods themselves too.
        if pattern == f"{resource}/*":
            return True
    return False
