"""Plugins that complete a new pod: its service account's name, its priority, how long it tolerates a lost node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.chain import Attributes, Plugin
from fastapi_core.registry.definition import Tree

TOLERATION_SECONDS = 300
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
MIRROR = "kubernetes.io/config.mirror"


def new_pod(attributes: Attributes) -> Tree | None:
    """The pod of a plain create, else None."""
    definition = attributes.definition
    if attributes.operation != "CREATE" or attributes.subresource or definition.plural != "pods" or definition.group:
        return None
    return attributes.object


class ServiceAccountName(Plugin):
    """Names the account a pod runs as. That it exists and its token volume belong to the full ServiceAccount plugin."""

    name = "ServiceAccount"

    def admit(self, attributes: Attributes) -> None:
        pod = new_pod(attributes)
        if pod is None or MIRROR in (pod["metadata"].get("annotations") or {}):
            return
        spec = pod["spec"]
        account = spec.get("serviceAccountName") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = account


class Priority(Plugin):
    """Resolves priorityClassName. `classes()` yields the cached PriorityClasses."""

    name = "Priority"

    def __init__(self, classes: Callable[[], Iterable[CachedObject]]) -> None:
        self._classes = classes

    def admit(self, attributes: Attributes) -> None:
        pod = new_pod(attributes)
        if pod is None:
            return
        spec = pod["spec"]
        name = spec.get("priorityClassName") or ""
        found = self._find(name)
        if found is None and name:
            raise self._refuse(attributes, f"no PriorityClass with name {name} was found")
        value, policy = 0, "PreemptLowerPriority"
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
            value, policy = found.get("value", 0), found.get("preemptionPolicy") or policy
        given = spec.get("priority")
        if given is not None and given != value:
            raise self._refuse(
                attributes,
                f"the integer value of priority ({given}) must not be provided in pod spec; priority admission "
                f"controller computed {value} from the given PriorityClass name",
            )
        spec["priority"] = value
        if spec.get("preemptionPolicy") not in (None, policy):
            raise self._refuse(
                attributes,
                f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name",
            )
        spec["preemptionPolicy"] = policy

    def _find(self, name: str) -> dict[str, Any] | None:
        """The class of that name; without a name the lowest global default."""
        if name:
            return next((c.tree() for c in self._classes() if c.name == name), None)
        defaults = [tree for c in self._classes() if b'"globalDefault":true' in c.body for tree in (c.tree(),)]
        return min(defaults, key=lambda tree: int(tree.get("value", 0)), default=None)

    @staticmethod
    def _refuse(attributes: Attributes, message: str) -> errors.APIError:
        return errors.forbidden("pods", "", attributes.name, message)


class DefaultTolerationSeconds(Plugin):
    """A pod stays five minutes on a node that is not ready or unreachable, unless it says otherwise."""

    name = "DefaultTolerationSeconds"

    def admit(self, attributes: Attributes) -> None:
        pod = new_pod(attributes)
        if pod is None:
            return
        spec = pod["spec"]
        tolerations = list(spec.get("tolerations") or ())
        added = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS}
            for key in (NOT_READY, UNREACHABLE)
            if not any(t.get("key", "") in ("", key) and t.get("effect", "") in ("", "NoExecute") for t in tolerations)
        ]
        if added:
            spec["tolerations"] = tolerations + added
