"""PodSecurity: pods that violate what their namespace enforces are refused; the rest is warned about or noted.

Workloads with a template are never refused, only warned about and noted: the pods made of them will be judged.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import Objects
from fastapi_core.admission.podsecurity.checks import Annotations, Finding
from fastapi_core.admission.podsecurity.policy import (
    LATEST,
    MODES,
    PREFIX,
    PRIVILEGED,
    Policy,
    Standard,
    minor,
    policy_of,
    strictness,
)
from fastapi_core.admission.podsecurity.standards import detailed, judge, reasons
from fastapi_core.errors import APIError, FieldError
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition, Tree

if TYPE_CHECKING:
    from fastapi_core.obs.catalog import Metrics

#: Workloads: (group, plural) -> the way to the pod template.
TEMPLATES: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
_RESOURCES = {"pods": "pod", "namespaces": "namespace"}
_NO_PODS = frozenset({"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"})
#: When a namespace is to enforce more, so many of its pods are looked at, for so long (seconds).
PODS_CHECKED, CHECK_SECONDS = 3000, 1.0
#: The minor version of Kubernetes this is; policies of later ones are not told apart in metrics.
CURRENT_MINOR = 36


@dataclass(frozen=True, slots=True)
class Exemptions:
    users: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Settings:
    """The plugin's configuration."""

    defaults: Policy = field(default_factory=Policy)
    exemptions: Exemptions = field(default_factory=Exemptions)


