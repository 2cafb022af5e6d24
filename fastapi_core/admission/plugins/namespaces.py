"""NamespaceLifecycle: nothing is created in a namespace that is missing or terminating; the system's own stay."""

from __future__ import annotations

from collections.abc import Callable

from fastapi_core import errors
from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.chain import Attributes, Plugin

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle(Plugin):
    """`find(name)` returns the cached namespace or None."""

    name = "NamespaceLifecycle"

    def __init__(self, find: Callable[[str], CachedObject | None]) -> None:
        self._find = find

    def admit(self, attributes: Attributes) -> None:
        definition = attributes.definition
        if not definition.group and definition.plural == "namespaces":
            if attributes.operation == "DELETE" and attributes.name in IMMORTAL:
                raise errors.forbidden("namespaces", "", attributes.name, "this namespace may not be deleted")
            return
        if not definition.namespaced or attributes.operation != "CREATE" or definition.kind.endswith("AccessReview"):
            return
        namespace = self._find(attributes.namespace)
        if namespace is None:
            raise errors.not_found("namespaces", "", attributes.namespace)
        if b'"deletionTimestamp":"' not in namespace.body:
            return
        if not namespace.tree()["metadata"].get("deletionTimestamp"):
            return
        refusal = errors.forbidden(
            definition.plural,
            definition.group,
            attributes.name,
            f"unable to create new content in namespace {attributes.namespace} because it is being terminated",
        )
        assert refusal.details is not None
        refusal.details["causes"] = [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {attributes.namespace} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise refusal
