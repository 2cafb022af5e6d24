"""The admission configuration file: which plugins have which configuration, as one tree for each.

Configuration is read strictly: what is not understood is an error and not a plugin that protects less than asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from fastapi_core.admission.catalog import ORDER
from fastapi_core.codec import decode
from fastapi_core.registry.definition import Tree
from fastapi_core.schema.errors import DecodeError

VERSIONS = ("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1", "apiserver.k8s.io/v1alpha1")


class ConfigurationError(ValueError):
    """A configuration that cannot be used; the text says where and why."""


class Source(NamedTuple):
    """The configuration of one plugin: its tree, where it stands, and the folder its relative paths start from."""

    tree: Tree
    where: str
    folder: str


def read(path: str) -> dict[str, Source]:
    """Plugin name -> its configuration. Raises OSError and ConfigurationError."""
    tree = _parse(path)
    api, kind = tree.get("apiVersion"), tree.get("kind")
    if api not in VERSIONS or kind != "AdmissionConfiguration":
        raise ConfigurationError(f'no kind "{kind}" is registered for version "{api}"; use {VERSIONS[0]}')
    members(tree, path, "apiVersion", "kind", "plugins")
    found: dict[str, Source] = {}
    for index, entry in enumerate(items(tree, path, "plugins")):
        where = f"{path}: plugins[{index}]"
        if not isinstance(entry, dict):
            raise ConfigurationError(f"{where}: an object is expected")
        members(entry, where, "name", "path", "configuration")
        name = text(entry, where, "name")
        if name not in ORDER:
            raise ConfigurationError(f'{where}.name: plugin "{name}" is unknown')
        if name in found:
            raise ConfigurationError(f'{where}.name: plugin "{name}" is configured twice')
        found[name] = _source(entry, where, path)
    return found


def _source(entry: Tree, where: str, path: str) -> Source:
    folder = os.path.dirname(os.path.abspath(path))
    own, inline = text(entry, where, "path"), entry.get("configuration")
    if inline is not None:
        if not isinstance(inline, dict):
            raise ConfigurationError(f"{where}.configuration: an object is expected")
        return Source(inline, f"{where}.configuration", folder)
    if not own:
        return Source({}, where, folder)
    own = os.path.join(folder, own)
    return Source(_parse(own), own, os.path.dirname(own))


def _parse(path: str) -> Tree:
    with open(path, "rb") as file:
        data = file.read()
    try:
        parsed = decode.parse(data, "yaml")
    except DecodeError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    if parsed.complaints:
        raise ConfigurationError(f"{path}: strict decoding error: {', '.join(parsed.complaints)}")
    if not isinstance(parsed.tree, dict):
        raise ConfigurationError(f"{path}: an object is expected")
    return parsed.tree


# Reading trees


def header(source: Source, kind: str, versions: Iterable[str], *further: str) -> None:
    """The tree is of this kind in one of the versions, and has no members but these."""
    tree = source.tree
    known = tuple(versions)
    if tree.get("kind") != kind or tree.get("apiVersion") not in known:
        given = f'"{tree.get("kind", "")}" in version "{tree.get("apiVersion", "")}"'
        raise ConfigurationError(f"{source.where}: {given} is not expected, use kind {kind} in {known[0]}")
    members(tree, source.where, "kind", "apiVersion", *further)


def members(tree: Mapping[str, Any], where: str, *known: str) -> None:
    unknown = sorted(name for name in tree if name not in known)
    if unknown:
        fields = ", ".join(f'unknown field "{name}"' for name in unknown)
        raise ConfigurationError(f"{where}: strict decoding error: {fields}")


def _typed(expected: type, word: str) -> Callable[[Mapping[str, Any], str, str], Any]:
    def get(tree: Mapping[str, Any], where: str, name: str) -> Any:
        value = tree.get(name)
        if value is None:
            return expected()
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            raise ConfigurationError(f"{where}.{name}: {word} is expected")
        return value

    return get


text: Callable[[Mapping[str, Any], str, str], str] = _typed(str, "a text")
number: Callable[[Mapping[str, Any], str, str], int] = _typed(int, "a whole number")
switch: Callable[[Mapping[str, Any], str, str], bool] = _typed(bool, "true or false")
items: Callable[[Mapping[str, Any], str, str], list[Any]] = _typed(list, "a list")
member: Callable[[Mapping[str, Any], str, str], Tree] = _typed(dict, "an object")


def strings(tree: Mapping[str, Any], where: str, name: str) -> tuple[str, ...]:
    found = items(tree, where, name)
    for index, value in enumerate(found):
        if not isinstance(value, str):
            raise ConfigurationError(f"{where}.{name}[{index}]: a text is expected")
    return tuple(found)


def objects(tree: Mapping[str, Any], where: str, name: str) -> list[Tree]:
    found = items(tree, where, name)
    for index, value in enumerate(found):
        if not isinstance(value, dict):
            raise ConfigurationError(f"{where}.{name}[{index}]: an object is expected")
    return found
