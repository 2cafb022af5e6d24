"""The configuration of each plugin that takes one, from its tree in the admission configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fastapi_core.admission.configuration import (
    ConfigurationError,
    Source,
    header,
    member,
    members,
    number,
    objects,
    strings,
    switch,
    text,
)
from fastapi_core.admission.plugins.events import BUCKETS, KINDS, Limit
from fastapi_core.admission.plugins.images import ImagePolicy, reviewer
from fastapi_core.admission.podsecurity.plugin import Exemptions, Settings
from fastapi_core.admission.podsecurity.policy import (
    BAD_LEVEL,
    BAD_VERSION,
    LATEST,
    LEVELS,
    MODES,
    PRIVILEGED,
    Policy,
    Standard,
    is_version,
)
from fastapi_core.admission.quota.check import Limited
from fastapi_core.admission.webhooks import credentials
from fastapi_core.errors import FieldError
from fastapi_core.meta import names
from fastapi_core.registry.definition import Tree

_EMPTY = Source({}, "", "")


def _refuse(source: Source, problems: Iterable[FieldError]) -> None:
    texts = [str(problem) for problem in problems]
    if texts:
        raise ConfigurationError(f"{source.where}: {'; '.join(texts)}")


# PodSecurity

_VERSIONS = tuple(f"pod-security.admission.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))


def pod_security(source: Source = _EMPTY) -> Settings:
    if not source.tree:
        return Settings()
    header(source, "PodSecurityConfiguration", _VERSIONS, "defaults", "exemptions")
    defaults = member(source.tree, source.where, "defaults")
    exempt = member(source.tree, source.where, "exemptions")
    members(defaults, f"{source.where}.defaults", *(name for mode in MODES for name in (mode, f"{mode}-version")))
    members(exempt, f"{source.where}.exemptions", "usernames", "namespaces", "runtimeClasses")
    problems: list[FieldError] = []
    chosen: dict[str, Standard] = {}
    for mode in ("enforce", "warn", "audit"):
        level = text(defaults, f"{source.where}.defaults", mode) or PRIVILEGED
        version = text(defaults, f"{source.where}.defaults", f"{mode}-version") or LATEST
        if level not in LEVELS:
            problems.append(FieldError("Invalid value", f"defaults.{mode}", BAD_LEVEL, level))
        if not is_version(version):
            problems.append(FieldError("Invalid value", f"defaults.{mode}-version", BAD_VERSION, version))
        chosen[mode] = Standard(level, version)

    def listed(name: str, check: Callable[[str], list[str]]) -> frozenset[str]:
        seen: set[str] = set()
        for index, value in enumerate(strings(exempt, f"{source.where}.exemptions", name)):
            path, wrong = f"exemptions.{name}[{index}]", check(value)
            if wrong:
                problems.append(FieldError("Invalid value", path, ", ".join(wrong), value))
            elif value in seen:
                problems.append(FieldError("Duplicate value", path, "", value))
            seen.add(value)
        return frozenset(seen)

    exemptions = Exemptions(
        namespaces=listed("namespaces", names.dns1123_label),
        runtime_classes=listed("runtimeClasses", names.dns1123_subdomain),
        users=listed("usernames", lambda value: [] if value else ["username must not be empty"]),
    )
    _refuse(source, problems)
    return Settings(Policy(**chosen), exemptions)


# EventRateLimit


def event_limits(source: Source = _EMPTY) -> list[Limit]:
    if source.tree:
        header(source, "Configuration", ("eventratelimit.admission.k8s.io/v1alpha1",), "limits")
    entries = objects(source.tree, source.where, "limits")
    problems = [] if entries else [FieldError("Invalid value", "limits", "must not be empty", [])]
    limits = []
    for index, entry in enumerate(entries):
        at, where = f"limits[{index}]", f"{source.where}.limits[{index}]"
        members(entry, where, "type", "qps", "burst", "cacheSize")
        limit = Limit(
            text(entry, where, "type"), number(entry, where, "qps"), number(entry, where, "burst"),
            number(entry, where, "cacheSize") or BUCKETS,
        )  # fmt: skip
        if limit.kind not in KINDS:
            shown = ", ".join(f'"{kind}"' for kind in sorted(KINDS))
            problems.append(FieldError("Unsupported value", f"{at}.type", f"supported values: {shown}", limit.kind))
        for name, value in (("burst", limit.burst), ("qps", limit.qps), ("cacheSize", limit.buckets)):
            if value <= 0:
                what = "must not be negative" if name == "cacheSize" else "must be positive"
                problems.append(FieldError("Invalid value", f"{at}.{name}", what, value))
        limits.append(limit)
    _refuse(source, problems)
    return limits


# ResourceQuota

_QUOTA = (
    "apiserver.config.k8s.io/v1",
    "resourcequota.admission.k8s.io/v1",
    "resourcequota.admission.k8s.io/v1beta1",
    "resourcequota.admission.k8s.io/v1alpha1",
)


def limited_resources(source: Source = _EMPTY) -> list[Limited]:
    if not source.tree:
        return []
    kind = source.tree.get("kind")
    header(
        source, "Configuration" if kind == "Configuration" else "ResourceQuotaConfiguration", _QUOTA, "limitedResources"
    )
    rules = []
    for index, entry in enumerate(objects(source.tree, source.where, "limitedResources")):
        where = f"{source.where}.limitedResources[{index}]"
        members(entry, where, "apiGroup", "resource", "matchContains", "matchScopes")
        plural = text(entry, where, "resource")
        if not plural:
            _refuse(source, [FieldError("Required value", f"limitedResources[{index}].resource")])
        scopes = objects(entry, where, "matchScopes")
        for number_, scope in enumerate(scopes):
            members(scope, f"{where}.matchScopes[{number_}]", "scopeName", "operator", "values")
        contains = strings(entry, where, "matchContains")
        rules.append(Limited(text(entry, where, "apiGroup"), plural, contains, tuple(scopes)))
    return rules


# Selectors and tolerations of namespaces


def node_selectors(source: Source = _EMPTY) -> dict[str, str]:
    members(source.tree, source.where, "podNodeSelectorPluginConfig")
    found = member(source.tree, source.where, "podNodeSelectorPluginConfig")
    return {name: text(found, f"{source.where}.podNodeSelectorPluginConfig", name) for name in found}


def toleration_lists(source: Source = _EMPTY) -> tuple[list[Tree], list[Tree]]:
    """(default tolerations, whitelist) of the cluster."""
    if source.tree:
        header(source, "Configuration", ("podtolerationrestriction.admission.k8s.io/v1alpha1",), "default", "whitelist")
    known = ("key", "operator", "value", "effect", "tolerationSeconds")
    for name in ("default", "whitelist"):
        for index, toleration in enumerate(objects(source.tree, source.where, name)):
            members(toleration, f"{source.where}.{name}[{index}]", *known)
    return objects(source.tree, source.where, "default"), objects(source.tree, source.where, "whitelist")


# ImagePolicyWebhook


def image_policy(source: Source = _EMPTY) -> ImagePolicy:
    members(source.tree, source.where, "imagePolicy")
    tree = member(source.tree, source.where, "imagePolicy")
    where = f"{source.where}.imagePolicy"
    members(tree, where, "kubeConfigFile", "allowTTL", "denyTTL", "retryBackoff", "defaultAllow")
    path = text(tree, where, "kubeConfigFile")
    if not path:
        raise ConfigurationError(f"{where}.kubeConfigFile: is needed, the kubeconfig of the server to ask")
    return ImagePolicy(
        os.path.join(source.folder, path),
        _seconds(tree, where, "allowTTL", 300.0, 1.0, 1800.0),
        _seconds(tree, where, "denyTTL", 30.0, 1.0, 1800.0),
        _seconds(tree, where, "retryBackoff", 500.0, 1.0, 300_000.0) / 1000,
        switch(tree, where, "defaultAllow"),
    )


def _seconds(tree: Tree, where: str, name: str, default: float, least: float, most: float) -> float:
    """A length of time within its bounds: 0 stands for the default, -1 for none."""
    value = number(tree, where, name)
    if value == 0:
        return default
    if value == -1:
        return 0.0
    if not least <= value <= most:
        raise ConfigurationError(f"{where}.{name}: {value} is not between {least:g} and {most:g}")
    return float(value)


READERS: Mapping[str, Callable[[Source], Any]] = {
    "PodSecurity": pod_security,
    "EventRateLimit": event_limits,
    "ResourceQuota": limited_resources,
    "PodNodeSelector": node_selectors,
    "PodTolerationRestriction": toleration_lists,
    "ImagePolicyWebhook": image_policy,
    "MutatingAdmissionWebhook": credentials.read,
    "ValidatingAdmissionWebhook": credentials.read,
}
"""Plugins that take a configuration."""

#: Plugins that do not run without one.
NEEDY = ("EventRateLimit", "ImagePolicyWebhook")


def problems(sources: Mapping[str, Source], plugins: Iterable[str]) -> list[str]:
    """What is wrong with the configuration of the plugins that run."""
    wrong = []
    for name in plugins:
        reader = READERS.get(name)
        if reader is None or (name not in sources and name not in NEEDY):
            continue
        try:
            found = reader(sources.get(name, Source({}, name, "")))
            if isinstance(found, ImagePolicy):
                reviewer(found)
        except (ConfigurationError, OSError, ValueError) as error:
            wrong.append(str(error))
    return wrong
