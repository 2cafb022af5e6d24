"""The object of a request as a webhook sees it: in the version it asked for, decoded and printed once for all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from fastapi_core.admission.chain import Attributes
from fastapi_core.admission.matching import Kind
from fastapi_core.admission.webhooks.hooks import Match
from fastapi_core.codec import json
from fastapi_core.errors import APIError, internal
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.schema.normalize import normalize

NULL = b"null"

Convert = Callable[[Tree, ResourceDefinition, ResourceDefinition], "Tree | Awaitable[Tree]"]
"""A tree of one version of a resource in another one."""
Defaults = Callable[[ResourceDefinition, Tree], None]
"""Fill in, in place, what is left out."""


class View(NamedTuple):
    """Both objects as they are sent: trees and bytes."""

    tree: Tree | None
    before: Tree | None
    new: bytes
    old: bytes


class Views:
    """Views of one request. `changed` is called when its object is another one."""

    __slots__ = ("_attributes", "_convert", "_known", "_olds")

    def __init__(self, attributes: Attributes, convert: Convert) -> None:
        self._attributes = attributes
        self._convert = convert
        self._known: dict[Kind, View] = {}
        self._olds: dict[Kind, tuple[Tree | None, bytes]] = {}

    def changed(self) -> None:
        self._known.clear()

    def get(self, match: Match) -> View | Awaitable[View]:
        """The view for a webhook; awaited only where a conversion webhook is asked."""
        known = self._known.get(match.kind)
        if known is not None:
            return known
        attributes = self._attributes
        new, old = self._converted(attributes.object, match), self._converted(attributes.old, match)
        if isinstance(new, Awaitable) or isinstance(old, Awaitable):
            return self._later(match, new, old)
        return self._made(match, new, old)

    async def _later(
        self, match: Match, new: Tree | Awaitable[Tree] | None, old: Tree | Awaitable[Tree] | None
    ) -> View:
        try:
            new = await new if isinstance(new, Awaitable) else new
            old = await old if isinstance(old, Awaitable) else old
        except APIError as error:
            # Once for the failed conversion, once for the call that could not be made.
            raise internal(internal(error.message).message) from error
        return self._made(match, new, old)

    def _converted(self, tree: Tree | None, match: Match) -> Tree | Awaitable[Tree] | None:
        definition = self._attributes.definition
        if tree is None or match.target is definition or not _differs(match, definition):
            return tree
        return self._convert(tree, definition, match.target)

    def _made(self, match: Match, new: Tree | None, old: Tree | None) -> View:
        shown = printed(match, new)
        before = self._olds.get(match.kind)
        if before is None:
            tree = printed(match, old)
            before = self._olds[match.kind] = tree, _encoded(tree)
        view = self._known[match.kind] = View(shown, before[0], _encoded(shown), before[1])
        return view


def _encoded(tree: Tree | None) -> bytes:
    return NULL if tree is None else json.encode(tree)


def _differs(match: Match, definition: ResourceDefinition) -> bool:
    """Whether the kinds differ: subresources may carry the same kind in all versions."""
    return match.main and match.target.group_version != definition.group_version


def printed(match: Match, tree: Tree | None) -> Tree | None:
    """As JSON prints it: every member the type always has, no others."""
    if tree is None:
        return None
    if match.type is not None:
        tree = normalize(match.type, tree, share=True).tree
    if not tree.get("kind") or not tree.get("apiVersion"):
        kind = match.kind
        version = f"{kind.group}/{kind.version}" if kind.group else kind.version
        tree = {"kind": kind.kind, "apiVersion": version, **{k: v for k, v in tree.items() if k not in _HEAD}}
    return tree


_HEAD = ("kind", "apiVersion")