class PodSecurity(Plugin):
    name = "PodSecurity"

    def __init__(
        self, namespaces: Objects, pods: Objects, settings: Settings | None = None, metrics: Metrics | None = None
    ) -> None:
        settings = settings or Settings()
        self._namespaces = namespaces
        self._pods = pods
        self._defaults = settings.defaults
        self._exempt = settings.exemptions
        self._metrics = metrics

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        key = (definition.group, definition.plural)
        if operation not in (CREATE, UPDATE):
            return False
        if key == ("", "pods"):
            return subresource not in _NO_PODS
        return not subresource and (key == ("", "namespaces") or key in TEMPLATES)

    def validate(self, attributes: Attributes) -> None:
        definition = attributes.definition
        if definition.group or definition.plural not in ("pods", "namespaces"):
            self._workload(attributes)
        elif definition.plural == "pods":
            self._pod(attributes)
        else:
            self._namespace(attributes)

    # Pods and workloads

    def _pod(self, attributes: Attributes) -> None:
        if self._exempted(attributes):
            return
        namespace = self._namespaces.find("", attributes.namespace)
        if namespace is None:
            text = f'failed to lookup namespace "{attributes.namespace}"'
            self._count_error(attributes, "true")
            self._note(attributes, "error", text)
            raise errors.internal(text)
        policy, problems = self._policy(namespace)
        if policy.privileged and not problems:
            self._count(attributes, "allow", policy.enforce, "enforce")
            self._note(attributes, "enforce-policy", f"{PRIVILEGED}:latest")
            return
        pod = attributes.object or {}
        if attributes.operation == UPDATE and not matters(pod, attributes.old or {}):
            return
        self._evaluate(attributes, policy, problems, pod, enforce=True)

    def _workload(self, attributes: Attributes) -> None:
        if self._exempted(attributes):
            return
        namespace = self._namespaces.find("", attributes.namespace)
        if namespace is None:
            self._count_error(attributes, "true")
            name = attributes.namespace
            self._note(attributes, "error", f'failed to lookup namespace "{name}": namespace "{name}" not found')
            return
        policy, problems = self._policy(namespace)
        if policy.silent and not problems:
            return
        template: Any = attributes.object
        for member in TEMPLATES[attributes.definition.group, attributes.definition.plural]:
            template = (template or {}).get(member)
        if template is not None:
            self._evaluate(attributes, policy, problems, template, enforce=False)

    def _policy(self, namespace: CachedObject) -> tuple[Policy, tuple[FieldError, ...]]:
        known: tuple[Policy, tuple[FieldError, ...]] | None = namespace.memo.get(self)
        if known is None:
            known = namespace.memo[self] = policy_of(namespace.labels(), self._defaults)
        return known

    def _exempted(self, attributes: Attributes) -> bool:
        exempt = self._exempt
        if attributes.namespace in exempt.namespaces:
            reason = "namespace"
        elif exempt.users and attributes.context.user.name in exempt.users:
            reason = "user"
        else:
            return False
        self._spare(attributes, reason)
        return True

    def _spare(self, attributes: Attributes, reason: str) -> None:
        if self._metrics is not None:
            self._metrics.pod_security_exemptions.labels(*_requested(attributes)).inc()
        self._note(attributes, "exempt", reason)

    def _evaluate(
        self, attributes: Attributes, policy: Policy, problems: tuple[FieldError, ...], pod: Tree, *, enforce: bool
    ) -> None:
        spec = pod.get("spec") or {}
        if spec.get("runtimeClassName") in self._exempt.runtime_classes:
            self._spare(attributes, "runtimeClass")
            return
        notes: Annotations = (pod.get("metadata") or {}).get("annotations") or {}
        if problems:
            texts = [str(problem) for problem in problems]
            shown = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
            self._note(attributes, "error", f"Failed to parse policy: {shown}")
            self._count_error(attributes, "false")
        results: dict[Standard, list[Finding]] = {}

        def result(standard: Standard) -> list[Finding]:
            if standard not in results:
                results[standard] = judge(standard, notes, spec)
            return results[standard]

        refusal: APIError | None = None
        if enforce:
            self._note(attributes, "enforce-policy", str(policy.enforce))
            found = result(policy.enforce)
            self._count(attributes, "deny" if found else "allow", policy.enforce, "enforce")
            if found:
                text = f'violates PodSecurity "{policy.enforce}": {detailed(found)}'
                definition = attributes.definition
                refusal = errors.forbidden(definition.plural, definition.group, attributes.name, text)
        found = result(policy.audit)
        if found:
            self._count(attributes, "deny", policy.audit, "audit")
            text = f'would violate PodSecurity "{policy.audit}": {detailed(found)}'
            self._note(attributes, "audit-violations", text)
        if refusal is not None:
            raise refusal
        found = result(policy.warn)
        if found:
            self._count(attributes, "deny", policy.warn, "warn")
            attributes.warn(f'would violate PodSecurity "{policy.warn}": {detailed(found)}')

    # Namespaces

    def _namespace(self, attributes: Attributes) -> None:
        tree = attributes.object or {}
        labels = _labels(tree)
        policy, problems = policy_of(labels, self._defaults)
        before = None
        if attributes.operation == UPDATE:
            before, known = policy_of(_labels(attributes.old or {}), self._defaults)
            if problems == known:
                problems = ()
        if problems:
            raise errors.invalid("Namespace", "", attributes.name, problems)
        name = tree["metadata"].get("name") or attributes.name
        exempt = name in self._exempt.namespaces
        if before is None or stricter(policy.enforce, before.enforce):
            if exempt:
                self._warn_exempt(attributes, name, policy, labels)
            elif before is not None:
                for text in self._existing(name, policy.enforce):
                    attributes.warn(text)

    def _warn_exempt(self, attributes: Attributes, name: str, policy: Policy, labels: Mapping[str, str]) -> None:
        """Labels of an exempt namespace have no effect; say so where they would."""
        shown = [
            f"{mode}={getattr(policy, mode)}"
            for mode in MODES
            if getattr(policy, mode).level != PRIVILEGED
            and (PREFIX + mode in labels or f"{PREFIX}{mode}-version" in labels)
        ]
        if shown and policy != self._defaults:
            text = (
                f'namespace "{name}" is exempt from Pod Security, and the policy ({", ".join(shown)}) will be ignored'
            )
            attributes.warn(text)

    def _existing(self, namespace: str, standard: Standard) -> list[str]:
        """What the pods that are there already would violate."""
        objects = self._prioritized(self._pods.store.cache.list(f"{namespace}/").objects)
        until = time.monotonic() + CHECK_SECONDS
        names: dict[str, list[str]] = {}
        checked = 0
        for obj, pod in objects:
            if checked >= PODS_CHECKED or time.monotonic() > until:
                break
            checked += 1
            notes = pod["metadata"].get("annotations") or {}
            findings = judge(standard, notes, pod.get("spec") or {})
            if findings:
                names.setdefault(reasons(findings), []).append(obj.name)
        warnings = []
        if checked < len(objects):
            what = f"only checked against the first {checked} of {len(objects)} existing pods"
            warnings.append(f"new PodSecurity enforce level {what}")
        if names:
            what = f'violate the new PodSecurity enforce level "{standard}"'
            warnings.append(f'existing pods in namespace "{namespace}" {what}')
        return warnings + sorted(f"{_several(who)}: {reason}" for reason, who in names.items())

    def _prioritized(self, objects: Iterable[CachedObject]) -> list[tuple[CachedObject, Tree]]:
        """Pods without those of exempt runtime classes; one of each controller comes before its others."""
        first: list[tuple[CachedObject, Tree]] = []
        others: list[tuple[CachedObject, Tree]] = []
        owners: set[str] = set()
        for obj in objects:
            pod = obj.tree()
            if (pod.get("spec") or {}).get("runtimeClassName") in self._exempt.runtime_classes:
                continue
            references = pod["metadata"].get("ownerReferences") or ()
            owner = next((ref.get("uid", "") for ref in references if ref.get("controller")), "")
            (others if owner and owner in owners else first).append((obj, pod))
            owners.add(owner)
        return first + others

    # Notes

    @staticmethod
    def _note(attributes: Attributes, key: str, text: str) -> None:
        attributes.annotate(PREFIX + key, text)

    def _count(self, attributes: Attributes, decision: str, standard: Standard, mode: str) -> None:
        if self._metrics is not None:
            level, version = standard
            if level == PRIVILEGED:
                version = LATEST
            elif (minor(version) or 0) > CURRENT_MINOR:
                version = "future"
            # The last label, empty outside of OpenShift, is in the recorded reference.
            labels = (decision, level, version, mode, *_requested(attributes), "")
            self._metrics.pod_security_evaluations.labels(*labels).inc()

    def _count_error(self, attributes: Attributes, fatal: str) -> None:
        if self._metrics is not None:
            self._metrics.pod_security_errors.labels(fatal, *_requested(attributes)).inc()


