"""Objects of a request in the version a policy asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from fastapi_core.errors import APIError
from fastapi_core.registry.conversion import CONVERTERS, converter
from fastapi_core.registry.definition import ResourceDefinition, Tree


def converted(tree: Tree | None, source: ResourceDefinition, target: ResourceDefinition) -> Tree | None:
    """`tree` of `source` as one of `target`, by way of the stored version when there is no direct one.

    What is not an object of the resource (the body of a subresource) stays what it is.
    """
    if tree is None or tree.get("kind") != source.kind:
        return tree
    home = f"{source.storage_group}/{source.storage_version}" if source.storage_group else source.storage_version
    for step in (home, target.group_version):
        here = tree["apiVersion"]
        if here == step:
            continue
        convert = CONVERTERS.get((source.kind, here, step))
        if convert is not None:
            tree = convert(tree)
    if tree["apiVersion"] == target.group_version:
        return tree
    plain = converter(source, target)
    return plain(tree) if plain is not None else tree


class PendingError(Exception):
    """Something has to be waited for: await `answer`, then start over."""

    def __init__(self, answer: Awaitable[Any]) -> None:
        super().__init__("something has to be waited for")
        self.answer = answer


Convert = Callable[[Tree, ResourceDefinition, ResourceDefinition], Tree | Awaitable[Tree]]


def renamed(tree: Tree, source: ResourceDefinition, target: ResourceDefinition) -> Tree:
    """A custom object in a version that differs in its name alone."""
    return {**tree, "apiVersion": target.group_version}


class Versions:
    """The objects of one request in other versions; those a webhook converts are remembered, errors too."""

    __slots__ = ("_convert", "_known")

    def __init__(self, convert: Convert) -> None:
        self._convert = convert
        self._known: dict[tuple[bytes, str], Tree | APIError] = {}

    def get(self, tree: Tree | None, source: ResourceDefinition, target: ResourceDefinition) -> Tree | None:
        """The object in the version of `target`. PendingError when a webhook has to be asked, APIError when it failed."""
        if tree is None or source is target or source.group_version == target.group_version:
            return tree
        if not source.custom:
            return converted(tree, source, target)
        key = (orjson.dumps(tree), target.group_version)
        known = self._known.get(key)
        if known is None:
            found = self._convert(tree, source, target)
            if isinstance(found, Awaitable):
                raise PendingError(self._fetch(key, found))
            known = self._known[key] = found
        if isinstance(known, APIError):
            raise known
        return known

    async def _fetch(self, key: tuple[bytes, str], pending: Awaitable[Tree]) -> None:
        try:
            self._known[key] = await pending
        except APIError as error:
            self._known[key] = error
