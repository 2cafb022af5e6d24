"""The documents of one set of resource definitions: which there are, their hashes, and their bytes on first use.

A hash is made from what a document is made from (the definitions of its group version and the version of this package),
so that the index with all hashes needs no document.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha512

import orjson

from fastapi_core import __version__
from fastapi_core.openapi import operations, protobuf_v2, protobuf_v3, v2, v3
from fastapi_core.openapi.custom import CustomKind
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.schema import tables

KUBERNETES_VERSION = "1.36"
"""What `info.version` tells."""

_CORE = ("", "v1")
_OTHER_SCHEMES = frozenset({"apidiscovery.k8s.io", "audit.k8s.io"})
"""Groups whose types the reference keeps apart from the others."""


JSON = "json"
PROTOBUF = "protobuf"


class Document:
    """One document in each form it has been asked for."""

    __slots__ = ("_bodies", "_make", "_to_protobuf", "hash", "name", "prepare")

    def __init__(
        self,
        name: str,
        hash: str,
        make: Callable[[], v3.Document],
        to_protobuf: Callable[[v3.Document], bytes] = protobuf_v3.encode,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self.hash = hash
        self._make = make
        self._to_protobuf = to_protobuf
        self._bodies: dict[str, bytes] = {}
        self.prepare = prepare
        """Gets what `body` is made from, where that is not at hand."""

    def ready(self, form: str = JSON) -> bool:
        """True once `body` costs nothing."""
        return form in self._bodies

    def body(self, form: str = JSON) -> bytes:
        """The document as JSON or PROTOBUF; takes some ten milliseconds the first time (any thread may call it)."""
        body = self._bodies.get(form)
        if body is None:
            document = self._make()
            body = self._bodies[form] = orjson.dumps(document) if form == JSON else self._to_protobuf(document)
        return body

    def take_over(self, other: Document) -> None:
        """Keep what another document of the same hash has made."""
        self._bodies.update(other._bodies)


class OpenAPIDocuments:
    """All documents of an immutable set of definitions; made anew, and swapped as a whole, when definitions change.

    Documents of `previous` whose hash is the same are taken over, so that a change in one group costs one group.
    `custom` are the kinds of custom resources, whose schemas are no type tables; `generic` the documents of paths that
    belong to no group.
    """

    def __init__(
        self,
        definitions: Iterable[ResourceDefinition],
        *,
        custom: Iterable[CustomKind] = (),
        generic: Iterable[str] = tuple(operations.GENERIC),
        previous: OpenAPIDocuments | None = None,
    ) -> None:
        own: dict[tuple[str, str], list[CustomKind]] = {}
        for kind in custom:
            own.setdefault((kind.definition.group, kind.definition.version), []).append(kind)
        groups: dict[tuple[str, str], list[ResourceDefinition]] = {}
        for definition in definitions:
            if not definition.custom:
                groups.setdefault((definition.group, definition.version), []).append(definition)
        self.modified = int(time.time())
        """Unix time at which this set was made (Last-Modified)."""
        self._groups = groups
        self._shared: list[Document] = []
        self._plain: dict[tuple[str, str], Document] = {}
        """Documents of built-in group versions without the custom resources in them."""
        if previous is not None and previous._groups == groups:
            self._shared, self._plain = previous._shared, previous._plain
        else:
            names = [group for group in dict.fromkeys(group for group, _ in groups) if group]
            self._shared = [*map(_generic, generic), *map(_group, names)]
            self._plain = {key: _group_version(*key, members, []) for key, members in groups.items()}
        found = list(self._shared)
        found += [
            _group_version(*key, members, own[key]) if key in own else self._plain[key]
            for key, members in groups.items()
        ]
        found += [_group_version(*key, [], kinds) for key, kinds in own.items() if key not in groups]
        self.documents: Mapping[str, Document] = {document.name: document for document in found}
        self.v2 = Document(
            "v2",
            _hash("v2", *(document.hash for document in found)),
            lambda: _whole(groups, own, generic),
            protobuf_v2.encode,
        )
        if previous is not None:
            self._take_over(previous)
        self._list()

    def _list(self) -> None:
        """The index of all documents."""
        paths = {
            name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={document.hash}"}
            for name, document in sorted(self.documents.items())
        }
        self.index: bytes = orjson.dumps({"paths": paths})
        self.index_hash: str = sha512(self.index).hexdigest().upper()

    def _take_over(self, previous: OpenAPIDocuments) -> None:
        for name, document in self.documents.items():
            old = previous.documents.get(name)
            if old is not None and old.hash == document.hash:
                document.take_over(old)
        if previous.v2.hash == self.v2.hash:
            self.v2.take_over(previous.v2)


def _hash(*parts: str) -> str:
    return sha512("\n".join((__version__, KUBERNETES_VERSION, *parts)).encode()).hexdigest().upper()


def _generic(name: str) -> Document:
    return Document(name, _hash(name), lambda: v3.document([operations.GENERIC[name]], [], KUBERNETES_VERSION))


def _group(group: str) -> Document:
    name = f"apis/{group}"
    return Document(name, _hash(name), lambda: v3.document(operations.of_group(group), [], KUBERNETES_VERSION))


def _group_version(group: str, version: str, members: list[ResourceDefinition], custom: list[CustomKind]) -> Document:
    name = f"apis/{group}/{version}" if group else f"api/{version}"

    def make() -> v3.Document:
        # Definitions are described by what knows all built-in groups.
        everywhere = list(dict.fromkeys([_CORE, (group, version)])) if members else _everywhere()
        found = operations.of_group_version(members) if members else []
        found += _operations(custom)
        return v3.document(found, everywhere, KUBERNETES_VERSION, custom)

    return Document(name, _hash(name, *map(_inputs, members), *(kind.digest for kind in custom)), make)


def _operations(custom: list[CustomKind]) -> list[operations.Operation]:
    return operations.of_group_version(kind.definition for kind in custom) if custom else []


def _inputs(definition: ResourceDefinition) -> str:
    """What a document takes from a definition, as text."""
    subresources = [(sub.name, sub.verbs, sub.kind, sub.group, sub.version) for sub in definition.subresources.values()]
    return repr(
        (
            definition.kind,
            definition.list_kind,
            definition.plural,
            definition.namespaced,
            definition.verbs,
            definition.return_deleted,
            subresources,
        )
    )


def _whole(
    groups: Mapping[tuple[str, str], list[ResourceDefinition]],
    own: Mapping[tuple[str, str], list[CustomKind]],
    generic: Iterable[str],
) -> v2.Document:
    found = [operations.GENERIC[name] for name in generic]
    for group in dict.fromkeys(group for group, _ in groups):
        if group:
            found += operations.of_group(group)
    for members in groups.values():
        found += operations.of_group_version(members)
    for kinds in own.values():
        found += _operations(kinds)
    custom = [kind for kinds in own.values() for kind in kinds]
    return v2.document(found, _everywhere(), KUBERNETES_VERSION, custom)


def _everywhere() -> list[tuple[str, str]]:
    """Every group version with types of its own, the core group first."""
    found = set()
    for group_version in tables.group_versions():
        group, _, version = group_version.partition("/")
        if tables.info(group_version)[0] != "library" and group not in _OTHER_SCHEMES:
            found.add(("" if group == "core" else group, version))
    return sorted(found)
