"""`Extension`: what an author makes first, declares kinds on, and runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from fastapi_core.extension.checks import version_problem
from fastapi_core.extension.declaration import Declaration, KindOptions, declare
from fastapi_core.extension.description import (
    GROUP_PRIORITY,
    VERSION_PRIORITY,
    Description,
    GroupVersion,
    ServedResource,
)
from fastapi_core.extension.kinds import Kind, Resource, Storage, Stored
from fastapi_core.extension.models import ModelError
from fastapi_core.schema.types import Type

if TYPE_CHECKING:
    from fastapi_core.authn.base import Authenticator
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.extension.options import Options
    from fastapi_core.server.generic import GenericServer

T = TypeVar("T")
Tree = dict[str, Any]
Task = Callable[[], Awaitable[None]]
K = TypeVar("K", bound=Task)


class Extension:
    """An API server of your own kinds.

    `group_version` (`db.example.com/v1`) is that of its kinds unless they say otherwise. `name` is a DNS label for the
    Service it stands behind (default: the group with dashes), `namespace` that of the Service.
    """

    def __init__(
        self,
        group_version: str,
        *,
        name: str = "",
        namespace: str = "default",
        group_priority: int = GROUP_PRIORITY,
        version_priority: int = VERSION_PRIORITY,
    ) -> None:
        given = GroupVersion.parse(group_version)
        problem = version_problem(given.version)
        if problem:
            raise ValueError(f"{group_version!r}: {problem}")
        self.group_version = GroupVersion(given.group, given.version, group_priority, version_priority)
        self.name = name or given.group.replace(".", "-")
        self.namespace = namespace
        self.kinds: list[Kind[Any]] = []
        self.tasks: list[Task] = []

    @overload
    def kind(
        self, model: type[T], plural: str, *, storage: Storage[T] | None = None, **options: Unpack[KindOptions]
    ) -> Resource[T]: ...
    @overload
    def kind(
        self,
        model: Mapping[str, Any] | Type,
        plural: str,
        *,
        storage: Storage[Tree] | None = None,
        **options: Unpack[KindOptions],
    ) -> Resource[Tree]: ...
    def kind(
        self, model: Any, plural: str, *, storage: Storage[Any] | None = None, **options: Unpack[KindOptions]
    ) -> Resource[Any]:
        """Declare a kind that your functions answer for, or the methods of a `Storage`.

        `model` is a dataclass or a pydantic model with a `metadata: ObjectMeta`, an OpenAPI schema, or a type table;
        with the last two objects are plain trees. The options are those of `KindOptions`.
        """
        declared = self._declared(model, plural, options, stored=False)
        made: Resource[Any] = Resource(declared, storage.handlers() if storage is not None else None)
        self.kinds.append(made)
        return made

    @overload
    def stored(self, model: type[T], plural: str, **options: Unpack[KindOptions]) -> Stored[T]: ...
    @overload
    def stored(self, model: Mapping[str, Any] | Type, plural: str, **options: Unpack[KindOptions]) -> Stored[Tree]: ...
    def stored(self, model: Any, plural: str, **options: Unpack[KindOptions]) -> Stored[Any]:
        """Declare a kind whose objects the framework keeps (`--data-dir`, else in memory). All verbs are served."""
        made: Stored[Any] = Stored(self._declared(model, plural, options, stored=True))
        self.kinds.append(made)
        return made

    def background(self, task: K) -> K:
        """Decorator: run the coroutine function while the server runs, from when it listens on.

        It is cancelled at the end. One that fails is logged and begun again after a pause; one that returns is done.
        """
        self.tasks.append(task)
        return task

    @property
    def description(self) -> Description:
        """What is served, for the registration. Raises ModelError for kinds that cannot be."""
        from fastapi_core.extension.serving import definitions

        found: list[ServedResource] = []
        versions: dict[tuple[str, str], GroupVersion] = {}
        own = self.group_version
        for d in (d for kind in self.kinds for d in definitions(kind)):
            versions.setdefault(
                (d.group, d.version), GroupVersion(d.group, d.version, own.group_priority, own.version_priority)
            )
            found.append(ServedResource(d.group, d.version, d.plural, d.kind, d.namespaced, d.verbs))
            found += [
                ServedResource(d.group, d.version, f"{d.plural}/{sub.name}", sub.kind, d.namespaced, sub.verbs)
                for sub in d.subresources.values()
            ]
        return Description(self.name, self.namespace, tuple(versions.values()), tuple(found))

    async def compose(
        self,
        options: Options,
        *,
        authenticator: Authenticator | None = None,
        authorizer: Authorizer | None = None,
        plain: bool = False,
    ) -> GenericServer:
        """A server ready to `start()`. Given an authenticator and an authorizer nothing is delegated; `plain` serves
        HTTP without TLS. Both are for tests. Raises OptionsError, OSError, StorageError."""
        from fastapi_core.extension.composition import compose

        return await compose(self, options, authenticator=authenticator, authorizer=authorizer, plain=plain)

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """The command line: `[serve] [flags]`, `register [flags]`, `unregister [flags]`. Answers the exit code."""
        from fastapi_core.extension.cli import main

        return main(self, arguments)

    def _declared(self, model: Any, plural: str, options: KindOptions, *, stored: bool) -> Declaration[Any]:
        declared = declare(model, plural, options, self.group_version)
        for other in self.kinds:
            d = other.declaration
            if d.group_version == declared.group_version and (d.plural == plural or d.kind == declared.kind):
                raise ModelError(f"{declared.group_version} has {d.kind} ({d.plural}) already")
            if d.group == declared.group and d.plural != plural:
                taken = {d.plural, d.singular, *d.short_names}.intersection(declared.short_names)
                taken |= {plural, declared.singular}.intersection(d.short_names)
                if taken:
                    name = min(taken)
                    raise ModelError(f"{declared.kind} and {d.kind} of {d.group} would both be called {name!r}")
            clash = set(d.short_names).intersection(declared.short_names) if d.group != declared.group else None
            if clash and d.plural != plural:
                # Clients look a short name up in all groups and take the first they find.
                raise ModelError(f"{declared.kind} and {d.kind} would both be called {min(clash)!r}")
            if stored and isinstance(other, Stored) and d.key_prefix == declared.key_prefix:
                raise ModelError(f"{plural} of {d.group} are kept in version {d.version} already")
        return declared
