"""What both policy plugins do: find the policies, bindings and parameters a request meets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from fastapi_core import errors
from fastapi_core.admission.chain import Attributes, Plugin
from fastapi_core.admission.objects import Objects
from fastapi_core.admission.policies.params import ConfigurationError
from fastapi_core.admission.policies.source import Binding, Policy, Relevant, Source
from fastapi_core.admission.policies.versions import Convert, Versions
from fastapi_core.errors import APIError
from fastapi_core.registry.definition import ResourceDefinition, Tree

if TYPE_CHECKING:
    from fastapi_core.admission.evaluation import Input, RequestAuthorizer

E = TypeVar("E")


class Invocation(NamedTuple, Generic[E]):
    """A policy to be asked about a request, or why it cannot be (`error`, with no binding when none is to blame)."""

    policy: Policy[E]
    binding: Binding | None
    target: ResourceDefinition | None
    params: list[Tree | None]
    error: str


class PolicyPlugin(Plugin, Generic[E]):
    """A plugin over one kind of policies."""

    operations: frozenset[str] = frozenset()

    def __init__(self, source: Source[E], namespaces: Objects, convert: Convert) -> None:
        self._source = source
        self._namespaces = namespaces
        self._convert = convert

    def follow(self, changed: Callable[[], None]) -> None:
        """Tell `changed` whenever `handles` may answer otherwise than before."""
        self._source.follow(changed)

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return operation in self.operations and bool(self._source.relevant(operation, definition, subresource))

    def _relevant(self, attributes: Attributes) -> list[Relevant[E]]:
        return self._source.relevant(attributes.operation, attributes.definition, attributes.subresource)

    def _invocations(self, attributes: Attributes) -> Iterator[Invocation[E]]:
        """What is to be asked, in order."""
        namespaces = self._namespaces
        for policy, narrowed, bindings in self._relevant(attributes):
            try:
                target = narrowed.target(attributes, namespaces)
                if target is None:
                    continue
                resource = policy.parameters.resource() if policy.parameters is not None else None
                policy.compile()
            except (APIError, ConfigurationError) as error:
                yield Invocation(policy, None, None, [], f"failed to configure policy: {error}")
                continue
            for binding, further in bindings:
                params: list[Tree | None] = [None]
                try:
                    if further is not None and further.target(attributes, namespaces) is None:
                        continue
                    if resource is not None and binding.reference is not None:
                        params = list(binding.reference.find(resource, attributes.namespace))
                except (APIError, ConfigurationError) as error:
                    yield Invocation(policy, binding, None, [], f"failed to configure binding: {error}")
                    continue
                yield Invocation(policy, binding, target, params, "")

    def _namespace(self, attributes: Attributes) -> Tree | None:
        """The namespace of the object, which must exist; a namespace is in none."""
        definition = attributes.definition
        if not attributes.namespace or (definition.kind == "Namespace" and not definition.group):
            return None
        found = self._namespaces.get("", attributes.namespace)
        if found is None:
            raise errors.not_found("namespaces", "", attributes.namespace)
        return found


def inputs(
    attributes: Attributes, authorizer: RequestAuthorizer, versions: Versions, namespace: Tree | None
) -> Callable[[ResourceDefinition], Input]:
    """What expressions see of a request, for each version of its object one."""
    from fastapi_core.admission.evaluation import Input

    made: dict[str, Input] = {}

    def find(target: ResourceDefinition) -> Input:
        known = made.get(target.group_version)
        if known is None:
            source = attributes.definition
            trees = None
            if target is not source:
                trees = (versions.get(attributes.object, source, target), versions.get(attributes.old, source, target))
            known = Input(attributes, target, authorizer, trees=trees, namespace=namespace)
            made[target.group_version] = known
        return known

    return find
