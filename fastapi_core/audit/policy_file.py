"""Reads an audit policy (`audit.k8s.io/v1`, kind Policy): decoded strictly, all that is wrong reported at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi_core.audit.policy import LEVELS, STAGES, GroupResources, Policy, Rule, Ruling
from fastapi_core.errors import FieldError, go_quote

GROUP_VERSION = "audit.k8s.io/v1"

Tree = dict[str, Any]


class PolicyError(ValueError):
    """A policy that cannot be used; `problems` has a text for everything that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def load(data: bytes) -> Policy:
    """The policy in a YAML or JSON document. Raises PolicyError."""
    tree, problems = _decode(data)
    problems += [str(error) for error in validate(tree)]
    if problems:
        raise PolicyError(problems)
    if not tree.get("rules"):
        raise PolicyError(["loaded illegal policy with 0 rules"])
    omitted = frozenset(tree.get("omitStages") or ())
    managed_fields = bool(tree.get("omitManagedFields"))
    return Policy(tuple(_rule(rule, omitted, managed_fields) for rule in tree["rules"]))


def _decode(data: bytes) -> tuple[Tree, list[str]]:
    """The tree, and what is in it that no policy has."""
    from fastapi_core.codec import decode
    from fastapi_core.schema.tables import type_of

    try:
        parsed = decode.parse(data, "json" if data.lstrip()[:1] == b"{" else "yaml")
        tree = parsed.tree
        if not isinstance(tree, dict):
            raise PolicyError(["failed decoding: the document is not an object"])
        version, kind = tree.get("apiVersion"), tree.get("kind")
        if version != GROUP_VERSION or kind != "Policy":
            found = f"apiVersion {go_quote(str(version or ''))}, kind {go_quote(str(kind or ''))}"
            raise PolicyError([f"failed decoding: {found} is no audit policy, expected {GROUP_VERSION}, kind Policy"])
        decoded = decode.conform(type_of(f"{GROUP_VERSION}.Policy"), parsed, data)
    except decode.DecodeError as error:
        raise PolicyError([f"failed decoding: {error}"]) from None
    return decoded.tree, [f"strict decoding error: {complaint}" for complaint in decoded.complaints]


def validate(policy: Tree) -> list[FieldError]:
    """Every error of a decoded policy."""
    errors = _check_stages(policy.get("omitStages"), "omitStages")
    for index, rule in enumerate(policy.get("rules") or ()):
        errors += _check_rule(rule, f"rules[{index}]")
    return errors


def _check_rule(rule: Tree, path: str) -> list[FieldError]:
    errors = _check_level(rule.get("level") or "", f"{path}.level")
    urls = rule.get("nonResourceURLs") or []
    errors += _check_urls(urls, f"{path}.nonResourceURLs")
    errors += _check_resources(rule.get("resources") or (), f"{path}.resources")
    errors += _check_stages(rule.get("omitStages"), f"{path}.omitStages")
    if urls and (rule.get("resources") or rule.get("namespaces")):
        text = "rules cannot apply to both regular resources and non-resource URLs"
        errors.append(FieldError("Invalid value", f"{path}.nonResourceURLs", text, urls))
    return errors


def _check_level(level: str, path: str) -> list[FieldError]:
    if not level:
        return [FieldError("Required value", path)]
    if level not in LEVELS:
        return [FieldError("Unsupported value", path, f"supported values: {_quoted(LEVELS)}", level)]
    return []


def _check_urls(urls: Iterable[str], path: str) -> list[FieldError]:
    errors = []
    for index, url in enumerate(urls):
        if url == "*":
            continue
        if not url.startswith("/"):
            text = "non-resource URL rules must begin with a '/' character"
            errors.append(FieldError("Invalid value", f"{path}[{index}]", text, url))
        if "*" in url[:-1]:
            text = "non-resource URL wildcards '*' must be the final character of the rule"
            errors.append(FieldError("Invalid value", f"{path}[{index}]", text, url))
    return errors


def _check_resources(entries: Iterable[Tree], path: str) -> list[FieldError]:
    from fastapi_core.meta.names import dns1123_subdomain

    errors = []
    for entry in entries:
        group = entry.get("group") or ""
        problems = dns1123_subdomain(group) if group else []
        if problems:
            errors.append(FieldError("Invalid value", f"{path}.group", ",".join(problems), group))
        if entry.get("resourceNames") and not entry.get("resources"):
            text = "using resourceNames requires at least one resource"
            errors.append(FieldError("Invalid value", f"{path}.resourceNames", text, entry["resourceNames"]))
    return errors


def _check_stages(stages: Iterable[str] | None, path: str) -> list[FieldError]:
    text = "allowed stages are " + ",".join(STAGES)
    return [
        FieldError("Invalid value", f"{path}[{index}]", text, stage)
        for index, stage in enumerate(stages or ())
        if stage not in STAGES
    ]


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(go_quote(name) for name in names)


def _rule(tree: Tree, omitted: frozenset[str], managed_fields: bool) -> Rule:
    def names(field: str) -> frozenset[str]:
        return frozenset(tree.get(field) or ())

    own = tree.get("omitManagedFields")
    return Rule(
        Ruling(LEVELS[tree["level"]], omitted | names("omitStages"), managed_fields if own is None else own),
        names("users"),
        names("userGroups"),
        names("verbs"),
        tuple(
            GroupResources(
                entry.get("group") or "",
                tuple(entry.get("resources") or ()),
                frozenset(entry.get("resourceNames") or ()),
            )
            for entry in tree.get("resources") or ()
        ),
        names("namespaces"),
        tuple(tree.get("nonResourceURLs") or ()),
    )