def _requested(attributes: Attributes) -> tuple[str, str, str]:
    """How the metrics name a request: workloads are all one resource."""
    definition = attributes.definition
    resource = "controller" if definition.group else _RESOURCES.get(definition.plural, "controller")
    return "create" if attributes.operation == CREATE else "update", resource, attributes.subresource


def _labels(tree: Tree) -> Mapping[str, str]:
    return (tree.get("metadata") or {}).get("labels") or {}


def _several(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other {'pod' if others == 1 else 'pods'})"


def stricter(new: Standard, old: Standard) -> bool:
    """Whether pods that conformed may not any more."""
    if new == old or new.level == PRIVILEGED:
        return False
    return new.version != old.version or strictness(new.level) > strictness(old.level)


def matters(pod: Tree, old: Tree) -> bool:
    """Whether an update changes what the checks look at and clients can change: containers and their images."""
    spec, before = pod.get("spec") or {}, old.get("spec") or {}
    for member in ("containers", "initContainers"):
        new, previous = spec.get(member) or (), before.get(member) or ()
        if len(new) != len(previous):
            return True
        if any(a.get("image") != b.get("image") for a, b in zip(new, previous, strict=True)):
            return True
    known = {c["name"]: c.get("image") for c in before.get("ephemeralContainers") or ()}
    return any(
        c["name"] not in known or known[c["name"]] != c.get("image") for c in spec.get("ephemeralContainers") or ()
    )
